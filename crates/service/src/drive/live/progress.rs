//! The progress of a session with a living agent: what one turn of the loop brought.

use rekindle_agent::said::Failure;
use rekindle_domain::id::{RunId, WaitId};

/// What a turn of the loop brought.
#[derive(Debug, Default)]
pub struct Progress {
    /// Waits that were opened.
    pub waits: Vec<WaitId>,
    /// The run that ended.
    pub ended: Option<RunId>,
    /// The agent is gone: its end is recorded.
    pub exited: bool,
    /// The connection is gone, and with it maybe the holder: only its lock tells.
    pub lost: bool,
    /// The holder has told something, or written to its journal: it is at work.
    pub heard: bool,
    /// There is more to read than one turn takes.
    pub more: bool,
    /// The agent does not want to be greeted, or makes no session: why.
    pub refused: Option<Failure>,
}
