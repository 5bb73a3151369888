//! Records such as agents make: single messages of about 300 bytes, and whole turns with their mix of
//! messages, tool calls, totals and ends.

use rekindle_domain::event::{
    AgentLaunching, MessageAgent, MessageUser, Options, Provider, Raw, RunCompleted, RunStarted,
    SessionCreated, ToolCall, ToolUpdate, Usage, UsageUpdated,
};
use rekindle_domain::id::{BootId, HolderId, MessageId, RunId};
use rekindle_domain::line::{Draft, Source};
use serde_json::json;

const TEXT: &str = "The parser drops the last token when the input ends without a newline; I'll add \"flush\" to its end and run the tests again. ";

/// Returns what every session begins with: its creation, and an agent.
pub(crate) fn beginning() -> Vec<Draft> {
    let provider = Provider {
        profile: "acp".into(),
        agent: Some("claude-code".into()),
        model: Some("default".into()),
        command: None,
    };
    let created = SessionCreated {
        parent: None,
        title: "Fix the parser's last token".into(),
        working_dir: "/home/someone/src/project".into(),
        provider,
        options: Options::default(),
        env_names: vec!["PATH".into(), "HOME".into()],
        key: None,
        imported_from: None,
        idempotency_key: None,
        created_at: None,
        forked_from: None,
        restoring: None,
        worktree: None,
    };
    let launching = AgentLaunching {
        holder_id: holder(),
        run_id: None,
        argv: vec!["claude-code-acp".into(), "--quiet".into()],
    };
    vec![created.into(), launching.into()]
}

/// Returns one message that makes a line of about 300 bytes.
pub(crate) fn message(n: u64) -> Draft {
    said(n, None, text(n, 150)).into()
}

/// Returns that many messages.
pub(crate) fn messages(count: usize) -> Vec<Draft> {
    (0..count as u64).map(message).collect()
}

/// Returns a turn of exactly `len` records (at least 4): a prompt, a run, what the agent did, its end.
pub(crate) fn turn(number: u64, len: usize) -> Vec<Draft> {
    let run_id = RunId::mint(number, 7);
    let base = number * len as u64;
    let started = RunStarted {
        run_id,
        boot_id: BootId::mint(0, 1),
        machine_boot: None,
        message_id: Some(MessageId::mint(base, 1)),
        attempt: 1,
        continues: None,
        origin_run_id: None,
        task_id: None,
    };
    let prompt = MessageUser {
        message_id: MessageId::mint(base, 1),
        content: Raw::text(&text(number, 90)),
        idempotency_key: None,
        queued: false,
        wait_id: None,
    };
    let mut drafts: Vec<Draft> = vec![prompt.into(), started.into()];
    for n in 0..len.saturating_sub(4) as u64 {
        drafts.push(sourced(base + n, step(run_id, base, n)));
    }
    let (input_tokens, output_tokens) = (1_000 * number, 100 * number);
    let totals = UsageUpdated { input_tokens, output_tokens, cost: Some(0.25), raw: None };
    drafts.push(sourced(base + len as u64, totals.into()));
    let usage = Some(Usage { input_tokens, output_tokens, cost: Some(0.25) });
    let completed = RunCompleted { run_id, stop_reason: Some("end_turn".into()), usage };
    drafts.push(sourced(base + len as u64 + 1, completed.into()));
    drafts
}

/// Returns records in turns of 20, as many as asked for, rounded up to whole turns.
pub(crate) fn turns(records: usize) -> impl Iterator<Item = Draft> {
    (0..records.div_ceil(20) as u64).flat_map(|number| turn(number, 20))
}

/// One thing an agent does in a turn: two messages, a tool call, its end, and again.
fn step(run_id: RunId, base: u64, n: u64) -> Draft {
    let tool = format!("toolu_01{:016x}", base + n / 4);
    match n % 4 {
        0 | 1 => said(base + n, Some(run_id), text(base + n, 80)).into(),
        2 => {
            let input = json!({"command": "cargo test --workspace parser", "timeout": 120_000});
            let call = ToolCall {
                run_id: Some(run_id),
                tool_call_id: tool.into(),
                title: "Run the parser's tests".into(),
                tool_kind: Some("execute".into()),
                status: Some("pending".into()),
                input: Some("cargo test --workspace parser".into()),
                files: Vec::new(),
                raw: Raw::from_value(&json!({"rawInput": input})).ok(),
            };
            call.into()
        }
        _ => {
            let output = json!([{"type": "content", "content": {"type": "text", "text": text(n, 60)}}]);
            let update = ToolUpdate {
                run_id: Some(run_id),
                tool_call_id: tool.into(),
                title: None,
                status: Some("completed".into()),
                input: None,
                files: Vec::new(),
                raw: Raw::from_value(&json!({"content": output})).ok(),
            };
            update.into()
        }
    }
}

fn said(n: u64, run_id: Option<RunId>, text: String) -> MessageAgent<'static> {
    let message_id = MessageId::mint(1_771_668_000_000 + n, 3);
    MessageAgent { run_id, message_id, content: Raw::text(&text), partial: false }
}

fn sourced(seq: u64, draft: Draft) -> Draft {
    Draft { source: Some(Source(holder(), seq + 1, 0, seq)), ..draft }
}

fn holder() -> HolderId {
    "h_0123456789abcdef0123456789abcdef".parse().expect("a holder's id")
}

/// Text that begins elsewhere each time, so that no two records are alike.
fn text(n: u64, len: usize) -> String {
    let skip = n as usize % TEXT.len();
    TEXT.chars().cycle().skip(skip).take(len).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rekindle_domain::chain::Link;
    use rekindle_domain::line::{Envelope, Line, write};
    use rekindle_domain::session::Replay;

    /// Writes drafts as a log and replays it.
    fn replayed(drafts: &[Draft]) -> (usize, Replay) {
        let session = crate::home::session_id(0);
        let (mut log, mut last) = (Vec::new(), None);
        for (index, draft) in drafts.iter().enumerate() {
            let place =
                Envelope { seq: index as u64 + 1, ts: "2026-02-21T10:00:00.000Z", at: None, more: false };
            last = Some(write(draft, place, Link::new(session, last), &mut log).expect("it can be written"));
        }
        let mut replay = Replay::new(session);
        let mut end = 0;
        for line in log.split_inclusive(|byte| *byte == b'\n') {
            end += line.len() as u64;
            replay.push(&Line::parse(&line[..line.len() - 1]).expect("a line"), end).expect("it follows");
        }
        (log.len(), replay)
    }

    #[test]
    fn turns_are_whole_legal_and_of_realistic_size() {
        let drafts: Vec<Draft> = beginning().into_iter().chain(turns(200)).collect();
        let (bytes, replay) = replayed(&drafts);
        assert_eq!(drafts.len(), 202);
        assert_eq!(replay.oddities, []);
        assert!(replay.state.open_run().is_none());
        let average = bytes / drafts.len();
        assert!((250..=350).contains(&average), "{average} bytes a record");
    }

    #[test]
    fn a_message_makes_a_line_of_about_300_bytes() {
        let drafts: Vec<Draft> = beginning().into_iter().chain(messages(100)).collect();
        let (bytes, _) = replayed(&drafts);
        let average = bytes / drafts.len();
        assert!((280..=320).contains(&average), "{average} bytes a record");
    }
}
