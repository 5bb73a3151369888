//! The bytes of a pack: a mark, then objects one behind the other, each with a header that says everything about it.
//!
//! A reader needs nothing but the pack: whatever whole objects its beginning has can be read, wherever it ends.

use std::cell::RefCell;
use std::fmt;
use std::io;
use std::str::FromStr;

use rekindle_domain::blob_id::BlobId;

use crate::disk::{DiskFile, read_up_to};

/// How a pack begins.
pub(crate) const MAGIC: &[u8; 8] = b"rkpack1\n";

/// Length of the header of an object.
pub(crate) const HEADER: usize = 48;

/// Objects below this size go into packs; larger ones are files of their own. Most source files are far below it, and an
/// object this large is read in one go without a thought.
pub(crate) const PACK_BELOW: usize = 128 << 10;

/// Longest pack: offsets have 32 bits, and a pack that is mostly dead is copied as a whole.
pub(crate) const MAX_PACK: u64 = 1 << 30;

/// Most objects in a pack: its index is then 40 MiB at most.
pub(crate) const MAX_OBJECTS: usize = 1 << 20;

/// How much of a pack is read at a time.
const WINDOW: usize = 1 << 20;

/// The name of a pack: the beginning of the hash of its index, so that an index proves itself and a pack that has lost objects shows.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct PackId([u8; 16]);

impl PackId {
    /// Returns the name of the pack with this index.
    pub(crate) fn of_index(index: &[u8]) -> PackId {
        let hash = blake3::hash(index);
        let mut id = [0; 16];
        id.copy_from_slice(&hash.as_bytes()[..16]);
        PackId(id)
    }
}

impl fmt::Display for PackId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for PackId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl FromStr for PackId {
    type Err = ();
    fn from_str(text: &str) -> Result<PackId, ()> {
        let mut id = [0; 16];
        let digits = text.as_bytes();
        if digits.len() != 32 || !digits.iter().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f')) {
            return Err(());
        }
        for (byte, pair) in id.iter_mut().zip(digits.chunks(2)) {
            let pair = std::str::from_utf8(pair).map_err(drop)?;
            *byte = u8::from_str_radix(pair, 16).map_err(drop)?;
        }
        Ok(PackId(id))
    }
}

/// How the bytes of an object are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    /// As they are: they do not get smaller.
    Plain,
    /// One zstd frame.
    Zstd,
}

/// An object as it stands in a pack.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Object<'a> {
    /// Its name.
    pub(crate) id: BlobId,
    /// How its bytes are stored.
    pub(crate) method: Method,
    /// How many bytes it has.
    pub(crate) plain: usize,
    /// The bytes as they are stored.
    pub(crate) stored: &'a [u8],
}

impl Object<'_> {
    /// Returns its header.
    pub(crate) fn header(&self) -> [u8; HEADER] {
        let mut header = [0; HEADER];
        header[..32].copy_from_slice(self.id.as_bytes());
        let method = match self.method {
            Method::Plain => 0_u32,
            Method::Zstd => 1,
        };
        for (at, number) in [(32, method), (36, self.plain as u32), (40, self.stored.len() as u32)] {
            header[at..at + 4].copy_from_slice(&number.to_le_bytes());
        }
        let crc = checksum(&header, self.stored);
        header[44..].copy_from_slice(&crc.to_le_bytes());
        header
    }

    /// Returns its plain bytes, checked against its name.
    pub(crate) fn unpack(&self) -> Result<Vec<u8>, String> {
        let bytes = match self.method {
            Method::Plain => self.stored.to_vec(),
            Method::Zstd => decompress(self.stored, self.plain).map_err(|error| error.to_string())?,
        };
        if bytes.len() != self.plain || BlobId::of(&bytes) != self.id {
            return Err("its bytes do not match the hash in its header".into());
        }
        Ok(bytes)
    }
}

thread_local! {
    /// A context is worth keeping: to make one costs more than to unpack a small object.
    static DECOMPRESSOR: RefCell<Option<zstd::bulk::Decompressor<'static>>> = const { RefCell::new(None) };
}

fn decompress(stored: &[u8], plain: usize) -> io::Result<Vec<u8>> {
    DECOMPRESSOR.with_borrow_mut(|kept| match kept {
        Some(decompressor) => decompressor.decompress(stored, plain),
        none => none.insert(zstd::bulk::Decompressor::new()?).decompress(stored, plain),
    })
}

fn checksum(header: &[u8; HEADER], stored: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&header[..44]), stored)
}

/// What a header says, before anything is believed.
pub(crate) struct Header {
    bytes: [u8; HEADER],
    pub(crate) id: BlobId,
    method: u32,
    plain: u32,
    /// How many bytes are stored behind it.
    pub(crate) stored: u32,
}

