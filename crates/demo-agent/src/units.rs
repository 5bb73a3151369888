//! Durations and sizes as scripts and flags write them: `200ms`, `2s`, `20MiB`, `10MB`, `4096`.

use std::time::Duration;

/// The longest pause a script may ask for: longer than any test, short enough to leave nothing behind for ever.
const LONGEST_PAUSE: Duration = Duration::from_secs(24 * 60 * 60);

/// Reads a duration: a whole number and `ms`, `s` or `m`, up to a day.
pub(crate) fn parse_duration(text: &str) -> Option<Duration> {
    let (number, unit) = number_and_unit(text)?;
    let duration = match unit {
        "ms" => Duration::from_millis(number),
        "s" => Duration::from_secs(number),
        "m" => Duration::from_secs(number.checked_mul(60)?),
        _ => return None,
    };
    (duration <= LONGEST_PAUSE).then_some(duration)
}

/// Reads a size in bytes: a whole number and nothing, `B`, `KB`, `MB`, `KiB` or `MiB`.
pub(crate) fn parse_size(text: &str) -> Option<u64> {
    let (number, unit) = number_and_unit(text)?;
    let factor = match unit {
        "" | "B" => 1,
        "KB" => 1_000,
        "MB" => 1_000_000,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        _ => return None,
    };
    number.checked_mul(factor)
}

fn number_and_unit(text: &str) -> Option<(u64, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    Some((number.parse().ok()?, unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_unit_and_an_end() {
        let cases = [("200ms", Some(200)), ("2s", Some(2000)), ("1m", Some(60_000)), ("0ms", Some(0))];
        for (text, millis) in cases {
            assert_eq!(parse_duration(text), millis.map(Duration::from_millis), "{text}");
        }
        for text in ["", "ms", "5", "5h", "-1s", "2 s", "99999999999999999999s", "1441m"] {
            assert_eq!(parse_duration(text), None, "{text}");
        }
    }

    #[test]
    fn sizes_are_decimal_or_binary() {
        let cases =
            [("4096", 4096), ("10MB", 10_000_000), ("20MiB", 20 << 20), ("3KB", 3000), ("3KiB", 3072)];
        for (text, bytes) in cases {
            assert_eq!(parse_size(text), Some(bytes), "{text}");
        }
        for text in ["", "MiB", "1GiB", "18446744073709551615KB", "1.5MB"] {
            assert_eq!(parse_size(text), None, "{text}");
        }
    }
}
