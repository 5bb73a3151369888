//! The inbox of a worker: what it is told, and how it is woken while it waits for its agent.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use rekindle_agent::acp::Unoffered;
use rekindle_agent::connection::Wanted;
use rekindle_domain::event::{CancelReason, Raw, WaitKind};
use rekindle_domain::id::{HolderId, RunId, TokenId, WaitId};
use rekindle_domain::line::Draft;
use rekindle_store::commit::Receipt;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

use crate::drive::answer::{Answered, OwnAnswer};
use crate::drive::live::Unsent;
use crate::error::ServiceError;
use crate::idempotency::Key;
use crate::lock::locked;

/// Something for a worker to do.
pub(crate) enum Command {
    /// Something has changed: decide again.
    Look,
    /// Someone has come in the middle of a message: tell what there is of it.
    Retell,
    /// Does the agent offer this mode and model? What it does not offer is told.
    Offers { wanted: Wanted, reply: SyncSender<Option<Unoffered>> },
    /// Another mode or model is wanted of the agent.
    Settle,
    /// A run was begun.
    Prompt(Unsent, Vec<Draft>),
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
    SetAside { by: String, reply: SyncSender<Result<PathBuf, ServiceError>> },
    /// The session's removal is recorded: its agent is to end and its files are to go; then whoever asked is told.
    Remove { by: String, gone: SyncSender<()> },
    /// The agent is to end.
    Stop { why: &'static str, by: String },
    /// The daemon goes; agents work on.
    Leave,
}

pub(crate) struct Answering {
    pub(crate) wait: WaitId,
    pub(crate) answer: OwnAnswer,
    pub(crate) by: String,
    pub(crate) token: Option<TokenId>,
    pub(crate) reply: SyncSender<Result<Answered, ServiceError>>,
}

pub(crate) struct Opening {
    pub(crate) kind: WaitKind,
    pub(crate) request: Raw<'static>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) key: Option<Key>,
    pub(crate) by: String,
    pub(crate) reply: SyncSender<Result<WaitId, ServiceError>>,
}

pub(crate) struct Cancelling {
    pub(crate) why: CancelReason,
    pub(crate) by: String,
    /// Records of what comes instead.
    pub(crate) behind: Vec<Draft>,
    /// The record that whoever asks has seen last, if what comes instead depends on that.
    pub(crate) after: Option<u64>,
    pub(crate) reply: SyncSender<Result<Cancelled, ServiceError>>,
}

/// What came of a cancel.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cancelled {
    /// The run that is cancelled, if there is one.
    pub(crate) run_id: Option<RunId>,
    /// Where it was recorded, with what comes instead as its last record; nothing if it was recorded before.
    pub(crate) recorded: Option<Receipt>,
}

pub(crate) struct Inbox {
    commands: Mutex<VecDeque<Command>>,
    bell: OwnedFd,
}

impl Inbox {
    pub(crate) fn new() -> io::Result<Inbox> {
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Inbox { commands: Mutex::default(), bell })
    }

    pub(crate) fn push(&self, command: Command) {
        locked(&self.commands).push_back(command);
        // A bell that has rung too often to count rings all the same.
        let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
    }

    pub(crate) fn pop(&self) -> Option<Command> {
        locked(&self.commands).pop_front()
    }

    pub(crate) fn is_empty(&self) -> bool {
        locked(&self.commands).is_empty()
    }

    /// Waits until something comes: a command, news of the agent, or the end of the time; tells whether it was the last.
    /// A bell that was rung for a command that is done by now is something too.
    pub(crate) fn wait(&self, other: Option<BorrowedFd<'_>>, most: Option<Duration>) -> bool {
        let mut fds = vec![PollFd::from_borrowed_fd(self.bell.as_fd(), PollFlags::IN)];
        fds.extend(other.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
        let timeout = most.and_then(|most| Timespec::try_from(most).ok());
        // Whatever goes wrong, looking again is all there is to do.
        let came = poll(&mut fds, timeout.as_ref());
        if came.is_ok() && !fds[0].revents().is_empty() {
            let _ = rustix::io::read(&self.bell, &mut [0; 8]);
        }
        came == Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_end_of_the_time_is_waiting_in_vain() {
        let inbox = Inbox::new().expect("a bell");
        inbox.push(Command::Look);
        assert!(inbox.pop().is_some() && inbox.is_empty());
        assert!(!inbox.wait(None, Some(Duration::from_secs(60))), "it was rung");
        assert!(inbox.wait(None, Some(Duration::from_millis(1))), "once");
    }
}
