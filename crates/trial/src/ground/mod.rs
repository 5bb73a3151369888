//! The ground of a demonstration or a self-test: a temporary home, whoever lives in it, and looking at what is left.

pub(super) mod look;

use std::io;
use std::path::Path;

use rekindle_client::failure::Failure;
use rekindle_holder::identity::Identity;
use rekindle_lab::TempHome;
pub(super) use rekindle_lab::{end_all, is_alive, living};
use rustix::process::{Pid, WaitOptions, waitpid};

/// Makes a temporary home below the system's directory for what is temporary.
pub(super) fn temporary(name: &str, keep: bool) -> Result<TempHome, Failure> {
    made(TempHome::new(&prefix(name)), keep)
        .map_err(|failure| failure.hint("name another directory with $TMPDIR"))
}

/// Makes a temporary home below a directory.
pub(super) fn temporary_below(base: &Path, name: &str, keep: bool) -> Result<TempHome, Failure> {
    made(TempHome::below(base, &prefix(name)), keep)
}

fn prefix(name: &str) -> String {
    format!("rekindle-{name}-")
}

fn made(home: io::Result<TempHome>, keep: bool) -> Result<TempHome, Failure> {
    let mut home = home.map_err(|error| Failure::failed("temporary_dir", error))?;
    if keep {
        home.keep();
    }
    Ok(home)
}

/// Kills exactly this process, and waits until it is gone; tells whether it was there and is gone.
pub(super) fn kill(process: &Identity) -> bool {
    let killed = rekindle_lab::kill(process);
    collect(process);
    killed
}

/// Waits until a process has ended by itself; tells whether it has.
pub(super) fn ended(process: &Identity) -> bool {
    let gone = rekindle_lab::ended(process);
    collect(process);
    gone
}

/// A daemon is a child of ours, and nobody else collects it while we live.
fn collect(process: &Identity) {
    if let Some(pid) = Pid::from_raw(process.pid) {
        // Whoever is not our child is not ours to collect.
        let _ = waitpid(Some(pid), WaitOptions::NOHANG);
    }
}
