//! The rows about the daemon: the real executables, in a home of their own, spoken to over the socket. Agents are this
//! binary itself.

pub(crate) mod accept;
pub(crate) mod begin;
pub(crate) mod change;
pub(crate) mod command;
pub(crate) mod crowd;
pub(crate) mod fleet;
pub(crate) mod looks;
pub(crate) mod memory;
pub(crate) mod turn;
pub(crate) mod words;
