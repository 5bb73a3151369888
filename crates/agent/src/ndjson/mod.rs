//! Agents that take a command and tell what comes of it, in JSON objects, one a line: no session of their own, no questions, no
//! greeting. A command ends with the first event about it whose type says so.

mod command;
mod parse;

pub use command::{Command, Version};

use rekindle_domain::event::{InputKind, Raw};
use rekindle_holder::journal::OutFlags;

use crate::profile::{Capabilities, Outgoing, Profile, Sent, SentCommand};
use crate::said::{Asked, Request, Said};

/// The notice of an event that ends no command: it is on the way, or about another one.
pub const EVENT: &str = "event";
/// The notice of the event that ended its command.
pub const TERMINAL_EVENT: &str = "terminal_event";
/// The notice of an event that would have ended a command that had ended before.
pub const LATE_EVENT: &str = "late_event";
/// The notice of a log line.
pub const LOG: &str = "log";
/// The notice of an artifact.
pub const ARTIFACT: &str = "artifact";
/// The notice that says how many heartbeats came: they have no records of their own.
pub const HEARTBEATS: &str = "heartbeats";

/// Messages are no pieces of anything, and so nothing is divided.
const MESSAGE_BYTES: usize = 8 << 20;

/// The profile.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ndjson;

impl Profile for Ndjson {
    fn name(&self) -> &'static str {
        "ndjson"
    }

    fn capabilities(&self, _agent: Option<&str>) -> Capabilities {
        Capabilities { one_prompt_at_a_time: true, ..Capabilities::default() }
    }

    fn parse_line<'a>(
        &self,
        line: &'a str,
        flags: OutFlags,
        _asked: &dyn Fn(u64) -> Option<Request>,
    ) -> Vec<Said<'a>> {
        parse::line(line, flags)
    }

    fn sent(&self, what: InputKind, line: &[u8]) -> Sent {
        let text = std::str::from_utf8(line).unwrap_or_default();
        let command = Command::parse(text)
            .map(|command| SentCommand { message_id: command.message_id, outcomes: command.outcomes });
        Sent { command, ..Sent::of_kind(what) }
    }

    fn asked<'a>(&self, _request: &'a str) -> Option<Asked<'a>> {
        None
    }

    fn message_limit(&self) -> usize {
        MESSAGE_BYTES
    }

    fn ready_at_start(&self) -> bool {
        true
    }

    /// A command is sent as it is, on one line; other words become one.
    fn prompt(&self, input_seq: u64, _cursor: Option<&str>, content: &Raw<'_>) -> Option<Outgoing> {
        let words = content.plain_text();
        let command =
            Command::parse(&words).unwrap_or_else(|| Command::of_words(format!("cmd-{input_seq}"), &words));
        let mut line = command.to_json().into_bytes();
        line.push(b'\n');
        Some(Outgoing { what: InputKind::Prompt, line })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sent_is_known_again() {
        let own = Command { outcomes: vec!["ok".into()], ..Command::of_words("cmd-a-1-2".into(), "do") };
        for (content, expected) in [
            (Raw::text("fix it"), ("cmd-7", Vec::<String>::new())),
            (Raw::text(&own.to_json()), ("cmd-a-1-2", vec!["ok".to_owned()])),
        ] {
            let outgoing = Ndjson.prompt(7, None, &content).expect("a line");
            assert_eq!(outgoing.line.iter().filter(|byte| **byte == b'\n').count(), 1);
            let sent = Ndjson.sent(outgoing.what, &outgoing.line);
            let command = sent.command.expect("a command");
            assert_eq!((command.message_id.as_str(), command.outcomes), expected);
            assert_eq!(sent.request, Request::Prompt);
        }
        assert_eq!(Ndjson.sent(InputKind::Prompt, b"").command, None, "one that is kept apart");
    }
}
