//! Making way: whoever has the home is asked to leave, and ended if it does not, a stopped one included. Its agents do
//! not notice. Nobody is signalled who is not proven to be that very process.

use std::path::Path;
use std::time::{Duration, Instant};

use rekindle_holder::tree::{await_end, signal_exactly};
use rustix::process::Signal;

use crate::daemon_file::DaemonFile;
use crate::failure::Failure;
use crate::unproven;

/// How long it may take to leave by itself: a takeover is over within a second.
const LEAVES_WITHIN: Duration = Duration::from_millis(400);

/// How long its end may take once it was killed.
const DIES_WITHIN: Duration = Duration::from_secs(5);

/// Has the daemon of a home leave.
pub fn make_way(home: &Path) -> Result<(), Failure> {
    if let Some(place) = DaemonFile::unproven(home) {
        return Err(unproven(home, &place));
    }
    let Some(place) = DaemonFile::read(home) else { return Ok(()) };
    let Some(process) = place.process.as_ref().filter(|_| place.is_there()) else { return Ok(()) };
    let failed = |error: std::io::Error| Failure::failed("takeover", error);
    let begin = Instant::now();
    signal_exactly(process, Signal::TERM).map_err(failed)?;
    if await_end(process, LEAVES_WITHIN).map_err(failed)? {
        return Ok(());
    }
    tracing::warn!(pid = place.pid, after = ?begin.elapsed(), "the previous daemon does not stop: ending it");
    signal_exactly(process, Signal::KILL).map_err(failed)?;
    if await_end(process, DIES_WITHIN).map_err(failed)? {
        return Ok(());
    }
    let message = format!("process {} does not end", place.pid);
    Err(Failure::failed("takeover", anyhow::Error::msg(message))
        .hint("see what it is waiting for: ps -o stat,wchan -p PID"))
}
