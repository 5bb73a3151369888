//! Words for what a step took: time, tokens, money, files. The same wherever a run is shown.

use rekindle_domain::event::{StepCut, Usage};
use rekindle_terminal::output::{grouped, plural};
use rekindle_wire::view::{PendingWhy, TouchedView};

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
        StepCut::TryLater => "its agent's provider says to try later",
        StepCut::NotLaunched => "its agent could not be launched",
        StepCut::NotContinued => "its agent came back without its session",
        StepCut::Unknown => "for a reason that this version does not know",
    }
}

/// Says what a step waits for.
pub(super) fn pending_text(why: PendingWhy) -> &'static str {
    match why {
        PendingWhy::Intended => "is to begin",
        PendingWhy::Working => "is worked at",
        PendingWhy::Person => "waits for an answer",
        PendingWhy::Silent => "waits for an agent that gives no sign of life",
        PendingWhy::Stalled => "has stalled: nothing was heard of it for long",
        PendingWhy::SameKey => "waits for another run that does the same",
        PendingWhy::Directory => "waits for its directory",
        PendingWhy::Place => "waits for its turn",
        PendingWhy::Time => "waits for its next attempt",
        PendingWhy::Cut => "was cut",
        PendingWhy::Asks => "was cut, and asks what is to become of it",
        PendingWhy::Left => "was left when its daemon ended, and waits for your decision",
        PendingWhy::Cancelled => "was cancelled",
        PendingWhy::TooManyAttempts => "was cut too often to go on by itself",
        PendingWhy::Drift => "stops: files are not as it expects them",
        PendingWhy::NoDirectory => "waits for its directory, which is not there or cannot be read",
        PendingWhy::NoEnvironment => "stops: its agent needs variables that the daemon does not have",
        PendingWhy::ManifestMissing => "stops: what its files would be restored to is not kept any more",
        PendingWhy::Imported => "waits for somebody to say that the run goes on, which came from elsewhere",
        PendingWhy::HeldElsewhere => "is held by another daemon",
        PendingWhy::Unknown => "waits for something that this version does not know",
    }
}

/// Returns what has a run go on that rests: what follows `pipeline resume RUN`.
pub(super) fn way_on(why: PendingWhy) -> &'static str {
    match why {
        PendingWhy::Drift => {
            " --on-drift restore, which takes the files back, or --on-drift accept, which takes them as they are"
        }
        PendingWhy::ManifestMissing => " --on-drift accept, which takes the files as they are",
        PendingWhy::NoEnvironment => " --env NAME hands one over",
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
