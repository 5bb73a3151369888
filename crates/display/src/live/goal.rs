//! Which run is watched, and what its end means for whoever watches. Pure: the time comes in as an argument.

use std::time::{Duration, Instant};

use rekindle_domain::event::ResumePolicy;

use super::run_end::RunEnd;

/// How often it is looked whether an interrupted session goes on, and for how long.
const LOOK: Duration = Duration::from_millis(500);
const GOES_ON: Duration = Duration::from_secs(60);

/// What is waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Goal {
    /// The end of this run.
    Run(String),
    /// The end of the run that a message begins.
    Message(String),
    /// The end of the next run.
    Next,
}

/// The run that is watched, as far as it is known.
#[derive(Debug)]
pub(super) struct Aim {
    goal: Goal,
    /// The run, once it began.
    run: Option<String>,
    /// It was cut, and may go on by itself.
    cut: Option<Cut>,
}

/// Since when a run is interrupted, and when that was last looked at.
#[derive(Debug, Clone, Copy)]
struct Cut {
    since: Instant,
    looked: Instant,
}

/// What the end of a run means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// Nothing: it is another one.
    Nothing,
    /// It may go on by itself.
    MayGoOn,
    /// It is over.
    Over,
}

impl Aim {
    pub(super) fn new(goal: Goal) -> Aim {
        let run = if let Goal::Run(run) = &goal { Some(run.clone()) } else { None };
        Aim { goal, run, cut: None }
    }

    /// A run began.
    pub(super) fn begun(&mut self, run: String, message: Option<&str>, continues: Option<&str>) {
        let ours = match &self.goal {
            Goal::Next => self.run.is_none(),
            Goal::Message(wanted) => message == Some(wanted),
            Goal::Run(wanted) => *wanted == run,
        };
        if ours || (continues.is_some() && continues == self.run.as_deref()) {
            (self.run, self.cut) = (Some(run), None);
        }
    }

    /// A run ended.
    pub(super) fn ended(&mut self, run: &str, end: &RunEnd, policy: ResumePolicy, now: Instant) -> Meaning {
        if self.run.as_deref() != Some(run) {
            return Meaning::Nothing;
        }
        if *end == RunEnd::Interrupted && policy == ResumePolicy::Auto {
            self.cut = Some(Cut { since: now, looked: now });
            return Meaning::MayGoOn;
        }
        Meaning::Over
    }

    /// Tells whether what is heard is still of runs before the one that is meant.
    pub(super) fn is_before(&self) -> bool {
        matches!(self.goal, Goal::Message(_)) && self.run.is_none()
    }

    /// Tells whether a message that will not be sent is the one whose run is waited for.
    pub(super) fn is_dropped(&self, message: &str) -> bool {
        matches!(&self.goal, Goal::Message(wanted) if wanted == message)
    }

    /// Tells whether it is interrupted and may go on.
    pub(super) fn is_cut(&self) -> bool {
        self.cut.is_some()
    }

    /// Tells whether it is time to look whether it goes on.
    pub(super) fn is_check_due(&mut self, now: Instant) -> bool {
        match &mut self.cut {
            Some(cut) if now.duration_since(cut.looked) >= LOOK => {
                cut.looked = now;
                true
            }
            _ => false,
        }
    }

    /// Tells whether it has been interrupted for too long to go on by itself.
    pub(super) fn is_lost(&self, now: Instant) -> bool {
        self.cut.is_some_and(|cut| now.duration_since(cut.since) > GOES_ON)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AUTO: ResumePolicy = ResumePolicy::Auto;

    #[test]
    fn the_run_that_is_meant_is_watched_and_no_other() {
        let now = Instant::now();
        let end = RunEnd::Cancelled;
        for (goal, ours) in [
            (Goal::Run("run_2".into()), "run_2"),
            (Goal::Message("msg_2".into()), "run_2"),
            (Goal::Next, "run_1"),
        ] {
            let mut aim = Aim::new(goal.clone());
            let mut over = Vec::new();
            for number in 1..=3 {
                let (run, message) = (format!("run_{number}"), format!("msg_{number}"));
                aim.begun(run.clone(), Some(&message), None);
                if aim.ended(&run, &end, AUTO, now) == Meaning::Over {
                    over.push(run);
                }
            }
            assert_eq!(over, [ours], "{goal:?}");
        }
    }

    #[test]
    fn an_interrupted_run_goes_on_as_another_or_is_lost() {
        let now = Instant::now();
        let mut aim = Aim::new(Goal::Next);
        aim.begun("run_1".into(), None, None);
        assert_eq!(aim.ended("run_1", &RunEnd::Interrupted, ResumePolicy::Ask, now), Meaning::Over);
        assert_eq!(aim.ended("run_1", &RunEnd::Interrupted, AUTO, now), Meaning::MayGoOn);
        assert!(aim.is_cut() && !aim.is_check_due(now) && !aim.is_lost(now));
        assert!(aim.is_check_due(now + LOOK) && !aim.is_check_due(now + LOOK));
        assert!(aim.is_lost(now + GOES_ON + LOOK));
        aim.begun("run_2".into(), None, Some("run_1"));
        assert!(!aim.is_cut() && !aim.is_lost(now + GOES_ON + LOOK));
        assert_eq!(aim.ended("run_1", &RunEnd::Failed, AUTO, now), Meaning::Nothing);
        assert_eq!(aim.ended("run_2", &RunEnd::Failed, AUTO, now), Meaning::Over);
    }

    #[test]
    fn a_message_that_is_dropped_ends_the_wait_for_it() {
        assert!(Aim::new(Goal::Message("msg_1".into())).is_dropped("msg_1"));
        assert!(!Aim::new(Goal::Message("msg_1".into())).is_dropped("msg_2"));
        assert!(!Aim::new(Goal::Next).is_dropped("msg_1"));
    }
}
