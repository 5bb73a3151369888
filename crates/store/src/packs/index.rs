//! The index of a pack: the names of its objects, sorted, and where they are. It is named by its own hash, and can be made
//! again from its pack, to the byte.

use std::io;

use rekindle_domain::blob_id::BlobId;

use super::format::{HEADER, MAGIC as PACK_MAGIC, MAX_OBJECTS, MAX_PACK, PackId};
use crate::disk::{DiskFile, read_exact_at};

/// How an index begins.
const MAGIC: &[u8; 8] = b"rkpidx1\n";

/// Length of what comes before the rows.
const HEAD: usize = 16;

/// Length of a row.
pub(crate) const ROW: usize = 40;

/// Longest index.
pub(crate) const MAX_INDEX: u64 = (HEAD + MAX_OBJECTS * ROW) as u64;

/// Rows that share a slot of the table of beginnings, on average: so few that they are in one or two lines of the processor's cache.
const ROWS_OF_A_SLOT: usize = 4;

/// Where an object is in a pack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Row {
    /// Its name.
    pub(crate) id: BlobId,
    /// Where its header is.
    pub(crate) offset: u32,
    /// How many bytes are stored behind the header.
    pub(crate) stored: u32,
}

impl Row {
    fn read(bytes: &[u8]) -> Row {
        let mut id = [0; 32];
        id.copy_from_slice(&bytes[..32]);
        let number = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        Row { id: BlobId::from_bytes(id), offset: number(32), stored: number(36) }
    }

    /// Returns where the object ends.
    pub(crate) fn end(&self) -> u64 {
        u64::from(self.offset) + HEADER as u64 + u64::from(self.stored)
    }
}

/// Returns the bytes of an index; the rows are sorted for it.
pub(crate) fn encode(rows: &mut [Row], pack_len: u64) -> Vec<u8> {
    rows.sort_unstable_by_key(|row| row.id);
    let mut bytes = Vec::with_capacity(HEAD + rows.len() * ROW);
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&(rows.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&(pack_len as u32).to_le_bytes());
    for row in rows {
        bytes.extend_from_slice(row.id.as_bytes());
        bytes.extend_from_slice(&row.offset.to_le_bytes());
        bytes.extend_from_slice(&row.stored.to_le_bytes());
    }
    bytes
}

/// An index, checked.
pub(crate) struct Index {
    count: usize,
    pack_len: u64,
    /// Where the rows of each slot begin, by the first bits of a name; one more than there are slots.
    slots: Vec<u32>,
    /// How many bits of a name choose its slot.
    bits: u32,
    rows: Rows,
}

/// Where the rows are.
enum Rows {
    /// In memory.
    Here(Vec<u8>),
    /// In the index's file: there are too many for the memory that indexes may take.
    File(Box<dyn DiskFile>),
}

fn slot_of(id: &BlobId, bits: u32) -> usize {
    let [a, b, c, d, ..] = *id.as_bytes();
    (u64::from(u32::from_be_bytes([a, b, c, d])) >> (32 - bits)) as usize
}

impl Index {
    /// Reads an index. `name` is that of its pack, and the hash that the index must have.
    pub(crate) fn read(bytes: Vec<u8>, name: Option<PackId>) -> Result<Index, String> {
        if name.is_some_and(|name| PackId::of_index(&bytes) != name) {
            return Err("it does not match the hash in its name".into());
        }
        if bytes.len() < HEAD || &bytes[..8] != MAGIC {
            return Err("it does not start like an index".into());
        }
        let number = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let (count, pack_len) = (number(8) as usize, u64::from(number(12)));
        if count > MAX_OBJECTS || pack_len > MAX_PACK || bytes.len() != HEAD + count * ROW {
            return Err("its length is not what it says".into());
        }
        let bits = (count / ROWS_OF_A_SLOT).max(1).ilog2();
        let mut slots = vec![0_u32; (1 << bits) + 1];
        let mut before: Option<BlobId> = None;
        for row in bytes[HEAD..].chunks_exact(ROW).map(Row::read) {
            let begins = PACK_MAGIC.len() as u64;
            if before.is_some_and(|before| before >= row.id)
                || u64::from(row.offset) < begins
                || row.end() > pack_len
            {
                return Err("its rows are not sorted, or point outside the pack".into());
            }
            before = Some(row.id);
            slots[slot_of(&row.id, bits) + 1] += 1;
        }
        let mut sum = 0;
        for slot in &mut slots {
            sum += *slot;
            *slot = sum;
        }
        Ok(Index { count, pack_len, slots, bits, rows: Rows::Here(bytes) })
    }

    /// Gives up the memory of the rows; from now on they are read from the file.
    pub(crate) fn leave_on_disk(&mut self, file: Box<dyn DiskFile>) {
        self.rows = Rows::File(file);
    }

    /// Returns how many objects there are.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Returns how long the pack is.
    pub(crate) fn pack_len(&self) -> u64 {
        self.pack_len
    }

    /// Returns how much memory the rows take.
    pub(crate) fn memory(&self) -> usize {
        match &self.rows {
            Rows::Here(bytes) => bytes.len(),
            Rows::File(_) => 0,
        }
    }

    /// Looks for an object.
    pub(crate) fn find(&self, id: &BlobId) -> io::Result<Option<Row>> {
        let slot = slot_of(id, self.bits);
        let (from, to) = (self.slots[slot] as usize, self.slots[slot + 1] as usize);
        if from == to {
            return Ok(None);
        }
        match &self.rows {
            Rows::Here(bytes) => Ok(find_in(&bytes[HEAD + from * ROW..HEAD + to * ROW], id)),
            Rows::File(file) => {
                let mut bytes = vec![0; (to - from) * ROW];
                read_exact_at(&**file, &mut bytes, (HEAD + from * ROW) as u64)?;
                Ok(find_in(&bytes, id))
            }
        }
    }

    /// Returns all rows in the order of their place in the pack.
    pub(crate) fn rows_by_offset(&self) -> io::Result<Vec<Row>> {
        let mut rows: Vec<Row> = match &self.rows {
            Rows::Here(bytes) => bytes[HEAD..].chunks_exact(ROW).map(Row::read).collect(),
            Rows::File(file) => {
                let mut bytes = vec![0; self.count * ROW];
                read_exact_at(&**file, &mut bytes, HEAD as u64)?;
                bytes.chunks_exact(ROW).map(Row::read).collect()
            }
        };
        rows.sort_unstable_by_key(|row| row.offset);
        Ok(rows)
    }
}

fn find_in(rows: &[u8], id: &BlobId) -> Option<Row> {
    let row = |at: usize| &rows[at * ROW..(at + 1) * ROW];
    let (mut low, mut high) = (0, rows.len() / ROW);
    while low < high {
        let middle = (low + high) / 2;
        match row(middle)[..32].cmp(id.as_bytes()) {
            std::cmp::Ordering::Equal => return Some(Row::read(row(middle))),
            std::cmp::Ordering::Less => low = middle + 1,
            std::cmp::Ordering::Greater => high = middle,
        }
    }
    None
}
