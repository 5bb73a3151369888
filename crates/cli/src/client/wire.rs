//! What the daemon sends, as far as commands look at it; fields that are not here are passed over. With `--json` its
//! words are printed as they are.

use rekindle_domain::projector::SessionStatus;
use rekindle_domain::time::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use crate::failure::{Exit, Failure};

/// A session.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Session {
    pub(crate) id: String,
    #[serde(default)]
    pub(crate) title: String,
    #[serde(default)]
    pub(crate) working_dir: String,
    #[serde(default)]
    pub(crate) agent: String,
    /// The known agent that it is, by its name or its command.
    #[serde(default)]
    pub(crate) known_agent: Option<String>,
    /// Variables that its agent cannot be launched without, and the daemon does not have.
    #[serde(default)]
    pub(crate) missing_env: Vec<String>,
    #[serde(default)]
    pub(crate) profile: String,
    pub(crate) status: SessionStatus,
    pub(crate) since: Timestamp,
    #[serde(default)]
    pub(crate) evidence: Value,
    /// How the daemon stands with the agent; empty without a daemon.
    #[serde(default)]
    pub(crate) connection: String,
    #[serde(default)]
    pub(crate) last_seq: u64,
    pub(crate) run: Option<Run>,
    #[serde(default)]
    pub(crate) waits: Vec<Wait>,
    #[serde(default)]
    pub(crate) queued: usize,
    pub(crate) held: Option<String>,
    pub(crate) updated_at: Timestamp,
    pub(crate) last_words: Option<String>,
    pub(crate) health: Option<Health>,
    /// What a crash left behind its log, which is told only without a daemon.
    #[serde(default)]
    pub(crate) tail: Option<String>,
}

/// A run.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Run {
    pub(crate) run_id: String,
    pub(crate) state: String,
    #[serde(default)]
    pub(crate) detail: Option<String>,
    /// It was cut, and may be continued.
    #[serde(default)]
    pub(crate) resumable: bool,
    #[serde(default)]
    pub(crate) uncertain: Option<Uncertain>,
}

/// What an interruption left open.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct Uncertain {
    #[serde(default)]
    pub(crate) turn: bool,
    #[serde(default)]
    pub(crate) tool_calls: Vec<UncertainCall>,
}

/// A tool call that may or may not have had its effect.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct UncertainCall {
    #[serde(default)]
    pub(crate) title: String,
    #[serde(default)]
    pub(crate) input: Option<String>,
}

/// A wait.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Wait {
    pub(crate) wait_id: String,
    pub(crate) session_id: String,
    pub(crate) kind: String,
    #[serde(default)]
    pub(crate) state: String,
    #[serde(default)]
    pub(crate) request: Value,
    pub(crate) since: Timestamp,
    pub(crate) deadline_at: Option<Timestamp>,
}

/// Whether a session is whole.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Health {
    pub(crate) state: String,
    pub(crate) detail: Option<String>,
}

/// A page of a log.
#[derive(Debug, Deserialize)]
pub(crate) struct Records {
    pub(crate) records: Vec<Box<serde_json::value::RawValue>>,
    #[serde(default)]
    pub(crate) next: Option<u64>,
}

/// A message that was taken.
#[derive(Debug, Deserialize)]
pub(crate) struct MessageTaken {
    pub(crate) seq: u64,
    #[serde(default)]
    pub(crate) queued: bool,
}

/// Words that are in no record yet.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Words {
    pub(crate) message_id: String,
    #[serde(default)]
    pub(crate) kind: String,
    pub(crate) text: String,
    /// How many bytes of the message stand before them, if the daemon tells.
    #[serde(default)]
    pub(crate) at: Option<usize>,
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
pub(crate) fn refusal(status: u16, body: &[u8]) -> Failure {
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
