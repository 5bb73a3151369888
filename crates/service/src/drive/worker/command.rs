//! The commands of a session's worker.

use std::path::PathBuf;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use rekindle_agent::acp::Unoffered;
use rekindle_agent::connection::Wanted;
use rekindle_domain::event::{CancelReason, Raw, WaitKind};
use rekindle_domain::id::{HolderId, RunId, TokenId, WaitId};
use rekindle_domain::line::Draft;
use rekindle_store::commit::Receipt;
use rekindle_wire::view::AnswerTaken;

use crate::drive::answer::ChosenAnswer;
use crate::drive::checkpoints::CaptureOutcome;
use crate::drive::live::UnsentPrompt;
use crate::error::Result;
use crate::idempotency::Key;

/// Something for a worker to do.
pub(crate) enum Command {
    /// Something has changed: decide again.
    Look,
    /// What is found is to be recorded now; then whoever asks is told whether the agent could be met.
    Recover { met: SyncSender<bool> },
    /// Someone has come in the middle of a message: tell what there is of it.
    Retell,
    /// Does the agent offer this mode and model? What it does not offer is told.
    Offers { wanted: Wanted, reply: SyncSender<Option<Unoffered>> },
    /// Another mode or model is wanted of the agent.
    Settle,
    /// A run was begun.
    Prompt(UnsentPrompt, Vec<Draft>),
    /// The directory was captured, or could not be.
    Captured(Box<CaptureNews>),
    /// A wait is to be answered.
    Answer(Box<Answering>),
    /// A program waits for something.
    OpenWait(Box<Opening>),
    /// The time of something may have run out: a token, or a wait that a program opened.
    Expire,
    /// What goes on is to be cancelled.
    Cancel(Box<Cancelling>),
    /// What a dead holder has left is to go.
    Tidy(HolderId),
    /// What there is of a damaged session is to be set aside.
    SetAside { by: String, reply: SyncSender<Result<PathBuf>> },
    /// The session's removal is recorded: its agent is to end and its files are to go; then whoever asked is told.
    Remove { by: String, gone: SyncSender<()> },
    /// The agent is to end.
    Stop { why: &'static str, by: String },
    /// There are too many idle agents: this one is to end, if it still is one.
    EndIdle,
    /// The daemon goes; agents work on.
    Leave,
}

/// What came of a capture, on its way to the worker that asked for it.
pub(crate) struct CaptureNews {
    /// Tells the capture from every other of this daemon.
    pub(crate) number: u64,
    pub(crate) outcome: CaptureOutcome,
}

pub(crate) struct Answering {
    pub(crate) wait: WaitId,
    pub(crate) answer: ChosenAnswer,
    pub(crate) by: String,
    pub(crate) token: Option<TokenId>,
    pub(crate) reply: SyncSender<Result<AnswerTaken>>,
}

pub(crate) struct Opening {
    pub(crate) kind: WaitKind,
    pub(crate) request: Raw<'static>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) key: Option<Key>,
    pub(crate) by: String,
    pub(crate) reply: SyncSender<Result<WaitId>>,
}

pub(crate) struct Cancelling {
    pub(crate) why: CancelReason,
    pub(crate) by: String,
    /// Records of what comes instead.
    pub(crate) behind: Vec<Draft>,
    /// The record that whoever asks has seen last, if what comes instead depends on that.
    pub(crate) after: Option<u64>,
    pub(crate) reply: SyncSender<Result<Cancelled>>,
}

/// What came of a cancel.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cancelled {
    /// The run that is cancelled, if there is one.
    pub(crate) run_id: Option<RunId>,
    /// Where it was recorded, with what comes instead as its last record; nothing if it was recorded before.
    pub(crate) recorded: Option<Receipt>,
}
