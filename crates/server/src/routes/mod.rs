//! Handlers, a file for each thing they are about. Each translates one request into one call of the daemon.

pub(crate) mod daemon;
pub(crate) mod sessions;
pub(crate) mod waits;
