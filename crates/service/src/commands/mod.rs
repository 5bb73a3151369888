//! Requests handled: what is asked of a session becomes records, and a worker does the rest.

pub(crate) mod answers;
pub(crate) mod cancel;
pub(crate) mod messages;
pub(crate) mod sessions;
pub(crate) mod tokens;
pub(crate) mod waits;
