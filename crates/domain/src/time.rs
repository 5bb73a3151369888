//! Points in time as the log writes them: UTC, RFC 3339, milliseconds. Nothing here reads a clock.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Milliseconds since the Unix epoch, between the years 1 and 9999.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(i64);

impl Timestamp {
    /// Returns the point `millis` after the Unix epoch; what RFC 3339 cannot write is clamped.
    pub fn from_millis(millis: i64) -> Timestamp {
        let least = jiff::Timestamp::MIN.as_millisecond() + 86_400_000;
        let most = jiff::Timestamp::MAX.as_millisecond() - 86_400_000;
        Timestamp(millis.clamp(least, most))
    }

    /// Returns the milliseconds since the Unix epoch.
    pub fn as_millis(self) -> i64 {
        self.0
    }

    /// Returns this point moved by some milliseconds.
    pub fn plus_millis(self, millis: i64) -> Timestamp {
        Timestamp::from_millis(self.0.saturating_add(millis))
    }

    /// Returns how many milliseconds have passed since an earlier point; never negative, because a clock
    /// that was set back must not make an age negative.
    pub fn millis_since(self, earlier: Timestamp) -> u64 {
        u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // `from_millis` keeps every value in jiff's range.
        let time = jiff::Timestamp::from_millisecond(self.0).unwrap_or_default();
        write!(f, "{time:.3}")
    }
}

/// A text that is no RFC 3339 time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a time such as 2026-02-21T10:00:00.000Z")]
pub struct BadTimestamp(String);

impl FromStr for Timestamp {
    type Err = BadTimestamp;
    fn from_str(text: &str) -> Result<Timestamp, BadTimestamp> {
        text.parse::<jiff::Timestamp>()
            .map(|time| Timestamp::from_millis(time.as_millisecond()))
            .map_err(|_| BadTimestamp(text.chars().take(40).collect()))
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// Where time comes from; given to whoever needs it, called by nothing in this crate.
pub trait Clock: Send + Sync {
    /// Returns the wall time.
    fn now(&self) -> Timestamp;
}

/// The wall time beside the newest time the log has seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// What the clock says.
    pub wall: Timestamp,
    /// The newest `ts` of the log in question.
    pub newest: Timestamp,
}

impl Moment {
    /// Tells whether a deadline has passed.
    ///
    /// Nothing expires while the wall clock is behind the newest record: it was set back, and what it says
    /// of deadlines is worth nothing until it has caught up.
    pub fn is_past(&self, deadline: Timestamp) -> bool {
        self.wall >= self.newest && self.wall >= deadline
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_with_three_decimals_and_read_with_any() {
        let time: Timestamp = "2026-02-21T10:00:00Z".parse().expect("no decimals");
        assert_eq!(time.to_string(), "2026-02-21T10:00:00.000Z");
        assert_eq!("2026-02-21T11:00:00.0009+01:00".parse(), Ok(time), "truncated to milliseconds, in UTC");
        assert!("yesterday".parse::<Timestamp>().is_err());
        assert_eq!(
            Timestamp::from_millis(i64::MAX).to_string().parse(),
            Ok(Timestamp::from_millis(i64::MAX))
        );
        assert_eq!(Timestamp::from_millis(i64::MIN).to_string().len(), "-009999-01-03T01:59:59.000Z".len());
    }

    #[test]
    fn a_clock_set_back_expires_nothing() {
        let at = Timestamp::from_millis;
        let moment = |wall, newest| Moment { wall: at(wall), newest: at(newest) };
        assert!(moment(100, 90).is_past(at(100)));
        assert!(!moment(99, 90).is_past(at(100)));
        assert!(!moment(100, 101).is_past(at(50)), "the clock is behind the newest record");
        assert_eq!(at(5).millis_since(at(9)), 0);
    }
}
