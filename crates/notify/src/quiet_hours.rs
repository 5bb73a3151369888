//! Quiet hours: the part of every day, by the clock on the wall, in which nobody is to be disturbed. Pure.

use std::fmt;
use std::str::FromStr;

use jiff::ToSpan as _;
use jiff::civil::{Time, time};
use jiff::tz::TimeZone;
use rekindle_domain::time::Timestamp;
use serde::Deserialize;

/// From one time of the day to another, maybe past midnight: `22:00-07:00`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct QuietHours {
    from: Time,
    to: Time,
}

impl QuietHours {
    /// Returns when they are over, if it is quiet now.
    pub(crate) fn until(self, now: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let here = jiff::Timestamp::from_millisecond(now.as_millis()).ok()?.to_zoned(zone.clone());
        let clock = here.time();
        let over_midnight = self.from > self.to;
        let evening = clock >= self.from;
        let morning = clock < self.to;
        let quiet = if over_midnight { evening || morning } else { evening && morning };
        if !quiet {
            return None;
        }
        let day = if over_midnight && evening { here.date().checked_add(1.day()).ok()? } else { here.date() };
        // A time that a change of the clock leaves out comes with the change, one that it repeats counts the first time; where that is
        // past already it counts the second.
        let ends = zone.to_ambiguous_zoned(day.to_datetime(self.to));
        let first = ends.clone().compatible().ok()?.timestamp().as_millisecond();
        let second = ends.later().ok()?.timestamp().as_millisecond();
        let end = if first > now.as_millis() { first } else { second };
        Some(Timestamp::from_millis(end.max(now.as_millis())))
    }
}

impl FromStr for QuietHours {
    type Err = String;

    fn from_str(written: &str) -> Result<QuietHours, String> {
        let wrong = || {
            format!("{written:?} is not a range of quiet hours: write two times of day, such as 22:00-07:00")
        };
        let (from, to) = written.split_once('-').ok_or_else(wrong)?;
        let hours = QuietHours {
            from: time_of_day(from.trim()).ok_or_else(wrong)?,
            to: time_of_day(to.trim()).ok_or_else(wrong)?,
        };
        if hours.from == hours.to { Err(wrong()) } else { Ok(hours) }
    }
}

/// Reads `7:00`, `07:00` or `22:30`.
fn time_of_day(written: &str) -> Option<Time> {
    let (hour, minute) = written.split_once(':')?;
    let number = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok());
    let (hour, minute): (i8, i8) = (number(hour)??, number(minute)??);
    ((0..24).contains(&hour) && (0..60).contains(&minute)).then(|| time(hour, minute, 0, 0))
}

impl TryFrom<String> for QuietHours {
    type Error = String;

    fn try_from(written: String) -> Result<QuietHours, String> {
        written.parse()
    }
}

impl fmt::Display for QuietHours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let QuietHours { from, to } = self;
        write!(f, "{:02}:{:02}-{:02}:{:02}", from.hour(), from.minute(), to.hour(), to.minute())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn until(hours: &str, now: &str, zone: &TimeZone) -> Option<String> {
        let now: Timestamp = now.parse().expect("a time");
        let hours: QuietHours = hours.parse().expect("hours");
        hours.until(now, zone).map(|end| end.to_string())
    }

    #[test]
    fn a_night_is_quiet_to_its_end_and_a_day_is_not() {
        let cases = [
            ("22:00-07:00", "2026-02-21T21:59:59.999Z", None),
            ("22:00-07:00", "2026-02-21T22:00:00.000Z", Some("2026-02-22T07:00:00.000Z")),
            ("22:00-07:00", "2026-02-22T03:00:00.000Z", Some("2026-02-22T07:00:00.000Z")),
            ("22:00-07:00", "2026-02-22T07:00:00.000Z", None),
            ("12:30-13:15", "2026-02-22T13:00:00.000Z", Some("2026-02-22T13:15:00.000Z")),
            ("12:30-13:15", "2026-02-22T13:15:00.000Z", None),
            ("22:00-00:00", "2026-02-22T23:00:00.000Z", Some("2026-02-23T00:00:00.000Z")),
            ("0:00-8:00", "2026-02-22T23:00:00.000Z", None),
        ];
        for (hours, now, end) in cases {
            assert_eq!(until(hours, now, &TimeZone::UTC).as_deref(), end, "{hours} {now}");
        }
        let tokyo = TimeZone::fixed(jiff::tz::offset(9));
        let end = until("22:00-07:00", "2026-02-21T14:00:00.000Z", &tokyo);
        assert_eq!(end.as_deref(), Some("2026-02-21T22:00:00.000Z"));
    }

    #[test]
    fn a_change_of_the_clock_neither_loses_nor_prolongs_a_night() {
        // As in central Europe: forward in March at 2:00, back in October at 3:00.
        let zone = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").expect("a zone");
        let spring = until("22:00-07:00", "2026-03-28T22:00:00.000Z", &zone);
        assert_eq!(spring.as_deref(), Some("2026-03-29T05:00:00.000Z"));
        // 2:30 does not exist on that day: the night ends as late as it would have.
        let skipped = until("22:00-02:30", "2026-03-28T22:00:00.000Z", &zone);
        assert_eq!(skipped.as_deref(), Some("2026-03-29T01:30:00.000Z"));
        // 2:30 comes twice: it ends at the first, and is quiet again before the second.
        let first = until("22:00-02:30", "2026-10-24T22:00:00.000Z", &zone);
        assert_eq!(first.as_deref(), Some("2026-10-25T00:30:00.000Z"));
        let second = until("22:00-02:30", "2026-10-25T01:10:00.000Z", &zone);
        assert_eq!(second.as_deref(), Some("2026-10-25T01:30:00.000Z"));
    }

    #[test]
    fn what_is_no_pair_of_times_is_refused() {
        for wrong in
            ["", "22:00", "22-7", "24:00-07:00", "22:60-07:00", "7:00-7:00", "-1:00-07:00", "a:b-c:d"]
        {
            assert!(wrong.parse::<QuietHours>().is_err(), "{wrong}");
        }
        assert_eq!("7:05-22:30".parse::<QuietHours>().expect("hours").to_string(), "07:05-22:30");
    }
}
