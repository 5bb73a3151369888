//! Views of the daemon itself and of the holders of its home.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::string_enum::string_enums;

string_enums! {
    /// What a holder's directory tells.
    pub enum HolderState {
        /// Its lock is held.
        Lives = "lives",
        /// Its lock is held, and it does not answer.
        Silent = "silent",
        /// Nobody has its lock.
        Dead = "dead",
        /// It is a copy, or was made for another place.
        Copied = "copied",
        /// Its lock cannot be read.
        Unreadable = "unreadable",
    }
}

/// A page of holders.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct HolderList {
    /// The holders, by id.
    pub holders: Vec<HolderView>,
    /// The cursor of the next page; null if this is the last.
    pub next: Option<String>,
}

/// A holder.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Holder")]
pub struct HolderView {
    /// The holder.
    pub id: String,
    /// Its session, by its own word.
    pub session_id: Option<String>,
    /// What its directory tells.
    pub state: HolderState,
    /// No session of this home knows it.
    pub unknown: bool,
    /// Its process.
    pub pid: Option<i32>,
    /// Its agent's process.
    pub agent_pid: Option<i32>,
    /// What it was last heard of.
    pub phase: Option<String>,
    /// The epoch that commands it.
    pub epoch: Option<u64>,
    /// Versions of the protocol that it speaks.
    pub versions: Option<(u16, u16)>,
    /// Since when nobody is attached.
    pub detached_since: Option<String>,
    /// What is wrong with it.
    pub trouble: Option<String>,
}

/// What the daemon says of itself.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct About {
    /// The version.
    pub version: Cow<'static, str>,
    /// Its process.
    pub pid: u32,
    /// Its life.
    pub boot_id: String,
    /// Its epoch.
    pub epoch: u64,
    /// Its home.
    pub home: String,
    /// Which home that is, whatever its path: device and inode of its `daemon.lock`, as `DEVICE:INODE`. A copy has another.
    pub home_id: String,
    /// Everything that was in the home at the start is listed; very long logs may still be being read.
    pub listed: bool,
    /// Recovery is through with what it found at the start, long logs included.
    pub recovered: bool,
}