impl Header {
    /// Reads a header; `bytes` has at least [`HEADER`] of them.
    pub(crate) fn read(bytes: &[u8]) -> Header {
        let mut own = [0; HEADER];
        own.copy_from_slice(&bytes[..HEADER]);
        let mut id = [0; 32];
        id.copy_from_slice(&own[..32]);
        let number = |at: usize| u32::from_le_bytes([own[at], own[at + 1], own[at + 2], own[at + 3]]);
        let (method, plain, stored) = (number(32), number(36), number(40));
        Header { bytes: own, id: BlobId::from_bytes(id), method, plain, stored }
    }

    /// Tells whether its lengths are possible at all: nothing longer is ever allocated or read.
    pub(crate) fn is_possible(&self) -> bool {
        (self.plain as usize) < PACK_BELOW && self.stored <= self.plain
    }

    /// Returns the object, if its checksum is right.
    pub(crate) fn object<'a>(&self, stored: &'a [u8]) -> Result<Object<'a>, String> {
        if checksum(&self.bytes, stored).to_le_bytes() != self.bytes[44..] {
            return Err("its checksum is wrong".into());
        }
        let method = match self.method {
            0 if self.stored == self.plain => Method::Plain,
            1 => Method::Zstd,
            other => return Err(format!("it is stored in an unknown format ({other})")),
        };
        Ok(Object { id: self.id, method, plain: self.plain as usize, stored })
    }
}

/// A step through a pack.
pub(crate) enum Step<'a> {
    /// An object whose checksum is right, and where its header is.
    Object(u64, Object<'a>),
    /// There is nothing more.
    End,
    /// From here on nothing is known: bytes that are no object, or only the beginning of one.
    Damaged {
        /// Where.
        offset: u64,
        /// Which object it seems to be.
        id: Option<BlobId>,
        /// What is wrong.
        detail: String,
    },
}

/// A walk through a pack, object by object, without its index and with bounded memory.
pub(crate) struct Scanner<'a> {
    file: &'a dyn DiskFile,
    len: u64,
    at: u64,
    window: Vec<u8>,
    window_at: u64,
}

impl<'a> Scanner<'a> {
    /// Begins behind the mark of a pack.
    pub(crate) fn new(file: &'a dyn DiskFile) -> io::Result<Scanner<'a>> {
        let len = file.stat()?.len;
        Ok(Scanner { file, len, at: 0, window: Vec::new(), window_at: 0 })
    }

    /// Returns what stands at an offset that an index knows.
    pub(crate) fn step_to(&mut self, offset: u64) -> io::Result<Step<'_>> {
        self.at = offset;
        self.step()
    }

    /// Returns the length of the pack.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Returns what comes next.
    pub(crate) fn step(&mut self) -> io::Result<Step<'_>> {
        let damaged = |offset, id, detail: &str| Ok(Step::Damaged { offset, id, detail: detail.to_owned() });
        if self.at == 0 {
            if self.fill(MAGIC.len())? != MAGIC {
                return damaged(0, None, "it does not start like a pack");
            }
            self.at = MAGIC.len() as u64;
        }
        let offset = self.at;
        if offset >= self.len {
            return Ok(Step::End);
        }
        let header = self.fill(HEADER)?;
        if header.len() < HEADER {
            return damaged(offset, None, "the header of an object is cut off");
        }
        let header = Header::read(header);
        if !header.is_possible() {
            return damaged(offset, None, "an object's header is missing");
        }
        let whole = HEADER + header.stored as usize;
        let bytes = self.fill(whole)?;
        if bytes.len() < whole {
            return damaged(offset, Some(header.id), "the object is cut off");
        }
        // Borrowed again, because the window must not be held while the position moves on.
        self.at = offset + whole as u64;
        let from = (offset - self.window_at) as usize;
        match header.object(&self.window[from + HEADER..from + whole]) {
            Ok(object) => Ok(Step::Object(offset, object)),
            Err(detail) => Ok(Step::Damaged { offset, id: Some(header.id), detail }),
        }
    }

    /// Returns so many bytes from the present position, fewer at the end.
    fn fill(&mut self, count: usize) -> io::Result<&[u8]> {
        let end = self.window_at + self.window.len() as u64;
        if self.at < self.window_at || self.at + count as u64 > end {
            self.window.resize(WINDOW, 0);
            let read = read_up_to(self.file, &mut self.window, self.at)?;
            self.window.truncate(read);
            self.window_at = self.at;
        }
        let from = (self.at - self.window_at) as usize;
        Ok(&self.window[from..self.window.len().min(from + count)])
    }
}
