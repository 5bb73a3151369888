//! A look at the disk before anything is changed: what a plan means for what is really there, and what has to be captured first.
//! The capture that the plan came from may be a moment old, and does not know what it ignored.

use std::collections::{BTreeSet, HashSet};

use rekindle_domain::blob_id::BlobId;

use super::keep::{Captured, Keeper};
use super::lookup::Began;
use super::paths::{below, join, temporary};
use super::plan::{Change, Plan};
use super::report::{Left, LeftWhy, RestoreError};
use super::root::{Root, Seen, SeenKind};
use super::undo::Overlay;
use crate::objects::ObjectSink;
use crate::tree::{FileMode, OwnedNode, WalkedEntry};

/// Everything that is to be done, with what was seen in each place: what has changed since is left alone.
#[derive(Debug, Default)]
pub(super) struct Work {
    /// What goes, innermost first.
    pub(super) removals: Vec<Removal>,
    /// What comes, or takes the place of something.
    pub(super) placements: Vec<Placement>,
    /// Files whose permissions change and nothing else.
    pub(super) modes: Vec<ModeChange>,
    /// What is left alone.
    pub(super) left: Vec<Left>,
    /// What the way back needs beyond the tree of before.
    pub(super) overlay: Overlay,
}

/// A file, link or directory to remove.
#[derive(Debug)]
pub(super) struct Removal {
    pub(super) path: Vec<u8>,
    /// The file or link that was captured; nothing for a directory, which has to be empty by then.
    pub(super) seen: Option<Seen>,
}

/// A file whose permissions change.
#[derive(Debug)]
pub(super) struct ModeChange {
    pub(super) path: Vec<u8>,
    pub(super) mode: FileMode,
    pub(super) seen: Seen,
}

/// Something that is made under a temporary name, whole, and then renamed to its own.
#[derive(Debug)]
pub(super) struct Placement {
    pub(super) path: Vec<u8>,
    pub(super) temporary: Vec<u8>,
    /// What is made: the temporary first, then what is in it if it is a directory.
    pub(super) staged: Vec<Staged>,
    /// The file or link that it takes the place of.
    pub(super) in_way: Option<Seen>,
    /// The directory that it takes the place of, with everything in it, innermost first.
    pub(super) clear: Vec<Removal>,
}

/// One thing to make.
#[derive(Debug)]
pub(super) struct Staged {
    /// Where it is made.
    pub(super) at: Vec<u8>,
    /// Where it will be.
    pub(super) path: Vec<u8>,
    pub(super) node: OwnedNode,
}

/// Looks at every path of a plan and captures what would be lost.
pub(super) fn survey(
    root: &dyn Root,
    sink: &dyn ObjectSink,
    wanted: &BlobId,
    plan: Plan,
    began: Option<&Began<'_>>,
) -> Result<Work, RestoreError> {
    let named = plan.left.iter().map(|left| left.path.clone()).collect();
    let work = Work { left: plan.left, ..Work::default() };
    let mut surveyor = Surveyor { root, sink, wanted, began, named, going: HashSet::new(), work };
    // What goes is known before what comes is looked at: the same file may answer to both names.
    let (come, go): (Vec<&Change>, Vec<&Change>) =
        plan.changes.iter().partition(|change| change.after.is_some());
    for change in go.into_iter().chain(come) {
        surveyor.change(change)?;
    }
    Ok(surveyor.work)
}

struct Surveyor<'a> {
    root: &'a dyn Root,
    sink: &'a dyn ObjectSink,
    wanted: &'a BlobId,
    began: Option<&'a Began<'a>>,
    /// Paths that are left alone and have been named.
    named: BTreeSet<Vec<u8>>,
    /// Inodes of files and links that go and have no other name.
    going: HashSet<u64>,
    work: Work,
}

