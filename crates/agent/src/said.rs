//! What an agent says, in words of no particular protocol: between a profile, which reads lines, and the
//! connection, which folds what they mean. Values borrow from the line.

use std::borrow::Cow;

use rekindle_domain::event::{UncertainTool, WaitKind};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Whose words a piece of text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Voice {
    /// A person's, repeated by the agent.
    User,
    /// The agent's.
    Agent,
    /// The agent's, thinking aloud.
    Thought,
    /// The agent's summary of a conversation that it made shorter.
    Summary,
}

/// A piece of a message.
#[derive(Debug, Clone)]
pub enum Content<'a> {
    /// Text that goes on where the last piece ended.
    Text(Cow<'a, str>),
    /// Anything else, verbatim.
    Block(&'a RawValue),
}

/// What a request of ours was for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request {
    /// Who are you, and what can you do?
    Greet,
    /// Make a session.
    New,
    /// Bring a session back and tell what was said in it.
    Load,
    /// Bring a session back.
    Resume,
    /// Make a session that goes on from another one, which stays as it is.
    Fork,
    /// Do this.
    Prompt,
    /// Work in this mode, or with this model.
    Set,
    /// Another request, or no request at all.
    Other,
}

impl Request {
    /// Tells whether its answer makes the agent ready.
    pub fn opens(self) -> bool {
        matches!(self, Request::New) || self.brings_back()
    }

    /// Tells whether it brings back a conversation that was there before.
    pub fn brings_back(self) -> bool {
        matches!(self, Request::Load | Request::Resume | Request::Fork)
    }
}

/// How an agent answered a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PromptOutcome {
    /// The turn ended; the agent's word for it, if it had one.
    Stopped(Option<String>),
    /// The turn failed.
    Failed(Failure),
}

/// An error that an agent answered with.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}{}", self.number())]
pub struct Failure {
    /// The protocol's number for it.
    pub code: i64,
    /// For people.
    pub message: String,
}

impl Failure {
    /// The agent wants someone to sign in.
    pub const AUTH_REQUIRED: i64 = -32_000;

    /// Returns the number behind the message, unless that tells it already.
    fn number(&self) -> String {
        // It is none of the protocol's: we put it into words ourselves.
        if self.code == 0 {
            return String::new();
        }
        let number = self.code.to_string();
        if self.message.split(|c: char| !c.is_ascii_digit() && c != '-').any(|word| word == number) {
            return String::new();
        }
        format!(" ({number})")
    }

    /// Tells whether someone has to sign in first.
    pub fn is_auth_required(&self) -> bool {
        self.code == Failure::AUTH_REQUIRED
    }
}

/// One way to answer a request of the agent's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// The agent's name for it.
    pub option_id: String,
    /// What a person sees.
    pub name: String,
    /// `allow_once`, `allow_always`, `reject_once`, `reject_always`; empty if the agent does not say.
    pub kind: String,
}

/// What a tool call is about, in short.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolSummary {
    /// What the tool is given: a command, a path.
    pub input: Option<String>,
    /// Files that it changes, as far as the agent says.
    pub files: Vec<String>,
}

/// Tells whether a tool call is over, by the protocol's words for how far it is.
pub(crate) fn is_over(status: &str) -> bool {
    matches!(status, "completed" | "failed" | "cancelled")
}

/// What an agent said of itself when greeted.
#[derive(Debug, Clone)]
pub struct Greeting<'a> {
    /// The protocol's version.
    pub version: u64,
    /// Name and version.
    pub info: Option<&'a RawValue>,
    /// What it can do.
    pub capabilities: Option<&'a RawValue>,
    /// How one signs in.
    pub auth_methods: Option<&'a RawValue>,
}

