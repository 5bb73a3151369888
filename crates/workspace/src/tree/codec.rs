//! The bytes of a tree object, written and read. There is one way to write a directory, so that equal directories have equal
//! names; everything else is refused on reading, with the place where it went wrong.

use rekindle_domain::blob_id::BlobId;

use super::name::{NameError, check_name};
use super::{Entry, FileMode, MAX_FILE_SIZE, MAX_TARGET_BYTES, MAX_TREE_BYTES, Node};

/// What every tree object begins with.
/// What every tree object begins with.
pub const MAGIC: &[u8] = b"rktree1\n";

/// Length of a hash in a tree object.
const HASH_BYTES: usize = 32;

/// A tree object that cannot be read or written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the tree object is not valid at byte {offset}: {wrong}")]
pub struct TreeError {
    /// Where it went wrong: the byte at which the bad part begins.
    pub offset: usize,
    /// What is wrong there.
    pub wrong: Wrong,
}

/// What is wrong with a tree object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Wrong {
    /// It does not begin as a tree object does.
    #[error("it does not begin with `rktree1`")]
    Magic,
    /// It has more than [`MAX_TREE_BYTES`].
    #[error("it is too large for a tree object")]
    TooLarge,
    /// It ends in the middle of an entry.
    #[error("it ends in the middle of an entry")]
    CutOff,
    /// An entry begins with a letter that is no type.
    #[error("an entry of an unknown type")]
    Type,
    /// A number is not in its shortest form, or does not fit into 64 bits.
    #[error("a number that is not in its shortest form or too large")]
    Number,
    /// A name that no entry may have.
    #[error(transparent)]
    Name(#[from] NameError),
    /// Names are not in the order of their bytes.
    #[error("the names are not sorted")]
    Unsorted,
    /// Two entries have the same name.
    #[error("two entries have the same name")]
    Duplicate,
    /// A file that no file system could have.
    #[error("a file that is too large")]
    FileSize,
    /// A link to nothing, to a path that is too long, or with a NUL byte in it.
    #[error("the target of a link is empty, too long or contains a NUL byte")]
    Target,
}

/// A directory as a tree object: bytes that have been checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree(Vec<u8>);

impl Tree {
    /// Checks the bytes of a tree object. They are kept as they are; nothing is allocated for them.
    pub fn parse(bytes: Vec<u8>) -> Result<Tree, TreeError> {
        check(&bytes)?;
        Ok(Tree(bytes))
    }

    /// Returns the object's bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the object's name: the tree hash, if this is the root of a workspace.
    pub fn id(&self) -> BlobId {
        BlobId::of(&self.0)
    }

    /// Returns the entries in the order of their names' bytes.
    pub fn entries(&self) -> Entries<'_> {
        Entries(Reader { bytes: &self.0, at: MAGIC.len() })
    }

    /// Returns where the first entry begins.
    pub(crate) fn start(&self) -> usize {
        MAGIC.len()
    }

    /// Returns the entry that begins at a byte, and where the next one does; none at the end.
    pub(crate) fn entry_at(&self, at: usize) -> Option<(Entry<'_>, usize)> {
        let mut entries = Entries(Reader { bytes: &self.0, at });
        entries.next().map(|entry| (entry, entries.0.at))
    }

    /// Returns the entry of a name.
    pub fn get(&self, name: &[u8]) -> Option<Entry<'_>> {
        self.entries().find(|entry| entry.name >= name).filter(|entry| entry.name == name)
    }
}

/// The entries of a tree object, in order.
#[derive(Debug, Clone)]
pub struct Entries<'a>(Reader<'a>);

impl<'a> Iterator for Entries<'a> {
    type Item = Entry<'a>;

    fn next(&mut self) -> Option<Entry<'a>> {
        // The bytes were checked when the tree was made.
        (!self.0.is_at_end()).then(|| self.0.entry().expect("a tree has been checked"))
    }
}

/// Writes a tree object, entry by entry, in the order of their names' bytes.
#[derive(Debug)]
pub struct TreeBuilder {
    bytes: Vec<u8>,
    /// Where the last name is.
    last: std::ops::Range<usize>,
}

impl Default for TreeBuilder {
    fn default() -> TreeBuilder {
        TreeBuilder { bytes: MAGIC.to_vec(), last: 0..0 }
    }
}

impl TreeBuilder {
    /// Returns the builder of a directory that is empty so far.
    pub fn new() -> TreeBuilder {
        TreeBuilder::default()
    }

    /// Adds an entry. One that would be refused on reading is refused here, and the tree stays as it was.
    pub fn push(&mut self, entry: &Entry<'_>) -> Result<(), TreeError> {
        let before = self.bytes.len();
        self.try_push(entry).map_err(|wrong| {
            self.bytes.truncate(before);
            TreeError { offset: before, wrong }
        })
    }

