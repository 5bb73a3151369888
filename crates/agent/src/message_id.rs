//! The names of messages that agents say.

use rekindle_domain::id::{HolderId, MessageId};

/// Returns the name of a message: a function of the holder and of the journal record where it begins, so that
/// reading a journal again gives the same names.
///
/// FNV-1a of the holder's id, plus the record's number: names of one holder sort as its messages do.
pub fn message_id(holder: HolderId, first: u64) -> MessageId {
    const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    let hash =
        holder.as_str().bytes().fold(OFFSET, |hash, byte| (hash ^ u128::from(byte)).wrapping_mul(PRIME));
    MessageId::from_ulid(hash.wrapping_add(first.into()))
}
