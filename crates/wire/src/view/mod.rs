//! Views: what the daemon shows, in the shapes that callers rely on. Fields may be added, none of these goes. One that is
//! added is read with a default: a daemon of an earlier version does not send it.

mod daemon;
mod log;
mod receipt;
mod session;
mod wait;

pub use daemon::{About, HolderList, HolderState, HolderView};
pub use log::{LogDamage, LogPage};
pub use receipt::{AnswerTaken, MessageTaken, ResumeMethod, Resumed, TokenShown};
pub use session::{
    Connection, Health, HealthState, RunState, RunView, SessionList, SessionView, UncertainCall,
    UncertainView,
};
pub use wait::{WaitKind, WaitList, WaitState, WaitView};
