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
    ConfigInvalid = "config_invalid", 400: "the project's rekindle.toml makes no sense; the message says where";
    DependencyCycle = "dependency_cycle", 400: "tasks of the request wait for each other in a circle";
    InvalidAgent = "invalid_agent", 400: "the agent's profile or command makes no sense";
    InvalidAnswer = "invalid_answer", 400: "an answer is exactly one of option, option_id, text and form";
    InvalidAt = "invalid_at", 400: "the place to fork at is no run, no number of a record and no snapshot";
    InvalidBody = "invalid_body", 400: "the body is no JSON object of this shape; the message says where";
    InvalidContent = "invalid_content", 400: "a message is a text, or a list of blocks, and not empty";
    InvalidCursor = "invalid_cursor", 400: "the cursor is none that this list gave out";
    InvalidEnv = "invalid_env", 400: "a variable's name is empty or has a = in it, or there is a NUL in one";
    InvalidIdempotencyKey = "invalid_idempotency_key", 400: "the Idempotency-Key is not 1 to 255 visible ASCII characters";
    InvalidKey = "invalid_key", 400: "a session's key is 1 to 255 visible ASCII characters";
    InvalidLastEventId = "invalid_last_event_id", 400: "the Last-Event-ID is no id of an event";
    InvalidPipeline = "invalid_pipeline", 400: "the runs that are asked for make no sense; the message says why";
    InvalidQuery = "invalid_query", 400: "a parameter is unknown, or its value makes no sense";
    InvalidTask = "invalid_task", 400: "a limit of the task, or a name in it, makes no sense; the message says which";
    InvalidWorkingDir = "invalid_working_dir", 400: "the working directory is no absolute path of a directory";
    NothingToChange = "nothing_to_change", 400: "the change names nothing";
    TlsExpected = "tls_expected", 400: "this port speaks TLS";
    TokenMissing = "token_missing", 401: "over TCP an access token is needed";
    TokenUnknown = "token_unknown", 401: "the token is unknown, or its secret is wrong";
    HostNotAllowed = "host_not_allowed", 403: "over TCP: the request is not for this host";
    OriginNotAllowed = "origin_not_allowed", 403: "over TCP: requests from other pages are not taken";
    TokenScope = "token_scope", 403: "the token is for something else, or may do less";
    BlobUnknown = "blob_unknown", 404: "there is no such payload";
    ImportUnknown = "import_unknown", 404: "no bundle is staged by this name";
    NoSuchPath = "no_such_path", 404: "there is nothing at this path";
    RunUnknown = "run_unknown", 404: "there is no such run of a pipeline";
    SessionUnknown = "session_unknown", 404: "there is no such session";
    SnapshotNotFound = "snapshot_not_found", 404: "the session has no such snapshot";
    SinkUnknown = "sink_unknown", 404: "there is no such sink of notifications";
    TaskUnknown = "task_unknown", 404: "there is no such task";
    WaitUnknown = "wait_unknown", 404: "there is no such wait";
    NoSuchMethod = "no_such_method", 405: "the path does not take this method; Allow says which it takes";
    TooSlow = "too_slow", 408: "the body did not come in time";
    AgentChanged = "agent_changed", 409: "an agent of the run is not what it was when the run was started";
    AgentMissing = "agent_missing", 409: "the agent is not installed";
    AgentUnreachable = "agent_unreachable", 409: "the agent cannot be reached just now";
    AnswerUnfit = "answer_unfit", 409: "the agent did not offer this answer";
    BlobDamaged = "blob_damaged", 409: "the payload's file is damaged";
    BudgetExceeded = "budget_exceeded", 409: "the budget of the session, or of the day, is used up";
    Busy = "busy", 409: "the session changes too quickly";
    CheckpointMissing = "checkpoint_missing", 409: "the run has no checkpoint to compare, or not yet";
    Collecting = "collecting", 409: "what nobody needs is being collected already";
    CommitMissing = "commit_missing", 409: "the commit that HEAD was at is not in the repository any more";
    ConfigChanged = "config_changed", 409: "finished steps of the run hang on what is another thing in rekindle.toml by now";
    ConfigMissing = "config_missing", 409: "there is no rekindle.toml in the directory, or it cannot be read";
    ConfigUntrusted = "config_untrusted", 409: "nobody has said of this rekindle.toml that it is trusted in this directory";
    DependencyUnknown = "dependency_unknown", 409: "there is no such task to wait for";
    DirectoryNotEmpty = "directory_not_empty", 409: "there is something in the directory that files are to be restored in";
    EnvMissing = "env_missing", 409: "the agent needs variables that this daemon does not have";
    GitMissing = "git_missing", 409: "there is no git that could be run";
    HistoryMissing = "history_missing", 409: "the part of the session's history that is meant cannot be read";
    KeyConflict = "key_conflict", 409: "the session with this key works elsewhere, or with another agent";
    KeyReused = "key_reused", 409: "the Idempotency-Key was used for another request";
    LedgerMissing = "ledger_missing", 409: "the run is there, and its ledger is not";
    LinksUnavailable = "links_unavailable", 409: "the daemon has no base_url that answer links could begin with";
    ManifestMissing = "manifest_missing", 409: "what the run's directory is to be compared with, or made, is not kept any more";
    MergeConflict = "merge_conflict", 409: "the worktree and its directory changed the same place, each in its way; neither was touched";
    MergeImpossible = "merge_impossible", 409: "the worktree cannot be merged as things are; the message says why";
    Moved = "moved", 409: "something happened in the session meanwhile";
    NotARepository = "not_a_repository", 409: "the directory is in no git repository with a commit, or was not";
    NotDamaged = "not_damaged", 409: "the session's log is whole";
    NotNow = "not_now", 409: "it does not fit what is going on in the session";
    NothingRunning = "nothing_running", 409: "nothing goes on in the session";
    NothingToResume = "nothing_to_resume", 409: "nothing was interrupted in the session";
    NothingToUndo = "nothing_to_undo", 409: "nothing was asked in the session that could be taken back";
    QueueFull = "queue_full", 409: "too many messages wait for their turn";
    RecordUnknown = "record_unknown", 409: "the session's history ends before this record";
    RunAborted = "run_aborted", 409: "somebody aborted the run";
    RunCompleted = "run_completed", 409: "the run has gone through all of its stages";
    RunDamaged = "run_damaged", 409: "the run's ledger is damaged: nothing can be added to it";
    RunExists = "run_exists", 409: "there is a run of that name in this home";
    RunFailed = "run_failed", 409: "the run has failed";
    RunLocked = "run_locked", 409: "somebody else is at work on the run, or in its directory; the message says who";
    RunNotInSession = "run_not_in_session", 409: "there is no such run in the session's history";
    SessionClosed = "session_closed", 409: "the session takes no more messages";
    SessionDamaged = "session_damaged", 409: "the session's log is damaged: nothing can be added to it";
    SessionExists = "session_exists", 409: "a session of this id is here already";
    SessionNewer = "session_newer", 409: "a newer version wrote the session";
    SessionQuarantined = "session_quarantined", 409: "the session made the daemon crash twice: it is left alone until it is released";
    SettingUnknown = "setting_unknown", 409: "the agent does not offer this mode or model";
    SnapshotCorrupted = "snapshot_corrupted", 409: "the snapshot's file is damaged";
    SnapshotVersion = "snapshot_version", 409: "a newer version wrote the snapshot";
    StillRunning = "still_running", 409: "the session's run has not ended";
    TaskMissing = "task_missing", 409: "rekindle.toml has no such task, or not any more";
    TaskStateConflict = "task_state_conflict", 409: "the task does not stand where this could be done";
    TasksDamaged = "tasks_damaged", 409: "the log of the tasks is damaged: nothing can be added to it";
    TokenConsumed = "token_consumed", 409: "the wait was answered otherwise";
    WaitClosed = "wait_closed", 409: "the wait is not open any more";
    WorktreeImpossible = "worktree_impossible", 409: "no worktree of git can be made for the directory as it is";
    WorktreeLocked = "worktree_locked", 409: "somebody locked the worktree";
    WorktreeMissing = "worktree_missing", 409: "the session has no worktree of its own, or not any more";
    WorktreeUnsaved = "worktree_unsaved", 409: "the worktree has work that is nowhere else";
    SnapExpired = "snap_expired", 410: "the files of the checkpoint are not kept any more";
    TokenExpired = "token_expired", 410: "the token, or its wait, has expired";
    TokenRevoked = "token_revoked", 410: "the token was revoked";
    TooLarge = "too_large", 413: "the request, or the record it makes, is too large";
    TooManyFailures = "too_many_failures", 429: "over TCP: too many wrong tokens came from this address; Retry-After says when another is looked at";
    Internal = "internal", 500: "something is broken; the daemon's log says more";
    NoRandomness = "no_randomness", 500: "the system has no random numbers";
    Storage = "storage", 500: "the disk failed";
    TasksDbUnavailable = "tasks_db_unavailable", 503: "the database of tasks cannot be asked just now; tasks go on without it";
    NotReady = "not_ready", 503: "the sessions are being listed, or cannot be";
    OutcomeUnknown = "outcome_unknown", 503: "it may or may not be on disk: repeat it with the same Idempotency-Key";
    ShuttingDown = "shutting_down", 503: "the daemon is leaving";
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
            "the request is no HTTP that is taken here; the status says why".into(),
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
