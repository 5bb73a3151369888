//! All that is on a disk: files by inode number, directories, counters. A copy is cheap, because bytes and
//! names are shared until one side changes them.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

use rekindle_store::disk::{Entry, EntryKind, OpenMode, Stat};

use super::content::{Content, Undo};
use super::errno::{EEXIST, EISDIR, ENOENT, ENOTDIR, ENOTEMPTY, os};
use super::names::{Naming, Node, ROOT, Tree};
use super::physics::Physics;
use crate::rng::Rng;

const FILE_MODE: u32 = 0o600;
const DIR_MODE: u32 = 0o700;

/// Forgotten inodes are looked for when this many have been made since the last time: rarely enough to cost
/// nothing, often enough that copies stay small.
const COLLECT_EVERY: u64 = 64;

/// Facts about an inode that are not its bytes. They are durable at once.
#[derive(Debug, Clone, Copy)]
pub(super) struct Facts {
    mode: u32,
    modified: u64,
}

#[derive(Debug, Clone)]
pub(super) struct File {
    pub(super) content: Content,
    facts: Facts,
}

/// The state of a disk, without those who use it.
#[derive(Debug, Clone)]
pub(super) struct Image {
    pub(super) tree: Tree,
    pub(super) files: BTreeMap<u64, File>,
    dir_facts: BTreeMap<u64, Facts>,
    next_inode: u64,
    collect_at: u64,
    /// The clock of `modified`: it goes up by one with each change.
    ticks: u64,
    /// Orders listings: callers may not count on any order.
    seed: u64,
    pub(super) ops: u64,
    pub(super) bytes_written: u64,
    pub(super) capacity: Option<u64>,
    pub(super) physics: Physics,
    pub(super) rng: Rng,
    /// The last operation, if it was a write.
    pub(super) last_write: Option<(u64, Undo)>,
}

impl Image {
    pub(super) fn new(seed: u64) -> Image {
        Image {
            tree: Tree::new(),
            files: BTreeMap::new(),
            dir_facts: BTreeMap::from([(ROOT, Facts { mode: DIR_MODE, modified: 0 })]),
            next_inode: ROOT + 1,
            collect_at: COLLECT_EVERY,
            ticks: 0,
            seed,
            ops: 0,
            bytes_written: 0,
            capacity: None,
            physics: Physics::default(),
            rng: Rng::new(seed),
            last_write: None,
        }
    }

    pub(super) fn open(&mut self, path: &Path, mode: OpenMode) -> io::Result<u64> {
        let (place, there) = self.tree.locate(path)?;
        match (there, mode) {
            (Some(Node::Dir(_)), _) => Err(os(EISDIR)),
            (Some(Node::File(_)), OpenMode::CreateNew) => Err(os(EEXIST)),
            (Some(Node::File(inode)), OpenMode::Read) => Ok(inode),
            (Some(Node::File(inode)), OpenMode::Write | OpenMode::Create | OpenMode::Replace) => {
                if mode == OpenMode::Replace {
                    self.edit(inode, |content| content.resize(0))?;
                }
                self.file_mut(inode)?.facts.mode = FILE_MODE;
                Ok(inode)
            }
            (None, OpenMode::Read | OpenMode::Write) => Err(os(ENOENT)),
            (None, OpenMode::Create | OpenMode::CreateNew | OpenMode::Replace) => {
                let inode = self.take_inode();
                let facts = Facts { mode: FILE_MODE, modified: self.tick() };
                self.files.insert(inode, File { content: Content::default(), facts });
                self.tree.change(Naming::Add(place, Node::File(inode)));
                Ok(inode)
            }
        }
    }

    pub(super) fn create_dir(&mut self, path: &Path) -> io::Result<()> {
        if let Ok(Node::Dir(_)) = self.tree.find(path) {
            return Ok(());
        }
        let (place, there) = self.tree.locate(path)?;
        if there.is_some() {
            return Err(os(EEXIST));
        }
        let inode = self.take_inode();
        let facts = Facts { mode: DIR_MODE, modified: self.tick() };
        self.dir_facts.insert(inode, facts);
        self.tree.change(Naming::Add(place, Node::Dir(inode)));
        Ok(())
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let (from, moved) = self.tree.locate(from)?;
        let moved = moved.ok_or_else(|| os(ENOENT))?;
        let (to, replaced) = self.tree.locate(to)?;
        match (moved, replaced) {
            // Renaming a file to itself changes nothing.
            (moved, Some(replaced)) if moved == replaced => return Ok(()),
            (Node::File(_), None | Some(Node::File(_))) => {}
            (Node::File(_), Some(Node::Dir(_))) => return Err(os(EISDIR)),
            (Node::Dir(_), Some(Node::File(_))) => return Err(os(ENOTDIR)),
            (Node::Dir(_), Some(Node::Dir(_))) => return Err(os(ENOTEMPTY)),
            (Node::Dir(inode), None) => {
                if self.tree.is_within(to.dir, inode) {
                    return Err(io::ErrorKind::InvalidInput.into());
                }
            }
        }
        self.tree.change(Naming::Rename(from, to, moved));
        Ok(())
    }

