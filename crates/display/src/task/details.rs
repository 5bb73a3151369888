//! One task, whole: where it stands and why, its attempts, what it used, its session.

use std::io::Write;

use rekindle_client::clock::SystemClock;
use rekindle_client::failure::Failure;
use rekindle_domain::event::FilesTouched;
use rekindle_domain::time::Clock;
use rekindle_terminal::output::{BOLD, DIM, plural, styled, when};
use rekindle_terminal::sanitise;
use rekindle_wire::view::{TaskUsage, TaskView, WorktreeView};

use super::table::{status_word, style, why};
use crate::hints::ours;
use crate::worktree_text::worktree_text;

fn write_line(out: &mut dyn Write, name: &str, text: &str) -> Result<(), Failure> {
    writeln!(out, "  {} {text}", styled(DIM, format_args!("{name:<10}")))?;
    Ok(())
}

/// Writes what became of a task's worktree, below what is known of the task.
pub fn write_worktree(out: &mut dyn Write, worktree: &WorktreeView) -> Result<(), Failure> {
    write_line(out, "worktree", &sanitise::line(&worktree_text(worktree)))
}

/// Writes what is known of a task.
pub fn write_task(out: &mut dyn Write, task: &TaskView) -> Result<(), Failure> {
    let now = SystemClock.now();
    writeln!(out, "{}  {}", styled(BOLD, task.id), sanitise::line(&task.title))?;
    let because = why(task).map(|why| format!(": {}", sanitise::line(why))).unwrap_or_default();
    writeln!(out, "  {}{because}", styled(style(task.status), status_word(task.status)))?;
    let mut line = |name: &str, text: String| write_line(out, name, &text);
    if let Some(position) = task.position {
        line("turn", format!("number {position} in the queue"))?;
    }
    line("agent", format!("{} in {}", sanitise::line(&task.agent), sanitise::line(&task.working_dir)))?;
    if let Some(branch) = &task.branch {
        line("branch", sanitise::line(branch))?;
    }
    if let Some(run) = &task.pipeline_run {
        line("run", ours(format_args!("pipeline show {}", sanitise::line(run))).to_string())?;
    } else {
        line("attempt", format!("{} of {}", task.attempt, task.max_attempts))?;
    }
    if let Some(parent) = task.parent_id {
        line("part of", ours(format_args!("task show {parent}")).to_string())?;
    }
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
