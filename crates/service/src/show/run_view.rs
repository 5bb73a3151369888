//! A run as it is shown, with why it ended as it did: that is in the log alone, looked for from its end.

use std::io;

use rekindle_domain::event::{CancelReason, Event};
use rekindle_domain::id::RunId;
use rekindle_domain::session::{Checkpoint, End, Run, SessionState, Touched};
use rekindle_store::log::LogReader;
use rekindle_wire::view::{CheckpointView, CheckpointsView, RunState, RunView, TouchedView, UncertainView};
use rekindle_workspace::tree::short_name;

use crate::log_search::find_last;

/// Characters of a reason that are shown.
const SHOWN: usize = 500;

/// Shows a session's latest run, if it had one, with why it ended.
pub fn run_view(session: &SessionState, detail: Option<String>) -> Option<RunView> {
    let run = session.run.as_ref()?;
    let state = match run.end {
        None if run.cancel.is_some() => RunState::Cancelling,
        None if run.waits.is_empty() => RunState::Running,
        None => RunState::Waiting,
        Some(End::Completed) => RunState::Completed,
        Some(End::Failed) => RunState::Failed,
        Some(End::Cancelled) => RunState::Cancelled,
        Some(End::Interrupted { .. }) => RunState::Interrupted,
    };
    let interruption = session.recovery.interruption.as_ref().filter(|cut| cut.run_id == run.run_id);
    let uncertain = interruption.map(|cut| UncertainView {
        turn: cut.uncertain_turn,
        tool_calls: cut.uncertain.iter().map(Into::into).collect(),
    });
    let uncertain = uncertain.filter(|uncertain| uncertain.turn || !uncertain.tool_calls.is_empty());
    let resumable = interruption.is_some() && run.cancel.is_none() && !session.closed;
    let Run { run_id, started_at, ended_at, attempt, .. } = *run;
    let touched = run.checkpoints.end.and_then(|end| end.touched);
    let files_touched = touched.map(|Touched { files, lines_added, lines_removed }| TouchedView {
        files,
        lines_added,
        lines_removed,
    });
    let checkpoints = CheckpointsView {
        start: run.checkpoints.start.map(checkpoint_view),
        end: run.checkpoints.end.map(checkpoint_view),
    };
    Some(RunView {
        run_id,
        state,
        started_at,
        ended_at,
        attempt,
        detail,
        resumable,
        uncertain,
        checkpoints,
        files_touched,
        drift: run.drift.as_deref().cloned(),
        budget: run.budget,
    })
}

fn checkpoint_view(checkpoint: Checkpoint) -> CheckpointView {
    let Checkpoint { tree, how, not_taken, .. } = checkpoint;
    CheckpointView { snapshot: tree.as_ref().map(short_name), tree, how, not_taken }
}

/// Finds why a session's latest run ended as it did, if it ended.
pub fn run_end_reason(session: &SessionState, log: &LogReader) -> Option<String> {
    let run = session.run.as_ref()?;
    // A cancel that came after the cut took back what was owed; it is not what cut the run.
    let cut = matches!(run.end?, End::Interrupted { .. });
    find(log, run.run_id, cut).ok()?
}

fn find(log: &LogReader, run: RunId, cut: bool) -> io::Result<Option<String>> {
    let found = find_last(log, |line| {
        let about_run = line.kind.starts_with("run.") && !(cut && line.kind == "run.cancel_requested");
        about_run.then(|| end_reason(&line.event().ok()?, run)).flatten()
    });
    Ok(found?.flatten().map(|why| one_line(&why)))
}

/// Returns what an event says of why a run ended, or that there is nothing more to look for; nothing of any other event.
fn end_reason(event: &Event<'_>, run: RunId) -> Option<Option<String>> {
    match event {
        Event::RunFailed(failed) if failed.run_id == run => Some(Some(failed.error.clone().into_owned())),
        // Who wanted a run to end stands in the record that asked for it, which is before that of the end.
        Event::RunCancelRequested(request) if request.run_id == Some(run) => Some(match request.why {
            CancelReason::StopAll => Some("because everything was stopped".into()),
            CancelReason::NewMessage => Some("because a new message came".into()),
            CancelReason::WaitTimeout => Some("because no answer came in time".into()),
            CancelReason::Deadline => Some("because its deadline has passed".into()),
            CancelReason::Budget => Some("because its budget is used up".into()),
            CancelReason::User | CancelReason::Imported | CancelReason::Unknown => {
                request.by.as_ref().map(|who| format!("by {who}"))
            }
        }),
        Event::RunInterrupted(cut) if cut.run_id == run => Some(Some(cut.why())),
        Event::RunCompleted(completed) if completed.run_id == run => {
            Some(completed.unusual_stop().map(Into::into))
        }
        Event::RunStarted(started) if started.run_id == run => Some(None),
        _ => None,
    }
}

/// Returns the beginning of a reason in one line.
fn one_line(why: &str) -> String {
    let line = why.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use rekindle_domain::line::Line;

    use super::*;

    #[test]
    fn a_run_says_why_it_ended() {
        let run: RunId = "run_2".parse().expect("an id");
        for (line, expected) in [
            (r#"{"seq":9,"ts":"","kind":"run.failed","run_id":"run_2","error":"no\nroom"}"#, Some("no room")),
            (
                r#"{"seq":8,"ts":"","kind":"run.cancel_requested","run_id":"run_2","by":"local","why":"user"}"#,
                Some("by local"),
            ),
            (
                r#"{"seq":8,"ts":"","kind":"run.cancel_requested","run_id":"run_2","by":"local","why":"stop_all"}"#,
                Some("because everything was stopped"),
            ),
            (
                r#"{"seq":9,"ts":"","kind":"run.interrupted","run_id":"run_2","reason":"agent_exit","detail":"signal 9"}"#,
                Some("the agent's process ended (signal 9)"),
            ),
            (
                r#"{"seq":9,"ts":"","kind":"run.completed","run_id":"run_2","stop_reason":"max_tokens"}"#,
                Some("max_tokens"),
            ),
            (r#"{"seq":9,"ts":"","kind":"run.completed","run_id":"run_2","stop_reason":"end_turn"}"#, None),
            (r#"{"seq":9,"ts":"","kind":"run.started","run_id":"run_2","boot_id":"boot_1"}"#, None),
        ] {
            let line = Line::parse(line.as_bytes()).expect("a line");
            let event = line.event().expect("an event");
            let why = end_reason(&event, run).expect("it is about the run").map(|why| one_line(&why));
            assert_eq!(why.as_deref(), expected, "{event:?}");
            assert_eq!(super::end_reason(&event, "run_1".parse().expect("an id")), None, "{event:?}");
        }
        let silent =
            Line::parse(br#"{"seq":9,"ts":"","kind":"run.cancelled","run_id":"run_2"}"#).expect("a line");
        assert_eq!(
            end_reason(&silent.event().expect("an event"), run),
            None,
            "who asked for it is looked for"
        );
        assert_eq!(one_line(&"x".repeat(SHOWN + 1)).chars().count(), SHOWN + 1);
        assert_eq!(one_line(&"x".repeat(SHOWN)).chars().count(), SHOWN);
    }
}
