//! A manual clock: a test moves it. It is the thread's own, so that tests do not move each other's.

use std::cell::Cell;
use std::time::{Duration, Instant};

thread_local! {
    static STOPPED: Cell<Option<Instant>> = const { Cell::new(None) };
    static MOVED: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

pub(super) fn stopped() -> Option<Instant> {
    STOPPED.get()
}

/// Stops the clock of this thread.
pub(crate) fn stop() {
    STOPPED.set(Some(Instant::now()));
    MOVED.set(Duration::ZERO);
}

/// Moves the clock of this thread on.
pub(crate) fn advance(by: Duration) {
    STOPPED.set(STOPPED.get().map(|stopped| stopped + by));
    MOVED.set(MOVED.get() + by);
}

/// Returns how far the clock of this thread was moved.
pub(crate) fn moved() -> Duration {
    MOVED.get()
}
