//! The paths in a git index, versions 2, 3 and 4. Nothing but paths is read, and hashes are not verified: an index that
//! cannot be read costs the knowledge of what is tracked, and nothing else.

/// An index that could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum IndexError {
    /// It does not begin as an index does.
    #[error("it is not a git index")]
    Signature,
    /// A version that this does not know.
    #[error("its version is {0}, and only 2, 3 and 4 are understood")]
    Version(u32),
    /// It ends too early, or its entries make no sense.
    #[error("it is cut off or damaged")]
    Damaged,
}

/// What is known about a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tracked {
    /// The path itself is tracked; a directory: as a submodule.
    Itself,
    /// A path below it is.
    Below,
    /// Neither is.
    No,
}

/// The paths of an index, sorted.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct TrackedPaths {
    /// The paths, one after the other.
    bytes: Vec<u8>,
    /// Where each of them ends.
    ends: Vec<u32>,
    /// Name of the index that this one adds to, in hex: a split index.
    pub(super) shared: Option<String>,
}

impl TrackedPaths {
    /// Reads the paths of an index.
    pub fn parse(index: &[u8]) -> Result<TrackedPaths, IndexError> {
        // Names of objects have 20 bytes, or 32 in repositories that use SHA-256; the index does not say which.
        match parse(index, 20) {
            Err(IndexError::Damaged) => parse(index, 32),
            result => result,
        }
    }

    /// Returns how many paths there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns true if there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns the paths in order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).map(|index| self.path(index))
    }

    fn path(&self, index: usize) -> &[u8] {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]) as usize;
        &self.bytes[start..self.ends[index] as usize]
    }

    /// Returns the index of the first path that is not before `path`.
    fn lower_bound(&self, path: &[u8]) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.path(middle) < path { low = middle + 1 } else { high = middle }
        }
        low
    }

    pub(super) fn look_up(&self, path: &[u8], is_dir: bool) -> Tracked {
        let at = self.lower_bound(path);
        if at < self.len() && self.path(at) == path {
            return Tracked::Itself;
        }
        if is_dir {
            let below = [path, b"/"].concat();
            let at = self.lower_bound(&below);
            if at < self.len() && self.path(at).starts_with(&below) {
                return Tracked::Below;
            }
        }
        Tracked::No
    }

    /// Returns these paths and those of another index.
    pub(super) fn merged(&self, other: &TrackedPaths) -> TrackedPaths {
        let mut paths: Vec<&[u8]> = self.iter().chain(other.iter()).collect();
        paths.sort_unstable();
        paths.dedup();
        let mut merged = TrackedPaths::default();
        for path in paths {
            // Two indexes of less than 4 GiB each: what does not fit is left out rather than wrong.
            _ = merged.push(path);
        }
        merged
    }

    /// Returns the paths below a directory, as seen from there.
    pub(super) fn below(&self, directory: &[u8]) -> TrackedPaths {
        let mut inside = TrackedPaths::default();
        for path in self.iter().filter_map(|path| path.strip_prefix(directory)) {
            _ = inside.push(path);
        }
        inside
    }

    /// Returns a hash of the paths.
    pub(super) fn key(&self) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.bytes);
        for end in &self.ends {
            hasher.update(&end.to_le_bytes());
        }
        *hasher.finalize().as_bytes()
    }

    fn push(&mut self, path: &[u8]) -> Result<(), IndexError> {
        let end = u32::try_from(self.bytes.len() + path.len()).map_err(|_| IndexError::Damaged)?;
        self.bytes.extend_from_slice(path);
        self.ends.push(end);
        Ok(())
    }
}

/// Bytes of an entry before the name of its object: times, device, inode, mode, owner, size.
const STAT_BYTES: usize = 40;

/// The flag of an entry that has two more bytes of flags.
const EXTENDED: u16 = 0x4000;

