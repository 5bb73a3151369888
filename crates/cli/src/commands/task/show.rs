//! `rekindle task show`: one task, whole.

use std::io::Write;

use rekindle_client::clock::SystemClock;
use rekindle_client::{Exit, Failure};
use rekindle_display::hints::ours;
use rekindle_display::worktree_text::worktree_text;
use rekindle_domain::event::FilesTouched;
use rekindle_domain::time::Clock;
use rekindle_terminal::output::{BOLD, DIM, plural, styled, when};
use rekindle_terminal::sanitise;
use rekindle_wire::view::{TaskUsage, TaskView};

use super::table::{style, why};
use super::task_arg::TaskArg;
use super::worktree::in_its_place;
use crate::commands::Context;

/// Show a task: where it stands and why, its attempts, its session
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle task show 01khz0p6r8
  rekindle task show 01khz0p6r8 --json | jq -r .session_id")]
pub(super) struct Args {
    #[command(flatten)]
    task: TaskArg,
}

pub(super) fn run(context: &Context, args: &Args) -> Result<Exit, Failure> {
    let client = context.daemon_or_start()?;
    let id = args.task.find(&client)?;
    let task: TaskView = client.get(&format!("/api/tasks/{id}"))?;
    let json = serde_json::to_string(&task).map_err(|error| Failure::failed("output", error))?;
    // What became of its worktree is the session's to tell; one that is gone tells nothing.
    let session = task.session_id.filter(|_| task.branch.is_some() && !context.json);
    let session = session.and_then(|session| in_its_place(&client, session).ok());
    let session = session.and_then(|session| client.session(session.as_str()).ok());
    let worktree = session.and_then(|session| session.worktree);
    context.print(&json, |out| {
        write_task(out, &task)?;
        match &worktree {
            Some(worktree) => write_line(out, "worktree", &sanitise::line(&worktree_text(worktree))),
            None => Ok(()),
        }
    })
}

fn write_line(out: &mut dyn Write, name: &str, text: &str) -> Result<(), Failure> {
    writeln!(out, "  {} {text}", styled(DIM, format_args!("{name:<10}")))?;
    Ok(())
}

/// Writes what is known of a task.
pub(super) fn write_task(out: &mut dyn Write, task: &TaskView) -> Result<(), Failure> {
    let now = SystemClock.now();
    writeln!(out, "{}  {}", styled(BOLD, task.id), sanitise::line(&task.title))?;
    let because = why(task).map(|why| format!(": {}", sanitise::line(why))).unwrap_or_default();
    writeln!(out, "  {}{because}", styled(style(task.status), task.status.as_str()))?;
    let mut line = |name: &str, text: String| write_line(out, name, &text);
    if let Some(position) = task.position {
        line("turn", format!("number {position} of those that wait"))?;
    }
    line("agent", format!("{} in {}", sanitise::line(&task.agent), sanitise::line(&task.working_dir)))?;
    if let Some(branch) = &task.branch {
        line("branch", sanitise::line(branch))?;
    }
    line("attempt", format!("{} of {}", task.attempt, task.max_attempts))?;
    line(
        "asked for",
        format!("{} by {}", when(task.created_at, now), task.created_by.as_deref().unwrap_or("somebody")),
    )?;
    if let Some(at) = task.started_at {
        line("begun", when(at, now))?;
    }
    if let Some(at) = task.ended_at {
        line("ended", when(at, now))?;
    }
    if let Some(progress) = &task.progress {
        let said = progress.last_words.as_deref().map(|words| format!("; {}", sanitise::line(words)));
        let turns = plural(progress.turns.into(), "turn");
        let calls = plural(progress.tool_calls.into(), "tool call");
        line("progress", format!("{turns}, {calls}{}", said.unwrap_or_default()))?;
        if let Some(plan) = &progress.plan {
            let now = plan.now.as_deref().map(|now| format!(": {}", sanitise::line(now)));
            line("plan", format!("{} of {} steps{}", plan.done, plan.total, now.unwrap_or_default()))?;
        }
        if let Some(used) = used(&progress.usage) {
            line("used", used)?;
        }
    }
    if let Some(files) = &task.files_touched {
        let FilesTouched { total, lines_added, lines_removed, .. } = files;
        line("files", format!("{total} changed, +{lines_added} -{lines_removed}"))?;
    }
    if let Some(exit) = task.exit.as_deref().filter(|exit| *exit != "0") {
        line("exit", exit.to_owned())?;
    }
    for after in &task.after {
        line("after", format!("{} is {}", after.task_id, after.condition.as_str()))?;
    }
    if let Some(session) = task.session_id {
        line("session", ours(format_args!("attach {session}")).to_string())?;
    }
    Ok(())
}

/// Says what a task has used; nothing if no agent told anything.
fn used(usage: &TaskUsage) -> Option<String> {
    let tokens = |tokens: Option<u64>, name: &str| tokens.map(|tokens| format!("{tokens} tokens {name}"));
    let cost = usage.cost.map(|cost| format!("cost {cost:.2}"));
    let told = [tokens(usage.input_tokens, "read"), tokens(usage.output_tokens, "written"), cost];
    let told: Vec<String> = told.into_iter().flatten().collect();
    (!told.is_empty()).then(|| told.join(", "))
}
