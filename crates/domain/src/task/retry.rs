//! The retry of a task whose run failed: whether it is attempted again by itself, and when.

use crate::event::Event;
use crate::line::Draft;
use crate::session::{Run, SessionState};

use super::state::Task;

/// How long the first retry waits; each later one four times as long, up to the second.
const FIRST_BACK_OFF_MS: u64 = 5_000;
const LONGEST_BACK_OFF_MS: u64 = 15 * 60_000;

/// The longest time that a provider may put us off.
const LONGEST_RETRY_AFTER_MS: u64 = 24 * 60 * 60_000;

/// Words by which providers say that the same request may succeed later.
const LATER: [&str; 10] = [
    "rate limit",
    "rate_limit",
    "ratelimit",
    "too many requests",
    "overloaded",
    "overload_error",
    "status 429",
    "status 529",
    "error 429",
    "try again later",
];

/// A run, and how far it has come.
#[derive(Debug, Clone, Copy)]
pub struct RunSoFar<'a> {
    /// The run.
    pub run: &'a Run,
    /// Its prompt has reached an agent, or its command was started.
    pub has_begun: bool,
}

impl<'a> RunSoFar<'a> {
    /// Returns the open run of a session, as far as it has come.
    pub fn of(state: &'a SessionState) -> Option<RunSoFar<'a>> {
        let run = state.run.as_ref()?;
        let is_started = state.agent.as_ref().is_some_and(|agent| agent.process.is_some());
        Some(RunSoFar { run, has_begun: run.prompted || state.provider.is_command() && is_started })
    }

    /// Returns it where it is known whether the process of its agent was seen to end: an exit code or a signal says that a command was
    /// started, also where a daemon that died meanwhile has recorded nothing of that.
    pub fn with_exit(state: &'a SessionState, is_seen: bool) -> Option<RunSoFar<'a>> {
        let run = RunSoFar::of(state)?;
        Some(RunSoFar { has_begun: run.has_begun || state.provider.is_command() && is_seen, ..run })
    }

    /// Returns it with what is about to be recorded.
    pub fn with_records(state: &'a SessionState, records: &[Draft]) -> Option<RunSoFar<'a>> {
        let is_seen = records.iter().any(|draft| match &draft.event {
            Event::AgentExited(exited) => exited.code.is_some() || exited.signal.is_some(),
            _ => false,
        });
        RunSoFar::with_exit(state, is_seen)
    }
}

/// Decides whether a task whose run has failed is attempted again, and returns after how many milliseconds. Work that may have had effects is
/// only repeated if its maker said that this does no harm.
pub fn retry_in_ms(task: &Task, run: RunSoFar<'_>, error: &str) -> Option<u64> {
    if task.cancel.is_some() || task.attempt >= task.spec.max_attempts {
        return None;
    }
    // Of what a command does nobody is told: once it began it may have done anything.
    let is_untouched = !run.has_begun || run.run.tool_calls == 0 && !task.spec.provider.is_command();
    let may_succeed = !run.has_begun || says_later(error) || task.spec.repeatable;
    if !may_succeed || !(is_untouched || task.spec.repeatable) {
        return None;
    }
    let asked = retry_after_ms(error).unwrap_or(0).min(LONGEST_RETRY_AFTER_MS);
    Some(back_off_ms(task.attempt).max(asked))
}

/// Returns how long the attempt after this one waits.
fn back_off_ms(attempt: u32) -> u64 {
    let times = 4_u64.saturating_pow(attempt.saturating_sub(1));
    FIRST_BACK_OFF_MS.saturating_mul(times).min(LONGEST_BACK_OFF_MS)
}

/// Tells whether an error says that the same may succeed later.
pub fn says_later(error: &str) -> bool {
    let error = error.to_lowercase();
    LATER.iter().any(|words| error.contains(words))
}

/// Returns how long an error asks to wait: `retry after 30`, `retry_after: 1.5s`, `Retry-After=2m`.
fn retry_after_ms(error: &str) -> Option<u64> {
    let error = error.to_lowercase();
    let at = ["retry after", "retry-after", "retry_after", "try again in"]
        .iter()
        .find_map(|words| error.find(words).map(|at| at + words.len()))?;
    let rest = error[at..].trim_start_matches(|c: char| c.is_whitespace() || "\":=".contains(c));
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    let number: f64 = rest[..end].parse().ok()?;
    let unit = match rest[end..].trim_start() {
        unit if unit.starts_with("ms") => 1.0,
        unit if unit.starts_with('m') => 60_000.0,
        unit if unit.starts_with('h') => 3_600_000.0,
        _ => 1_000.0,
    };
    Some((number * unit) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::tests::log::Log;
    use crate::session::tests::script::draft;

    /// A daemon that died behind the launch recorded no start; the next one reads the exit code.
    #[test]
    fn a_command_with_an_exit_code_has_begun_whatever_was_recorded_before() {
        let launched = ["session.created; message.user; run.started msg=1", "agent.launching"];
        let mut state = Log::of(&launched).replay.state;
        let has_begun = |state: &SessionState, records: &[&str]| {
            let records: Vec<Draft> = records.iter().map(|record| draft(record)).collect();
            RunSoFar::with_records(state, &records).expect("a run").has_begun
        };
        assert!(!has_begun(&state, &["run.failed", "agent.exited code=1"]), "an agent was told nothing");
        state.provider.profile = "exec".into();
        assert!(!has_begun(&state, &["run.failed"]));
        assert!(!has_begun(&state, &["run.failed", "agent.exited"]), "it could not be started");
        assert!(has_begun(&state, &["run.failed", "agent.exited code=1"]));
        assert!(has_begun(&state, &["run.failed", "agent.exited signal=9"]));
    }

    #[test]
    fn errors_that_ask_for_another_try_are_told_from_others() {
        for error in [
            "Rate limit exceeded",
            "API error 429: rate_limit_error",
            "Overloaded",
            "HTTP status 529",
            "the model is busy, try again later",
        ] {
            assert!(says_later(error), "{error}");
        }
        for error in ["invalid api key", "prompt is too long", "exit status 1", ""] {
            assert!(!says_later(error), "{error}");
        }
    }

    #[test]
    fn the_time_that_an_error_asks_for_is_read() {
        for (error, expected) in [
            ("retry after 30", Some(30_000)),
            ("rate limited; Retry-After: 2", Some(2_000)),
            (r#"{"retry_after": 1.5}"#, Some(1_500)),
            ("Please try again in 200ms", Some(200)),
            ("try again in 6m", Some(360_000)),
            ("try again in 2h", Some(7_200_000)),
            ("retry after a while", None),
            ("retry after 1.2.3", None),
            ("no time given", None),
        ] {
            assert_eq!(retry_after_ms(error), expected, "{error}");
        }
        assert_eq!(retry_after_ms("retry after 99999999999999999999"), Some(u64::MAX));
    }

    #[test]
    fn each_retry_waits_longer_up_to_a_quarter_of_an_hour() {
        let waits: Vec<u64> = (1..8).map(back_off_ms).collect();
        assert_eq!(waits, [5_000, 20_000, 80_000, 320_000, 900_000, 900_000, 900_000]);
        assert_eq!(back_off_ms(u32::MAX), LONGEST_BACK_OFF_MS);
    }
}
