//! Any command as an agent: the prompt is an argument or a line of its input, its output is what it says, its
//! exit code ends the run.
//!
//! Output is kept as it comes, so it may be anything. Lines are gathered into messages of some size: a message
//! a line would drown a log, one for all would keep a long output from being acknowledged until its end.

use rekindle_domain::event::{InputKind, Raw};
use rekindle_holder::journal::OutFlags;

use crate::json::Object;
use crate::profile::{Capabilities, Outgoing, Profile, Sent};
use crate::said::{Asked, Content, Failure, PromptOutcome, Request, Said, Voice};

/// Size from which lines begin a new message: a few screens, and well below what a log keeps inline.
const MESSAGE_BYTES: usize = 64 << 10;

/// What one of a command's arguments is, or ends with behind a `=`, to say that the prompt goes there. Within other words
/// it means nothing: what is put into a shell's script is run by it.
pub const PLACEHOLDER: &str = "{prompt}";

/// The notice of a command that turns out to be an agent.
pub(crate) const JSON_RPC: &str = "json_rpc_output";

/// Tells whether a line is what agents of the Agent Client Protocol say to a prompt that is no message of theirs: an error
/// of JSON-RPC itself. Output that has other messages of the kind in it may be what was asked for.
fn refuses_plain_text(line: &str) -> bool {
    let Some(object) = Object::parse(line.trim()).filter(|object| object.raw("jsonrpc").is_some()) else {
        return false;
    };
    let code = object.object("error").raw("code").and_then(|code| code.get().parse::<i64>().ok());
    code.is_some_and(|code| (-32_768..=-32_600).contains(&code))
}

/// How a command gets its prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptBy {
    /// As one of its arguments.
    Argument,
    /// As a line of its standard input.
    Stdin,
}

/// The profile.
#[derive(Debug, Clone, Copy)]
pub struct Exec {
    /// How the command gets its prompt.
    pub prompt_by: PromptBy,
}

impl Exec {
    /// Returns the profile of a command: its prompt goes where the command says, else to its input.
    pub fn of(command: &[String]) -> Exec {
        let placed = command.iter().skip(1).any(|argument| place(argument).is_some());
        Exec { prompt_by: if placed { PromptBy::Argument } else { PromptBy::Stdin } }
    }
}

/// Returns what stands before the prompt in an argument that wants it.
fn place(argument: &str) -> Option<&str> {
    let before = argument.strip_suffix(PLACEHOLDER)?;
    let fits = before.is_empty() || before.ends_with('=') && !before.contains(char::is_whitespace);
    fits.then_some(before)
}

impl Profile for Exec {
    fn name(&self) -> &'static str {
        "exec"
    }

    fn capabilities(&self, _agent: Option<&str>) -> Capabilities {
        Capabilities { one_prompt_at_a_time: true, one_prompt_ever: true, ..Capabilities::default() }
    }

    fn parse_line<'a>(
        &self,
        line: &'a str,
        flags: OutFlags,
        _asked: &dyn Fn(u64) -> Option<Request>,
    ) -> Vec<Said<'a>> {
        let end = if flags.unterminated { "" } else { "\n" };
        let content = vec![Content::Text(format!("{line}{end}").into())];
        let chunk = Said::Chunk { voice: Voice::Agent, message: None, content, replaces: false };
        let text = refuses_plain_text(line).then(|| "the command answers in JSON-RPC".into());
        let notice =
            text.map(|text| Said::Notice { what: JSON_RPC, text: Some(text), raw: None, update: false });
        std::iter::once(chunk).chain(notice).collect()
    }

    fn sent(&self, what: InputKind, _line: &[u8]) -> Sent {
        Sent::of_kind(what)
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

    fn process_is_turn(&self) -> bool {
        true
    }

    fn prompt_in_command(&self) -> bool {
        self.prompt_by == PromptBy::Argument
    }

    /// The prompt goes instead of each [`PLACEHOLDER`], else to the end.
    fn command(&self, command: &[String], content: &Raw<'_>) -> Vec<String> {
        let mut command = command.to_vec();
        if self.prompt_by == PromptBy::Stdin {
            return command;
        }
        let prompt = content.plain_text();
        let mut placed = false;
        for argument in command.iter_mut().skip(1) {
            if let Some(before) = place(argument) {
                *argument = format!("{before}{prompt}");
                placed = true;
            }
        }
        if !placed {
            command.push(prompt);
        }
        command
    }

    fn input_ends_with_prompt(&self) -> bool {
        true
    }

    fn outcome_of_exit(&self, code: i32) -> Option<PromptOutcome> {
        Some(match code {
            0 => PromptOutcome::Stopped(Some("exit".into())),
            code => PromptOutcome::Failed(Failure {
                code: code.into(),
                message: format!("the command ended with exit code {code}"),
            }),
        })
    }

    fn prompt(&self, _input_seq: u64, _cursor: Option<&str>, content: &Raw<'_>) -> Option<Outgoing> {
        (self.prompt_by == PromptBy::Stdin).then(|| {
            let mut line = content.plain_text().into_bytes();
            line.push(b'\n');
            Outgoing { what: InputKind::Prompt, line }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn the_prompt_goes_where_the_command_wants_it() {
        let exec = Exec { prompt_by: PromptBy::Argument };
        let content = Raw::text("fix it");
        let command = exec.command(&words(&["tool", "{prompt}", "--ask={prompt}", "now"]), &content);
        assert_eq!(command, words(&["tool", "fix it", "--ask=fix it", "now"]));
        assert_eq!(exec.command(&words(&["tool"]), &content), words(&["tool", "fix it"]));
        assert!(exec.prompt(1, None, &content).is_none(), "it is in the command already");

        let stdin = Exec { prompt_by: PromptBy::Stdin };
        assert_eq!(stdin.command(&words(&["tool"]), &content), words(&["tool"]));
        assert_eq!(stdin.prompt(1, None, &content).map(|out| out.line), Some(b"fix it\n".to_vec()));
    }

    #[test]
    fn nothing_is_put_into_a_script() {
        for script in ["rm {prompt}", "X={prompt} make", "x ={prompt}", "{prompt};"] {
            assert_eq!(Exec::of(&words(&["sh", "-c", script])).prompt_by, PromptBy::Stdin, "{script}");
        }
        for argument in ["{prompt}", "--ask={prompt}"] {
            assert_eq!(Exec::of(&words(&["tool", argument])).prompt_by, PromptBy::Argument, "{argument}");
        }
        assert_eq!(Exec::of(&words(&["{prompt}"])).prompt_by, PromptBy::Stdin, "a program is no argument");
    }

    #[test]
    fn an_agent_that_was_given_a_plain_prompt_is_found_out() {
        for (line, found) in [
            (r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}"#, true),
            (r#" {"error":{"code":-32600,"message":"Invalid"},"id":null,"jsonrpc":"2.0"} "#, true),
            (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, false),
            (r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"sign in"}}"#, false),
            (r#"{"error":{"code":-32700}}"#, false),
            ("Parse error", false),
        ] {
            assert_eq!(refuses_plain_text(line), found, "{line}");
        }
    }

    #[test]
    fn blocks_are_read_as_their_text() {
        let blocks =
            serde_json::from_str::<Raw<'_>>(r#"[{"type":"text","text":"a"},{"type":"image"},{"text":"b"}]"#);
        assert_eq!(blocks.expect("blocks").plain_text(), "ab");
        assert_eq!(Raw::text("é\n").plain_text(), "é\n");
    }
}
