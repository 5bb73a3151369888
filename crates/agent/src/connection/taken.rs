//! What comes of one item of a journal: records to append, and what the caller has to see to.
//!
//! All records derived from one item are one append, the caller's own among them: [`Taken::add`] numbers those.

use rekindle_domain::event::{
    CancelReason, Event, Raw, RunCancelled, RunCompleted, RunFailed, UncertainTool, Usage, WaitKind,
};
use rekindle_domain::id::{HolderId, MessageId, RunId, WaitId};
use rekindle_domain::line::{Draft, Source};
use rekindle_domain::time::Timestamp;
use serde::Serialize;

use crate::profile::Answer;
use crate::replay::Replay;
use crate::said::{Choice, Failure, PromptOutcome, Request, Voice};

/// Everything that one item of a journal leads to.
#[derive(Debug, Default)]
pub struct Taken {
    /// Records to append, all in one list, together with what the caller adds.
    pub records: Vec<Draft>,
    /// Text for subscribers, which is in no record yet.
    pub deltas: Vec<Delta>,
    /// The agent said that it is alive.
    pub heartbeat: Option<Heartbeat>,
    /// Requests that someone must answer: each becomes a wait.
    pub asks: Vec<Ask>,
    /// Requests that the agent no longer waits for: their waits end as `withdrawn`.
    pub withdrawn: Vec<Ask>,
    /// A session was brought back: `session.restored` is to be added.
    pub restored: Option<Restored>,
    /// The process ended before it had answered a load: what it had told until then.
    pub unfinished_load: Option<Replay>,
    /// A request that is no prompt was refused.
    pub refused: Option<Refused>,
    /// The turn ended: its `run.…` is to be added.
    pub ended: Option<Ended>,
    /// Answers that nobody needs to be asked for: an `input.queued` of each is to be added.
    pub replies: Vec<Reply>,
    /// The process ended: `agent.exited` is to be added, and the end of a run that was not ended by it.
    pub exited: Option<Exited>,
    /// Tool calls that had begun and not ended when the process did.
    pub uncertain: Vec<UncertainTool>,
    pub(super) place: Option<JournalPosition>,
}

/// Where records derived from an item stand in its journal.
#[derive(Debug, Clone, Copy)]
pub(super) struct JournalPosition {
    pub(super) holder: HolderId,
    pub(super) seq: u64,
    pub(super) low: u64,
    /// The journal's time of the item.
    pub(super) at: Option<Timestamp>,
}

impl Taken {
    /// Adds a record of the caller's to the list, numbered as derived from the same item.
    ///
    /// Of an item that was logged before nothing may be added: there is nothing to add it to.
    pub fn add(&mut self, event: impl Into<Event<'static>>) {
        let n = self.records.len() as u64;
        let source = self.place.map(|place| Source(place.holder, place.seq, n, place.low));
        let at = self.place.and_then(|place| place.at);
        self.records.push(Draft { event: event.into(), source, at });
    }

    /// Tells whether there is nothing to append and nothing to do but to pass on the deltas.
    pub fn is_quiet(&self) -> bool {
        self.records.is_empty()
            && self.asks.is_empty()
            && self.withdrawn.is_empty()
            && self.restored.is_none()
            && self.refused.is_none()
            && self.ended.is_none()
            && self.replies.is_empty()
            && self.exited.is_none()
    }
}

/// A piece of a message, live.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Delta {
    /// The run, if one is going on.
    pub run_id: Option<RunId>,
    /// The message.
    pub message_id: MessageId,
    /// Whose words.
    pub voice: Voice,
    /// How many bytes of the message came before: one who has more of it has seen this piece.
    pub at: usize,
    /// The text.
    pub text: String,
    /// When it was said, by the journal.
    #[serde(skip)]
    pub said_at: Option<Timestamp>,
}

/// A sign of life, live.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heartbeat {
    /// The agent's word for how it is.
    pub status: String,
    /// When it came, by the journal.
    pub at: Option<Timestamp>,
}

/// Names a request of the agent's: the ids it gives them may come again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestKey {
    /// The holder of the agent that asked.
    pub holder: HolderId,
    /// The journal record of the request.
    pub seq: u64,
}

