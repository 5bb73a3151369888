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

/// Longest patience: what is to come later than this is as good as never, and no clock of a machine ends before it.
const CENTURY: Duration = Duration::from_secs(100 * 365 * 86_400);

/// Returns the moment so long after another one, however long that is.
pub(crate) fn after(moment: Instant, patience: Duration) -> Instant {
    moment + patience.min(CENTURY)
}

/// Returns how long ago a moment was.
pub(crate) fn since(then: Instant) -> Duration {
    now().saturating_duration_since(then)
}
