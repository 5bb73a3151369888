//! A scripted agent: a real process that speaks real ACP (JSON-RPC, a message a line) and does what the script in
//! its prompt says. Demonstrations and fault tests use it where a model would be slow, dear or too well behaved.

mod handover;
mod help;
mod memory;
mod process_state;
mod record;
mod script;
mod serve;
mod sessions;
mod turn;
mod units;
mod wire;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

pub use help::directives_help;
pub use sessions::default_state;
pub use units::{parse_duration, parse_size};
pub use wire::{huge_line, huge_text};

/// Names the directory of barriers when [`Options::barriers`] is not given.
pub const BARRIERS_VARIABLE: &str = "REKINDLE_DEMO_BARRIERS";

/// Names the directory of conversations when no flag does.
pub const STATE_VARIABLE: &str = "REKINDLE_DEMO_STATE";

/// How an agent process behaves, decided when it starts.
#[derive(Debug, Clone)]
pub struct Options {
    /// The command and its arguments that lead to [`linger`], in front of the seconds.
    pub linger_command: Vec<OsString>,
    /// Where conversations are kept.
    pub state: PathBuf,
    /// Where the directive `barrier` meets the test.
    pub barriers: Option<PathBuf>,
    /// A file that gets every line received.
    pub record: Option<PathBuf>,
    /// The pause between two words or two states of a tool.
    pub pace: Duration,
    /// How long to do nothing at first.
    pub slow_start: Duration,
    /// What `session/load` and `session/resume` do.
    pub load: Load,
    /// Whether an agent that is told of an interruption does the rest of the turn, or only says what it knows.
    pub carries_on: bool,
    /// Whether `session/load` exists.
    pub can_load: bool,
    /// Whether `session/resume` exists.
    pub can_resume: bool,
    /// Whether there are modes.
    pub offers_modes: bool,
    /// How models are offered.
    pub models: Models,
    /// Whether every change of mode or model is refused.
    pub refuse_settings: bool,
    /// How long a change of mode or model takes to be answered.
    pub slow_settings: Duration,
    /// The barrier at which a change of mode or model is answered.
    pub hold_settings: Option<String>,
    /// Whether sessions want `authenticate` first.
    pub auth_required: bool,
    /// The highest protocol version to agree to.
    pub protocol: u16,
    /// By which name it introduces itself.
    pub name: String,
    /// Whether a replay joins messages that follow each other.
    pub merges: bool,
    /// Whether tool calls are kept quiet in a session that was loaded.
    pub quiet_after_load: bool,
    /// How long after the answer to a load the conversation is shown; before it if there is none.
    pub replays_late: Option<Duration>,
}

/// How models are offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Models {
    /// As a config option.
    #[default]
    Option,
    /// In the field `models`, as older agents do.
    Field,
    /// Not at all.
    None,
}

/// What happens when a session is loaded or resumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Load {
    /// The whole conversation is there.
    #[default]
    Honest,
    /// An error, whatever the session.
    Refuse,
    /// Success and an empty conversation, whatever the session.
    Empty,
    /// Only so many of the first messages and tool calls are there.
    Short(usize),
    /// An interrupted turn runs on before the answer.
    Continues,
    /// Turns that never ended are forgotten, prompt and all.
    ForgetCut,
    /// The first turn is forgotten if it never ended.
    ForgetFirst,
    /// There is no answer, ever.
    Hangs,
    /// Within this time after the session was made or last loaded, a load destroys it and fails.
    DestroysWithin(Duration),
}

/// Serves one client on stdin and stdout until stdin ends; returns the exit code.
pub fn run(options: Options) -> Result<u8, Error> {
    serve::run(options)
}

/// Waits so many seconds: what a child that outlives its agent does.
///
/// A detached one has left the session and every pipe of its parent when its stdout ends.
pub fn linger(seconds: u64, detach: bool) -> Result<(), Error> {
    if detach {
        let leave = || {
            rustix::process::setsid()?;
            let nowhere = std::fs::OpenOptions::new().write(true).open("/dev/null")?;
            rustix::stdio::dup2_stdout(&nowhere)
                .and_then(|()| rustix::stdio::dup2_stderr(&nowhere))
                .map_err(std::io::Error::from)
        };
        leave().map_err(|source| Error::Start { what: "leave the session of the agent", source })?;
    }
    std::thread::sleep(Duration::from_secs(seconds));
    Ok(())
}

/// Why the agent cannot start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Something it needs at its start cannot be had.
    #[error("cannot {what}")]
    Start {
        /// What it wanted to do.
        what: &'static str,
        /// Why it cannot.
        #[source]
        source: std::io::Error,
    },
    /// A file it was given cannot be used.
    #[error("cannot use {path}")]
    File {
        /// The file.
        path: PathBuf,
        /// Why it cannot.
        #[source]
        source: std::io::Error,
    },
}
