//! Reading logs: forward from any record, backward from the end, and following one as it grows.
//! Never the whole file at once, never more than one line's limit in memory.

mod block_before;
mod chain;
mod compress;
mod compressed;
mod cursor;
mod damage;
mod follow;
mod joined_file;
mod reader;
mod walk;
mod walk_batches;

pub(crate) use chain::{broken_before, broken_between};
pub(crate) use compress::compress;
pub(crate) use compressed::decompress;
pub use cursor::Cursor;
pub use damage::{Damage, Torn};
pub use follow::{Follow, Follower};
pub use reader::{LogForm, LogReader, RawLine, StoredBytes};
pub(crate) use walk::{Replays, Stop, walk, walk_each};
pub(crate) use walk_batches::{Checked, ReplaysChecked, walk_batches};
