//! What a visitor remembers: everything that was acknowledged, and what was heard of a session while daemons came and went.
//! It is what the log is held against.

/// Something that the daemon said yes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Write {
    /// A message under a key, by its tag; the prompt is what the agent must be told.
    Message {
        tag: String,
        message_id: String,
        prompt: String,
    },
    /// The same message under the same key once more: another id would be another message.
    Again {
        tag: String,
        message_id: String,
        first: String,
    },
    Title {
        title: String,
    },
    /// A cancel of a run, or of what waited for its turn.
    Cancel {
        run_id: Option<String>,
    },
    /// An answer to a wait, and which token it consumed; without one it became a message.
    Answer {
        wait_id: String,
        token: Option<String>,
    },
    /// The same answer once more.
    AnswerAgain {
        wait_id: String,
        token: Option<String>,
        first: Option<String>,
    },
    /// Another answer to the same wait, which was taken although there was one.
    AnswerOtherwise {
        wait_id: String,
    },
}

/// Something heard of a session's records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Heard {
    Record {
        seq: u64,
        hash: String,
        kind: String,
    },
    /// What was heard is not all true any more.
    Reset,
}

/// Everything of one session.
#[derive(Debug, Clone, Default)]
pub(super) struct Ledger {
    pub(super) writes: Vec<Write>,
    /// A session that takes nothing any more although nothing ended it; why.
    pub(super) stuck: Option<String>,
    /// It was refused what nothing stands against.
    pub(super) refused: Vec<String>,
}

/// Kinds that need not be on disk when they are told: what agents say.
pub(super) fn is_fleeting(kind: &str) -> bool {
    matches!(
        kind,
        "message.agent"
            | "message.thought"
            | "tool.call"
            | "tool.update"
            | "plan.updated"
            | "usage.updated"
            | "mode.updated"
            | "agent.notice"
    )
}
