//! How a running process comes to ignore SIGTERM without unsafe code: a shell sets the signal aside and executes
//! this program again, in the same process, which goes on with the turn. A file carries what it has to know.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use serde::{Deserialize, Serialize};

use crate::process_state::ProcessState;
use crate::sessions::{Session, Sessions};
use crate::turn::Job;

/// Names the file in the environment of the next image.
pub(crate) const VARIABLE: &str = "REKINDLE_DEMO_HANDOVER";

/// What the next image has to know. Turns of other sessions are not a part of it and end here.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Handover {
    /// The rest of the turn.
    pub(crate) job: Job,
    /// What lasts from turn to turn.
    pub(crate) process: ProcessState,
    /// The open sessions.
    pub(crate) open: BTreeMap<String, Session>,
    /// Lines that came in and were not handled.
    pub(crate) lines: Vec<Vec<u8>>,
    /// The beginning of a line that is still coming in.
    pub(crate) torn: Vec<u8>,
}

/// Executes this program again with SIGTERM ignored; comes back only with an error.
pub(crate) fn pass(sessions: &Sessions, handover: &Handover) -> io::Error {
    let prepare = || {
        let path = sessions.handover_file()?;
        fs::write(&path, serde_json::to_vec(handover)?)?;
        Ok((path, std::env::current_exe()?))
    };
    match prepare() {
        Err(error) => error,
        // What a shell ignores stays ignored in what it executes.
        Ok((path, program)) => Command::new("/bin/sh")
            .args(["-c", "trap '' TERM; exec \"$0\" \"$@\""])
            .arg(program)
            .args(std::env::args_os().skip(1))
            .env(VARIABLE, path)
            .exec(),
    }
}

/// Returns what the image before this one handed over, if there was one.
pub(crate) fn take() -> Option<Handover> {
    let path = std::env::var_os(VARIABLE)?;
    let text = fs::read(&path).ok()?;
    let _ = fs::remove_file(&path);
    serde_json::from_slice(&text).ok()
}
