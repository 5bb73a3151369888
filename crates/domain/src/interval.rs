//! The interval of periodic work: done once in it, counted from the last time, through every restart.

use std::time::Duration;

use crate::time::Timestamp;

/// The state of an interval: whether it is time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interval {
    /// It is due.
    Due,
    /// Nobody knows of a last time, or it is yet to come because a clock was wrong: the time counts from now on.
    StartCounting,
    /// It is not.
    NotYet,
}

/// Tells whether it is time for what was last done, or first counted, at some time.
pub fn check_interval(last: Option<Timestamp>, now: Timestamp, every: Duration) -> Interval {
    match last {
        Some(last) if last <= now => {
            let passed = Duration::from_millis(now.millis_since(last));
            if passed >= every { Interval::Due } else { Interval::NotYet }
        }
        _ => Interval::StartCounting,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_due_once_in_an_interval() {
        let at = Timestamp::from_millis;
        let every = Duration::from_millis(100);
        for (last, now, expected) in [
            (None, 5, Interval::StartCounting),
            (Some(5), 5, Interval::NotYet),
            (Some(5), 104, Interval::NotYet),
            (Some(5), 105, Interval::Due),
            (Some(5), i64::from(i32::MAX), Interval::Due),
            (Some(6), 5, Interval::StartCounting),
        ] {
            assert_eq!(check_interval(last.map(at), at(now), every), expected, "{last:?} {now}");
        }
    }
}
