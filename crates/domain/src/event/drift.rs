//! The event of a drift: what is not as it was when the session's last turn ended, found when another agent is given a prompt.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::checkpoint::{ChangedFiles, GitState};
use crate::id::RunId;
use crate::string_enum::string_enums;

/// Files that a state tells; the record has more of them.
const BRIEF: usize = 10;

string_enums! {
    /// What became of the directory in which a session works.
    #[derive(JsonSchema)]
    pub enum DirectoryChange {
        /// The session works in another one now.
        Moved = "moved",
        /// Another directory has its name.
        Replaced = "replaced",
        /// What has its name is on another file system: something was mounted there, or is not any more.
        OtherFileSystem = "other_file_system",
        /// A change that a newer version wrote.
        #[serde(other)]
        Unknown = "unknown",
    }
}

/// Drift was found before a run's prompt was given to an agent that had none of the turns before.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunDrift {
    /// The run.
    pub run_id: RunId,
    /// What drifted.
    #[serde(flatten)]
    pub drift: Drift,
}

/// What is not as it was when the session's last turn ended. Whatever is absent did not change, or is not known.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Drift {
    /// Its directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<DirectoryDrift>,
    /// Files in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<ChangedFiles>,
    /// Why it is not known which files changed, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files_unknown: Option<String>,
    /// Where the HEAD of git is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git: Option<GitDrift>,
    /// The agent, by what it says of itself: its name and its version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentDrift>,
    /// Settings of the session.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<SettingDrift>,
}

impl Drift {
    /// Tells whether there is none.
    pub fn is_empty(&self) -> bool {
        *self == Drift::default()
    }

    /// Tells whether it is about what the agent works on, and not only about how it works.
    pub fn is_about_work(&self) -> bool {
        self.directory.is_some() || self.files.is_some() || self.git.is_some()
    }

    /// Returns the same with few of its files: the record has more.
    #[must_use]
    pub fn brief(&self) -> Drift {
        let mut brief = self.clone();
        if let Some(files) = &mut brief.files {
            files.first.truncate(BRIEF);
        }
        brief
    }
}

/// A directory that is not what it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DirectoryDrift {
    /// What became of it.
    pub change: DirectoryChange,
    /// Where the session worked.
    pub from: String,
    /// Where it works.
    pub to: String,
}

/// A HEAD of git that is elsewhere; null where there is no repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GitDrift {
    /// Where it was.
    pub from: Option<GitState>,
    /// Where it is.
    pub to: Option<GitState>,
}

/// An agent that is another, or another version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentDrift {
    /// The one before.
    pub from: String,
    /// This one.
    pub to: String,
}

/// A setting with another value; null where it was not set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SettingDrift {
    /// Its name.
    pub name: String,
    /// What it was.
    pub from: Option<String>,
    /// What it is.
    pub to: Option<String>,
}
