//! `rekindle-dev hold`: owns a home until its stdin is closed, for tests with two processes.

use std::io::{Read, Write};

use rekindle_client::failure::{Exit, Failure};

use super::Context;

/// Own the home, print `held PID`, and wait until stdin is closed
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Look at every session first, and then print `ready N` with their number
    #[arg(long)]
    ready: bool,
}

pub(super) fn run(context: &Context, args: &Args) -> Result<Exit, Failure> {
    let (store, _) = super::open(context, context.disk())?;
    let mut out = std::io::stdout();
    writeln!(out, "held {}", std::process::id())?;
    if args.ready {
        let mut sessions = 0_u64;
        let surveyed = store.survey(|_, _| sessions += 1);
        surveyed.map_err(|error| Failure::failed("sessions_unreadable", error))?;
        writeln!(out, "ready {sessions}")?;
    }
    out.flush()?;
    // What comes in does not matter, only its end; a stdin that cannot be read has none to wait for.
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    Ok(Exit::Ok)
}
