//! Events of a session as a whole, and of what people and agents say in it.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{GitWorktree, Persistence, Raw, Worktree};
use crate::blob_id::BlobId;
use crate::chain::ChainHash;
use crate::id::{MessageId, PipelineId, RunId, SessionId, StepId, WaitId};
use crate::snapshot_name::SnapshotName;
use crate::time::Timestamp;

/// Who answers in a session: a known agent by name, or a command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
pub struct Provider {
    /// The profile that translates: `acp`, `ndjson` or `exec`.
    #[serde(rename = "type")]
    pub profile: String,
    /// The known agent's name.
    pub agent: Option<String>,
    /// The model asked for, if any.
    pub model: Option<String>,
    /// The command, for an agent that is not in the table of known ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<String>>,
}

impl Provider {
    /// Returns the agent's name, or its command's.
    pub fn name(&self) -> String {
        let command = self.command.as_ref().and_then(|command| command.first());
        let program = command.map(|program| program.rsplit('/').next().unwrap_or(program).to_owned());
        self.agent.clone().or(program).unwrap_or_else(|| self.profile.clone())
    }

    /// Tells whether it takes commands in JSON and answers with events.
    pub fn speaks_ndjson(&self) -> bool {
        self.profile == "ndjson"
    }

    /// Tells whether it has modes and models that can be asked for.
    pub fn has_settings(&self) -> bool {
        !self.is_command() && !self.speaks_ndjson()
    }

    /// Tells whether it is a command that knows nothing of sessions: it can only be run again.
    pub fn is_command(&self) -> bool {
        self.profile == "exec"
    }
}

/// Whether an interrupted session continues by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ResumePolicy {
    /// Continue without asking, within the budget.
    #[default]
    Auto,
    /// Continue when a person says so.
    Ask,
    /// Never continue; a new message starts anew.
    Never,
}

/// What to do when a tool call may or may not have happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnUncertain {
    /// Hold the continuation until a person settles it.
    #[default]
    Ask,
    /// Continue and tell the agent.
    Continue,
}

/// What is answered to permission requests without asking anyone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Permissions {
    /// Someone is asked.
    #[default]
    Ask,
    /// Yes, once.
    Allow,
    /// No, once.
    Deny,
}

impl Permissions {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
    fn is_ask(&self) -> bool {
        *self == Permissions::Ask
    }
}

/// Whether a run's directory is captured before and after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CheckpointMode {
    /// Unless it is a home directory, or more than can be captured in passing.
    #[default]
    Auto,
    /// Always.
    On,
    /// Never.
    Off,
}

/// Settings of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(from = "StoredOptions")]
pub struct Options {
    /// Whether it continues by itself after an interruption.
    pub resume: ResumePolicy,
    /// What uncertain tool calls do to that.
    pub on_uncertain: OnUncertain,
    /// The mode that its agent is to work in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// What is answered to permission requests without asking anyone.
    #[serde(skip_serializing_if = "Permissions::is_ask")]
    pub permissions: Permissions,
    /// How long a question of its agent's may wait for its answer, in seconds; for ever without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_timeout_s: Option<u64>,
    /// Whether its directory is captured before and after each run; as the daemon is configured without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoints: Option<CheckpointMode>,
    /// How its snapshots are kept, where that is not as the daemon is configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub persistence: Option<Persistence>,
    /// Settings this version does not know, and values of those it knows that mean nothing to it; kept.
    #[serde(flatten)]
    pub extra: serde_json::Map<String, serde_json::Value>,
}

impl Options {
    /// Sets the mode that its agent is to work in, whatever was said before.
    pub fn set_mode(&mut self, mode: String) {
        self.extra.remove(MODE);
        self.mode = Some(mode);
    }

    /// Returns the umask that callers brought for its agents: it is no secret, and the next agent gets it too.
    pub fn umask(&self) -> Option<u32> {
        let text = self.extra.get(UMASK)?.as_str()?;
        u32::from_str_radix(text, 8).ok().filter(|umask| *umask <= 0o777)
    }