impl Surveyor<'_> {
    fn keeper(&self) -> Keeper<'_> {
        Keeper { root: self.root, sink: self.sink }
    }

    fn change(&mut self, change: &Change) -> Result<(), RestoreError> {
        let (gone, left) = self.removes(&change.removes)?;
        let Some(first) = change.creates.first() else {
            let seen = gone.iter().filter_map(|removal| removal.seen);
            self.going.extend(seen.filter(|seen| !seen.has_other_names).map(|seen| seen.inode));
            self.work.removals.extend(gone);
            left.into_iter().for_each(|left| self.leave(left.path, left.why));
            return Ok(());
        };
        if change.removes.is_empty() {
            return self.creates(&change.creates, change.before.as_ref());
        }
        // A directory makes room for a file or link: whole, or not at all.
        match left.into_iter().next_back() {
            Some(left) if left.path == change.path => self.leave(left.path, left.why),
            Some(_) => self.leave(change.path.clone(), LeftWhy::UnknownFiles),
            None => self.place(first, None, gone),
        }
        Ok(())
    }

    /// Looks at what is to go, innermost first, and captures it. Returns what can go and what has to stay.
    fn removes(&mut self, entries: &[WalkedEntry]) -> Result<(Vec<Removal>, Vec<Left>), RestoreError> {
        let mut gone = Vec::new();
        let mut left: Vec<Left> = Vec::new();
        let mut going: HashSet<&[u8]> = HashSet::new();
        let mut staying: HashSet<&[u8]> = HashSet::new();
        for WalkedEntry { path, node } in entries {
            let is_directory = matches!(node, OwnedNode::Directory { .. });
            let stays = match self.root.stat(path) {
                Ok(None) => continue,
                Ok(Some(seen)) => match seen.kind {
                    SeenKind::Directory if is_directory => match self.root.list(path) {
                        Ok(names) => self.unknown(path, &names, &going, &staying),
                        Err(error) => Some(Some(LeftWhy::Refused(error.to_string()))),
                    },
                    SeenKind::Directory => Some(Some(LeftWhy::UnknownFiles)),
                    SeenKind::Special => Some(Some(LeftWhy::Special)),
                    SeenKind::File | SeenKind::Link if is_directory => Some(Some(LeftWhy::Changed)),
                    SeenKind::File | SeenKind::Link => match self.keeper().capture(path)? {
                        Captured::Gone => continue,
                        Captured::Not(why) => Some(Some(why)),
                        Captured::As(found, seen) => {
                            self.record(path, &found, Some(node))?;
                            gone.push(Removal { path: path.clone(), seen: Some(seen) });
                            going.insert(path);
                            continue;
                        }
                    },
                },
                Err(error) => Some(Some(LeftWhy::Refused(error.to_string()))),
            };
            match stays {
                None => {
                    gone.push(Removal { path: path.clone(), seen: None });
                    going.insert(path);
                }
                Some(why) => {
                    staying.insert(path);
                    left.extend(why.map(|why| Left { path: path.clone(), why }));
                }
            }
        }
        Ok((gone, left))
    }

    /// Returns nothing if everything in a directory goes; else the reason why it stays, unless what is in it says so already.
    fn unknown(
        &self,
        path: &[u8],
        names: &[Vec<u8>],
        going: &HashSet<&[u8]>,
        staying: &HashSet<&[u8]>,
    ) -> Option<Option<LeftWhy>> {
        let stays: Vec<Vec<u8>> = names
            .iter()
            .map(|name| join(path, name))
            .filter(|inner| !going.contains(inner.as_slice()))
            .collect();
        let is_named =
            |inner: &Vec<u8>| staying.contains(inner.as_slice()) || self.named.contains(inner.as_slice());
        match stays.is_empty() {
            true => None,
            false if stays.iter().all(is_named) => Some(None),
            false => Some(Some(LeftWhy::UnknownFiles)),
        }
    }

    /// Looks at what is to come, a directory before what is in it.
    fn creates(&mut self, entries: &[WalkedEntry], before: Option<&OwnedNode>) -> Result<(), RestoreError> {
        // What is below one of these is decided: it is left alone, or made in a directory that is new.
        let mut left: Option<&[u8]> = None;
        let mut staging: Option<&[u8]> = None;
        for (index, entry) in entries.iter().enumerate() {
            let WalkedEntry { path, node } = entry;
            if left.is_some_and(|left| below(path, left).is_some()) {
                continue;
            }
            if let Some(inner) = staging.and_then(|directory| below(path, directory)) {
                // The directory that is being staged is the last one.
                let placement = self.work.placements.last_mut().expect("one was begun");
                let at = [&placement.temporary, inner].concat();
                placement.staged.push(Staged { at, path: path.clone(), node: node.clone() });
                continue;
            }
            let before = before.filter(|_| index == 0);
            match self.create(entry, before)? {
                Created::InPlace => {}
                Created::Staged => staging = Some(path),
                Created::Left(why) => {
                    self.leave(path.clone(), why);
                    left = Some(path);
                }
            }
        }
        Ok(())
    }

    fn create(&mut self, entry: &WalkedEntry, before: Option<&OwnedNode>) -> Result<Created, RestoreError> {
        let WalkedEntry { path, node } = entry;
        let is_directory = matches!(node, OwnedNode::Directory { .. });
        let seen = match self.root.stat(path) {
            Ok(seen) => seen,
            Err(error) => return Ok(Created::Left(LeftWhy::Refused(error.to_string()))),
        };
        // A file that goes, found under a second name that it does not have: the file system does not tell case apart.
        let Some(seen) = seen.filter(|seen| !self.going.contains(&seen.inode)) else {
            self.place(entry, None, Vec::new());
            return Ok(Created::Staged);
        };
        match seen.kind {
            // It was ignored, or has just been made: what belongs into it is looked at name by name.
            SeenKind::Directory if is_directory => Ok(Created::InPlace),
            SeenKind::Directory => match self.root.list(path) {
                Ok(names) if names.is_empty() => {
                    let empty = self.keeper().keep_empty_directory(path)?;
                    self.record(path, &empty, before)?;
                    self.place(entry, None, vec![Removal { path: path.clone(), seen: None }]);
                    Ok(Created::Staged)
                }
                Ok(_) => Ok(Created::Left(LeftWhy::UnknownFiles)),
                Err(error) => Ok(Created::Left(LeftWhy::Refused(error.to_string()))),
            },
            SeenKind::Special => Ok(Created::Left(LeftWhy::Special)),
            SeenKind::File | SeenKind::Link => match self.keeper().capture(path)? {
                Captured::Not(why) => Ok(Created::Left(why)),
                Captured::Gone => {
                    self.place(entry, None, Vec::new());
                    Ok(Created::Staged)
                }
                Captured::As(found, _) if found == *node => Ok(Created::InPlace),
                Captured::As(found, seen) => {
                    self.record(path, &found, before)?;
                    match new_mode(&found, node) {
                        Some(mode) => {
                            self.work.modes.push(ModeChange { path: path.clone(), mode, seen });
                            Ok(Created::InPlace)
                        }
                        None => {
                            self.place(entry, Some(seen), Vec::new());
                            Ok(Created::Staged)
                        }
                    }
                }
            },
        }
    }

    fn place(&mut self, entry: &WalkedEntry, in_way: Option<Seen>, clear: Vec<Removal>) {
        let WalkedEntry { path, node } = entry.clone();
        let temporary = temporary(self.wanted, &path);
        let staged = vec![Staged { at: temporary.clone(), path: path.clone(), node }];
        self.work.placements.push(Placement { path, temporary, staged, in_way, clear });
    }

    /// Notes something for the way back, unless a tree has it there already.
    fn record(
        &mut self,
        path: &[u8],
        found: &OwnedNode,
        before: Option<&OwnedNode>,
    ) -> Result<(), RestoreError> {
        let is_known = match self.began {
            Some(began) => began.has(path, found)?,
            None => before == Some(found),
        };
        if !is_known {
            self.work.overlay.insert(path.to_vec(), found.clone());
        }
        Ok(())
    }

    fn leave(&mut self, path: Vec<u8>, why: LeftWhy) {
        self.named.insert(path.clone());
        self.work.left.push(Left { path, why });
    }
}

/// What becomes of something that is wanted.
enum Created {
    /// It is there, or is changed where it is.
    InPlace,
    /// It is made under another name, with everything in it.
    Staged,
    /// What is there stays.
    Left(LeftWhy),
}

/// Returns the permissions that a file needs if they are all that differs.
fn new_mode(found: &OwnedNode, wanted: &OwnedNode) -> Option<FileMode> {
    match (found, wanted) {
        (
            OwnedNode::File { size, content, .. },
            OwnedNode::File { mode, size: wanted_size, content: wanted_content },
        ) if size == wanted_size && content == wanted_content => Some(*mode),
        _ => None,
    }
}
