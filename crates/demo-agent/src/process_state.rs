//! The state of the process: what lasts from turn to turn, and from one image of the process to the next.

use serde::{Deserialize, Serialize};

/// The state of the process.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct ProcessState {
    /// The id of our next request.
    pub(crate) next_id: u64,
    /// Ids begin at 0 in every turn.
    pub(crate) repeat_ids: bool,
    /// The end of stdin is not ours.
    pub(crate) linger: bool,
    /// The protocol version agreed on.
    pub(crate) protocol: u16,
    /// Somebody has authenticated.
    pub(crate) logged_in: bool,
}
