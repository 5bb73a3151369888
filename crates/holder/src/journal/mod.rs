//! What went through a holder, on disk: every line of the agent and every accepted input, in one sequence.
//!
//! A journal is a directory of segments. Only the holder writes them; anyone may read them at any time, and
//! reading a live journal is the same as reading a dead one. `docs/holder-protocol.md` has the format.

mod fault;
mod header;
mod items;
mod reader;
mod record;
mod writer;

pub use items::{Item, Items};
pub use reader::{Damage, JournalReader, Step};
pub use record::{Body, Ctl, Delivery, InputHead, OutFlags, Part, Record, hex, unhex};
pub use writer::{Appended, JournalWriter, SMALL};

/// Largest payload of one record: longer lines and inputs are split. It is what a pipe holds, so a larger one
/// would only wait longer in memory.
pub const MAX_PAYLOAD: usize = 64 << 10;

/// Longest line that is kept whole; of a longer one the beginning is kept, and marked.
pub const MAX_LINE: u64 = 64 << 20;

/// A segment that has reached this size is followed by another.
pub const SEGMENT_BYTES: u64 = 16 << 20;
