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
        /// It is told: its own session is a new one, and its first prompt begins with what happened. The log says so again.
        Reprimed = "reprimed",
        /// Nothing: there is no turn to tell of, or it is a command that is told nothing but its prompt.
        Fresh = "fresh",
    }

    /// What becomes of the files in a rewind.
    pub enum RewoundFiles {
        /// They are made what they were; the session's log says when that is done, and nothing begins before.
        Restored = "restored",
        /// They are left as they are: nobody wanted them back, or no checkpoint was taken before the run.
        Left = "left",
    }
}

/// A fork that was made.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Forked {
    /// The new session.
    pub session: SessionView,
    /// What its agent knows of the history before it.
    pub verdict: ForkVerdict,
    /// The same for people.
    pub notice: String,
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
    pub files: RewoundFiles,
    /// What its agent knows of the history before it.
    pub verdict: ForkVerdict,
    /// The same for people.
    pub notice: String,
}
