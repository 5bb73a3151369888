//! What the session is doing, as the line below the conversation says it. Pure.

use std::time::Duration;

use anstyle::Style;
use rekindle_domain::session::UsageShown;
use rekindle_terminal::output::{BAD, COURSE, DIM, WARN, grouped};

/// How often the session is asked how it stands while something of that is known to have changed.
const LOOK: Duration = Duration::from_secs(1);

/// How long an interrupted session is waited for that is to go on by itself.
const GOES_ON: Duration = Duration::from_secs(60);

/// Frames of what moves while the agent works, a MOVES each.
const SPINNER: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];

/// How the session stands, as its daemon says.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Standing {
    /// Its agent.
    pub(crate) agent: String,
    /// The mode that is asked for.
    pub(crate) mode: Option<String>,
    /// The model that is asked for.
    pub(crate) model: Option<String>,
    /// Tokens and money.
    pub(crate) usage: Option<UsageShown>,
    /// Its latest run was cut and has not gone on.
    pub(crate) is_cut: bool,
    /// Why nothing happens by itself.
    pub(crate) held: Option<String>,
    /// What to do next, in words.
    pub(crate) next: String,
}

/// A mode or a model that the agent offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Offer {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) current: bool,
}

/// The state of the session.
#[derive(Debug, Default)]
pub(super) struct Status {
    pub(super) modes: Vec<Offer>,
    pub(super) models: Vec<Offer>,
    standing: Standing,
    /// The run that goes on, and since when.
    run: Option<(String, Duration)>,
    /// Since when the run is cut, and may go on by itself.
    cut: Option<Duration>,
    /// Its agent is being started: it may have to be downloaded first.
    is_starting: bool,
    /// The daemon is away, since then.
    away: Option<Duration>,
    /// What is known may be old: since when, and when it was asked last.
    stale: bool,
    looked: Option<Duration>,
}

impl Status {
    pub(super) fn stand(&mut self, standing: Standing) {
        let mode = standing.mode.clone().or(self.standing.mode.take());
        self.standing = Standing { mode, ..standing };
    }

    /// The agent says what it offers; what it says nothing of stays as it was.
    pub(super) fn offer(&mut self, modes: Vec<Offer>, models: Vec<Offer>) {
        for (known, offered) in [(&mut self.modes, modes), (&mut self.models, models)] {
            if !offered.is_empty() {
                *known = offered;
            }
        }
    }

    pub(super) fn mode(&self) -> Option<&str> {
        self.standing.mode.as_deref()
    }

    pub(super) fn model(&self) -> Option<&str> {
        self.standing.model.as_deref()
    }

    pub(super) fn set_mode(&mut self, mode: String) {
        self.standing.mode = Some(mode);
    }

    pub(super) fn begin(&mut self, run: String, since: Duration) {
        (self.run, self.cut, self.stale) = (Some((run, since)), None, true);
    }

    /// A run ended; it may go on by itself if it was cut.
    pub(super) fn end(&mut self, run: &str, is_cut: bool, now: Duration) {
        if self.run.take_if(|(open, _)| open == run).is_some() {
            (self.cut, self.stale) = (is_cut.then_some(now), true);
        }
    }

    /// The conversation goes on elsewhere.
    pub(super) fn leave_run(&mut self) {
        (self.run, self.cut, self.stale) = (None, None, true);
    }

    /// It is known how an interruption goes on; tells whether that was waited for.
    pub(super) fn settle(&mut self) -> bool {
        self.cut.take().is_some()
    }

    /// Tells whether it has been interrupted for too long to go on by itself.
    pub(super) fn is_lost(&self, now: Duration) -> bool {
        self.cut.is_some_and(|since| now.saturating_sub(since) > GOES_ON)
    }

    pub(super) fn go_away(&mut self, now: Duration) {
        self.away.get_or_insert(now);
    }

    pub(super) fn come_back(&mut self) -> bool {
        self.stale = true;
        self.away.take().is_some()
    }

    /// The agent is being started, or that is over.
    pub(super) fn start(&mut self, is_starting: bool) {
        self.is_starting = is_starting;
    }

    /// Something of what the daemon says of the session has changed.
    pub(super) fn change(&mut self) {
        self.stale = true;
    }

    pub(super) fn is_working(&self) -> bool {
        self.run.is_some() || self.cut.is_some()
    }

    pub(super) fn moves(&self) -> bool {
        self.is_working() || self.stale || self.away.is_some()
    }

