//! The rows about holders. In each of them agents are this binary itself, and so are the raw programs' processes.

pub(crate) mod adopt;
pub(crate) mod latency;
pub(crate) mod memory;
pub(crate) mod start;
pub(crate) mod throughput;
