//! Doing what was decided: an agent's journal becomes its session's log, and what the log says is to be sent is
//! sent. The rules are below, in the domain and the agent crate; here they meet files and processes.

pub mod live;
