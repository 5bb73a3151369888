//! The bytes of a bundle: headers of a tar archive as we write them, and the hash behind everything. A header has one form for a name
//! and a size, so that a reader who knows both compares it and parses nothing: links, devices, other modes and longer names cannot
//! be said.

use std::io::{self, Read, Write};

use rekindle_domain::blob_id::BlobId;

/// What a tar archive consists of.
pub(super) const BLOCK: usize = 512;

/// Two blocks of zeros end an archive.
pub(super) const END: [u8; 2 * BLOCK] = [0; 2 * BLOCK];

/// Longest name that a header has room for.
const MAX_NAME: usize = 100;

/// Sizes from here on do not fit into eleven octal digits.
const OCTAL_BELOW: u64 = 1 << 33;

/// Returns the header of a regular file: mode 0600, no owner, no time.
pub(super) fn header(name: &str, size: u64) -> io::Result<[u8; BLOCK]> {
    let mut header = [0; BLOCK];
    let too_long = || io::Error::new(io::ErrorKind::InvalidFilename, "the name of a member is too long");
    header
        .get_mut(..name.len())
        .filter(|_| name.len() <= MAX_NAME)
        .ok_or_else(too_long)?
        .copy_from_slice(name.as_bytes());
    header[100..108].copy_from_slice(b"0000600\0");
    header[108..116].copy_from_slice(b"0000000\0");
    header[116..124].copy_from_slice(b"0000000\0");
    if size < OCTAL_BELOW {
        header[124..136].copy_from_slice(format!("{size:011o}\0").as_bytes());
    } else {
        // As GNU tar has it, and whoever reads tar archives understands.
        header[124] = 0x80;
        header[128..136].copy_from_slice(&size.to_be_bytes());
    }
    header[136..148].copy_from_slice(b"00000000000\0");
    header[148..156].copy_from_slice(b"        ");
    header[156] = b'0';
    header[257..265].copy_from_slice(b"ustar\x0000");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    Ok(header)
}

/// Reads the size that a header says, whatever else it says.
pub(super) fn size_in(header: &[u8; BLOCK]) -> Option<u64> {
    if header[124] == 0x80 {
        return header[128..136].try_into().ok().map(u64::from_be_bytes);
    }
    let digits = std::str::from_utf8(&header[124..135]).ok()?;
    u64::from_str_radix(digits, 8).ok()
}

/// Returns how many zeros follow a member of this size.
pub(super) fn padding(size: u64) -> usize {
    ((BLOCK as u64 - size % BLOCK as u64) % BLOCK as u64) as usize
}

/// How the frame behind everything begins: a frame that whoever decompresses passes over, and its length.
const TRAILER_HEAD: [u8; 8] = [0x5b, 0x2a, 0x4d, 0x18, 32, 0, 0, 0];

/// Length of that frame.
pub(super) const TRAILER: usize = TRAILER_HEAD.len() + 32;

/// Returns the frame behind everything, which has the hash of all bytes before it.
pub(super) fn trailer(hash: &blake3::Hash) -> [u8; TRAILER] {
    let mut trailer = [0; TRAILER];
    trailer[..8].copy_from_slice(&TRAILER_HEAD);
    trailer[8..].copy_from_slice(hash.as_bytes());
    trailer
}

/// Tells whether the last bytes of a file are such a frame.
pub(super) fn is_trailer(bytes: &[u8]) -> bool {
    bytes.len() == TRAILER && bytes.starts_with(&TRAILER_HEAD)
}

/// Hashes and counts whatever passes through.
pub(super) struct Hashing<T> {
    pub(super) inner: T,
    hasher: blake3::Hasher,
    /// How many bytes have passed.
    pub(super) count: u64,
}

impl<T> Hashing<T> {
    pub(super) fn new(inner: T) -> Hashing<T> {
        Hashing { inner, hasher: blake3::Hasher::new(), count: 0 }
    }

    pub(super) fn hash(&self) -> blake3::Hash {
        self.hasher.finalize()
    }

    /// Returns the hash as the name of a blob.
    pub(super) fn id(&self) -> BlobId {
        BlobId::from_bytes(*self.hash().as_bytes())
    }
}

impl<T: Read> Read for Hashing<T> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buf)?;
        self.hasher.update(&buf[..read]);
        self.count += read as u64;
        Ok(read)
    }
}

impl<T: Write> Write for Hashing<T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.hasher.update(&bytes[..written]);
        self.count += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}
