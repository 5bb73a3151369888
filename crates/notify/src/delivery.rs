//! What became of an attempt to deliver a message.

use std::time::Duration;

/// The outcome of one attempt. The reasons are for a log: they have no secret in them, and of an address only scheme and host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delivery {
    /// The receiver has it.
    Delivered,
    /// It may work later; whether the receiver has it is not always known.
    Retry {
        /// How long the receiver wants to be left alone.
        after: Option<Duration>,
        /// Why it did not work.
        why: String,
    },
    /// It would not work later either.
    Refused {
        /// Why it did not work.
        why: String,
    },
}

impl Delivery {
    /// Returns why it did not work, if it did not.
    pub fn into_why(self) -> Option<String> {
        match self {
            Delivery::Delivered => None,
            Delivery::Retry { why, .. } | Delivery::Refused { why } => Some(why),
        }
    }

    pub(crate) fn retry(why: impl Into<String>) -> Delivery {
        Delivery::Retry { after: None, why: why.into() }
    }

    pub(crate) fn refused(why: impl Into<String>) -> Delivery {
        Delivery::Refused { why: why.into() }
    }
}
