//! Errors of a session with a living agent: why it cannot be driven on.

use rekindle_agent::profile::AnswerError;
use rekindle_domain::id::WaitId;
use rekindle_holder::client::{ConnectError, FollowError, RequestError, SpawnError};
use rekindle_store::blobs::BlobError;
use rekindle_store::disk::is_shortage;
use rekindle_store::{AppendError, OpenSessionError};
use rekindle_wire::code::Code;

use crate::error::ServiceError;
use crate::ids::NoRandomness;

/// Error numbers of what comes back by itself, beside what [`is_shortage`] knows: a device that does not take what is written
/// (EIO, EROFS), and processes that cannot be made just now (EAGAIN).
const COMES_BACK: [i32; 3] = [5, 11, 30];

/// Longest argument of a command, by what Linux takes.
pub(super) const MAX_ARGUMENT: usize = (128 << 10) - 1;

/// What comes of a step with a living agent: done, or why not.
pub(super) type Result<T, E = LiveError> = std::result::Result<T, E>;

/// Why a session cannot be driven on. What happened so far is in its log.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// There are not enough descriptors for another agent.
    #[error("cannot talk to another agent")]
    Descriptors(#[source] std::io::Error),
    /// The holder could not be made.
    #[error("cannot make a holder for the agent")]
    Prepare(#[from] rekindle_holder::client::PrepareError),
    /// The holder did not begin.
    #[error("cannot start the agent's holder")]
    Spawn(#[from] rekindle_holder::client::SpawnError),
    /// The holder lets nobody in.
    #[error("cannot talk to the agent's holder")]
    Connect(#[from] ConnectError),
    /// Another supervisor commands the holder, and its own file says so.
    #[error(
        "epoch {by} controls the agent's holder: stop commanding it, and write nothing more for its session"
    )]
    Superseded {
        /// Its epoch.
        by: u64,
    },
    /// Whoever listens says that another commands, and nothing else does.
    #[error(
        "the process at the holder's socket says that epoch {claimed} controls the agent, but the holder's file does not: try again, and check which process listens there"
    )]
    Unconfirmed {
        /// The epoch that it named.
        claimed: u64,
    },
    /// The holder said no, or nothing.
    #[error("the agent's holder did not do what it was asked to")]
    Request(#[from] RequestError),
    /// The journal cannot be read.
    #[error("cannot read what the agent said")]
    Follow(#[from] FollowError),
    /// The session is not there.
    #[error("cannot open the session")]
    Session(#[from] OpenSessionError),
    /// The log took nothing.
    #[error("cannot append to the session's log")]
    Append(#[from] AppendError),
    /// A payload could not be stored or fetched.
    #[error("cannot store or fetch a large payload")]
    Blob(#[from] BlobError),
    /// The log cannot be read.
    #[error("cannot read the session's log")]
    Log(#[from] std::io::Error),
    /// The prompt is part of the command, and there is none.
    #[error("the command cannot be launched before there is a prompt for it")]
    NoPrompt,
    /// The prompt is part of the command, and longer than anything that can be.
    #[error(
        "an argument of {bytes} bytes is longer than the {MAX_ARGUMENT} that a command takes: without {{prompt}} it reads its prompt from its input"
    )]
    ArgumentTooLong {
        /// How long.
        bytes: usize,
    },
    /// The agent was to be started, and needs variables that nobody has.
    #[error("the agent needs {}, which was not passed to the daemon", .0.join(", "))]
    EnvMissing(Vec<String>),
    /// There is no agent to take over.
    #[error("the session has no agent")]
    NoAgent,
    /// The answer does not fit the question.
    #[error("the answer does not fit")]
    Answer(#[from] AnswerError),
    /// Nobody asked this, or it was answered.
    #[error("the wait {0} is not open")]
    NoSuchWait(WaitId),
    /// There are no random numbers.
    #[error(transparent)]
    Random(#[from] NoRandomness),
}

impl LiveError {
    /// Tells whether something of ours ran out or could not be written: room, descriptors, processes. Nothing is wrong with the
    /// agent then, and what was tried can be tried again.
    pub(crate) fn is_shortage(&self) -> bool {
        let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(self);
        while let Some(error) = cause {
            if let Some(error) = error.downcast_ref::<std::io::Error>()
                && (is_shortage(error) || error.raw_os_error().is_some_and(|code| COMES_BACK.contains(&code)))
            {
                return true;
            }
            cause = error.source();
        }
        // A holder that could not begin, or not start its agent, has only words for it.
        let words = match self {
            LiveError::Spawn(SpawnError::Refused { message }) => message,
            LiveError::Request(RequestError::StartFailed { error }) => error,
            _ => return false,
        };
        tells_of_shortage(words)
    }
}

/// Tells whether the words of an error are of something that ran out, and comes back.
pub(super) fn tells_of_shortage(words: &str) -> bool {
    os_error(words).is_some_and(|code| {
        is_shortage(&std::io::Error::from_raw_os_error(code)) || COMES_BACK.contains(&code)
    })
}

/// Returns the number that the words of an error of the system end with.
fn os_error(words: &str) -> Option<i32> {
    let (_, rest) = words.rsplit_once("(os error ")?;
    rest.split(')').next()?.parse().ok()
}

impl From<LiveError> for ServiceError {
    fn from(error: LiveError) -> ServiceError {
        match error {
            LiveError::Append(error) => error.into(),
            LiveError::Session(error) => error.into(),
            LiveError::Blob(error @ BlobError::Io(_)) => error.into(),
            LiveError::Answer(error) => ServiceError::new(Code::AnswerUnfit, error),
            LiveError::NoSuchWait(wait) => ServiceError::wait_closed(wait),
            error => ServiceError::internal(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use rekindle_holder::client::PathError;

    use super::*;

    #[test]
    fn what_runs_out_is_told_from_what_is_wrong() {
        let prepare = |code| {
            let source = io::Error::from_raw_os_error(code);
            LiveError::Prepare(PathError { doing: "make", path: "/h".into(), source }.into())
        };
        // ENOSPC, EDQUOT, ENFILE, EMFILE, ENOMEM, EIO, EROFS, EAGAIN; EACCES, ENOENT.
        for (code, expected) in [
            (28, true),
            (122, true),
            (23, true),
            (24, true),
            (12, true),
            (5, true),
            (30, true),
            (11, true),
            (13, false),
            (2, false),
        ] {
            assert_eq!(prepare(code).is_shortage(), expected, "{code}");
            let message = format!("cannot write the journal: words (os error {code})");
            let refused = LiveError::Spawn(SpawnError::Refused { message });
            assert_eq!(refused.is_shortage(), expected, "{code}, in words");
            let error = io::Error::from_raw_os_error(code).to_string();
            let failed = LiveError::Request(RequestError::StartFailed { error });
            assert_eq!(failed.is_shortage(), expected, "{code}, of the agent itself");
        }
        assert!(!LiveError::NoPrompt.is_shortage());
        assert!(!LiveError::Spawn(SpawnError::Refused { message: "no".into() }).is_shortage());
        assert!(!LiveError::Spawn(SpawnError::Died { status: None }).is_shortage());
    }
}
