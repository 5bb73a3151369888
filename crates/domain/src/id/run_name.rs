//! Names of pipeline runs as people see them, `run-20251020-140818-4f9f29a1`: when a run was started, in UTC, and eight random digits.
//! The id of its stream says the same as a ULID, so that each is had from the other and no index is kept.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use ulid::Ulid;

use super::PipelineId;

/// Random bits of a name: eight digits of base 32. The directory of a run is made only if there is none yet, so that two that agree in
/// all of them and in their second are noticed.
const RANDOM_BITS: u32 = 40;

/// Digits of these.
const RANDOM_DIGITS: usize = 8;

/// The digits, as they stand in names: those of a ULID, in lower case.
const BASE_32: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// The name of a pipeline run: the second in which it was started, and what tells it from others of that second.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct RunName {
    /// Seconds since the Unix epoch.
    second: u64,
    /// The random bits.
    random: u64,
}

impl RunName {
    /// Makes a fresh name from the time and random bits; the domain itself has neither.
    pub fn mint(millis: u64, random: u64) -> RunName {
        let name = RunName { second: millis / 1000, random: random & ((1 << RANDOM_BITS) - 1) };
        // Beyond the year 9999 clocks are wrong, and a name has four digits for the year.
        if name.date_time().is_some() { name } else { RunName { second: 0, ..name } }
    }

    /// Returns the name of the run whose stream has this id, if the id is one that [`RunName::pipeline_id`] returns.
    pub fn of(id: PipelineId) -> Option<RunName> {
        let ulid = Ulid(id.to_ulid()?);
        let random = u64::try_from(ulid.random()).ok().filter(|random| random >> RANDOM_BITS == 0)?;
        let name = RunName { second: ulid.timestamp_ms() / 1000, random };
        (name.date_time().is_some() && name.pipeline_id() == id).then_some(name)
    }

    /// Returns the id of the run's stream.
    pub fn pipeline_id(self) -> PipelineId {
        PipelineId::mint(self.second.saturating_mul(1000), u128::from(self.random))
    }

    fn date_time(self) -> Option<jiff::civil::DateTime> {
        let second = i64::try_from(self.second).ok()?;
        let time = jiff::tz::Offset::UTC.to_datetime(jiff::Timestamp::from_second(second).ok()?);
        (time.year() <= 9999).then_some(time)
    }
}

impl fmt::Display for RunName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = self.date_time().unwrap_or_default();
        let digits = Ulid(u128::from(self.random)).to_string().to_ascii_lowercase();
        let random = digits.get(digits.len() - RANDOM_DIGITS..).unwrap_or_default();
        f.pad(&format!(
            "run-{:04}{:02}{:02}-{:02}{:02}{:02}-{random}",
            time.year(),
            time.month(),
            time.day(),
            time.hour(),
            time.minute(),
            time.second(),
        ))
    }
}

impl fmt::Debug for RunName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A text that names no pipeline run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not the name of a pipeline run: expected run-, a date, a time and eight hex digits, such as run-20251020-140818-4f9f29a1"
)]
pub struct BadRunName(String);

impl FromStr for RunName {
    type Err = BadRunName;
    fn from_str(text: &str) -> Result<RunName, BadRunName> {
        // A name from outside may be huge or hostile: the beginning is shown.
        read(text).ok_or_else(|| BadRunName(text.chars().take(48).collect()))
    }
}

/// Reads a name in the one way in which it is written.
fn read(text: &str) -> Option<RunName> {
    let (date, rest) = text.strip_prefix("run-")?.split_once('-')?;
    let (time, random) = rest.split_once('-')?;
    let digits = |text: &str, len: usize| text.len() == len && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(date, 8) || !digits(time, 6) || random.len() != RANDOM_DIGITS {
        return None;
    }
    let number = |text: &str, from: usize, to: usize| text[from..to].parse::<i16>().ok();
    let small = |text: &str, from: usize| number(text, from, from + 2)?.try_into().ok();
    let date = jiff::civil::Date::new(number(date, 0, 4)?, small(date, 4)?, small(date, 6)?).ok()?;
    let time = jiff::civil::Time::new(small(time, 0)?, small(time, 2)?, small(time, 4)?, 0).ok()?;
    let second = jiff::tz::Offset::UTC.to_timestamp(date.to_datetime(time)).ok()?.as_second();
    let digit = |digit: u8| BASE_32.iter().position(|known| *known == digit);
    let random = random.bytes().try_fold(0, |sum, byte| Some(sum << 5 | digit(byte)? as u64))?;
    Some(RunName { second: u64::try_from(second).ok()?, random })
}

impl From<RunName> for String {
    fn from(name: RunName) -> String {
        name.to_string()
    }
}

impl TryFrom<String> for RunName {
    type Error = BadRunName;
    fn try_from(text: String) -> Result<RunName, BadRunName> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_when_a_run_was_started_and_leads_to_its_stream_and_back() {
        // 2025-10-20T14:08:18.999Z
        let name = RunName::mint(1_760_969_298_999, u64::MAX);
        assert_eq!(name.to_string(), "run-20251020-140818-zzzzzzzz");
        let name: RunName = "run-20251020-140818-4f9f29a1".parse().expect("a name");
        assert_eq!(name.to_string(), "run-20251020-140818-4f9f29a1");
        let id = name.pipeline_id();
        assert!(id.as_str().starts_with("pl_") && id.as_str().ends_with("4f9f29a1"), "{id}");
        assert_eq!(RunName::of(id), Some(name));
        assert_eq!(serde_json::to_string(&name).expect("text"), r#""run-20251020-140818-4f9f29a1""#);
        for (millis, random) in [(0, 0), (1_760_969_298_000, 1), (253_402_207_200_000, 5)] {
            let name = RunName::mint(millis, random);
            assert_eq!((name.to_string().parse(), RunName::of(name.pipeline_id())), (Ok(name), Some(name)));
        }
        assert_eq!(RunName::mint(u64::MAX, 7).to_string(), "run-19700101-000000-00000007");
    }

    #[test]
    fn what_is_written_in_another_way_names_no_run() {
        for bad in [
            "",
            "run-",
            "run_20251020",
            "run-20251020-140818",
            "run-20251020-140818-4f9f29a",
            "run-20251020-140818-4F9F29A1",
            "run-20251020-140818-4f9f29aI",
            "run-20251020-140818-4f9f29al",
            "run-20251320-140818-4f9f29a1",
            "run-20251020-240818-4f9f29a1",
            "run-+0251020-140818-4f9f29a1",
            "run-20251020-140818-4f9f29a1-",
            "run-20251020-140818-4f9f29a1/..",
            "run-19691231-235959-00000000",
            "run-20251020-140860-4f9f29a1",
            "run-2025102é-14081-4f9f29a1",
            "run-20251020-140818-4f9f29é",
            "run-20251020-140818-4f9f29au",
        ] {
            assert!(bad.parse::<RunName>().is_err(), "{bad}");
        }
    }

    #[test]
    fn an_id_that_no_name_stands_for_has_none() {
        let odd = [
            PipelineId::mint(1_760_969_298_001, 0),
            PipelineId::mint(1_760_969_298_000, 1 << RANDOM_BITS),
            PipelineId::from_ulid(u128::MAX),
            "pl_short".parse().expect("an id"),
        ];
        for id in odd {
            assert_eq!(RunName::of(id), None, "{id}");
        }
    }
}
