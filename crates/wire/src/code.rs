//! The codes that a refusal may carry, in one table: its word for programs, the status that it is answered with, and what
//! it means. The documents of the interface are made from this table, so that none can be missing there.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::hint::Hint;

macro_rules! codes {
    ($($name:ident = $word:literal, $status:literal: $meaning:literal;)*) => {
        /// A stable word for programs: why something was not done.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code {
            $(#[doc = $meaning] $name,)*
        }

        impl Code {
            /// All of them.
            pub const ALL: &[Code] = &[$(Code::$name,)*];

            /// Returns the word.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Code::$name => $word,)*
                }
            }

            /// Returns the HTTP status that it is answered with: always the same for one code.
            pub fn status(self) -> u16 {
                match self {
                    $(Code::$name => $status,)*
                }
            }

            /// Returns what it means, for people.
            pub fn meaning(self) -> &'static str {
                match self {
                    $(Code::$name => $meaning,)*
                }
            }
        }
    };
}

codes! {
    AgentUnknown = "agent_unknown", 400: "no known agent has this name";
    ConfigInvalid = "config_invalid", 400: "the project's rekindle.toml is not valid; the message says where";
    DependencyCycle = "dependency_cycle", 400: "tasks in the request depend on each other in a cycle";
    InvalidAgent = "invalid_agent", 400: "the agent's profile or command is not valid";
    InvalidAnswer = "invalid_answer", 400: "an answer needs exactly one of option, option_id, text and form";
    InvalidAt = "invalid_at", 400: "the place to fork at is not a run, a record number or a snapshot";
    InvalidBody = "invalid_body", 400: "the request body does not have the expected shape; the message says where";
    InvalidContent = "invalid_content", 400: "a message must be text or a list of content blocks, and must not be empty";
    InvalidCursor = "invalid_cursor", 400: "the cursor did not come from this list";
    InvalidEnv = "invalid_env", 400: "a variable has an empty name, a name with an =, or a NUL byte";
    InvalidIdempotencyKey = "invalid_idempotency_key", 400: "the Idempotency-Key is not 1 to 255 visible ASCII characters";
    InvalidKey = "invalid_key", 400: "a session's key must be 1 to 255 visible ASCII characters";
    InvalidLastEventId = "invalid_last_event_id", 400: "the Last-Event-ID is not the id of an event";
    InvalidPipeline = "invalid_pipeline", 400: "the requested pipeline runs are not valid; the message says why";
    InvalidQuery = "invalid_query", 400: "a query parameter is unknown, or its value is not valid";
    InvalidTask = "invalid_task", 400: "a limit or a name in the task is not valid; the message says which";
    InvalidWorkingDir = "invalid_working_dir", 400: "the working directory is not the absolute path of a directory";
    NothingToChange = "nothing_to_change", 400: "the request names nothing to change";
    TlsExpected = "tls_expected", 400: "this port speaks TLS";
    TokenMissing = "token_missing", 401: "an access token is needed over TCP";
    TokenUnknown = "token_unknown", 401: "the token is unknown, or its secret is wrong";
    HostNotAllowed = "host_not_allowed", 403: "the Host header does not name this server (over TCP)";
    OriginNotAllowed = "origin_not_allowed", 403: "requests from other web pages are refused (over TCP)";
    TokenScope = "token_scope", 403: "the token does not allow this";
    BlobUnknown = "blob_unknown", 404: "there is no such payload";
    ImportUnknown = "import_unknown", 404: "no bundle is staged under this name";
    NoSuchPath = "no_such_path", 404: "there is nothing at this path";
    RunUnknown = "run_unknown", 404: "there is no such pipeline run";
    SessionUnknown = "session_unknown", 404: "there is no such session";
    SnapshotNotFound = "snapshot_not_found", 404: "the session has no such snapshot";
    SinkUnknown = "sink_unknown", 404: "there is no such notification sink";
    TaskUnknown = "task_unknown", 404: "there is no such task";
    WaitUnknown = "wait_unknown", 404: "there is no such wait";
    NoSuchMethod = "no_such_method", 405: "the path does not support this method; the Allow header lists those that it does";
    TooSlow = "too_slow", 408: "the request body did not arrive in time";
    AgentChanged = "agent_changed", 409: "an agent of the run has changed since the run was started";
    AgentMissing = "agent_missing", 409: "the agent is not installed";
    AgentUnreachable = "agent_unreachable", 409: "the agent cannot be reached at the moment";
    AnswerUnfit = "answer_unfit", 409: "the agent did not offer this answer";
    BlobDamaged = "blob_damaged", 409: "the payload's file is damaged";
    BudgetExceeded = "budget_exceeded", 409: "the budget of the session, or of the day, is used up";
    Busy = "busy", 409: "the session is changing too quickly";
    CheckpointMissing = "checkpoint_missing", 409: "the run has no checkpoint to compare with, or not yet";
    Collecting = "collecting", 409: "a garbage collection is already running";
    CommitMissing = "commit_missing", 409: "the commit that HEAD pointed to is no longer in the repository";
    ConfigChanged = "config_changed", 409: "rekindle.toml has changed, and finished steps of the run depend on what changed";
    ConfigMissing = "config_missing", 409: "there is no rekindle.toml in the directory, or it cannot be read";
    ConfigUntrusted = "config_untrusted", 409: "this rekindle.toml is not trusted in this directory yet";
    DependencyUnknown = "dependency_unknown", 409: "a task to wait for does not exist";
    DirectoryNotEmpty = "directory_not_empty", 409: "the directory to restore files into is not empty";
    EnvMissing = "env_missing", 409: "the agent needs environment variables that this daemon does not have";
    GitMissing = "git_missing", 409: "git cannot be run: it may not be installed";
    HistoryMissing = "history_missing", 409: "the requested part of the session's history cannot be read";
    KeyConflict = "key_conflict", 409: "the session with this key has another directory or another agent";
    KeyReused = "key_reused", 409: "the Idempotency-Key was used for another request";
    LedgerMissing = "ledger_missing", 409: "the run exists, but its ledger is missing";
    LinksUnavailable = "links_unavailable", 409: "answer links need a base_url in the daemon's configuration";
    ManifestMissing = "manifest_missing", 409: "the files that the run's directory is to be compared with or restored to are no longer kept";
    MergeConflict = "merge_conflict", 409: "the worktree and its directory have conflicting changes; neither was touched";
    MergeImpossible = "merge_impossible", 409: "the worktree cannot be merged now; the message says why";
    Moved = "moved", 409: "the session has changed in the meantime";
    NotARepository = "not_a_repository", 409: "the directory is not in a git repository with a commit, or was not at the time";
    NotDamaged = "not_damaged", 409: "the session's log is not damaged";
    NotNow = "not_now", 409: "the session's current state does not allow this";
    NothingRunning = "nothing_running", 409: "nothing is running in the session";
    NothingToResume = "nothing_to_resume", 409: "nothing was interrupted in the session";
    NothingToUndo = "nothing_to_undo", 409: "the session has no prompt that could be undone";
    QueueFull = "queue_full", 409: "too many messages are queued";
    RecordUnknown = "record_unknown", 409: "the session's history ends before this record";
    RunAborted = "run_aborted", 409: "the run was aborted";
    RunCompleted = "run_completed", 409: "the run has completed all of its stages";
    RunDamaged = "run_damaged", 409: "the run's ledger is damaged: nothing can be added to it";
    RunExists = "run_exists", 409: "this home already has a run with that name";
    RunFailed = "run_failed", 409: "the run has failed";
    RunLocked = "run_locked", 409: "the run or its directory is in use; the message says by whom";
    RunNotInSession = "run_not_in_session", 409: "there is no such run in the session's history";
    SessionClosed = "session_closed", 409: "the session accepts no more messages";
    SessionDamaged = "session_damaged", 409: "the session's log is damaged: nothing can be added to it";
    SessionExists = "session_exists", 409: "a session with this id already exists here";
    SessionNewer = "session_newer", 409: "the session was written by a newer version";
    SessionQuarantined = "session_quarantined", 409: "the session made the daemon crash twice: it is quarantined until it is released";
    SettingUnknown = "setting_unknown", 409: "the agent does not offer this mode or model";
    SnapshotCorrupted = "snapshot_corrupted", 409: "the snapshot's file is damaged";
    SnapshotVersion = "snapshot_version", 409: "the snapshot was written by a newer version";
    StillRunning = "still_running", 409: "the session's run has not ended";
    TaskMissing = "task_missing", 409: "rekindle.toml has no such task, or no longer has it";
    TaskStateConflict = "task_state_conflict", 409: "the task's status does not allow this";
    TasksDamaged = "tasks_damaged", 409: "the task log is damaged: nothing can be added to it";
    TokenConsumed = "token_consumed", 409: "the wait already has another answer";
    WaitClosed = "wait_closed", 409: "the wait is no longer open";
    WorktreeImpossible = "worktree_impossible", 409: "no git worktree can be made for the directory as it is now";
    WorktreeLocked = "worktree_locked", 409: "the worktree is locked";
    WorktreeMissing = "worktree_missing", 409: "the session has no worktree of its own, or no longer has it";
    WorktreeUnsaved = "worktree_unsaved", 409: "the worktree has work that exists nowhere else";
    SnapExpired = "snap_expired", 410: "the files of the checkpoint are no longer kept";
    TokenExpired = "token_expired", 410: "the token, or its wait, has expired";
    TokenRevoked = "token_revoked", 410: "the token was revoked";
    TooLarge = "too_large", 413: "the request, or the record it makes, is too large";
    TooManyFailures = "too_many_failures", 429: "too many wrong tokens came from this address (over TCP); Retry-After says when to try again";
    Internal = "internal", 500: "an internal error; the daemon's log says more";
    NoRandomness = "no_randomness", 500: "the system cannot provide random numbers";
    Storage = "storage", 500: "the disk failed";
    TasksDbUnavailable = "tasks_db_unavailable", 503: "the task database is not available at the moment; tasks continue without it";
    NotReady = "not_ready", 503: "the daemon is still listing its sessions, or cannot list them";
    OutcomeUnknown = "outcome_unknown", 503: "it is not known whether this was recorded: repeat it with the same Idempotency-Key";
    ShuttingDown = "shutting_down", 503: "the daemon is shutting down";
    TokensUnreadable = "tokens_unreadable", 503: "the daemon cannot read its list of access tokens";
    TooManyConnections = "too_many_connections", 503: "there are too many connections";
    StorageFull = "storage_full", 507: "the disk is full";
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The word of an error that the framework wrote, which has whatever status the framework gave it.
pub const REFUSED: &str = "refused";

impl JsonSchema for Code {
    fn schema_name() -> Cow<'static, str> {
        "ErrorCode".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let mut codes: Map<String, Value> =
            Code::ALL.iter().map(|code| (code.as_str().to_owned(), code.meaning().into())).collect();
        codes.insert(
            REFUSED.to_owned(),
            "the HTTP request is not valid or not supported; the status says why".into(),
        );
        let words: Vec<&String> = codes.keys().collect();
        json_schema!({
            "type": "string",
            "description": "A stable word for programs. Words may be added.",
            "enum": words,
            "x-meanings": codes,
        })
    }
}

/// What every 4xx and 5xx carries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Error")]
pub struct ErrorBody<'a> {
    /// What is wrong.
    pub error: ErrorDetail<'a>,
}

/// What is wrong with a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorDetail<'a> {
    /// A stable word for programs.
    #[schemars(with = "Code")]
    pub code: Cow<'a, str>,
    /// What is wrong, for people.
    pub message: Cow<'a, str>,
    /// What to do next, if there is anything to advise: in words for callers of the interface.
    pub hint: Option<Cow<'a, str>>,
    /// The same for programs, where the hint is of a known kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advice: Option<Hint>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_word_stands_for_two_things() {
        let mut words: Vec<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), Code::ALL.len());
        assert!(words.iter().all(|word| word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')));
    }

    #[test]
    fn every_code_is_an_error_to_http() {
        for code in Code::ALL {
            assert!((400..600).contains(&code.status()), "{code}");
        }
    }
}
