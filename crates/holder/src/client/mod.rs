//! The supervisor's side of a holder: making one, finding those that are there, speaking to a living one, and
//! taking over what a dead one left.

mod connect;
mod control;
mod executable;
mod follow;
mod handshake;
mod harvest;
mod inspect;
mod lock;
mod remove;
mod runtime;
mod scope;
mod socket;
mod spawn;
mod talk;
#[cfg(test)]
mod testing;

pub use crate::file_ops::PathError;
pub use connect::ConnectError;
pub use control::{Accepted, Control, PART_BYTES, TurnHint};
pub use executable::{Executable, InstallError, install_executable};
pub use follow::{FollowError, Follower};
pub use harvest::{Harvest, HarvestError, Started, harvest, harvest_under};
pub use inspect::{
    FileContents, Inspection, Keeper, LockState, highest_epoch, inspect, inspect_all, inspect_each, list,
};
pub use lock::{DirLock, LockError};
pub use remove::{RemoveError, remove, remove_leftovers, remove_under};
pub use runtime::{RuntimeDirError, runtime_dir, runtime_dir_or_another};
pub use scope::{Scopes, manager_listens, scope_name, start_apart};
pub use spawn::{
    MAX_SOCKET_PATH, PrepareError, Prepared, SpawnError, Spawned, Spec, fingerprint, is_made_for, prepare,
    start,
};
pub use talk::RequestError;
