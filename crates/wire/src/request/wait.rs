//! Answers to waits, and waits that programs open.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::rules::{at_least_a_second, exactly_one};
use crate::token_text::TokenText;

/// An answer to a wait: exactly one of option, option_id, text and form.
#[derive(Debug, Clone, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = exactly_one)]
pub struct NewAnswer {
    /// The kind of an option: `allow_once`, `allow_always`, `reject_once`, `reject_always`, `accept`, `decline`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub option: Option<String>,
    /// One of the agent's own options.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub option_id: Option<String>,
    /// Words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// A filled-in form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Value>")]
    pub form: Option<Box<RawValue>>,
    /// The token, for a caller who is not otherwise known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<TokenText>,
}

impl NewAnswer {
    /// Chooses one of the agent's own options.
    pub fn option_id(id: &str) -> NewAnswer {
        NewAnswer { option_id: Some(id.to_owned()), ..NewAnswer::default() }
    }

    /// Chooses the option of a kind.
    pub fn option(kind: &str) -> NewAnswer {
        NewAnswer { option: Some(kind.to_owned()), ..NewAnswer::default() }
    }

    /// Answers with words.
    pub fn text(text: &str) -> NewAnswer {
        NewAnswer { text: Some(text.to_owned()), ..NewAnswer::default() }
    }
}

impl PartialEq for NewAnswer {
    fn eq(&self, other: &NewAnswer) -> bool {
        let fields = |answer: &NewAnswer| {
            let form = answer.form.as_ref().map(|form| form.get().to_owned());
            [&answer.option, &answer.option_id, &answer.text, &form].map(Clone::clone)
        };
        self.token == other.token && fields(self) == fields(other)
    }
}

/// A resume token, shown to learn what it is for.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ShownToken {
    /// The token with its secret.
    pub token: TokenText,
}

/// A wait that a program opens on the run that goes on: for someone, or for something outside, to be answered. The agent is
/// told nothing of it and works on.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewWait {
    /// What for.
    pub kind: NewWaitKind,
    /// What is asked, for whoever answers: any JSON. A `title`, `question`, `message` or `text` in it is shown as the
    /// question, `options` with `optionId` and `name` as what may be chosen.
    #[schemars(with = "serde_json::Value")]
    pub request: Box<RawValue>,
    /// Seconds after which it ends without an answer; without this it waits as long as its run goes on.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "at_least_a_second")]
    #[schemars(range(min = 1))]
    pub timeout_s: Option<u64>,
}

/// What a program may wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NewWaitKind {
    /// What a tool outside has found.
    ToolResult,
    /// Anything else outside.
    External,
}
