//! What the daemon sends, as far as commands look at it; fields that are not here are passed over. With `--json` its
//! words are printed as they are.

use std::borrow::Cow;

use rekindle_wire::code::{Code, ErrorBody};
use serde::Deserialize;

use crate::failure::{Exit, Failure};
use crate::hint_text::hint_text;

/// A page of a log.
#[derive(Debug, Deserialize)]
pub struct Records {
    /// The records, as they are.
    pub records: Vec<Box<serde_json::value::RawValue>>,
    /// Where the next page begins.
    #[serde(default)]
    pub next: Option<u64>,
}

/// Words that are in no record yet.
#[derive(Debug, Clone, Deserialize)]
pub struct Words {
    /// The message that they are part of.
    pub message_id: String,
    /// Which kind of message.
    #[serde(default)]
    pub kind: String,
    /// The words.
    pub text: String,
    /// How many bytes of the message stand before them, if the daemon tells.
    #[serde(default)]
    pub at: Option<usize>,
}

/// Returns the failure that an answer tells of.
pub fn refusal(status: u16, body: &[u8]) -> Failure {
    match serde_json::from_slice::<ErrorBody<'_>>(body) {
        Ok(ErrorBody { error }) => {
            let failure =
                Failure::failed(error.code.into_owned(), anyhow::Error::msg(error.message.into_owned()));
            // Named by whoever asked, like an id that is in no list.
            let unknown =
                [Code::SessionUnknown, Code::WaitUnknown].map(Code::as_str).contains(&failure.code());
            let failure = if unknown { failure.exit_with(Exit::Usage) } else { failure };
            let command = error.advice.as_ref().and_then(hint_text).map(Cow::from);
            command.or(error.hint).into_iter().fold(failure, Failure::hint)
        }
        Err(_) => {
            let text = String::from_utf8_lossy(body);
            let text = text.chars().take(200).collect::<String>();
            Failure::failed("refused", anyhow::anyhow!("the daemon answered {status}: {text}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_is_worded_as_a_command_and_what_is_not_known_in_the_daemon_s_words() {
        for (advice, expected) in [
            (r#","advice":{"kind":"list_sessions"}"#, "rekindle ps -a"),
            (r#","advice":{"kind":"create_token","scope":"admin"}"#, "in its words"),
            (r#","advice":{"kind":"of_a_newer_daemon","x":1}"#, "in its words"),
            ("", "in its words"),
        ] {
            let body = format!(
                r#"{{"error":{{"code":"session_unknown","message":"m","hint":"in its words"{advice}}}}}"#
            );
            let failure = refusal(404, body.as_bytes());
            assert_eq!(failure.to_json()["error"]["hint"], expected, "{advice}");
        }
    }
}
