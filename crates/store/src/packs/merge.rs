//! Small packs are taken into a new one, so that a thousand small captures do not make a thousand packs to look into.

use std::collections::HashSet;
use std::sync::Arc;

use rekindle_domain::blob_id::BlobId;

use super::index::Row;
use super::pack::{Pack, Stored};
use super::pins::Pins;
use super::table::Packs;
use super::writer::PackWriter;
use crate::blob_error::BlobError;

/// Packs below this size are small: as many as may come together are read and written in some milliseconds.
pub(crate) const SMALL_PACK: u64 = 1 << 20;

/// So many small packs become one.
pub(crate) const MERGE_AT: usize = 16;

/// Copies the objects of the small packs to a pack that is being written, if there are many; returns the packs that need not stay.
pub(crate) fn take_in_small_packs(
    packs: &Packs,
    writer: &mut PackWriter,
    seen: &mut HashSet<BlobId>,
    pins: &Pins,
) -> Result<Vec<Arc<Pack>>, BlobError> {
    let is_small = |pack: &&Arc<Pack>| {
        pack.is_whole && pack.index.pack_len() < SMALL_PACK && pack.pins() <= usize::from(pins.has(pack))
    };
    let small: Vec<Arc<Pack>> = packs.read_table().iter().filter(is_small).cloned().collect();
    if small.len() + 1 < MERGE_AT || writer.len() >= SMALL_PACK {
        return Ok(Vec::new());
    }
    let mut taken = Vec::new();
    for pack in small {
        let Ok(rows) = pack.index.rows_by_offset() else { continue };
        if copy(packs, &pack, &rows, writer, seen)? == Copied::All {
            taken.push(pack);
        }
    }
    Ok(taken)
}

/// What came of copying a pack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Copied {
    /// Everything is in the new pack.
    All,
    /// Something cannot be read, or does not fit: the pack has to stay.
    Some,
}

/// Copies objects to a pack that is being written, as they are stored, each checked. Fails only if they cannot be written.
pub(crate) fn copy(
    packs: &Packs,
    pack: &Pack,
    rows: &[Row],
    writer: &mut PackWriter,
    seen: &mut HashSet<BlobId>,
) -> Result<Copied, BlobError> {
    let path = packs.layout.pack(&pack.id);
    let Ok(file) = packs.file(pack.id) else { return Ok(Copied::Some) };
    for row in rows {
        if seen.contains(&row.id) {
            continue;
        }
        match Stored::read(&*file, row, &path) {
            Ok(stored) if writer.has_room(row.stored as usize) => writer.append_stored(row, &stored)?,
            Ok(_) | Err(_) => return Ok(Copied::Some),
        }
        seen.insert(row.id);
    }
    Ok(Copied::All)
}
