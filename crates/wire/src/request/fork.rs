//! Requests that fork a session, or take it back.

use std::collections::BTreeMap;

use rekindle_domain::event::{OnUncertain, Permissions, ResumePolicy};
use rekindle_domain::id::RunId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::rules::{number_of_record, possible_variables};
use super::{AgentChoice, Umask};

/// A fork to be made: what is not named is as in the session that is forked.
#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewFork {
    /// Where the history is cut: behind the newest run that has ended, if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<ForkAt>,
    /// Who answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentChoice>,
    /// The model asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The agent's mode asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// A short title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Where the agent works: an absolute path. With `files` the directory is made if it is not there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = "^/", "examples" = ["/repo"]))]
    pub working_dir: Option<String>,
    /// Whether its directory is made what it was at the cut, where a checkpoint was taken: files are not touched, if nothing is said.
    #[serde(default)]
    pub files: bool,
    /// Whether it gets a worktree of its own, of the git repository that the directory is in: with the commit that HEAD was at, and
    /// then the files of the cut, as with `files`. It is made at `working_dir`, or beside the repository.
    #[serde(default)]
    pub worktree: bool,
    /// With `files`: also in a directory that is not empty, and while a run of another session goes on there, above it or below it.
    #[serde(default)]
    pub force: bool,
    /// What is answered to permission requests without asking anyone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permissions: Option<Permissions>,
    /// Whether it continues by itself after an interruption.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resume: Option<ResumePolicy>,
    /// What uncertain tool calls do to that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_uncertain: Option<OnUncertain>,
    /// The caller's environment, filtered here; that of the other session's agent without it.
    #[serde(default)]
    #[schemars(transform = possible_variables)]
    pub env: BTreeMap<String, String>,
    /// The caller's umask: files that the agent makes are made with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub umask: Option<Umask>,
}

/// A place in a history. A cut is always between two runs: a record within one rounds down.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(untagged, expecting = "a place to fork at is a record number, a run id or a snapshot name")]
pub enum ForkAt {
    /// Behind the last run that had ended by this record.
    Seq(
        #[serde(deserialize_with = "number_of_record")]
        #[schemars(range(min = 1))]
        u64,
    ),
    /// Behind the end of a run, by its id; or at the record of a kept snapshot, by its name.
    Name(
        #[schemars(extend(
            "pattern" = "^(run_[A-Za-z0-9_-]{1,43}|[1-9][0-9]{0,17}(-[1-9][0-9]{0,8})?)$",
            "examples" = ["run_01khz0p6r8vk6mqj3b8y2c9d4e", "148-1"],
        ))]
        String,
    ),
}

/// A session to be taken back to a kept snapshot, or to go on from one.
#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewSnapshotRestore {
    /// Whether what goes on from there takes the session's place, which is closed; it is a fork beside it, if nothing is said.
    #[serde(default)]
    pub in_place: bool,
    /// Whether the files of the directory are made what they were: they are left as they are, if nothing is said.
    #[serde(default)]
    pub files: bool,
    /// With `files`: also while a run of another session goes on in the directory, above it or below it.
    #[serde(default)]
    pub force: bool,
}

/// Files of a session to be put back to before a run, while the session goes on.
#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewFilesRestore {
    /// The run before whose prompt they were as they are to be again: the latest, if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["run_01khz0p6r8vk6mqj3b8y2c9d4e"]))]
    pub to: Option<RunId>,
    /// Also while a run of another session goes on in the directory, above it or below it.
    #[serde(default)]
    pub force: bool,
}

/// A session to be taken back to before a run.
#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewRewind {
    /// The run before whose prompt it was as it is to be again: the latest, if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["run_01khz0p6r8vk6mqj3b8y2c9d4e"]))]
    pub to: Option<RunId>,
    /// Whether files are restored too, where a checkpoint was taken before that run: they are, if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<bool>,
    /// Also while another session's run goes on in the directory, above it or below it.
    #[serde(default)]
    pub force: bool,
}
