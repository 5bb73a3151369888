//! Words for what a step took: time, tokens, money, files. The same wherever a run is shown.

use rekindle_domain::event::{StepCut, Usage};
use rekindle_terminal::output::{grouped, plural};
use rekindle_wire::view::{PendingWhy, PipelineView, TouchedView};

/// Tells whether a run does nothing until a person or the next start of the daemon sees to it.
pub(super) fn rests(run: &PipelineView) -> bool {
    run.pending.as_ref().is_some_and(|pending| pending.why.rests())
}

/// Returns the word for how a run stands.
pub(super) fn status_word(run: &PipelineView) -> &str {
    if rests(run) { "rests" } else { run.status.as_str() }
}

/// Writes a length of time: `45s`, `1m 43s`, `2h 05m`.
pub(super) fn took(millis: u64) -> String {
    let seconds = millis / 1000;
    match seconds {
        0 => format!("{millis}ms"),
        1..60 => format!("{seconds}s"),
        60..3600 => format!("{}m {:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h {:02}m", seconds / 3600, seconds % 3600 / 60),
    }
}

/// Writes what was used, as far as agents tell: tokens and money; empty if they tell nothing.
pub(super) fn used(usage: Usage) -> (String, String) {
    let tokens = usage.input_tokens.saturating_add(usage.output_tokens);
    let tokens = if tokens == 0 { String::new() } else { format!("{} tokens", grouped(tokens)) };
    let cost = usage.cost.filter(|cost| *cost > 0.0).map(|cost| format!("cost {cost:.2}"));
    (tokens, cost.unwrap_or_default())
}

/// Writes which files are others than before: `2 files +30 -4`; empty if none is.
pub(super) fn touched(files: TouchedView) -> String {
    let TouchedView { files, lines_added, lines_removed } = files;
    if files == 0 {
        String::new()
    } else {
        format!("{} +{lines_added} -{lines_removed}", plural(files, "file"))
    }
}

/// Says why an attempt was cut.
pub(super) fn cut_text(cut: StepCut) -> &'static str {
    match cut {
        StepCut::AgentGone => "its agent is gone",
        StepCut::Cancelled => "it was cancelled",
        StepCut::TryLater => "its agent's provider asks to try again later",
        StepCut::NotLaunched => "its program could not be started",
        StepCut::NotContinued => "its agent came back without its session",
        StepCut::Unknown => "for a reason that this version does not know",
    }
}

/// Says what a step waits for.
pub(super) fn pending_text(why: PendingWhy) -> &'static str {
    match why {
        PendingWhy::Intended => "is about to start",
        PendingWhy::Working => "is being worked on",
        PendingWhy::Person => "waits for an answer",
        PendingWhy::Silent => "waits for an agent that shows no sign of life",
        PendingWhy::Stalled => "has stalled: no sign of life for a long time",
        PendingWhy::SameKey => "waits for another run that is doing the same step",
        PendingWhy::Directory => "waits for its directory",
        PendingWhy::Place => "waits for its turn",
        PendingWhy::Time => "waits for its next attempt",
        PendingWhy::Cut => "was cut",
        PendingWhy::Asks => "was interrupted and waits for your decision",
        PendingWhy::Left => "was interrupted when its daemon ended, and waits for your decision",
        PendingWhy::Cancelled => "was cancelled",
        PendingWhy::TooManyAttempts => "was interrupted too often to continue automatically",
        PendingWhy::NotLaunched => "could not be started",
        PendingWhy::Drift => "stopped: files are not as it expects them",
        PendingWhy::NoDirectory => "waits for its directory, which does not exist or cannot be read",
        PendingWhy::NoEnvironment => {
            "stopped: its agent needs environment variables that the daemon does not have"
        }
        PendingWhy::ManifestMissing => "stopped: the files to restore are no longer kept",
        PendingWhy::Imported => "waits for your decision: the run was imported from elsewhere",
        PendingWhy::HeldElsewhere => "is held by another daemon",
        PendingWhy::Unknown => "waits for something that this version does not know",
    }
}

/// Returns what has a run go on that rests: what follows `pipeline resume RUN`.
pub(super) fn way_on(why: PendingWhy) -> &'static str {
    match why {
        PendingWhy::Drift => {
            " --on-drift restore, which restores the files, or --on-drift accept, which keeps them as they are"
        }
        PendingWhy::ManifestMissing => " --on-drift accept, which keeps the files as they are",
        PendingWhy::NoEnvironment => " --env NAME passes one",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_amounts_read_well() {
        let cases = [
            (0, "0ms"),
            (999, "999ms"),
            (59_999, "59s"),
            (103_000, "1m 43s"),
            (3_600_000, "1h 00m"),
            (90_061_000, "25h 01m"),
        ];
        for (millis, text) in cases {
            assert_eq!(took(millis), text);
        }
        let usage = |input_tokens, cost| Usage { input_tokens, output_tokens: 300, cost };
        assert_eq!(used(usage(12_000, Some(0.416))), ("12,300 tokens".into(), "cost 0.42".into()));
        assert_eq!(used(usage(u64::MAX, None)).1, "");
        assert_eq!(used(Usage::default()), (String::new(), String::new()));
        let files = |files| TouchedView { files, lines_added: 30, lines_removed: 4 };
        assert_eq!((touched(files(1)), touched(files(0))), ("1 file +30 -4".into(), String::new()));
    }
}
