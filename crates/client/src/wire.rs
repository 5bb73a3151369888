//! What the daemon sends, as far as commands look at it; fields that are not here are passed over. With `--json` its
//! words are printed as they are.

use rekindle_domain::projector::SessionStatus;
use rekindle_domain::time::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use crate::failure::{Exit, Failure};

/// A session.
#[derive(Debug, Clone, Deserialize)]
pub struct Session {
    /// Its id.
    pub id: String,
    /// Its title.
    #[serde(default)]
    pub title: String,
    /// Where its agent works.
    #[serde(default)]
    pub working_dir: String,
    /// Its agent, as it was named.
    #[serde(default)]
    pub agent: String,
    /// The known agent that it is, by its name or its command.
    #[serde(default)]
    pub known_agent: Option<String>,
    /// Variables that its agent cannot be launched without, and the daemon does not have.
    #[serde(default)]
    pub missing_env: Vec<String>,
    /// The protocol that its agent speaks.
    #[serde(default)]
    pub profile: String,
    /// What it is doing.
    pub status: SessionStatus,
    /// Since when.
    pub since: Timestamp,
    /// What its status is derived from.
    #[serde(default)]
    pub evidence: Value,
    /// How the daemon stands with the agent; empty without a daemon.
    #[serde(default)]
    pub connection: String,
    /// Its newest record.
    #[serde(default)]
    pub last_seq: u64,
    /// Its newest run.
    pub run: Option<Run>,
    /// What it waits for.
    #[serde(default)]
    pub waits: Vec<Wait>,
    /// Messages that have not had their turn.
    #[serde(default)]
    pub queued: usize,
    /// Why it does not go on by itself, if it could.
    pub held: Option<String>,
    /// When its newest record was written.
    pub updated_at: Timestamp,
    /// What its agent said last.
    pub last_words: Option<String>,
    /// Whether its files are whole.
    pub health: Option<Health>,
    /// What a crash left behind its log, which is told only without a daemon.
    #[serde(default)]
    pub tail: Option<String>,
}

/// A run.
#[derive(Debug, Clone, Deserialize)]
pub struct Run {
    /// Its id.
    pub run_id: String,
    /// How it stands.
    pub state: String,
    /// More about that.
    #[serde(default)]
    pub detail: Option<String>,
    /// It was cut, and may be continued.
    #[serde(default)]
    pub resumable: bool,
    /// What its interruption left open.
    #[serde(default)]
    pub uncertain: Option<Uncertain>,
}

/// What an interruption left open.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Uncertain {
    /// Whether the agent took the prompt is not known.
    #[serde(default)]
    pub turn: bool,
    /// Tool calls that had no end.
    #[serde(default)]
    pub tool_calls: Vec<UncertainCall>,
}

/// A tool call that may or may not have had its effect.
#[derive(Debug, Clone, Deserialize)]
pub struct UncertainCall {
    /// What it is called.
    #[serde(default)]
    pub title: String,
    /// What it was given.
    #[serde(default)]
    pub input: Option<String>,
}

/// A wait.
#[derive(Debug, Clone, Deserialize)]
pub struct Wait {
    /// Its id.
    pub wait_id: String,
    /// The session that waits.
    pub session_id: String,
    /// For what.
    pub kind: String,
    /// Whether it is still open.
    #[serde(default)]
    pub state: String,
    /// What was asked.
    #[serde(default)]
    pub request: Value,
    /// Since when.
    pub since: Timestamp,
    /// Until when.
    pub deadline_at: Option<Timestamp>,
}

/// Whether a session is whole.
#[derive(Debug, Clone, Deserialize)]
pub struct Health {
    /// How it is.
    pub state: String,
    /// What is wrong.
    pub detail: Option<String>,
}

/// A page of a log.
#[derive(Debug, Deserialize)]
pub struct Records {
    /// The records, as they are.
    pub records: Vec<Box<serde_json::value::RawValue>>,
    /// Where the next page begins.
    #[serde(default)]
    pub next: Option<u64>,
}

/// A message that was taken.
#[derive(Debug, Deserialize)]
pub struct MessageTaken {
    /// Its record.
    pub seq: u64,
    /// Something else has to end first.
    #[serde(default)]
    pub queued: bool,
}

/// Words that are in no record yet.
#[derive(Debug, Clone, Deserialize)]
pub struct Words {
    /// The message that they are part of.
    pub message_id: String,
    /// Which kind of message.
    #[serde(default)]
    pub kind: String,
    /// The words.
    pub text: String,
    /// How many bytes of the message stand before them, if the daemon tells.
    #[serde(default)]
    pub at: Option<usize>,
}

#[derive(Debug, Deserialize)]
struct Refusal {
    error: Why,
}

#[derive(Debug, Deserialize)]
struct Why {
    code: String,
    message: String,
    hint: Option<String>,
}

/// Returns the failure that an answer tells of.
pub fn refusal(status: u16, body: &[u8]) -> Failure {
    match serde_json::from_slice::<Refusal>(body) {
        Ok(Refusal { error }) => {
            let failure = Failure::failed(error.code, anyhow::Error::msg(error.message));
            // Named by whoever asked, like an id that is in no list.
            let unknown = matches!(failure.code(), "session_unknown" | "wait_unknown");
            let failure = if unknown { failure.exit_with(Exit::Usage) } else { failure };
            error.hint.into_iter().fold(failure, Failure::hint)
        }
        Err(_) => {
            let text = String::from_utf8_lossy(body);
            let text = text.chars().take(200).collect::<String>();
            Failure::failed("refused", anyhow::anyhow!("the daemon answered {status}: {text}"))
        }
    }
}