/// One thing that a line says.
#[derive(Debug, Clone)]
pub enum Said<'a> {
    /// A piece of a message.
    Chunk {
        /// Whose words.
        voice: Voice,
        /// The agent's name for the message, if it has one.
        message: Option<Cow<'a, str>>,
        /// The pieces.
        content: Vec<Content<'a>>,
        /// It replaces what was said of this message before.
        replaces: bool,
    },
    /// A tool call began, went on or ended.
    Tool {
        /// It began, by the agent's word.
        begins: bool,
        /// The agent's name for it.
        id: Cow<'a, str>,
        /// What a person sees, if it is told.
        title: Option<Cow<'a, str>>,
        /// Read, edit, execute and so on, if it is told.
        kind: Option<Cow<'a, str>>,
        /// How far it is.
        status: Option<Cow<'a, str>>,
        /// What the tool is given, and what it changes.
        gist: ToolSummary,
        /// The whole, where it has more.
        raw: Option<&'a RawValue>,
    },
    /// The plan, whole.
    Plan(&'a RawValue),
    /// Tokens and money, as far as told.
    Usage {
        /// Tokens read in all.
        input: Option<u64>,
        /// Tokens written in all.
        output: Option<u64>,
        /// Cost in all.
        cost: Option<f64>,
        /// The whole.
        raw: &'a RawValue,
    },
    /// It works in another mode.
    Mode(Cow<'a, str>),
    /// Anything worth keeping that fits nowhere else.
    Notice {
        /// What it is, in a word.
        what: &'static str,
        /// For people.
        text: Option<Cow<'a, str>>,
        /// Verbatim.
        raw: Option<&'a RawValue>,
        /// It is part of a conversation told again while a session is brought back.
        update: bool,
    },
    /// The agent asks and waits for an answer.
    Asked(Asked<'a>),
    /// The agent asks for something that we never offered: the answer is always the same.
    Unserved {
        /// What it asked for.
        method: Cow<'a, str>,
        /// The whole request.
        raw: &'a RawValue,
        /// The exact answer, with its newline.
        reply: Vec<u8>,
    },
    /// The agent takes a request back.
    Withdrew {
        /// The request's id, as its JSON text.
        wire_id: &'a str,
        /// The exact answer that the protocol still wants.
        reply: Vec<u8>,
    },
    /// It answered the greeting.
    Greeted(u64, Greeting<'a>),
    /// It has a session.
    Opened {
        /// Which request of ours it answers.
        input: u64,
        /// Its own session id, if it says so here.
        cursor: Option<Cow<'a, str>>,
        /// Modes and options of the session.
        options: Option<&'a RawValue>,
    },
    /// It refused a request that is no prompt.
    Refused {
        /// Which request of ours it answers.
        input: u64,
        /// Why.
        failure: Failure,
    },
    /// It took a setting.
    Set {
        /// Which request of ours it answers.
        input: u64,
    },
    /// It answered a prompt.
    Answered {
        /// Which prompt.
        input: u64,
        /// How.
        outcome: PromptOutcome,
        /// The whole answer.
        raw: &'a RawValue,
    },
    /// It says that it has nothing to do, which ends a turn in protocols whose prompts are answered at once.
    Idle {
        /// Its word for why.
        stop_reason: Option<String>,
    },
    /// Something happened, as it says; it may end the command that it is about.
    Event {
        /// The command.
        about: Option<Cow<'a, str>>,
        /// What happened: `builder.completed`.
        event_type: Cow<'a, str>,
        /// What its payload says came of the work.
        outcome: Option<Cow<'a, str>>,
        /// For people.
        text: Option<String>,
        /// The whole.
        raw: &'a RawValue,
    },
    /// It says that it is alive.
    Heartbeat {
        /// Its word for how it is.
        status: Cow<'a, str>,
    },
    /// An answer to nothing that we asked.
    Stray {
        /// Its id, if it is a number of ours.
        input: Option<u64>,
        /// The whole.
        raw: &'a RawValue,
    },
}

/// A request of the agent's that someone must answer.
#[derive(Debug, Clone)]
pub struct Asked<'a> {
    /// Its id, as its JSON text.
    pub wire_id: Cow<'a, str>,
    /// What it asks for.
    pub method: Cow<'a, str>,
    /// What kind of wait it makes.
    pub kind: WaitKind,
    /// The ways to answer.
    pub options: Vec<Choice>,
    /// The tool call that permission is asked for.
    pub tool: Option<AskedTool>,
}

/// A tool call that permission is asked for. Some agents tell of it here first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskedTool {
    /// The call.
    pub call: UncertainTool,
    /// Files that it changes, as far as the agent says.
    pub files: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_told_once() {
        let told = |code, message: &str| Failure { code, message: message.into() }.to_string();
        assert_eq!(told(-32_603, "not today"), "not today (-32603)");
        assert_eq!(told(3, "the command ended with exit code 3"), "the command ended with exit code 3");
        assert_eq!(told(3, "13 of 33 failed"), "13 of 33 failed (3)");
    }
}