    fn try_push(&mut self, entry: &Entry<'_>) -> Result<(), Wrong> {
        check_name(entry.name)?;
        check_order(&self.bytes[self.last.clone()], entry.name)?;
        self.bytes.push(entry.node.letter());
        write_number(&mut self.bytes, entry.name.len() as u64);
        let start = self.bytes.len();
        self.bytes.extend_from_slice(entry.name);
        let name = start..self.bytes.len();
        match entry.node {
            Node::File { size, content, .. } => {
                check_size(size)?;
                write_number(&mut self.bytes, size);
                self.bytes.extend_from_slice(content.as_bytes());
            }
            Node::Link { target } => {
                check_target(target)?;
                write_number(&mut self.bytes, target.len() as u64);
                self.bytes.extend_from_slice(target);
            }
            Node::Directory { tree } => self.bytes.extend_from_slice(tree.as_bytes()),
        }
        if self.bytes.len() as u64 > MAX_TREE_BYTES {
            return Err(Wrong::TooLarge);
        }
        self.last = name;
        Ok(())
    }

    /// Returns the tree.
    pub fn finish(self) -> Tree {
        Tree(self.bytes)
    }
}

fn check(bytes: &[u8]) -> Result<(), TreeError> {
    if bytes.len() as u64 > MAX_TREE_BYTES {
        return Err(TreeError { offset: MAX_TREE_BYTES as usize, wrong: Wrong::TooLarge });
    }
    if !bytes.starts_with(MAGIC) {
        return Err(TreeError { offset: 0, wrong: Wrong::Magic });
    }
    let mut reader = Reader { bytes, at: MAGIC.len() };
    let mut last: &[u8] = b"";
    while !reader.is_at_end() {
        let start = reader.at;
        let entry = reader.entry().map_err(|wrong| TreeError { offset: reader.at, wrong })?;
        let named = check_name(entry.name).map_err(Wrong::Name).and_then(|()| check_order(last, entry.name));
        named.map_err(|wrong| TreeError { offset: start, wrong })?;
        last = entry.name;
    }
    Ok(())
}

/// Checks that a name follows the last one; the first follows the empty name, which no entry has.
fn check_order(last: &[u8], name: &[u8]) -> Result<(), Wrong> {
    match last.cmp(name) {
        std::cmp::Ordering::Less => Ok(()),
        std::cmp::Ordering::Equal => Err(Wrong::Duplicate),
        std::cmp::Ordering::Greater => Err(Wrong::Unsorted),
    }
}

fn check_size(size: u64) -> Result<(), Wrong> {
    if size > MAX_FILE_SIZE { Err(Wrong::FileSize) } else { Ok(()) }
}

fn check_target(target: &[u8]) -> Result<(), Wrong> {
    let fits = (1..=MAX_TARGET_BYTES).contains(&target.len()) && !target.contains(&0);
    if fits { Ok(()) } else { Err(Wrong::Target) }
}

/// Writes a number in base 128, least significant group first.
fn write_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// A place in the bytes of a tree object. After an error it stands where the bad part begins.
#[derive(Debug, Clone)]
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn is_at_end(&self) -> bool {
        self.at == self.bytes.len()
    }

    fn entry(&mut self) -> Result<Entry<'a>, Wrong> {
        let mode = match self.bytes.get(self.at).ok_or(Wrong::CutOff)? {
            b'f' => Some(FileMode::Plain),
            b'x' => Some(FileMode::Executable),
            b'p' => Some(FileMode::Private),
            b'q' => Some(FileMode::PrivateExecutable),
            b'l' | b'd' => None,
            _ => return Err(Wrong::Type),
        };
        let is_link = self.bytes[self.at] == b'l';
        self.at += 1;
        let name = self.text(super::MAX_NAME_BYTES, Wrong::Name(NameError::TooLong))?;
        let node = match mode {
            Some(mode) => {
                let start = self.at;
                let size = self.number()?;
                check_size(size).inspect_err(|_| self.at = start)?;
                Node::File { mode, size, content: self.hash()? }
            }
            None if is_link => {
                let start = self.at;
                let target = self.text(MAX_TARGET_BYTES, Wrong::Target)?;
                check_target(target).inspect_err(|_| self.at = start)?;
                Node::Link { target }
            }
            None => Node::Directory { tree: self.hash()? },
        };
        Ok(Entry { name, node })
    }

    fn number(&mut self) -> Result<u64, Wrong> {
        let mut number = 0_u64;
        for (index, byte) in self.bytes[self.at..].iter().enumerate() {
            let group = u64::from(byte & 0x7f);
            // The tenth group has room for one bit; a last group of zero says nothing.
            if index > 9 || (index == 9 && group > 1) || (index > 0 && *byte == 0) {
                return Err(Wrong::Number);
            }
            number |= group << (7 * index);
            if byte & 0x80 == 0 {
                self.at += index + 1;
                return Ok(number);
            }
        }
        Err(Wrong::CutOff)
    }

    fn text(&mut self, max: usize, too_long: Wrong) -> Result<&'a [u8], Wrong> {
        let start = self.at;
        let length = self.number()?;
        if length > max as u64 {
            self.at = start;
            return Err(too_long);
        }
        self.take(length as usize)
    }

    fn hash(&mut self) -> Result<BlobId, Wrong> {
        let bytes = self.take(HASH_BYTES)?;
        Ok(BlobId::from_bytes(bytes.try_into().expect("as many bytes as a hash has")))
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], Wrong> {
        let taken = self.bytes[self.at..].get(..count).ok_or(Wrong::CutOff)?;
        self.at += count;
        Ok(taken)
    }
}
