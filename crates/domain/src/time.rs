//! Points in time as the log writes them: UTC, RFC 3339, milliseconds. Nothing here reads a clock.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
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

    /// Reads exactly the form we write, `2026-02-21T10:00:00.000Z`: a replay reads one of these a record.
    fn read_written(text: &str) -> Option<Timestamp> {
        let bytes: &[u8; 24] = text.as_bytes().try_into().ok()?;
        if [bytes[4], bytes[7], bytes[10], bytes[13], bytes[16], bytes[19], bytes[23]] != *b"--T::.Z" {
            return None;
        }
        let number = |from: usize, to: usize| {
            bytes[from..to].iter().try_fold(0i16, |value, digit| {
                digit.is_ascii_digit().then(|| value * 10 + i16::from(digit - b'0'))
            })
        };
        let small = |from| number(from, from + 2).map(|value| value as i8);
        let date = jiff::civil::Date::new(number(0, 4)?, small(5)?, small(8)?).ok()?;
        let millis = i32::from(number(20, 23)?) * 1_000_000;
        let time = jiff::civil::Time::new(small(11)?, small(14)?, small(17)?, millis).ok()?;
        let time = jiff::tz::Offset::UTC.to_timestamp(date.to_datetime(time)).ok()?;
        Some(Timestamp::from_millis(time.as_millisecond()))
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
        if let Some(time) = Timestamp::read_written(text) {
            return Ok(time);
        }
        text.parse::<jiff::Timestamp>()
            .map(|time| Timestamp::from_millis(time.as_millisecond()))
            .map_err(|_| BadTimestamp(text.chars().take(40).collect()))
    }
}

impl JsonSchema for Timestamp {
    fn schema_name() -> Cow<'static, str> {
        "Timestamp".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "format": "date-time",
            "description": "A point in time: UTC, milliseconds.",
            "examples": ["2026-02-21T10:00:00.000Z"],
        })
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

/// The time by two clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// What the wall clock says; anyone may set it.
    pub wall: Timestamp,
    /// What it would say if nobody had set it since the machine was started: deadlines go by this.
    pub steady: Timestamp,
}

impl Now {
    /// Tells whether a deadline has passed, by both clocks: one that was set ahead makes nothing come early.
    pub fn is_past(&self, deadline: Timestamp) -> bool {
        self.wall >= deadline && self.steady >= deadline
    }

    /// Returns how many milliseconds are left until a deadline has passed.
    pub fn millis_until(&self, deadline: Timestamp) -> u64 {
        deadline.millis_since(self.wall).max(deadline.millis_since(self.steady))
    }

    /// Returns how many milliseconds have gone by since the wall clock said so. What it was set ahead since then does not count; where
    /// the steady clock is behind that time, it was compared with a clock that was wrong, and says nothing.
    pub fn millis_since(&self, start: Timestamp) -> u64 {
        let wall = self.wall.millis_since(start);
        if self.steady < start { wall } else { wall.min(self.steady.millis_since(start)) }
    }
}

/// The time beside the newest time the log has seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// The time.
    pub now: Now,
    /// The newest `ts` of the log in question.
    pub newest: Timestamp,
}

impl Moment {
    /// Tells whether a deadline has passed.
    ///
    /// Nothing expires while the wall clock is behind the newest record: it was set back, and what it says
    /// of deadlines is worth nothing until it has caught up.
    pub fn is_past(&self, deadline: Timestamp) -> bool {
        self.now.wall >= self.newest && self.now.steady >= deadline
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_was_set_makes_nothing_come_early_and_nothing_take_longer() {
        let at = Timestamp::from_millis;
        let now = |wall: i64, steady: i64| Now { wall: at(wall), steady: at(steady) };
        for (now, passed, until, since) in [
            (now(110, 110), true, 0, 60),
            (now(90, 90), false, 10, 40),
            (now(9_000, 90), false, 10, 40),
            (now(10, 90), false, 90, 0),
            (now(90, 9), false, 91, 40),
        ] {
            assert_eq!((now.is_past(at(100)), now.millis_until(at(100))), (passed, until), "{now:?}");
            assert_eq!(now.millis_since(at(50)), since, "{now:?}");
        }
    }

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
    fn the_short_way_of_reading_agrees_with_the_long_one() {
        for day in -200..40_000i64 {
            let time = Timestamp::from_millis(day * 86_400_000 * 3 + day.rem_euclid(86_400) * 1_007);
            let text = time.to_string();
            assert_eq!(Timestamp::read_written(&text).unwrap_or(time), time, "{text}");
            let long = text.parse::<jiff::Timestamp>().map(|time| time.as_millisecond());
            assert_eq!(long.ok(), Some(time.as_millis()), "{text}");
        }
        for odd in [
            "2026-02-31T10:00:00.000Z",
            "2026-13-01T10:00:00.000Z",
            "2026-02-21T24:00:00.000Z",
            "2026-02-21T10:00:0x.000Z",
        ] {
            assert_eq!(Timestamp::read_written(odd), None, "{odd}");
            assert!(odd.parse::<Timestamp>().is_err(), "{odd}");
        }
    }

    #[test]
    fn a_clock_set_ahead_expires_nothing_before_its_time() {
        let at = Timestamp::from_millis;
        let moment =
            |wall, steady| Moment { now: Now { wall: at(wall), steady: at(steady) }, newest: at(90) };
        assert!(!moment(5000, 99).is_past(at(100)), "the clock was set ahead");
        assert!(moment(5000, 100).is_past(at(100)));
        assert!(!moment(80, 200).is_past(at(100)), "the clock was set back");
    }

    #[test]
    fn a_clock_set_back_expires_nothing() {
        let at = Timestamp::from_millis;
        let moment =
            |wall, newest| Moment { now: crate::session::tests::script::now(at(wall)), newest: at(newest) };
        assert!(moment(100, 90).is_past(at(100)));
        assert!(!moment(99, 90).is_past(at(100)));
        assert!(!moment(100, 101).is_past(at(50)), "the clock is behind the newest record");
        assert_eq!(at(5).millis_since(at(9)), 0);
    }
}
