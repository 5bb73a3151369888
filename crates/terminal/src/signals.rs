//! The signals that ask a command to leave: Ctrl-C, a terminal that is closed, a polite kill.

use std::io;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Hears the signals that ask us to leave, so that leaving is done in order; `tell` says whether anyone still listens.
pub fn on_exit_signal(mut tell: impl FnMut() -> bool + Send + 'static) -> io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    std::thread::spawn(move || signals.forever().all(|_| tell()));
    Ok(())
}
