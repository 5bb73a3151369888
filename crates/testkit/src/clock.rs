//! A clock that stands until it is moved, forwards or back.

use std::sync::atomic::{AtomicI64, Ordering};

use rekindle_domain::time::{Clock, Timestamp};

/// A settable clock.
#[derive(Debug)]
pub struct SimClock(AtomicI64);

impl SimClock {
    /// Starts at a time.
    pub fn new(start: Timestamp) -> SimClock {
        SimClock(AtomicI64::new(start.as_millis()))
    }

    /// Returns where a default clock starts: 21 February 2026, 10:00 UTC.
    pub fn default_start() -> Timestamp {
        Timestamp::from_millis(1_771_668_000_000)
    }

    /// Moves the clock by some milliseconds, which may be negative.
    pub fn advance(&self, millis: i64) {
        self.0.fetch_add(millis, Ordering::Relaxed);
    }
}

impl Default for SimClock {
    fn default() -> SimClock {
        SimClock::new(SimClock::default_start())
    }
}

impl Clock for SimClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::Relaxed))
    }
}
