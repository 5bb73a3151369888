//! Views of forks and rewinds.

use rekindle_domain::blob_id::BlobId;
use rekindle_domain::id::{RunId, SessionId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::SessionView;
use crate::string_enum::string_enums;

string_enums! {
    /// What the agent of a fork knows of the history before it, when it gets its first prompt.
    pub enum ForkVerdict {
        /// What was said: its agent makes a fork of its own session, as it says it can. If it refuses, it is told what happened. The
        /// log says which.
        Continued = "continued",
        /// It is told: its own session is a new one, and its first prompt begins with what happened. The log says so again.
        Reprimed = "reprimed",
        /// Nothing: there is no turn to tell of, or it is a command that is told nothing but its prompt.
        Fresh = "fresh",
    }

    /// What becomes of the files of a session that goes on from another.
    pub enum FilesOutcome {
        /// They are made what they were; the session's log says when that is done, and nothing begins before.
        Restored = "restored",
        /// They are left as they are: nobody wanted them back, or there is no checkpoint of them.
        Left = "left",
    }
}

impl Default for FilesOutcome {
    /// A daemon of an earlier version does not say: it never touched them in a fork.
    fn default() -> FilesOutcome {
        FilesOutcome::Left
    }
}

/// A fork that was made.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Forked {
    /// The new session.
    pub session: SessionView,
    /// What becomes of the files.
    #[serde(default)]
    pub files: FilesOutcome,
    /// What its agent knows of the history before it.
    pub verdict: ForkVerdict,
    /// The same for people.
    pub notice: String,
}

/// Files that are being put back, in a session that goes on.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct FilesRestoring {
    /// The run before whose prompt they were like that.
    pub run_id: RunId,
    /// What they will be.
    pub tree: BlobId,
    /// Where they are.
    pub working_dir: String,
    /// The record that says so; a later one says how it went.
    pub seq: u64,
}

/// What a rewind would do.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct RewindPlan {
    /// The run before whose prompt the session was as it will be again.
    pub run_id: RunId,
    /// The last record of its history then.
    pub seq: u64,
    /// What its files will be; none if they are left as they are.
    pub tree: Option<BlobId>,
    /// Where they are.
    pub working_dir: String,
}

/// A rewind: a session that took the place of another, which is closed.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Rewound {
    /// The new session.
    pub session: SessionView,
    /// The one that it replaces: closed, with all that happened in it.
    pub replaces: SessionId,
    /// What becomes of the files.
    pub files: FilesOutcome,
    /// What its agent knows of the history before it.
    pub verdict: ForkVerdict,
    /// The same for people.
    pub notice: String,
}