    pub(super) fn remove_file(&mut self, path: &Path) -> io::Result<()> {
        let (place, there) = self.tree.locate(path)?;
        match there.ok_or_else(|| os(ENOENT))? {
            Node::Dir(_) => Err(os(EISDIR)),
            Node::File(_) => {
                self.tree.change(Naming::Remove(place));
                Ok(())
            }
        }
    }

    pub(super) fn remove_dir(&mut self, path: &Path) -> io::Result<()> {
        let (place, there) = self.tree.locate(path)?;
        match there.ok_or_else(|| os(ENOENT))? {
            Node::File(_) => Err(os(ENOTDIR)),
            Node::Dir(inode) if !self.tree.live(inode).is_empty() => Err(os(ENOTEMPTY)),
            Node::Dir(_) => {
                self.tree.change(Naming::Remove(place));
                Ok(())
            }
        }
    }

    pub(super) fn directory(&self, path: &Path) -> io::Result<u64> {
        match self.tree.find(path)? {
            Node::Dir(inode) => Ok(inode),
            Node::File(_) => Err(os(ENOTDIR)),
        }
    }

    pub(super) fn list(&self, path: &Path) -> io::Result<Vec<Entry>> {
        let names = self.tree.live(self.directory(path)?);
        let kind = |node: &Node| match node {
            Node::File(_) => EntryKind::File,
            Node::Dir(_) => EntryKind::Dir,
        };
        let mut entries: Vec<Entry> =
            names.iter().map(|(name, node)| Entry { name: name.clone(), kind: kind(node) }).collect();
        entries.sort_by_cached_key(|entry| self.shuffled(&entry.name));
        Ok(entries)
    }

    fn shuffled(&self, name: &str) -> u64 {
        name.bytes().fold(self.seed, |hash, byte| Rng::new(hash ^ u64::from(byte)).next_u64())
    }

    pub(super) fn stat(&self, node: Node) -> io::Result<Stat> {
        let (inode, kind, len, facts) = match node {
            Node::File(inode) => {
                let file = self.file(inode)?;
                (inode, EntryKind::File, file.content.len() as u64, file.facts)
            }
            Node::Dir(inode) => {
                let facts = self.dir_facts.get(&inode).ok_or_else(|| os(ENOENT))?;
                (inode, EntryKind::Dir, 0, *facts)
            }
        };
        let modified = SystemTime::UNIX_EPOCH + Duration::from_secs(facts.modified);
        Ok(Stat { len, kind, mode: facts.mode, identity: (1, inode), modified })
    }

    pub(super) fn set_mode(&mut self, path: &Path, mode: u32) -> io::Result<()> {
        let facts = match self.tree.find(path)? {
            Node::File(inode) => &mut self.file_mut(inode)?.facts,
            Node::Dir(inode) => self.dir_facts.get_mut(&inode).ok_or_else(|| os(ENOENT))?,
        };
        facts.mode = mode & 0o777;
        Ok(())
    }

    pub(super) fn file(&self, inode: u64) -> io::Result<&File> {
        self.files.get(&inode).ok_or_else(|| os(ENOENT))
    }

    pub(super) fn file_mut(&mut self, inode: u64) -> io::Result<&mut File> {
        self.files.get_mut(&inode).ok_or_else(|| os(ENOENT))
    }

    /// Changes the bytes of a file.
    pub(super) fn edit<T>(&mut self, inode: u64, edit: impl FnOnce(&mut Content) -> T) -> io::Result<T> {
        let modified = self.tick();
        let file = self.file_mut(inode)?;
        file.facts.modified = modified;
        Ok(edit(&mut file.content))
    }

    fn tick(&mut self) -> u64 {
        self.ticks += 1;
        self.ticks
    }

    fn take_inode(&mut self) -> u64 {
        self.next_inode += 1;
        self.next_inode - 1
    }

    /// Returns whether it is time to [`Image::collect`].
    pub(super) fn is_littered(&self) -> bool {
        self.next_inode >= self.collect_at
    }

    /// Forgets inodes that no name leads to, now or after a power cut, and that are not open.
    pub(super) fn collect(&mut self, is_open: impl Fn(u64) -> bool) {
        let named = self.tree.collect();
        self.files.retain(|inode, _| named.contains(inode) || is_open(*inode));
        self.dir_facts.retain(|inode, _| self.tree.has_dir(*inode));
        self.collect_at = self.next_inode + COLLECT_EVERY;
    }
}
