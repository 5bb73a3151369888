//! The refusal of an event that cannot follow what came before it.

/// An illegal transition: an event that cannot follow what came before it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind} is not possible here: {why}")]
pub struct IllegalTransition {
    /// The event's kind.
    pub kind: String,
    /// Why it cannot follow.
    pub why: String,
}
