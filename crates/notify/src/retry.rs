//! When a delivery that failed is tried again: later each time, never for longer than a day. Pure: time and chance are handed in.

use std::time::Duration;

use rekindle_domain::time::Timestamp;

/// The first wait.
const FIRST: Duration = Duration::from_secs(5);

/// The longest wait, also where a receiver asks for a longer one: whoever is back is told within the hour.
const LONGEST: Duration = Duration::from_secs(60 * 60);

/// For how long a message is tried at all: tomorrow nobody wants it any more.
pub const GIVE_UP_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

/// Returns when to try again after so many failures in a row, or nothing if it is to be given up. `asked` is how long the receiver wants to
/// be left alone; `chance` is any number, by which deliveries that failed together do not come back together.
pub fn next_attempt(
    first: Timestamp,
    failures: u32,
    asked: Option<Duration>,
    now: Timestamp,
    chance: u32,
) -> Option<Timestamp> {
    let doubled = FIRST.saturating_mul(1 << failures.saturating_sub(1).min(16)).min(LONGEST);
    // Between three and five quarters of it.
    let spread = doubled.mul_f64(0.75 + 0.5 * f64::from(chance) / f64::from(u32::MAX));
    let wait = spread.max(asked.unwrap_or_default().min(LONGEST));
    let next = now.plus_millis(i64::try_from(wait.as_millis()).unwrap_or(i64::MAX));
    (u128::from(next.millis_since(first)) <= GIVE_UP_AFTER.as_millis()).then_some(next)
}

/// Returns how long the header `Retry-After` asks for: seconds, or a date.
pub(crate) fn retry_after(header: &str, now: Timestamp) -> Option<Duration> {
    let header = header.trim();
    if !header.is_empty() && header.bytes().all(|byte| byte.is_ascii_digit()) {
        // So many digits that they are no number are many seconds.
        return Some(Duration::from_secs(header.parse().unwrap_or(u64::MAX)).min(LONGEST));
    }
    let date = jiff::fmt::rfc2822::parse(header).ok()?.timestamp();
    let wait = Timestamp::from_millis(date.as_millisecond()).millis_since(now);
    Some(Duration::from_millis(wait).min(LONGEST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_an_hour_and_end_after_a_day() {
        let start = Timestamp::from_millis(0);
        let middle = u32::MAX / 2;
        let seconds = |failures| {
            let next = next_attempt(start, failures, None, start, middle).expect("again");
            (next.as_millis() + 999) / 1000
        };
        assert_eq!([1, 2, 3, 4, 10, 11, 12, 1_000_000].map(seconds), [5, 10, 20, 40, 2560, 3600, 3600, 3600]);

        // A target that answers 500 for ever.
        let (mut now, mut failures) = (start, 0);
        loop {
            failures += 1;
            match next_attempt(start, failures, None, now, middle) {
                Some(next) => now = next,
                None => break,
            }
        }
        assert!((30..40).contains(&failures), "{failures}");
        assert!(now.as_millis() > 22 * 60 * 60 * 1000 && now.as_millis() <= 24 * 60 * 60 * 1000);
    }

    #[test]
    fn a_receiver_may_ask_for_more_but_not_for_ever() {
        let start = Timestamp::from_millis(0);
        let with = |asked: u64, chance| {
            next_attempt(start, 1, Some(Duration::from_secs(asked)), start, chance).map(|at| at.as_millis())
        };
        assert_eq!(with(120, 0), Some(120_000));
        assert_eq!((with(0, 0), with(0, u32::MAX)), (Some(3_750), Some(6_250)));
        assert_eq!(with(u64::MAX, 0), Some(3_600_000));
    }

    #[test]
    fn the_header_has_seconds_or_a_date() {
        let now: Timestamp = "2015-10-21T07:27:00.000Z".parse().expect("a time");
        let asked = |header: &str| retry_after(header, now).map(|wait| wait.as_secs());
        let cases = [
            ("120", Some(120)),
            (" 0 ", Some(0)),
            ("999999999999999999999999", Some(3600)),
            ("Wed, 21 Oct 2015 07:28:00 GMT", Some(60)),
            ("Wed, 21 Oct 2015 07:20:00 GMT", Some(0)),
            ("Wed, 21 Oct 2099 07:20:00 GMT", Some(3600)),
            ("-5", None),
            ("soon", None),
            ("", None),
        ];
        for (header, wait) in cases {
            assert_eq!(asked(header), wait, "{header}");
        }
    }
}
