//! Delivery to one sink, on a thread of its own: what waits first is delivered, and the outcome is written behind the fact. Whoever
//! dies in between delivers it again.

use std::sync::Arc;

use rekindle_domain::time::Timestamp;
use rekindle_notify::outbox::{Entry, Outcome, Told};
use rekindle_notify::{AnswerLink, Delivery, Message, next_attempt};

use super::hub::{Hub, Job};
use super::standing::Surroundings;
use super::target::{LinkMint, Target};
use crate::ids::random;
use crate::test_knobs::crash_point;

/// Delivers to one sink.
pub(super) struct Deliverer {
    hub: Arc<Hub>,
    target: Arc<dyn Target>,
    links: Arc<dyn LinkMint>,
    around: Arc<Surroundings>,
}

/// A delivery on its way.
struct Attempt {
    n: Option<u64>,
    message: Message,
    since: Timestamp,
    failures: u32,
}

impl From<Job> for Attempt {
    fn from(job: Job) -> Attempt {
        match job {
            Job::Notice(waiting) => Attempt {
                n: Some(waiting.n),
                message: Message::Notice(Arc::unwrap_or_clone(waiting.notice)),
                since: waiting.since,
                failures: waiting.failures,
            },
            Job::Summary(held) => Attempt {
                n: None,
                message: Message::Summary(held.summary),
                since: held.since,
                failures: held.failures,
            },
        }
    }
}

impl Deliverer {
    pub(super) fn new(
        hub: Arc<Hub>,
        target: Arc<dyn Target>,
        links: Arc<dyn LinkMint>,
        around: Arc<Surroundings>,
    ) -> Deliverer {
        Deliverer { hub, target, links, around }
    }

    /// Delivers until nobody is to deliver any more.
    pub(super) fn run(&self) {
        let mut limit = self.target.rate_limit();
        while let Some(job) = self.hub.next_job(self.target.name(), &mut limit) {
            self.deliver(job);
        }
    }

    /// Delivers what is due now.
    #[cfg(test)]
    pub(super) fn deliver_due(&self, limit: &mut rekindle_notify::RateLimit) {
        while let Some(job) = self.hub.job_at_hand(self.target.name(), limit) {
            self.deliver(job);
        }
    }

    /// Tries once to deliver something.
    fn deliver(&self, job: Job) {
        let attempt = Attempt::from(job);
        // It may have waited for hours.
        let holds = match &attempt.message {
            Message::Notice(notice) => self.around.still_holds(notice).unwrap_or(true),
            Message::Summary(_) => true,
        };
        if !holds {
            return self.end(&attempt, Outcome::Outdated, None);
        }
        crash_point("notify.deliver");
        let links = self.links_for(&attempt.message);
        let delivery = self.target.deliver(&attempt.message, &links, self.around.clock.now());
        crash_point("notify.delivered");
        match delivery {
            Delivery::Delivered => self.end(&attempt, Outcome::Delivered, None),
            Delivery::Refused { why } => self.end(&attempt, Outcome::Refused, Some(why)),
            Delivery::Retry { after, why } => {
                let (now, failures) = (self.around.clock.now(), attempt.failures.saturating_add(1));
                let chance = random().map_or(0, |bits| bits as u32);
                match next_attempt(attempt.since, failures, after, now, chance) {
                    Some(next) => {
                        let sink = self.target.name().to_owned();
                        let (n, at) = (attempt.n, now);
                        self.hub.write(vec![Entry::Attempt { sink, n, at, failures, next, why }]);
                    }
                    None => self.end(&attempt, Outcome::GivenUp, Some(why)),
                }
            }
        }
    }

    fn links_for(&self, message: &Message) -> Vec<AnswerLink> {
        let Message::Notice(notice) = message else { return Vec::new() };
        match (notice.session_id, &notice.question) {
            (Some(session), Some(question)) if self.target.carries_links() => {
                self.links.mint(session, question.wait_id, self.target.name())
            }
            _ => Vec::new(),
        }
    }

    fn end(&self, attempt: &Attempt, outcome: Outcome, why: Option<String>) {
        let Attempt { n, message, failures, .. } = attempt;
        let sink = self.target.name();
        if let (Outcome::Refused | Outcome::GivenUp, Some(why)) = (outcome, &why) {
            tracing::warn!(sink, event = message.event_id(), "a notification is not delivered: {why}");
        }
        let told = Told::new(sink, *n, message, self.around.clock.now(), outcome);
        self.hub.write(vec![Entry::Told(Told { failures: *failures, why, ..told })]);
    }
}
