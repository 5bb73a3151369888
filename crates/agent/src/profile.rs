//! What a protocol must be able to do for us: read lines, and write the bytes of what we want to say.
//!
//! A profile is pure and has no memory: the connection remembers, and what is written is a function of its
//! arguments, so that sending again after a crash sends the same bytes. Verbs that a protocol does not have
//! return none; what it has is told beforehand by [`Capabilities`].

use std::borrow::Cow;
use std::fmt::Debug;

use rekindle_domain::event::{InputKind, Raw};
use rekindle_holder::journal::OutFlags;
use schemars::JsonSchema;
use serde::Serialize;

use crate::said::{Asked, Choice, PromptOutcome, Request, Said};

/// What can be done with an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, JsonSchema)]
#[expect(clippy::struct_excessive_bools, reason = "a list of independent abilities")]
#[schemars(rename = "AgentCapabilities")]
pub struct Capabilities {
    /// A prompt carries a key of ours that the agent tells back, so that its arrival can be checked.
    pub prompt_key: bool,
    /// A second process can join a turn that is going on.
    pub live_attach: bool,
    /// The agent has a session id of its own to come back to.
    pub cursor: bool,
    /// It can bring a session back and tell what was said in it.
    pub load: bool,
    /// It can bring a session back.
    pub resume: bool,
    /// It can make a session that goes on from another one.
    pub fork: bool,
    /// A turn can be cancelled without ending the process.
    pub cancel: bool,
    /// A prompt must wait until the turn before it has ended.
    pub one_prompt_at_a_time: bool,
    /// A process takes one prompt only.
    pub one_prompt_ever: bool,
    /// Prompts may contain images.
    pub images: bool,
}

/// Bytes on their way to an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outgoing {
    /// What they are for.
    pub what: InputKind,
    /// The exact line, with its newline.
    pub line: Vec<u8>,
}

