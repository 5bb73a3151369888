//! A scripted agent: a real process that speaks real ACP (JSON-RPC, a message a line), or takes commands as `ndjson` agents do, and
//! does what the script in its prompt says. Demonstrations and fault tests use it where a model would be slow, dear or too well behaved.

mod help;
mod memory;
mod ndjson;
mod options;
mod record;
mod script;
mod serve;
mod sessions;
mod turn;
mod units;
mod wire;

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

pub use help::directives_help;
pub use options::{LoadOptions, Models, Options};
pub use sessions::default_state;
pub use wire::huge_line;

/// Names the directory of barriers when [`Options::barriers`] is not given.
pub const BARRIERS_VARIABLE: &str = "REKINDLE_DEMO_BARRIERS";

/// Names the directory of conversations when no flag does.
pub const STATE_VARIABLE: &str = "REKINDLE_DEMO_STATE";

/// Serves one client on stdin and stdout until stdin ends. Conversations are kept in `state`; `linger_command` is the command and
/// its arguments that lead to [`crate::linger`], in front of the seconds.
pub fn run(options: Options, state: &Path, linger_command: Vec<OsString>) -> Result<(), Error> {
    if options.ndjson {
        return ndjson::serve(options, linger_command);
    }
    serve::serve(options, state, linger_command)
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
        leave().map_err(|source| Error { what: "leave the session of the agent".into(), source })?;
    }
    std::thread::sleep(Duration::from_secs(seconds));
    Ok(())
}

/// Why the agent cannot start.
#[derive(Debug, thiserror::Error)]
#[error("cannot {what}")]
pub struct Error {
    /// What it wanted to do.
    what: String,
    /// Why it cannot.
    #[source]
    source: std::io::Error,
}
