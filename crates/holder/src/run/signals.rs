//! Signals as flags and one descriptor that wakes the loop. Handlers rather than "ignore": what is ignored would
//! stay ignored in the agent.

use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGPIPE, SIGTERM, SIGUSR1, SIGXFSZ};

/// What has arrived since the last look.
#[derive(Debug)]
pub(super) struct Signals {
    pub(super) wake: UnixStream,
    pub(super) terminate: Arc<AtomicBool>,
    pub(super) child: Arc<AtomicBool>,
    pub(super) rebind: Arc<AtomicBool>,
}

impl Signals {
    pub(super) fn register() -> io::Result<Signals> {
        let (wake, sender) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        let signals =
            Signals { wake, terminate: Arc::default(), child: Arc::default(), rebind: Arc::default() };
        for (signal, flag) in
            [(SIGTERM, &signals.terminate), (SIGCHLD, &signals.child), (SIGUSR1, &signals.rebind)]
        {
            // The flag first: whoever is woken must find it.
            signal_hook::flag::register(signal, flag.clone())?;
            signal_hook::low_level::pipe::register(signal, sender.try_clone()?)?;
        }
        // A terminal that hangs up, a full file, a closed pipe: none is a reason to end.
        for signal in [SIGHUP, SIGINT, SIGPIPE, SIGXFSZ] {
            signal_hook::flag::register(signal, Arc::default())?;
        }
        Ok(signals)
    }

    /// Waits for a signal, but not for long.
    pub(super) fn wait(&mut self, most: Duration) {
        let mut fds = [PollFd::new(&self.wake, PollFlags::IN)];
        let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(most.subsec_nanos()) };
        let _ = poll(&mut fds, Some(&timeout));
        self.drain();
    }

    /// Empties the descriptor; the flags are looked at afterwards.
    pub(super) fn drain(&mut self) {
        let mut bytes = [0; 64];
        while matches!(self.wake.read(&mut bytes), Ok(count) if count > 0) {}
    }

    /// Tells whether a signal has arrived since the last look.
    pub(super) fn take(flag: &AtomicBool) -> bool {
        flag.swap(false, Ordering::Relaxed)
    }
}
