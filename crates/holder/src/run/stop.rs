//! The way to an agent's end: its input closed, then asked, then told. Each step has its time; whoever is still
//! there afterwards is named.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::dir::ExitReason;
use crate::tree::Tree;

/// How long the last step waits before what is left is named.
const LAST_WAIT: Duration = Duration::from_secs(2);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    InputClosed,
    Asked,
    Told,
}

/// An end that is under way.
#[derive(Debug)]
pub(super) struct Stop {
    pub(super) reason: ExitReason,
    pub(super) actor: Option<String>,
    pub(super) detail: Option<String>,
    step: Step,
    pub(super) deadline: Instant,
    grace: Duration,
}

impl Stop {
    /// Begins; the caller closes the agent's input.
    pub(super) fn begin(
        reason: ExitReason,
        actor: Option<String>,
        detail: Option<String>,
        grace: Duration,
    ) -> Stop {
        Stop { reason, actor, detail, step: Step::InputClosed, deadline: Instant::now() + grace, grace }
    }

    /// Makes the step that is under way no longer than asked for now.
    pub(super) fn hurry(&mut self, grace: Duration) {
        self.grace = self.grace.min(grace);
        self.deadline = self.deadline.min(Instant::now() + grace);
    }

    /// Takes the next step if it is time; tells whether there are no more.
    pub(super) fn proceed(&mut self, tree: &Tree, now: Instant) -> bool {
        if now < self.deadline {
            return false;
        }
        match self.step {
            Step::InputClosed => {
                let _ = tree.signal(Signal::TERM);
                (self.step, self.deadline) = (Step::Asked, now + self.grace);
                false
            }
            Step::Asked => {
                let _ = tree.signal(Signal::KILL);
                (self.step, self.deadline) = (Step::Told, now + LAST_WAIT);
                false
            }
            Step::Told => true,
        }
    }
}
