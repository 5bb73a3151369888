//! Lengths of time as people write them.

use std::str::FromStr;
use std::time::Duration;

/// A length of time as people write it: `12h`, `30d`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Age(pub Duration);

impl FromStr for Age {
    type Err = String;
    fn from_str(text: &str) -> Result<Age, String> {
        let units = [("s", 1), ("m", 60), ("h", 3600), ("d", 86_400)];
        let seconds = units
            .into_iter()
            .find_map(|(unit, seconds)| text.strip_suffix(unit)?.parse::<u64>().ok()?.checked_mul(seconds));
        let wrong =
            || format!("{text:?} is not a duration: write a number followed by s, m, h or d, such as 30d");
        seconds.map(|seconds| Age(Duration::from_secs(seconds))).ok_or_else(wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_are_read() {
        let seconds = |text: &str| text.parse::<Age>().map(|age| age.0.as_secs());
        assert_eq!(seconds("30d"), Ok(30 * 86_400));
        assert_eq!((seconds("0s"), seconds("5m"), seconds("12h")), (Ok(0), Ok(300), Ok(43_200)));
        for wrong in ["", "d", "30", "3w", "-1d", "1é", "99999999999999999999d"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }
}