fn parse(index: &[u8], hash_bytes: usize) -> Result<TrackedPaths, IndexError> {
    if !index.starts_with(b"DIRC") {
        return Err(IndexError::Signature);
    }
    let mut reader = Reader { bytes: index, at: 4 };
    let version = reader.u32()?;
    if !(2..=4).contains(&version) {
        return Err(IndexError::Version(version));
    }
    let count = reader.u32()?;
    let mut paths = TrackedPaths::default();
    let mut path = Vec::new();
    let mut is_sorted = true;
    for _ in 0..count {
        let start = reader.at;
        reader.take(STAT_BYTES + hash_bytes)?;
        let flags = reader.u16()?;
        if flags & EXTENDED != 0 {
            if version == 2 {
                return Err(IndexError::Damaged);
            }
            reader.take(2)?;
        }
        if version == 4 {
            let dropped = reader.offset()?;
            let kept = path.len().checked_sub(dropped).ok_or(IndexError::Damaged)?;
            path.truncate(kept);
            path.extend_from_slice(reader.until_nul()?);
        } else {
            path.clear();
            path.extend_from_slice(reader.until_nul()?);
            // An entry ends with one to eight NULs, so that the next begins at a multiple of eight.
            reader.at = start + (reader.at - start).next_multiple_of(8);
        }
        // A directory of a sparse checkout ends with a slash.
        let name = path.strip_suffix(b"/").unwrap_or(&path);
        // The entries of a split index that only replace others have no name; stages of a conflict repeat theirs.
        let last = paths.len().checked_sub(1).map(|last| paths.path(last));
        if !name.is_empty() && last != Some(name) {
            is_sorted &= last < Some(name);
            paths.push(name)?;
        }
    }
    paths.shared = reader.shared_index(hash_bytes)?;
    if is_sorted {
        return Ok(paths);
    }
    let shared = paths.shared.take();
    Ok(TrackedPaths { shared, ..paths.merged(&TrackedPaths::default()) })
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], IndexError> {
        let end = self.at.checked_add(count).ok_or(IndexError::Damaged)?;
        let taken = self.bytes.get(self.at..end).ok_or(IndexError::Damaged)?;
        self.at = end;
        Ok(taken)
    }

    fn u32(&mut self) -> Result<u32, IndexError> {
        Ok(u32::from_be_bytes(self.take(4)?.try_into().expect("four bytes were taken")))
    }

    fn u16(&mut self) -> Result<u16, IndexError> {
        Ok(u16::from_be_bytes(self.take(2)?.try_into().expect("two bytes were taken")))
    }

    fn until_nul(&mut self) -> Result<&'a [u8], IndexError> {
        let rest = self.bytes.get(self.at..).ok_or(IndexError::Damaged)?;
        let length = rest.iter().position(|byte| *byte == 0).ok_or(IndexError::Damaged)?;
        self.at += length + 1;
        Ok(&rest[..length])
    }

    /// Reads a number as packs write offsets: each further byte adds one before it is shifted in.
    fn offset(&mut self) -> Result<usize, IndexError> {
        let mut byte = self.take(1)?[0];
        let mut number = usize::from(byte & 0x7f);
        while byte & 0x80 != 0 {
            byte = self.take(1)?[0];
            number = number.checked_add(1).and_then(|n| n.checked_mul(128)).ok_or(IndexError::Damaged)?;
            number |= usize::from(byte & 0x7f);
        }
        Ok(number)
    }

    /// Returns the name of the shared index, if an extension says that there is one. What comes after the entries ends with
    /// the hash of everything.
    fn shared_index(&mut self, hash_bytes: usize) -> Result<Option<String>, IndexError> {
        let end = self.bytes.len().checked_sub(hash_bytes).ok_or(IndexError::Damaged)?;
        if self.at > end {
            return Err(IndexError::Damaged);
        }
        while self.at < end {
            let signature = self.take(4)?;
            let length = self.u32()? as usize;
            let content = self.take(length)?;
            if signature == b"link" {
                let name = content.get(..hash_bytes).ok_or(IndexError::Damaged)?;
                let digits = name.iter().map(|byte| format!("{byte:02x}")).collect();
                return Ok(name.iter().any(|byte| *byte != 0).then_some(digits));
            }
        }
        Ok(None)
    }
}
