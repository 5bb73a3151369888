//! The schedule of periodic work: done once in an interval, counted from the last time, through every restart.

use std::time::Duration;

use crate::time::Timestamp;

/// The state of a schedule: whether it is time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Schedule {
    /// It is due.
    Due,
    /// Nobody knows of a last time, or it is yet to come because a clock was wrong: the time counts from now on.
    StartCounting,
    /// It is not.
    NotYet,
}

/// Tells whether it is time for what was last done, or first counted, at some time.
pub fn schedule(last: Option<Timestamp>, now: Timestamp, every: Duration) -> Schedule {
    match last {
        Some(last) if last <= now => {
            let passed = Duration::from_millis(now.millis_since(last));
            if passed >= every { Schedule::Due } else { Schedule::NotYet }
        }
        _ => Schedule::StartCounting,
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
            (None, 5, Schedule::StartCounting),
            (Some(5), 5, Schedule::NotYet),
            (Some(5), 104, Schedule::NotYet),
            (Some(5), 105, Schedule::Due),
            (Some(5), i64::from(i32::MAX), Schedule::Due),
            (Some(6), 5, Schedule::StartCounting),
        ] {
            assert_eq!(schedule(last.map(at), at(now), every), expected, "{last:?} {now}");
        }
    }
}
