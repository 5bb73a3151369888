//! The clock by which patience goes: how long something may take, and when it is tried again. It is the machine's, except in
//! tests, where a thread may stop it and move it by hand.

#[cfg(test)]
pub(crate) mod manual_clock;

use std::time::{Duration, Instant};

/// Returns the time.
pub(crate) fn now() -> Instant {
    #[cfg(test)]
    if let Some(stopped) = manual_clock::stopped() {
        return stopped;
    }
    Instant::now()
}

/// Returns how long ago a moment was.
pub(crate) fn since(then: Instant) -> Duration {
    now().saturating_duration_since(then)
}