    /// Sets the umask of its agents.
    pub fn set_umask(&mut self, umask: u32) {
        self.extra.insert(UMASK.to_owned(), format!("{umask:04o}").into());
    }
}

/// Names of settings as they are stored.
const MODE: &str = "mode";
const PERMISSIONS: &str = "permissions";
const WAIT_TIMEOUT: &str = "wait_timeout_s";
const CHECKPOINTS: &str = "checkpoints";
const PERSISTENCE: &str = "persistence";
const UMASK: &str = "umask";

/// Settings as they are stored. A value that another version wrote and that means nothing to this one is no reason to refuse
/// the record that has it: it counts as not set, and is kept.
#[derive(Deserialize)]
struct StoredOptions {
    #[serde(default)]
    resume: ResumePolicy,
    #[serde(default)]
    on_uncertain: OnUncertain,
    #[serde(flatten)]
    rest: serde_json::Map<String, serde_json::Value>,
}

impl From<StoredOptions> for Options {
    fn from(stored: StoredOptions) -> Options {
        let StoredOptions { resume, on_uncertain, rest: mut extra } = stored;
        let mode = extra.get(MODE).and_then(|mode| mode.as_str()).map(str::to_owned);
        let permissions = match extra.get(PERMISSIONS).and_then(|word| word.as_str()) {
            Some("allow") => Permissions::Allow,
            Some("deny") => Permissions::Deny,
            _ => Permissions::Ask,
        };
        let wait_timeout_s = extra.get(WAIT_TIMEOUT).and_then(serde_json::Value::as_u64);
        let checkpoints = match extra.get(CHECKPOINTS).and_then(|word| word.as_str()) {
            Some("auto") => Some(CheckpointMode::Auto),
            Some("on") => Some(CheckpointMode::On),
            Some("off") => Some(CheckpointMode::Off),
            _ => None,
        };
        let persistence = extra.get(PERSISTENCE).and_then(|value| Persistence::deserialize(value).ok());
        let understood = [
            (MODE, mode.is_some()),
            (PERMISSIONS, permissions != Permissions::Ask),
            (WAIT_TIMEOUT, wait_timeout_s.is_some()),
            (CHECKPOINTS, checkpoints.is_some()),
            (PERSISTENCE, persistence.is_some()),
        ];
        for (name, _) in understood.iter().filter(|(_, understood)| *understood) {
            extra.remove(*name);
        }
        Options { resume, on_uncertain, mode, permissions, wait_timeout_s, checkpoints, persistence, extra }
    }
}

/// A session came to be. Always the first record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionCreated<'a> {
    /// A short title for lists.
    #[serde(borrow, default)]
    pub title: Cow<'a, str>,
    /// Where the agent works.
    #[serde(borrow)]
    pub working_dir: Cow<'a, str>,
    /// Who answers.
    pub provider: Provider,
    /// Its settings.
    #[serde(default)]
    pub options: Options,
    /// Names of the environment variables the agent gets; never their values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env_names: Vec<String>,
    /// A lasting name that callers gave it: whoever asks for a session of that name gets this one, until it is closed.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub key: Option<Cow<'a, str>>,
    /// Where its history was imported from.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub imported_from: Option<Cow<'a, str>>,
    /// The caller's key, so that a repeated create finds this session.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<Cow<'a, str>>,
    /// When it was created, if that was before this record: of a session of the earlier layout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Timestamp>,
    /// Where it goes on from the history of another session, if it is a fork.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<Box<ForkedFrom>>,
    /// What its files are made before anything begins in it, if it is a rewind, or a fork with files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restoring: Option<Restoring>,
    /// The worktree that it works in: made before its first agent is launched, unless it is there already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<Box<Worktree>>,
    /// What it is a part of: the step of a pipeline run that it is an attempt at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Box<ParentStep>>,
}

/// A step of a pipeline run, as the session of an attempt at it names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParentStep {
    /// The run.
    pub pipeline_id: PipelineId,
    /// The step.
    pub step_id: StepId,
}

