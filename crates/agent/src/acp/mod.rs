//! The Agent Client Protocol, version 1, and what version 2 changes about the end of a turn.
//!
//! JSON-RPC, a message a line. Ids of our requests are the numbers of the inputs that carry them; ids of the
//! agent's are kept as the text they were. The types are ours: those of the schema crate are closed where an
//! agent may surprise (updates, stop reasons), do not keep what they do not know, take longer to build than
//! all of this crate, and turn on an order of JSON members for every other crate of the workspace.

mod answer;
mod options;
mod parse;
mod tool_call;
mod update;
mod write;

pub(crate) use options::listed;
pub use options::{Offered, SessionOptions, Unoffered};

use rekindle_domain::event::{InputKind, Raw};
use rekindle_holder::journal::OutFlags;

use crate::json::Object;
use crate::profile::{Answer, AnswerError, Capabilities, Open, Outgoing, Profile, Sent, Setting};
use crate::said::{Asked, Request, Said};

/// The version of the protocol that we ask for.
pub const VERSION: u64 = 1;

/// A message longer than this is divided, so that it fits into a blob even if every byte needs an escape.
const MESSAGE_BYTES: usize = 8 << 20;

/// Longest name that an agent may give to something: real ones have some dozens of bytes, and a record has a
/// limit.
pub(crate) const MAX_NAME: usize = 4 << 10;

/// The profile, and how we introduce ourselves.
#[derive(Debug, Clone)]
pub struct Acp {
    client_name: String,
    client_version: String,
}

impl Acp {
    /// Returns the profile of a client.
    pub fn new(client_name: impl Into<String>, client_version: impl Into<String>) -> Acp {
        Acp { client_name: client_name.into(), client_version: client_version.into() }
    }
}

impl Default for Acp {
    fn default() -> Acp {
        Acp::new("rekindle", env!("CARGO_PKG_VERSION"))
    }
}

impl Profile for Acp {
    fn name(&self) -> &'static str {
        "acp"
    }

    fn capabilities(&self, agent: Option<&str>) -> Capabilities {
        let agent = agent.and_then(Object::parse).unwrap_or_default();
        // Version 2 has them all below `session`, and always offers to resume.
        let second = agent.raw("session").is_some();
        let session = if second { agent.object("session") } else { agent.object("sessionCapabilities") };
        let prompt = agent.object("promptCapabilities");
        // `{}` says yes, as does any object; absent, `null` and `false` say no.
        let offers =
            |object: &Object<'_>, name: &str| object.raw(name).is_some_and(|raw| raw.get() != "false");
        Capabilities {
            cursor: true,
            load: offers(&agent, "loadSession"),
            resume: second || offers(&session, "resume"),
            fork: offers(&session, "fork"),
            cancel: true,
            one_prompt_at_a_time: true,
            images: offers(&prompt, "image") || offers(&session.object("prompt"), "image"),
            ..Capabilities::default()
        }
    }

    fn parse_line<'a>(
        &self,
        line: &'a str,
        flags: OutFlags,
        asked: &dyn Fn(u64) -> Option<Request>,
    ) -> Vec<Said<'a>> {
        parse::line(line, flags, asked)
    }

    fn sent(&self, what: InputKind, line: &[u8]) -> Sent {
        let text = std::str::from_utf8(line).unwrap_or_default();
        let Some(object) = Object::parse(text) else { return Sent::of_kind(what) };
        let method = object.text("method");
        let request = match method.as_deref() {
            Some("initialize") => Request::Greet,
            Some("session/new") => Request::New,
            Some("session/load") => Request::Load,
            Some("session/resume") => Request::Resume,
            Some("session/fork") => Request::Fork,
            Some("session/prompt") => Request::Prompt,
            Some("session/set_mode" | "session/set_model" | "session/set_config_option") => Request::Set,
            _ => Request::Other,
        };
        let params = object.object("params");
        let cursor = params.text("sessionId").map(String::from);
        let setting = (request == Request::Set).then(|| write::setting(&params)).flatten();
        let answers = method.is_none().then(|| object.raw("id").map(|id| id.get().to_owned())).flatten();
        Sent { request, cursor, answers, setting, command: None }
    }

    fn asked<'a>(&self, request: &'a str) -> Option<Asked<'a>> {
        answer::asked(&Object::parse(request)?)
    }

    fn message_limit(&self) -> usize {
        MESSAGE_BYTES
    }

    fn greet(&self, input_seq: u64) -> Option<Outgoing> {
        Some(write::initialize(input_seq, &self.client_name, &self.client_version))
    }

    fn open(&self, input_seq: u64, how: Open<'_>, working_dir: &str) -> Option<Outgoing> {
        Some(write::open(input_seq, how, working_dir))
    }

    fn set(&self, input_seq: u64, cursor: &str, setting: Setting<'_>) -> Option<Outgoing> {
        Some(write::set(input_seq, cursor, setting))
    }

    fn prompt(&self, input_seq: u64, cursor: Option<&str>, content: &Raw<'_>) -> Option<Outgoing> {
        Some(write::prompt(input_seq, cursor?, content))
    }

    fn cancel(&self, cursor: Option<&str>) -> Option<Outgoing> {
        Some(write::cancel(cursor?))
    }

    fn answer(&self, request: &Raw<'_>, answer: Answer<'_>) -> Result<Outgoing, AnswerError> {
        answer::write(request, answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_are_objects_and_null_is_no() {
        let acp = Acp::default();
        let cases = [
            (r#"{"loadSession":true,"sessionCapabilities":{"resume":{}}}"#, (true, true, false)),
            (
                r#"{"loadSession":false,"sessionCapabilities":{"resume":null,"list":{},"fork":{}}}"#,
                (false, false, true),
            ),
            (r#"{"sessionCapabilities":{"resume":{"later":1},"fork":false}}"#, (false, true, false)),
            (r#"{"session":{"prompt":{"image":{}}}}"#, (false, true, false)),
            ("[]", (false, false, false)),
        ];
        for (json, expected) in cases {
            let found = acp.capabilities(Some(json));
            assert_eq!((found.load, found.resume, found.fork), expected, "{json}");
        }
        assert!(acp.capabilities(Some(r#"{"session":{"prompt":{"image":{}}}}"#)).images);
        assert!(acp.capabilities(None).one_prompt_at_a_time);
    }

    #[test]
    fn our_own_lines_are_read_for_what_they_ask() {
        let acp = Acp::default();
        let load = acp.open(2, Open::Load("s\"1"), "/repo").expect("a line");
        let sent = acp.sent(load.what, &load.line);
        assert_eq!((sent.request, sent.cursor.as_deref()), (Request::Load, Some("s\"1")));
        let fork = acp.open(2, Open::Fork("s1"), "/repo").expect("a line");
        assert_eq!(acp.sent(fork.what, &fork.line).request, Request::Fork);
        let answer = acp.sent(InputKind::Answer, b"{\"id\": \"7\" ,\"result\":null}");
        assert_eq!((answer.request, answer.answers.as_deref()), (Request::Other, Some("\"7\"")));
        for setting in [
            Setting::Mode("plan".into()),
            Setting::Model("large".into()),
            Setting::Choose("model".into(), "large".into()),
            Setting::Switch("web".into(), true),
        ] {
            let line = acp.set(3, "s1", setting.clone()).expect("a line");
            let sent = acp.sent(line.what, &line.line);
            assert_eq!((sent.request, sent.setting), (Request::Set, Some(setting)));
        }
        // A prompt that is kept apart from the log is still known to be one.
        assert_eq!(acp.sent(InputKind::Prompt, b"").request, Request::Prompt);
    }
}
