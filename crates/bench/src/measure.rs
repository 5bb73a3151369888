//! Taking times: latencies, percentiles, and rounds in which the raw program and ours take turns, so that
//! what else the machine does falls on both alike.

use std::time::{Duration, Instant};

use crate::context::progress;

/// What the raw program and ours took, round by round.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rounds {
    pub(crate) raw: Vec<f64>,
    pub(crate) ours: Vec<f64>,
}

/// A median and the extremes around it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl Rounds {
    /// Returns ours over raw, round by round: neighbours in time saw the same machine.
    pub(crate) fn ratio(&self) -> Spread {
        let ratios = self.ours.iter().zip(&self.raw).map(|(ours, raw)| ours / raw.max(f64::MIN_POSITIVE));
        spread(ratios.collect())
    }

    /// Returns how much more ours is than raw, round by round; the median.
    pub(crate) fn more(&self) -> f64 {
        spread(self.ours.iter().zip(&self.raw).map(|(ours, raw)| ours - raw).collect()).median
    }
}

/// A figure that was taken once.
impl From<f64> for Spread {
    fn from(value: f64) -> Spread {
        Spread { median: value, low: value, high: value }
    }
}

/// A figure of several rounds.
impl From<&[f64]> for Spread {
    fn from(values: &[f64]) -> Spread {
        spread(values.to_vec())
    }
}

/// Returns the median and the extremes; of nothing, zeros.
pub(crate) fn spread(mut values: Vec<f64>) -> Spread {
    values.sort_by(f64::total_cmp);
    Spread {
        median: at(&values, 0.5),
        low: values.first().copied().unwrap_or(0.0),
        high: values.last().copied().unwrap_or(0.0),
    }
}

/// Returns the median.
pub(crate) fn median(values: &[f64]) -> f64 {
    spread(values.to_vec()).median
}

/// Returns the value below which a share of the sorted values lies.
fn at(sorted: &[f64], share: f64) -> f64 {
    let index = (sorted.len().saturating_sub(1) as f64 * share).round() as usize;
    sorted.get(index).copied().unwrap_or(0.0)
}

/// Latencies in microseconds.
#[derive(Debug, Default)]
pub(crate) struct Latencies(Vec<f64>);

impl Latencies {
    /// Runs something and notes how long it took.
    pub(crate) fn time<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let begin = Instant::now();
        let result = work();
        self.0.push(micros(begin.elapsed()));
        result
    }

    /// Notes a latency that was taken elsewhere, in microseconds.
    pub(crate) fn note(&mut self, micros: f64) {
        self.0.push(micros);
    }

    /// Adds those of another series.
    pub(crate) fn extend(&mut self, others: Latencies) {
        self.0.extend(others.0);
    }

    /// Returns a share's latency: 0.5 is the median.
    pub(crate) fn percentile(&self, share: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        at(&sorted, share)
    }
}

/// Runs raw and ours in turns, the first one changing every round, and collects `N` figures of each.
pub(crate) fn interleave<const N: usize>(
    what: &str,
    rounds: usize,
    mut raw: impl FnMut() -> anyhow::Result<[f64; N]>,
    mut ours: impl FnMut() -> anyhow::Result<[f64; N]>,
) -> anyhow::Result<[Rounds; N]> {
    progress(&format!("measuring {what}, {rounds} rounds"));
    let mut figures: [Rounds; N] = std::array::from_fn(|_| Rounds::default());
    for round in 0..rounds {
        let (of_raw, of_ours) = if round % 2 == 0 {
            let of_raw = raw()?;
            (of_raw, ours()?)
        } else {
            let of_ours = ours()?;
            (raw()?, of_ours)
        };
        for (figure, (raw, ours)) in figures.iter_mut().zip(of_raw.into_iter().zip(of_ours)) {
            figure.raw.push(raw);
            figure.ours.push(ours);
        }
    }
    Ok(figures)
}

/// Returns how long something took, in milliseconds, and its result.
pub(crate) fn millis<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let begin = Instant::now();
    let result = work();
    (micros(begin.elapsed()) / 1000.0, result)
}

/// Returns a duration in microseconds.
pub(crate) fn micros(duration: Duration) -> f64 {
    duration.as_nanos() as f64 / 1000.0
}

/// Returns how many a second that is.
pub(crate) fn rate(count: usize, duration: Duration) -> f64 {
    count as f64 / duration.as_secs_f64().max(f64::MIN_POSITIVE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_extremes_of_unsorted_values() {
        let spread = spread(vec![5.0, 1.0, 9.0]);
        assert_eq!(spread, Spread { median: 5.0, low: 1.0, high: 9.0 });
        assert_eq!(median(&[]), 0.0);
        assert_eq!(Latencies((0..101).map(f64::from).collect()).percentile(0.99), 99.0);
    }

    #[test]
    fn rounds_take_turns_and_ratios_are_taken_within_a_round() {
        let order = std::cell::RefCell::new(String::new());
        let note = |letter, value: f64| {
            order.borrow_mut().push(letter);
            Ok([value])
        };
        let [rounds] = interleave("order", 3, || note('r', 2.0), || note('o', 3.0)).expect("no errors");
        assert_eq!(*order.borrow(), "roorro");
        assert_eq!(rounds.ratio(), Spread { median: 1.5, low: 1.5, high: 1.5 });
        assert_eq!(rounds.more(), 1.0);
    }
}
