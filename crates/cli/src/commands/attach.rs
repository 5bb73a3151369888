//! `rekindle attach`: watches a session from the beginning of its latest run to that run's end.

use rekindle_client::{Client, Exit, Failure};
use rekindle_display::hints::ours;
use rekindle_display::live::Goal;
use rekindle_domain::line::Line;
use rekindle_wire::view::{LogPage, RunState};

use super::Context;
use crate::session_arg::SessionArg;

/// Records that are looked through at a time for the beginning of a run.
const PAGE: u64 = 256;

/// Watch a session: what its latest run did, and does
///
/// The agent's answer goes to stdout, everything else to stderr. Ctrl-C leaves and the agent works on; Esc cancels
/// the run. The exit code is that of the run: 0 completed, 1 failed or cancelled, 3 interrupted, 4 waiting.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle attach
  rekindle attach 01khz0p6r8 --all
  rekindle attach 01khz0p6r8 > answer.md")]
pub(crate) struct Args {
    #[command(flatten)]
    session: SessionArg,

    /// Begin with the session's first record
    #[arg(long)]
    all: bool,
}

pub(super) fn run(context: &Context, args: &Args) -> Result<Exit, Failure> {
    let client = context.daemon_or_start()?;
    let id = args.session.find_live(context, &client)?;
    let session = client.session(&id)?;
    let goal = match &session.run {
        // What is held keeps those behind it waiting too.
        Some(run) if session.queued > 0 && session.held.is_none() && exit_is_known(run.state) => Goal::Next,
        Some(run) => Goal::Run(run.run_id.to_string()),
        None if session.queued > 0 => Goal::Next,
        None => {
            anstream::eprintln!("nothing was asked of it yet: {}", ours(format_args!("send {id} TEXT")));
            return Ok(Exit::Ok);
        }
    };
    let after = match (&goal, args.all) {
        (_, true) => 0,
        (Goal::Run(run), false) => find_run_start(&client, &id, session.last_seq, run)?,
        (_, false) => session.last_seq,
    };
    context.watch(&client, id, after, goal)
}

/// Tells whether a run has ended.
fn exit_is_known(state: RunState) -> bool {
    matches!(state, RunState::Completed | RunState::Failed | RunState::Cancelled | RunState::Interrupted)
}

/// Finds the record before the one that began a run, its prompt included: pages are read from the newest back.
fn find_run_start(client: &Client, id: &str, last_seq: u64, run: &str) -> Result<u64, Failure> {
    let mut after = last_seq;
    while after > 0 {
        after = after.saturating_sub(PAGE);
        let page: LogPage = client.get(&format!("/api/sessions/{id}/log?after={after}&limit={PAGE}"))?;
        let lines = page.records.iter().filter_map(|raw| Line::parse(raw.get().as_bytes()).ok());
        if let Some(found) = run_start(lines, run) {
            return Ok(found);
        }
    }
    Ok(0)
}

/// Returns the number before that of the prompt that began a run, or of its beginning.
fn run_start<'a>(lines: impl Iterator<Item = Line<'a>>, run: &str) -> Option<u64> {
    use rekindle_domain::event::Event;
    let mut prompts = Vec::new();
    for line in lines {
        match line.event() {
            Ok(Event::MessageUser(message)) => prompts.push((message.message_id, line.seq)),
            Ok(Event::RunStarted(started)) if started.run_id.as_str() == run => {
                let prompt = prompts.iter().find(|(id, _)| Some(*id) == started.message_id);
                return Some(prompt.map_or(line.seq, |(_, seq)| *seq).saturating_sub(1));
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_begins_with_its_prompt() {
        let lines = [
            r#"{"seq":4,"ts":"","kind":"message.user","message_id":"msg_1","content":"a"}"#,
            r#"{"seq":5,"ts":"","kind":"message.user","message_id":"msg_2","content":"b"}"#,
            r#"{"seq":6,"ts":"","kind":"run.started","run_id":"run_1","boot_id":"boot_1","message_id":"msg_1"}"#,
            r#"{"seq":9,"ts":"","kind":"run.started","run_id":"run_2","boot_id":"boot_1","message_id":"msg_2"}"#,
            r#"{"seq":12,"ts":"","kind":"run.started","run_id":"run_3","boot_id":"boot_1"}"#,
        ];
        let parsed = || lines.iter().filter_map(|line| Line::parse(line.as_bytes()).ok());
        assert_eq!(run_start(parsed(), "run_1"), Some(3));
        assert_eq!(run_start(parsed(), "run_2"), Some(4));
        assert_eq!(run_start(parsed(), "run_3"), Some(11));
        assert_eq!(run_start(parsed(), "run_4"), None);
    }
}
