//! How long things take, counted into fixed classes. An observation is two additions; whoever reads may miss one that is
//! just being made, and sees it the next time.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const fn micros(micros: u64) -> Duration {
    Duration::from_micros(micros)
}

/// Classes for what a disk takes: from a sync that a cache answers to one that takes ten seconds.
pub const LATENCIES: &[Duration] = &[
    micros(50),
    micros(100),
    micros(250),
    micros(500),
    micros(1_000),
    micros(2_500),
    micros(5_000),
    micros(10_000),
    micros(25_000),
    micros(50_000),
    micros(100_000),
    micros(250_000),
    micros(500_000),
    micros(1_000_000),
    micros(2_500_000),
    micros(10_000_000),
];

/// Durations, by class.
#[derive(Debug)]
pub struct Histogram {
    /// The longest of each class, rising.
    bounds: &'static [Duration],
    /// One for each class, and one for what is longer.
    counts: Box<[AtomicU64]>,
    /// In nanoseconds: enough for five hundred years.
    sum: AtomicU64,
}

/// What a histogram says at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    /// The longest of each class, and how many were no longer.
    pub classes: Vec<(Duration, u64)>,
    /// How many there were.
    pub count: u64,
    /// How long all of them took together.
    pub sum: Duration,
}

/// With classes for what a disk takes.
impl Default for Histogram {
    fn default() -> Histogram {
        Histogram::new(LATENCIES)
    }
}

impl Histogram {
    /// Makes an empty one; `bounds` rise.
    pub fn new(bounds: &'static [Duration]) -> Histogram {
        let counts = (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect();
        Histogram { bounds, counts, sum: AtomicU64::new(0) }
    }

    /// Counts one.
    pub fn observe(&self, took: Duration) {
        let class = self.bounds.partition_point(|bound| *bound < took);
        self.counts[class].fetch_add(1, Ordering::Relaxed);
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.sum.fetch_add(nanos, Ordering::Relaxed);
    }

    /// Reads it. The count is that of the classes, so that both always agree.
    pub fn read(&self) -> Reading {
        let mut count = 0;
        let mut upto = |counted: &AtomicU64| {
            count += counted.load(Ordering::Relaxed);
            count
        };
        let classes = self.bounds.iter().zip(&self.counts).map(|(bound, counted)| (*bound, upto(counted)));
        let classes = classes.collect();
        upto(&self.counts[self.bounds.len()]);
        Reading { classes, count, sum: Duration::from_nanos(self.sum.load(Ordering::Relaxed)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_has_what_is_no_longer_than_its_bound_and_the_last_has_the_rest() {
        const BOUNDS: &[Duration] = &[micros(10), micros(100)];
        let histogram = Histogram::new(BOUNDS);
        for took in [0, 10, 11, 100, 101, 5_000_000] {
            histogram.observe(micros(took));
        }
        let reading = histogram.read();
        assert_eq!(reading.classes, [(micros(10), 2), (micros(100), 4)]);
        assert_eq!((reading.count, reading.sum), (6, micros(5_000_222)));
    }

    #[test]
    fn classes_rise() {
        assert!(LATENCIES.is_sorted_by(|a, b| a < b));
    }

    #[test]
    fn nothing_is_lost_between_threads() {
        let histogram = Histogram::new(LATENCIES);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..10_000).for_each(|n| histogram.observe(micros(n))));
            }
        });
        assert_eq!(histogram.read().count, 40_000);
    }
}
