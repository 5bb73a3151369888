//! Tasks as a table that fits the terminal.

use std::io::Write;

use anstyle::Style;
use rekindle_client::failure::Failure;
use rekindle_domain::event::TaskStatus;
use rekindle_domain::time::Timestamp;
use rekindle_terminal::output::{self, BAD, BOLD, COURSE, DIM, GOOD, PLAIN, WARN, ago, cut, plural, styled};
use rekindle_terminal::sanitise;
use rekindle_wire::view::TaskView;

use crate::short_id::{short, short_len};
use crate::tree::tree;

/// Where there is less room than this, a task's words are left out.
const LEAST_WORDS: usize = 8;

/// Returns the word for a status, as lists of sessions have it.
pub(super) fn status_word(status: TaskStatus) -> &'static str {
    match status {
        TaskStatus::WaitingInput => "waiting",
        other => other.as_str(),
    }
}

/// Writes a heading, and a line for each task, and below it what someone should know; parts of a task are indented below it.
pub fn write_tasks(out: &mut dyn Write, tasks: &[TaskView], now: Timestamp) -> Result<(), Failure> {
    let len = short_len(tasks.iter().map(|task| task.id.as_str()));
    let tasks = tree(tasks, |task| task.id, |task| task.parent_id);
    if tasks.is_empty() {
        return Ok(());
    }
    let heading = output::heading(&["TASK", "STATUS", "SINCE", "AGENT"]);
    let rows: Vec<_> =
        [heading].into_iter().chain(tasks.iter().map(|(depth, task)| row(task, *depth, len, now))).collect();
    let (lines, used) = output::table(&rows);
    let mut lines = lines.into_iter();
    let room = output::width().saturating_sub(used);
    let title = if room >= LEAST_WORDS { "TITLE" } else { "" };
    if let Some(heading) = lines.next() {
        writeln!(out, "{}", format!("{heading}{}", styled(DIM, title)).trim_end())?;
    }
    for ((_, task), mut line) in tasks.into_iter().zip(lines) {
        if room >= LEAST_WORDS {
            line.push_str(&cut(&what(task), room));
        }
        writeln!(out, "{}", line.trim_end())?;
        if let Some(why) = why(task) {
            let text = cut(&sanitise::line(why), output::width().saturating_sub(4));
            writeln!(
                out,
                "    {}",
                styled(if task.status == TaskStatus::Pending { DIM } else { style(task.status) }, text)
            )?;
        }
    }
    Ok(())
}

/// Returns what a task is about, and how far it has come: its plan, and what its agent said last.
fn what(task: &TaskView) -> String {
    let mut text = sanitise::line(&task.title);
    let Some(progress) = &task.progress else { return text };
    if let Some(plan) = &progress.plan {
        text.push_str(&format!(" [{}/{}]", plan.done, plan.total));
    }
    let at = progress.plan.as_ref().and_then(|plan| plan.now.as_deref());
    if let Some(words) = at.filter(|_| !task.status.is_ended()).or(progress.last_words.as_deref()) {
        text.push_str(": ");
        text.push_str(&sanitise::line(words));
    }
    text
}

/// Returns what someone should know of a task, beside where it stands.
pub(super) fn why(task: &TaskView) -> Option<&str> {
    match task.status {
        TaskStatus::Pending => task.waits_for.as_deref().filter(|why| *why != "its turn"),
        TaskStatus::Completed => None,
        _ => task.reason.as_deref().filter(|reason| !reason.is_empty()),
    }
}

fn row(task: &TaskView, depth: usize, len: usize, now: Timestamp) -> Vec<(Style, String)> {
    let status = match task.position {
        Some(position) => format!("{} #{position}", status_word(task.status)),
        None if task.progress.as_ref().is_some_and(|progress| progress.stalled) => "stalled".to_owned(),
        None => status_word(task.status).to_owned(),
    };
    vec![
        (BOLD, format!("{}{}", "  ".repeat(depth), short(task.id.as_str(), len))),
        (style(task.status), status),
        (DIM, ago(task.started_at.unwrap_or(task.created_at), now)),
        (PLAIN, sanitise::line(&task.agent)),
    ]
}

/// Returns how a status is shown.
pub(super) fn style(status: TaskStatus) -> Style {
    match status {
        TaskStatus::Pending => DIM,
        TaskStatus::Running => COURSE,
        TaskStatus::WaitingInput => WARN,
        TaskStatus::Completed => GOOD,
        TaskStatus::Failed | TaskStatus::Cancelled => BAD,
    }
}

/// Says how many there are, and where they stand.
pub fn count_text(tasks: &[TaskView]) -> String {
    let each = TaskStatus::ALL.into_iter().filter_map(|status| {
        let count = tasks.iter().filter(|task| task.status == status).count();
        (count > 0).then(|| format!("{count} {}", status_word(status)))
    });
    let each: Vec<String> = each.collect();
    let all = styled(BOLD, plural(tasks.len() as u64, "task"));
    if each.is_empty() { all } else { format!("{all}: {}", each.join(", ")) }
}
