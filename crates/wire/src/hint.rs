//! Hints: what to do next about an error, as data. The daemon says which step helps; the server words it for programs that speak
//! HTTP, the command line for people at a terminal.

use rekindle_domain::access::Scope;
use rekindle_domain::blob_id::BlobId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What to do next about an error. Kinds may be added; one that this version does not know is read as `Unknown`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[schemars(rename = "Advice")]
pub enum Hint {
    /// List the sessions.
    ListSessions,
    /// List the snapshots of the session.
    ListSnapshots,
    /// List the tasks that have not ended.
    ListTasks,
    /// List the waits that are open.
    ListWaits,
    /// Answer the waits that are open.
    AnswerWaits,
    /// List the known agents, or name a command.
    ListAgents,
    /// Choose one of the profiles.
    ChooseProfile,
    /// Install the agent.
    InstallAgent {
        /// The command that installs it.
        command: String,
    },
    /// Give a command what it needs among its arguments: it has no settings.
    PassArguments,
    /// Name a directory by its absolute path.
    NameDirectory,
    /// Bring the variables that are missing.
    BringVariables,
    /// Look at the session's status and try again.
    TryAgain,
    /// Cancel the run first.
    CancelFirst,
    /// Cancel the run first, or force the removal.
    CancelOrForce,
    /// Cancel the run first, or restore the files all the same.
    CancelOrForceRestore,
    /// Name a new or an empty directory, or force the restore.
    NameEmptyDirectory,
    /// Name a directory that is not there yet.
    NameNewDirectory,
    /// Fork the session into a directory of its own, with its files.
    ForkElsewhere,
    /// Restore the files in a directory of their own, which needs no git.
    RestoreWithoutGit,
    /// Work in the directory itself.
    WorkInPlace,
    /// Commit what is not committed, or say what becomes of it.
    CommitOrCarry,
    /// Name another branch.
    NameOtherBranch,
    /// Carry what is not committed to where it belongs.
    CarryFromHead,
    /// Bring both branches together in the worktree, then merge again.
    ResolveInWorktree,
    /// Commit what is not committed, or put it aside.
    CommitThere,
    /// Switch to a branch there.
    SwitchToBranch,
    /// Finish what was begun there, or give it up.
    FinishThere,
    /// Merge it first, or force the removal, which keeps what is nowhere else.
    MergeOrForce,
    /// Commit and push inside that repository, or move it elsewhere.
    PushInside,
    /// List the runs of pipelines.
    ListPipelines,
    /// Look at the project's file, and say that it is trusted.
    TrustConfig {
        /// BLAKE3 of the file.
        hash: Box<BlobId>,
    },
    /// Have the project's file checked, which says what is wrong with it.
    CheckConfig,
    /// Put back into the project's file what the run was started with, or start another run.
    RestoreConfig,
    /// Go on with what the run was started with, or start another run.
    AcceptConfig,
    /// Force the resume.
    ForceResume,
    /// Follow the run, or wait for its end.
    FollowRun,
    /// Say what becomes of the files: restored, or taken as they are.
    DecideDrift,
    /// Have each run work in a worktree of its own.
    UseWorktrees,
    /// Start another run.
    StartRun,
    /// Start the daemon anew, so that it reads its configuration.
    RestartDaemon,
    /// Somebody locked the worktree with git.
    UnlockWorktree,
    /// Name another place, or leave the files as they are.
    LeaveFiles,
    /// Cancel, which empties the queue.
    EmptyQueue,
    /// Allow more, in the daemon's configuration.
    RaiseBudget,
    /// Say in the daemon's configuration how people elsewhere reach it.
    SetBaseUrl,
    /// Give the session a new message.
    SendMessage,
    /// Begin another session.
    StartSession,
    /// Answer the wait by its id, which needs no token.
    AnswerById,
    /// Read what is whole of the session's log; remove it by force to set its files aside.
    SetAside,
    /// Have the home examined on the daemon's machine.
    ExamineHome,
    /// Use the version that wrote the session; other sessions are not concerned.
    UseNewerVersion,
    /// Release the session, to have it tried again; other sessions are not concerned.
    ReleaseSession,
    /// Free some room on the disk.
    FreeDiskSpace,
    /// Repeat the request with the same idempotency key.
    RepeatWithSameKey,
    /// Use a new idempotency key for a new request.
    UseNewKey,
    /// Use another key for another session, or close the one that has it.
    UseOtherKey,
    /// Begin the list again, or take the cursor as it was given.
    RestartList,
    /// Ask for a number of entries that is possible.
    ChooseLimit {
        /// Most that are given at once.
        most: usize,
    },
    /// Choose one of the statuses.
    ChooseStatus {
        /// The statuses there are.
        statuses: Vec<String>,
    },
    /// Create an access token on the daemon's machine.
    CreateToken {
        /// What it has to be good for, if that is what was missing.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        scope: Option<Scope>,
    },
    /// Have the access tokens listed on the daemon's machine, which says what is wrong with the list.
    ListTokens,
    /// Advice that this version does not know.
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_hint_is_its_kind_with_its_data() {
        for (hint, written) in [
            (Hint::ListSessions, json!({"kind": "list_sessions"})),
            (Hint::ChooseLimit { most: 500 }, json!({"kind": "choose_limit", "most": 500})),
            (Hint::CreateToken { scope: None }, json!({"kind": "create_token"})),
            (
                Hint::CreateToken { scope: Some(Scope::Admin) },
                json!({"kind": "create_token", "scope": "admin"}),
            ),
        ] {
            assert_eq!(serde_json::to_value(&hint).expect("JSON"), written);
            assert_eq!(serde_json::from_value::<Hint>(written).expect("a hint"), hint);
        }
    }

    #[test]
    fn a_kind_of_a_newer_daemon_is_read_as_unknown() {
        let newer = json!({"kind": "ask_a_friend", "friend": "x"});
        assert_eq!(serde_json::from_value::<Hint>(newer).expect("a hint"), Hint::Unknown);
    }
}