/// A request of the agent's that someone must answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Ask {
    /// Its name.
    pub key: RequestKey,
    /// The run that waits for the answer: the one whose turn it is, else the one that is open in the log.
    pub run_id: Option<RunId>,
    /// The wait it became, once the log says so.
    pub wait_id: Option<WaitId>,
    /// What kind of wait it makes.
    pub kind: WaitKind,
    /// The tool call that permission is asked for: the `tool_call_id` of a `run.waiting`.
    pub tool_call_id: Option<String>,
    /// The agent's id for it, as its JSON text.
    pub wire_id: String,
    /// The whole request: the `request` of a `run.waiting`.
    pub request: Raw<'static>,
    /// The ways to answer.
    pub options: Vec<Choice>,
}

impl Ask {
    /// Tells whether an answer gives the permission that is asked for; nothing of a request that asks for none. An option
    /// whose kind the agent does not tell counts as given: what may have begun is not to be done again unseen.
    pub fn grants(&self, answer: Answer<'_>) -> Option<bool> {
        let allows = |kind: &str| kind.is_empty() || kind.starts_with("allow");
        (self.kind == WaitKind::Permission).then(|| match answer {
            Answer::Kind(kind) => allows(kind),
            Answer::OptionId(id) => {
                self.options.iter().any(|option| option.option_id == id && allows(&option.kind))
            }
            Answer::Decline | Answer::Cancelled => false,
            Answer::Text(_) | Answer::Form(_) => true,
        })
    }
}

/// A session that was brought back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// How: [`Request::Load`], [`Request::Resume`] or [`Request::Fork`].
    pub method: Request,
    /// What was said again.
    pub replay: Replay,
    /// The agent goes on to replay after this.
    pub goes_on: bool,
}

/// A request of ours that was refused; no prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// Its number.
    pub input_seq: u64,
    /// What it was for.
    pub request: Request,
    /// Why.
    pub failure: Failure,
}

/// The end of a turn, by the agent's own word.
#[derive(Debug, Clone, PartialEq)]
pub struct Ended {
    /// The run.
    pub run_id: Option<RunId>,
    /// How it ended.
    pub outcome: PromptOutcome,
    /// The tokens of the run and the cost of the agent's session so far, if the agent told with its answer.
    pub usage: Option<Usage>,
}

impl Ended {
    /// Returns the record that ends a run this way; none if the run is not known.
    ///
    /// A cancelled run ends as the agent says. One that was cancelled because a wait timed out is
    /// interrupted, which is the caller's record: it knows of the wait.
    pub fn event(&self, cancel: Option<CancelReason>) -> Option<Event<'static>> {
        let run_id = self.run_id?;
        let by = match cancel {
            Some(CancelReason::User) => "user",
            Some(_) => "daemon",
            None => "agent",
        };
        let cancelled = || RunCancelled { run_id, by: Some(by.into()) }.into();
        Some(match &self.outcome {
            PromptOutcome::Stopped(Some(reason)) if reason == "cancelled" => cancelled(),
            PromptOutcome::Stopped(reason) => {
                let stop_reason = reason.clone().map(Into::into);
                RunCompleted { run_id, stop_reason, usage: self.usage }.into()
            }
            // Some agents answer a cancel with an error of their own.
            PromptOutcome::Failed(_) if cancel.is_some() => cancelled(),
            PromptOutcome::Failed(failure) => RunFailed { run_id, error: failure.to_string().into() }.into(),
        })
    }
}

/// An answer to be sent without asking anyone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// What it answers.
    pub key: RequestKey,
    /// The exact line, with its newline.
    pub line: Vec<u8>,
}

/// How a process ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exited {
    /// By itself or by a signal.
    Ended {
        /// Its exit code.
        code: Option<i32>,
        /// The signal.
        signal: Option<i32>,
    },
    /// Nobody asked for it: the journal has no start, from its first record on. Whatever it was to do can be done
    /// by another.
    NeverAsked,
    /// It never ran.
    NeverStarted {
        /// Why.
        error: String,
    },
    /// The journal ends without a word about it: its holder is gone.
    Unknown,
}