/// Files that are being restored: no run begins before that is done, or was given up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restoring {
    /// The tree that the session's directory is made.
    pub tree: BlobId,
    /// The run before which the files were like that, where the session goes on otherwise as it was: its agent, which remembers
    /// them as they are, is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// The record that asks for it, in a state: it tells this restore from every other one. A record does not name itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// The worktree of git that is made before, if the files go into one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<Box<GitWorktree>>,
}

impl Restoring {
    /// Returns what a fork's first record says.
    pub fn new(tree: BlobId) -> Restoring {
        Restoring { tree, run_id: None, seq: None, worktree: None }
    }

    /// Returns the same in a worktree that is to be made.
    pub fn in_worktree(self, worktree: GitWorktree) -> Restoring {
        Restoring { worktree: Some(Box::new(worktree)), ..self }
    }
}

/// The fork point: the record of another session that a fork goes on behind. The fork's own records are numbered from the next
/// one on and chained from its hash; what comes before them is read through the other session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForkedFrom {
    /// The other session: the parent.
    pub session_id: SessionId,
    /// The record.
    pub seq: u64,
    /// Its hash, unless it is a legacy line.
    pub h: Option<ChainHash>,
    /// How many bytes the history takes up to its end: where to look first, and no more than that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// The session whose id the hash of the history's first record begins with, if that is not the parent: of a fork of a fork.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<SessionId>,
    /// The kept snapshot of the parent that was named for it, which is kept for as long as the fork is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<SnapshotName>,
}

impl ForkedFrom {
    /// Returns the session whose id the hash of the history's first record begins with.
    pub fn root(&self) -> SessionId {
        self.root.unwrap_or(self.session_id)
    }
}

/// Some property of a session changed; absent fields did not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
pub struct SessionUpdated<'a> {
    /// The new title.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub title: Option<Cow<'a, str>>,
    /// The new provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<Provider>,
    /// The new settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub options: Option<Options>,
    /// The new names of environment variables.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env_names: Option<Vec<String>>,
    /// Where the agent works from now on.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub working_dir: Option<Cow<'a, str>>,
    /// It came here from elsewhere: what its agent remembered stayed there, unless it says otherwise, and so did the keys of callers.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub imported: Option<Imported<'a>>,
}

/// Where a session came from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
pub struct Imported<'a> {
    /// The machine, as people call it.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<Cow<'a, str>>,
    /// When the bundle was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made_at: Option<Timestamp>,
    /// What its agent wrote down of it itself came along, and is where the agent looks for it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub transcript: bool,
}

/// A session takes no more prompts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
pub struct SessionClosed<'a> {
    /// Who closed it.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Cow<'a, str>>,
    /// The session that took its place, which begins in the same append.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced_by: Option<SessionId>,
}

/// A session is to be removed: this record is the decision, removing its files only carries it out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
pub struct SessionDeleted<'a> {
    /// Who deleted it.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Cow<'a, str>>,
}

/// A person said something.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MessageUser<'a> {
    /// Names the message.
    pub message_id: MessageId,
    /// Text, blocks, or a blob reference.
    #[serde(borrow)]
    pub content: Raw<'a>,
    /// The caller's key, so that a repeated message finds this one.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<Cow<'a, str>>,
    /// It waits behind a run that is not ended.
    #[serde(default, skip_serializing_if = "is_false")]
    pub queued: bool,
    /// The void wait this message answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_id: Option<WaitId>,
}

/// An agent said something: one record a whole message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MessageAgent<'a> {
    /// The run it was said in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// Names the message.
    pub message_id: MessageId,
    /// Text, blocks, or a blob reference.
    #[serde(borrow)]
    pub content: Raw<'a>,
    /// The agent died before it had said it all.
    #[serde(default, skip_serializing_if = "is_false")]
    pub partial: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
pub(super) fn is_false(value: &bool) -> bool {
    !value
}
