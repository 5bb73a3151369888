//! Where a run begins in its session's log, so that it is shown from there on.

use rekindle_domain::event::Event;
use rekindle_domain::line::Line;
use rekindle_wire::view::LogPage;

use crate::{Client, Failure};

/// Records that are looked through at a time for the beginning of a run.
const PAGE: u64 = 256;

/// Finds the record before the one that began a run, its prompt included: pages are read from the newest back.
pub fn find_run_start(client: &Client, id: &str, last_seq: u64, run: &str) -> Result<u64, Failure> {
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
