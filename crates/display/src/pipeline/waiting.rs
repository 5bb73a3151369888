//! What a step waits for while nothing is recorded, as lines for whoever follows its run: each reason once, and none that is over at
//! once.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use rekindle_domain::id::StepId;
use rekindle_wire::view::{PendingWhy, PipelineView};

use super::status_text::rest_lines;

/// How long a step has waited for its turn before that is said: every step asks for one, and most have it at once.
const LEAST: Duration = Duration::from_secs(1);

/// What was said of the waiting of a run.
#[derive(Debug, Default)]
pub struct Waiting {
    /// What it last waited for, and since when it was seen to.
    now: Option<(StepId, PendingWhy, Instant)>,
    /// For which reasons its current step was said to wait for a place or its directory.
    said: BTreeSet<String>,
}

impl Waiting {
    /// Takes in how a run stands at a moment; returns the lines that say what it waits for, if that is to be said now.
    pub fn take(&mut self, view: &PipelineView, at: Instant) -> Vec<String> {
        let Some(pending) = &view.pending else {
            *self = Waiting::default();
            return Vec::new();
        };
        let before = self.now.take();
        if before.as_ref().is_none_or(|(step, ..)| *step != pending.step_id) {
            self.said.clear();
        }
        let before = before.filter(|(step, why, _)| (step, *why) == (&pending.step_id, pending.why));
        let (is_new, since) = (before.is_none(), before.map_or(at, |(.., since)| since));
        self.now = Some((pending.step_id.clone(), pending.why, since));
        let is_due = match pending.why {
            PendingWhy::Place => at.duration_since(since) >= LEAST && self.is_unsaid(view),
            PendingWhy::Directory => self.is_unsaid(view),
            why => why.passes() && is_new,
        };
        if is_due { rest_lines(view) } else { Vec::new() }
    }

    /// Notes that a reason is said; tells whether it was not yet. Who has the directory belongs to it.
    fn is_unsaid(&mut self, view: &PipelineView) -> bool {
        let pending = view.pending.as_ref();
        pending.is_some_and(|pending| self.said.insert(format!("{:?} {:?}", pending.why, pending.detail)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::samples::{plain, run as sample};

    /// Follows a run that stands so at these moments, in milliseconds; returns what is said.
    fn said(moments: &[(u64, PendingWhy, &str)]) -> Vec<String> {
        let (mut waiting, begin) = (Waiting::default(), Instant::now());
        let mut lines = Vec::new();
        for (at, why, detail) in moments {
            let mut view = sample();
            if let Some(pending) = &mut view.pending {
                (pending.why, pending.detail) = (*why, Some((*detail).to_owned()));
            }
            lines.extend(waiting.take(&view, begin + Duration::from_millis(*at)));
        }
        lines.iter().map(|line| plain(line.as_bytes())).collect()
    }

    use PendingWhy::{Directory, Place, Stalled, Working};

    const FULL: &str = "the limit of running tasks is reached";
    const OTHER: &str = "run run-20251020-140818-00000000 is working in its directory";

    #[test]
    fn a_step_that_has_its_turn_at_once_says_nothing_of_it() {
        assert_eq!(said(&[(0, Place, "a place"), (30, Working, ""), (2000, Working, "")]), [""; 0]);
        assert_eq!(
            said(&[(0, Place, "a place"), (30, Working, ""), (2000, Place, FULL)]),
            [""; 0],
            "a new wait"
        );
    }

    #[test]
    fn what_a_step_waits_for_is_said_once_for_each_reason() {
        let waits = [(0, Place, "a place"), (10, Place, FULL), (2000, Place, FULL), (4000, Place, FULL)];
        assert_eq!(said(&waits), ["review 1 waits for its turn: the limit of running tasks is reached"]);
        let directory = format!("review 1 waits for its directory: {OTHER}");
        let waits = [
            (0, Directory, OTHER),
            (2000, Directory, OTHER),
            (4000, Place, FULL),
            (6000, Place, FULL),
            (8000, Directory, OTHER),
            (9000, Directory, "session sess_9 works in its directory"),
        ];
        assert_eq!(
            said(&waits),
            [
                directory.as_str(),
                "review 1 waits for its turn: the limit of running tasks is reached",
                "review 1 waits for its directory: session sess_9 works in its directory",
            ]
        );
        // What passes by itself, and may come again.
        let stalled = said(&[(0, Stalled, "x"), (10, Stalled, "y"), (20, Working, ""), (30, Stalled, "x")]);
        assert_eq!(stalled.len(), 2, "{stalled:?}");
    }

    #[test]
    fn the_next_step_says_again_what_it_waits_for() {
        let (mut waiting, at) = (Waiting::default(), Instant::now());
        let mut view = sample();
        let mut waits = |step: &str| {
            let pending = view.pending.as_mut().expect("a step");
            (pending.why, pending.detail) = (Directory, Some(OTHER.into()));
            pending.step_id = step.parse().expect("a step");
            waiting.take(&view, at).len()
        };
        assert_eq!((waits("review-1"), waits("review-1"), waits("spec_maintain-1")), (1, 0, 1));
    }
}