    /// Tells whether it is time to ask how the session stands; then that is taken for asked.
    pub(super) fn is_look_due(&mut self, now: Duration) -> bool {
        let wanted = (self.stale || self.cut.is_some()) && self.away.is_none();
        let due = wanted && self.looked.is_none_or(|looked| now.saturating_sub(looked) >= LOOK);
        if due {
            (self.stale, self.looked) = (false, Some(now));
        }
        due
    }

    /// Returns the line; `waits` says that a person is asked.
    pub(super) fn text(&self, waits: bool, queued: usize, now: Duration) -> (Style, String) {
        let frame = SPINNER[(now.as_millis() / 120) as usize % SPINNER.len()];
        let ago = |since: Duration| time(now.saturating_sub(since));
        let (style, doing) = match (&self.away, &self.run) {
            (Some(since), _) => (
                BAD,
                format!("{frame} the daemon is gone: restarting it, or waiting for it ({})", ago(*since)),
            ),
            (None, Some((_, since))) if waits => (WARN, format!("? waits for your answer ({})", ago(*since))),
            (None, Some((_, since))) => {
                let what = if self.is_starting { "starting" } else { "working" };
                (COURSE, format!("{frame} {what} {}", ago(*since)))
            }
            (None, None) if self.cut.is_some() => {
                (WARN, format!("{frame} interrupted; it may continue automatically"))
            }
            (None, None) if self.standing.is_cut => (WARN, "interrupted".to_owned()),
            (None, None) => (DIM, "ready".to_owned()),
        };
        let standing = &self.standing;
        let mut parts = vec![doing];
        if queued > 0 {
            parts.push(format!("{queued} queued"));
        }
        if let Some(usage) = &standing.usage {
            let tokens = usage.input_tokens + usage.output_tokens;
            if tokens > 0 {
                parts.push(format!("{} tokens", grouped(tokens)));
            }
            parts.extend(usage.cost.map(|cost| format!("cost {cost:.4}")));
        }
        let named = [Some(&standing.agent), standing.model.as_ref(), standing.mode.as_ref()];
        parts.extend(named.into_iter().flatten().filter(|name| !name.is_empty()).cloned());
        (style, parts.join(" · "))
    }
}

/// Writes how long something has taken.
fn time(long: Duration) -> String {
    let seconds = long.as_secs();
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds}s"),
        (0, minutes, seconds) => format!("{minutes}m {seconds:02}s"),
        (hours, minutes, _) => format!("{hours}h {minutes:02}m"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn the_line_says_what_goes_on_since_when_and_what_it_took() {
        let mut status = Status::default();
        let usage = UsageShown { input_tokens: 1200, output_tokens: 34, cost: Some(0.05), context: None };
        status.stand(Standing { agent: "claude".into(), usage: Some(usage), ..Standing::default() });
        assert_eq!(status.text(false, 0, at(0)).1, "ready · 1,234 tokens · cost 0.0500 · claude");
        status.begin("run_1".into(), at(10));
        assert_eq!(
            status.text(false, 2, at(75)).1,
            "⠴ working 1m 05s · 2 queued · 1,234 tokens · cost 0.0500 · claude"
        );
        status.start(true);
        assert!(status.text(false, 0, at(20)).1.contains(" starting 10s · "), "its agent does nothing yet");
        status.start(false);
        assert!(status.text(false, 0, at(20)).1.contains(" working 10s · "));
        assert!(status.text(true, 0, at(11)).1.starts_with("? waits for your answer (1s)"));
        status.go_away(at(12));
        assert!(status.text(true, 0, at(13)).1.contains("the daemon is gone"));
        assert!(status.come_back() && !status.come_back());
        status.end("run_0", true, at(20));
        assert!(status.cut.is_none() && status.is_working(), "another run");
        status.end("run_1", true, at(20));
        assert!(status.text(false, 0, at(20)).1.contains("interrupted"));
        assert!(!status.is_lost(at(80)) && status.is_lost(at(81)));
        assert!(status.settle() && !status.settle());
        assert_eq!((time(at(3_725)), time(at(59))), ("1h 02m".into(), "59s".into()));
    }

    #[test]
    fn it_is_asked_now_and_then_and_only_if_something_changed() {
        let mut status = Status::default();
        assert!(!status.is_look_due(at(0)));
        status.change();
        assert!(status.is_look_due(at(1)) && !status.is_look_due(at(9)));
        status.change();
        assert!(status.is_look_due(at(9)));
        status.change();
        assert!(!status.is_look_due(at(9)) && status.is_look_due(at(10)));
        status.change();
        status.go_away(at(11));
        assert!(!status.is_look_due(at(20)), "nobody is there");
    }
}
