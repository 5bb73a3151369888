//! The codes that a refusal may carry, in one table: its word for programs, what kind of no it is, what it means.
//! The documents of the interface are made from this table, so that none can be missing there.

use std::fmt;

/// What kind of no it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The request makes no sense.
    Invalid,
    /// The token is unknown or its secret is wrong.
    Unauthorized,
    /// The token is for something else.
    Forbidden,
    /// There is no such thing.
    NotFound,
    /// It cannot be done as things stand.
    Conflict,
    /// It could have been done once.
    Gone,
    /// More was brought than is taken.
    TooLarge,
    /// The disk is full.
    StorageFull,
    /// It may or may not have been done.
    OutcomeUnknown,
    /// Not now.
    Unavailable,
    /// Something is broken.
    Internal,
}

macro_rules! codes {
    ($($name:ident = $word:literal, $refusal:ident: $meaning:literal;)*) => {
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

            /// Returns what kind of no it is: always the same for one code.
            pub fn refusal(self) -> Refusal {
                match self {
                    $(Code::$name => Refusal::$refusal,)*
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
    AgentUnknown = "agent_unknown", Invalid: "no known agent has this name";
    InvalidAgent = "invalid_agent", Invalid: "the agent's profile or command makes no sense";
    InvalidAnswer = "invalid_answer", Invalid: "an answer is exactly one of option, option_id, text and form";
    InvalidContent = "invalid_content", Invalid: "a message is a text, or a list of blocks, and not empty";
    InvalidCursor = "invalid_cursor", Invalid: "the cursor is none that this list gave out";
    InvalidEnv = "invalid_env", Invalid: "a variable's name is empty or has a = in it, or there is a NUL in one";
    InvalidQuery = "invalid_query", Invalid: "a parameter is unknown, or its value makes no sense";
    InvalidWorkingDir = "invalid_working_dir", Invalid: "the working directory is no absolute path of a directory";
    NothingToChange = "nothing_to_change", Invalid: "the change names nothing";
    TokenUnknown = "token_unknown", Unauthorized: "the token is unknown, or its secret is wrong";
    TokenScope = "token_scope", Forbidden: "the token is for something else, or may do less";
    BlobUnknown = "blob_unknown", NotFound: "there is no such payload";
    SessionUnknown = "session_unknown", NotFound: "there is no such session";
    WaitUnknown = "wait_unknown", NotFound: "there is no such wait";
    AgentMissing = "agent_missing", Conflict: "the agent is not installed";
    AgentUnreachable = "agent_unreachable", Conflict: "the agent cannot be reached just now";
    AnswerUnfit = "answer_unfit", Conflict: "the agent did not offer this answer";
    BlobDamaged = "blob_damaged", Conflict: "the payload's file is damaged";
    Busy = "busy", Conflict: "the session changes too quickly";
    EnvMissing = "env_missing", Conflict: "the agent needs variables that this daemon does not have";
    KeyReused = "key_reused", Conflict: "the Idempotency-Key was used for another request";
    Moved = "moved", Conflict: "something happened in the session meanwhile";
    NotDamaged = "not_damaged", Conflict: "the session's log is whole";
    NotNow = "not_now", Conflict: "it does not fit what is going on in the session";
    NothingRunning = "nothing_running", Conflict: "nothing goes on in the session";
    NothingToResume = "nothing_to_resume", Conflict: "nothing was interrupted in the session";
    QueueFull = "queue_full", Conflict: "too many messages wait for their turn";
    SessionClosed = "session_closed", Conflict: "the session takes no more messages";
    SessionDamaged = "session_damaged", Conflict: "the session's log is damaged: nothing can be added to it";
    SessionNewer = "session_newer", Conflict: "a newer version wrote the session";
    SettingUnknown = "setting_unknown", Conflict: "the agent does not offer this mode or model";
    StillRunning = "still_running", Conflict: "the session's run has not ended";
    TokenConsumed = "token_consumed", Conflict: "the wait was answered otherwise";
    WaitClosed = "wait_closed", Conflict: "the wait is not open any more";
    TokenExpired = "token_expired", Gone: "the token, or its wait, has expired";
    TokenRevoked = "token_revoked", Gone: "the token was revoked";
    TooLarge = "too_large", TooLarge: "the request, or the record it makes, is too large";
    Internal = "internal", Internal: "something is broken; the daemon's log says more";
    NoRandomness = "no_randomness", Internal: "the system has no random numbers";
    Storage = "storage", Internal: "the disk failed";
    OutcomeUnknown = "outcome_unknown", OutcomeUnknown: "it may or may not be on disk: repeat it with the same Idempotency-Key";
    TokensUnreadable = "tokens_unreadable", Unavailable: "the daemon cannot read its list of access tokens";
    ShuttingDown = "shutting_down", Unavailable: "the daemon is leaving";
    StorageFull = "storage_full", StorageFull: "the disk is full";
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
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
}
