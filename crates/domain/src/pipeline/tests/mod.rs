//! Pipeline runs: what may follow in a ledger, what follows a step, what is recorded together, and what is done next.

mod compose;
mod fold;
mod next_step;
mod properties;
pub(super) mod script;
mod summary;