/// How a session of the agent's comes to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Open<'a> {
    /// Made anew.
    New,
    /// Brought back, with a replay.
    Load(&'a str),
    /// Brought back, without one.
    Resume(&'a str),
    /// Made from another one, which stays as it is.
    Fork(&'a str),
}

/// A setting of the agent's session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Setting<'a> {
    /// Work in this mode.
    Mode(Cow<'a, str>),
    /// Use this model, with agents that have a list of models beside their options.
    Model(Cow<'a, str>),
    /// Choose a value of an option, such as the model.
    Choose(Cow<'a, str>, Cow<'a, str>),
    /// Turn an option on or off.
    Switch(Cow<'a, str>, bool),
}

impl Setting<'_> {
    /// Tells whether both set the same thing, be it to the same value or not.
    pub fn is_about_the_same(&self, other: &Setting<'_>) -> bool {
        use Setting::{Choose, Mode, Model, Switch};
        match (self, other) {
            (Mode(_), Mode(_)) | (Model(_), Model(_)) => true,
            (Choose(one, _) | Switch(one, _), Choose(two, _) | Switch(two, _)) => one == two,
            _ => false,
        }
    }
}

/// What someone answers to a request of the agent's.
#[derive(Debug, Clone, Copy)]
pub enum Answer<'a> {
    /// The option with this id.
    OptionId(&'a str),
    /// The option of this kind: `allow_once`, `reject_always`, `accept`, `decline` and so on.
    Kind(&'a str),
    /// Free text, to a question that takes one.
    Text(&'a str),
    /// A filled-in form: a JSON object.
    Form(&'a Raw<'a>),
    /// No.
    Decline,
    /// The turn is being cancelled.
    Cancelled,
}

/// Why an answer does not fit its question.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    /// There is no such option.
    #[error("there is no option {wanted:?}; choose from {}", list(.offered))]
    NoSuchOption {
        /// What was wanted.
        wanted: String,
        /// What there is.
        offered: Vec<Choice>,
    },
    /// The question does not take this sort of answer.
    #[error("the question does not take {0}")]
    WrongSort(&'static str),
}

fn list(offered: &[Choice]) -> String {
    if offered.is_empty() {
        return "none to choose from: answer with a text".into();
    }
    let name = |choice: &Choice| match choice.kind.as_str() {
        "" => choice.option_id.clone(),
        kind => format!("{} ({kind})", choice.option_id),
    };
    offered.iter().map(name).collect::<Vec<_>>().join(", ")
}

/// What a line of ours is, as far as answers to it are concerned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    /// What it asks for.
    pub request: Request,
    /// The agent's session it names.
    pub cursor: Option<String>,
    /// The id of the agent's request that it answers, as JSON text.
    pub answers: Option<String>,
    /// The setting it asks for.
    pub setting: Option<Setting<'static>>,
    /// The command that it is, in protocols whose answers name one.
    pub command: Option<SentCommand>,
}

/// A command that was sent, as far as events about it are concerned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentCommand {
    /// Its own name.
    pub message_id: String,
    /// The outcomes that it may come to; none if that it is done is enough.
    pub outcomes: Vec<String>,
}

impl Sent {
    /// A line of which nothing more is known than what it is for.
    pub fn of_kind(what: InputKind) -> Sent {
        let request = if what == InputKind::Prompt { Request::Prompt } else { Request::Other };
        Sent { request, cursor: None, answers: None, setting: None, command: None }
    }
}

/// One protocol.
pub trait Profile: Debug + Send + Sync {
    /// Its name, as a session's provider says it.
    fn name(&self) -> &'static str;

    /// What can be done with an agent that said this of its capabilities.
    fn capabilities(&self, agent: Option<&str>) -> Capabilities;

    /// Reads a line of the agent. `asked` tells what a request of ours was for, by its number.
    fn parse_line<'a>(
        &self,
        line: &'a str,
        flags: OutFlags,
        asked: &dyn Fn(u64) -> Option<Request>,
    ) -> Vec<Said<'a>>;

    /// Reads a line of ours.
    fn sent(&self, what: InputKind, line: &[u8]) -> Sent;

    /// Reads a request of the agent's that was kept in a log.
    fn asked<'a>(&self, request: &'a str) -> Option<Asked<'a>>;

    /// A message longer than this is divided.
    fn message_limit(&self) -> usize;

    /// The agent needs neither greeting nor session: it is ready once it runs.
    fn ready_at_start(&self) -> bool {
        false
    }

    /// The prompt is in the command, so that the turn begins with the process.
    fn prompt_in_command(&self) -> bool {
        false
    }

    /// The process is the turn: whatever it does, it does for the run it was launched for, and its end is the run's.
    fn process_is_turn(&self) -> bool {
        false
    }

    /// The command to launch for a prompt that is in it; any other command stays as it is.
    fn command(&self, command: &[String], _content: &Raw<'_>) -> Vec<String> {
        command.to_vec()
    }

    /// Nothing is said after the prompt, and the agent may wait until it sees the end of its input.
    fn input_ends_with_prompt(&self) -> bool {
        false
    }

    /// What an exit code says about the turn, where it says anything.
    fn outcome_of_exit(&self, _code: i32) -> Option<PromptOutcome> {
        None
    }

    /// The greeting.
    fn greet(&self, _input_seq: u64) -> Option<Outgoing> {
        None
    }

    /// The way to a session.
    fn open(&self, _input_seq: u64, _how: Open<'_>, _working_dir: &str) -> Option<Outgoing> {
        None
    }

    /// A setting.
    fn set(&self, _input_seq: u64, _cursor: &str, _setting: Setting<'_>) -> Option<Outgoing> {
        None
    }

    /// A prompt: text or blocks, as a `message.user` has them.
    fn prompt(&self, input_seq: u64, cursor: Option<&str>, content: &Raw<'_>) -> Option<Outgoing>;

    /// The end of the turn, please.
    fn cancel(&self, _cursor: Option<&str>) -> Option<Outgoing> {
        None
    }

    /// An answer to a request of the agent's, given as it was kept.
    fn answer(&self, _request: &Raw<'_>, _answer: Answer<'_>) -> Result<Outgoing, AnswerError> {
        Err(AnswerError::WrongSort("answers"))
    }
}
