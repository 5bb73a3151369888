//! Views of answer links: links as they are made, and what whoever opens one is shown of its wait.

use std::fmt;

use rekindle_domain::id::WaitId;
use rekindle_domain::time::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::WaitKind;
use crate::string_enum::string_enums;

string_enums! {
    /// How a resume token stands.
    pub enum TokenStanding {
        /// Its wait is open, and can be answered with it.
        Open = "open",
        /// Its wait was answered with it.
        Consumed = "consumed",
        /// It is not good any more; `reason` says why.
        Revoked = "revoked",
        /// Its time is over.
        Expired = "expired",
    }
}

/// What a resume token is for, and how it stands: for its bearer alone.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct TokenView {
    /// The wait.
    pub wait_id: WaitId,
    /// The session's title.
    pub title: String,
    /// How the token stands.
    pub state: TokenStanding,
    /// Why it was revoked: `answered`, `replaced` by newer links, `withdrawn`, `cancelled`, `interrupted`, `timeout` and so on.
    pub reason: Option<String>,
    /// Until when it is good, if not as long as its wait.
    pub expires_at: Option<Timestamp>,
    /// What is asked, while it can be answered with this token or was.
    pub asked: Option<AskedView>,
    /// The only option that it answers with, if it is that of an answer link; told as long as what is asked is.
    pub option: Option<OptionView>,
}

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AskedView {
    /// What is waited for.
    pub kind: WaitKind,
    /// The question, in the words of who asks.
    pub question: String,
    /// What it is about, line by line: the command, what a tool is given, what is changed.
    pub detail: Option<String>,
    /// Some of it was too long to be shown.
    pub cut: bool,
}

/// An option that can be chosen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OptionView {
    /// Its name for an answer's `option_id`.
    pub option_id: String,
    /// What choosing it means, in the words of who asks.
    pub label: String,
}

/// The answer links of a wait, shown this once.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct AnswerLinks {
    /// One for each option that may be chosen by a link, in the order of the agent.
    pub links: Vec<AnswerLinkView>,
    /// Until when they are good; null if there are none.
    pub expires_at: Option<Timestamp>,
}

/// A link that answers a wait with one option, after a confirmation.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
pub struct AnswerLinkView {
    /// What choosing it means.
    pub label: String,
    /// The link; the secret is in its fragment.
    pub url: String,
}

impl fmt::Debug for AnswerLinkView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnswerLinkView").field("label", &self.label).finish_non_exhaustive()
    }
}
