//! What notifications are delivered to, and who makes the links in them: seams, so that tests script both.

use std::fmt;

use rekindle_domain::id::{SessionId, WaitId};
use rekindle_domain::time::Timestamp;
use rekindle_notify::{AnswerLink, Delivery, Message, Notice, RateLimit, Sink, Wanted};

use crate::answer_links::AnswerLinks;

/// A target of notifications: a sink of the configuration.
pub trait Target: fmt::Debug + Send + Sync {
    /// Returns its name.
    fn name(&self) -> &str;
    /// Decides what becomes of a notice here.
    fn wants(&self, notice: &Notice, attended: bool, now: Timestamp) -> Wanted;
    /// Returns its rate limit, as it is before the first message.
    fn rate_limit(&self) -> RateLimit;
    /// Tells whether links to answer by are any use here.
    fn carries_links(&self) -> bool;
    /// Tries once to deliver a message, in bounded time.
    fn deliver(&self, message: &Message, links: &[AnswerLink], now: Timestamp) -> Delivery;
}

impl Target for Sink {
    fn name(&self) -> &str {
        Sink::name(self)
    }

    fn wants(&self, notice: &Notice, attended: bool, now: Timestamp) -> Wanted {
        Sink::wants(self, notice, attended, now)
    }

    fn rate_limit(&self) -> RateLimit {
        Sink::rate_limit(self)
    }

    fn carries_links(&self) -> bool {
        Sink::carries_links(self)
    }

    fn deliver(&self, message: &Message, links: &[AnswerLink], now: Timestamp) -> Delivery {
        Sink::deliver(self, message, links, now)
    }
}

/// Makes links that answer a wait. They are made for each attempt to deliver, and kept nowhere.
pub(crate) trait LinkMint: Send + Sync {
    /// Makes the links of an open wait for one target; those made for it before are good for nothing then. None if there can be none.
    fn mint(&self, session: SessionId, wait: WaitId, target: &str) -> Vec<AnswerLink>;
}

/// Where this daemon has no address that people elsewhere know, there are no links.
pub(crate) struct NoLinks;

impl LinkMint for NoLinks {
    fn mint(&self, _: SessionId, _: WaitId, _: &str) -> Vec<AnswerLink> {
        Vec::new()
    }
}

impl LinkMint for AnswerLinks {
    fn mint(&self, session: SessionId, wait: WaitId, target: &str) -> Vec<AnswerLink> {
        match AnswerLinks::mint(self, session, wait, &format!("notify:{target}")) {
            Ok(minted) => minted.links,
            // The question is told all the same: it can be answered elsewhere.
            Err(error) => {
                tracing::warn!(%session, %wait, "answer links cannot be created: {}", error.text());
                Vec::new()
            }
        }
    }
}
