//! Wall-clock times as the journal writes them: RFC 3339, milliseconds, UTC. Written here by hand so that the
//! holder carries no calendar library.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

/// Milliseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Stamp(pub u64);

/// The last moment that four digits of a year can say; later ones are written as this one.
const LAST: u64 = 253_402_300_799_999;

impl Stamp {
    /// Returns the time by the machine's clock; before 1970 it is 1970.
    pub fn now() -> Stamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Stamp(u64::try_from(since.as_millis()).unwrap_or(LAST))
    }

    /// Returns what `Display` writes.
    pub(crate) fn text(self) -> [u8; 24] {
        let mut text = [b'0'; 24];
        // Twenty-four characters for every year of four digits, and a later one is written as the last of them.
        text.copy_from_slice(self.to_string().as_bytes());
        text
    }

    /// Reads what `Display` writes, and nothing else.
    pub fn parse(text: &str) -> Option<Stamp> {
        let bytes: &[u8; 24] = text.as_bytes().try_into().ok()?;
        let punctuation = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':'), (19, b'.'), (23, b'Z')];
        if punctuation.iter().any(|(at, sign)| bytes[*at] != *sign) {
            return None;
        }
        let number = |from: usize, to: usize| -> Option<u64> {
            bytes[from..to].iter().try_fold(0, |value: u64, digit| {
                digit.is_ascii_digit().then(|| value * 10 + u64::from(digit - b'0'))
            })
        };
        let days = days_from_civil(number(0, 4)?, number(5, 7)?, number(8, 10)?)?;
        let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
        if hour > 23 || minute > 59 || second > 59 {
            return None;
        }
        Some(Stamp((((days * 24 + hour) * 60 + minute) * 60 + second) * 1000 + number(20, 23)?))
    }
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = self.0.min(LAST);
        let (seconds, millis) = (millis / 1000, millis % 1000);
        let (year, month, day) = civil_from_days(seconds / 86_400);
        let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
    }
}

/// Returns year, month and day of a day counted from 1970. Years are counted from March, so that the leap day
/// is the last of its year; 719,468 days lie between March of year 0 and 1970.
fn civil_from_days(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let march_month = (5 * day + 2) / 153;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    (era * 400 + year + u64::from(month <= 2), month, day - (153 * march_month + 2) / 5 + 1)
}

fn days_from_civil(year: u64, month: u64, day: u64) -> Option<u64> {
    if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) || day == 0 {
        return None;
    }
    let march_year = year - u64::from(month <= 2);
    let (era, of_era) = (march_year / 400, march_year % 400);
    let march_month = if month > 2 { month - 3 } else { month + 9 };
    let day_of_year = (153 * march_month + 2) / 5 + day - 1;
    let days = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + day_of_year - 719_468;
    // A day that its month does not have comes back as another one.
    (civil_from_days(days) == (year, month, day)).then_some(days)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn known_times_are_written_as_people_write_them() {
        for (millis, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_794_724_947_123, "2026-11-15T06:42:27.123Z"),
            (LAST, "9999-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(Stamp(millis).to_string(), text);
            assert_eq!(Stamp::parse(text), Some(Stamp(millis)));
        }
    }

    #[test]
    fn days_that_do_not_exist_are_refused() {
        for text in
            ["2026-02-29T00:00:00.000Z", "2026-13-01T00:00:00.000Z", "2026-01-01T24:00:00.000Z", "soon"]
        {
            assert_eq!(Stamp::parse(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_time_comes_back(millis in 0..=LAST) {
            prop_assert_eq!(Stamp::parse(&Stamp(millis).to_string()), Some(Stamp(millis)));
        }
    }
}
