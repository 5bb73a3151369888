//! The rest of a worker: when it looks again by itself, and how long it waits for what does not answer.

use std::time::{Duration, Instant};

use crate::ticks;

/// When a worker looks again although nothing has happened.
#[derive(Debug, Default)]
pub(crate) struct Rest {
    until: Option<Instant>,
}

impl Rest {
    /// Rests until something happens, or for so long.
    pub(crate) fn begin(&mut self, most: Option<Duration>) {
        self.until = most.map(|most| ticks::now() + most);
    }

    /// Rests no longer than this from now.
    pub(crate) fn shorten(&mut self, most: Duration) {
        let until = ticks::now() + most;
        self.until = Some(self.until.map_or(until, |earlier| earlier.min(until)));
    }

    /// Something has happened.
    pub(crate) fn end(&mut self) {
        self.until = None;
    }

    /// Returns what is left of it; nothing if it has no end of its own.
    pub(crate) fn left(&self) -> Option<Duration> {
        self.until.map(|until| until.saturating_duration_since(ticks::now()))
    }
}

/// Waits that grow each time something does not answer.
#[derive(Debug)]
pub(crate) struct BackOff {
    most: Duration,
    times: u32,
}

impl BackOff {
    /// Twice this is waited for the first time.
    const FIRST: Duration = Duration::from_millis(5);

    pub(crate) fn new(most: Duration) -> BackOff {
        BackOff { most, times: 0 }
    }

    /// Returns how long to wait this time.
    pub(crate) fn next(&mut self) -> Duration {
        self.times = (self.times + 1).min(16);
        (Self::FIRST * (1 << self.times)).min(self.most)
    }

    /// It has answered.
    pub(crate) fn reset(&mut self) {
        self.times = 0;
    }

    /// Something is expected of it soon: the waits grow from no more than so many times.
    pub(crate) fn expect_soon(&mut self, times: u32) {
        self.times = self.times.min(times);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_a_bound_and_begin_anew() {
        let mut back_off = BackOff::new(Duration::from_secs(60));
        let waits: Vec<u128> = (0..20).map(|_| back_off.next().as_millis()).collect();
        assert_eq!(waits[..4], [10, 20, 40, 80]);
        assert!(waits.is_sorted() && waits[19] == 60_000);
        back_off.expect_soon(5);
        assert_eq!(back_off.next(), Duration::from_millis(320));
        back_off.reset();
        assert_eq!(back_off.next(), Duration::from_millis(10));
    }

    #[test]
    fn a_rest_is_only_ever_shortened() {
        ticks::manual_clock::stop();
        let mut rest = Rest::default();
        assert_eq!(rest.left(), None);
        rest.shorten(Duration::from_secs(2));
        rest.shorten(Duration::from_secs(5));
        assert_eq!(rest.left(), Some(Duration::from_secs(2)));
        ticks::manual_clock::advance(Duration::from_secs(3));
        assert_eq!(rest.left(), Some(Duration::ZERO));
        rest.begin(None);
        assert_eq!(rest.left(), None);
    }
}
