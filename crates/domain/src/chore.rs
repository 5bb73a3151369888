//! Chores: what is done once in a while, counted from the last time, through every restart.

use std::time::Duration;

use crate::time::Timestamp;

/// Whether it is time for a chore.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// It is due.
    Due,
    /// Nobody knows of a last time, or it is yet to come because a clock was wrong: the time counts from now on.
    Count,
    /// It is not.
    NotYet,
}

/// Tells whether it is time for a chore that was last done, or first counted, at some time.
pub fn turn(last: Option<Timestamp>, now: Timestamp, every: Duration) -> Turn {
    match last {
        Some(last) if last <= now => {
            let passed = Duration::from_millis(now.millis_since(last));
            if passed >= every { Turn::Due } else { Turn::NotYet }
        }
        _ => Turn::Count,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chore_is_due_once_in_an_interval() {
        let at = Timestamp::from_millis;
        let every = Duration::from_millis(100);
        for (last, now, expected) in [
            (None, 5, Turn::Count),
            (Some(5), 5, Turn::NotYet),
            (Some(5), 104, Turn::NotYet),
            (Some(5), 105, Turn::Due),
            (Some(5), i64::from(i32::MAX), Turn::Due),
            (Some(6), 5, Turn::Count),
        ] {
            assert_eq!(turn(last.map(at), at(now), every), expected, "{last:?} {now}");
        }
    }
}
