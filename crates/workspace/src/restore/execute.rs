//! The changes themselves: everything is made under temporary names and checked, made durable, and only then put in place.
//! Whatever the disk says, what was there before is either still there or in the tree of the way back.

use std::collections::BTreeSet;
use std::io::{self, Write};

use rekindle_domain::blob_id::BlobId;

use super::paths::{Shown, split};
use super::refusal::{is_not_there, is_of_one_path, of_one_path};
use super::report::{ContentProblem, Done, DoneWhat, Left, LeftWhy, RestoreError};
use super::root::{Root, Seen};
use super::survey::{ModeChange, Placement, Removal, Staged, Work};
use super::temporaries::remove_whole;
use crate::objects::ObjectSource;
use crate::tree::{FileMode, OwnedNode};

/// Directories that are synced one by one; for more of them one sync of the file system is quicker.
const MAX_DIR_SYNCS: usize = 4;

/// A restore at work.
pub(super) struct Execution<'a> {
    root: &'a dyn Root,
    source: &'a dyn ObjectSource,
    /// What was changed so far.
    pub(super) done: Vec<Done>,
    /// What was left alone so far.
    pub(super) left: Vec<Left>,
    /// Directories in which names changed.
    touched: BTreeSet<Vec<u8>>,
    /// Permissions were changed, which no sync of a directory makes durable.
    has_new_modes: bool,
}

impl<'a> Execution<'a> {
    pub(super) fn new(root: &'a dyn Root, source: &'a dyn ObjectSource) -> Execution<'a> {
        Execution {
            root,
            source,
            done: Vec::new(),
            left: Vec::new(),
            touched: BTreeSet::new(),
            has_new_modes: false,
        }
    }

    /// Makes everything that is wanted under temporary names, checks contents against their names, and makes it durable.
    ///
    /// What cannot be made for reasons of its own path is left alone. After an error nothing but temporaries has changed;
    /// [`discard`](Self::discard) removes them.
    pub(super) fn stage(&mut self, placements: &mut Vec<Placement>) -> Result<(), RestoreError> {
        let mut refused = BTreeSet::new();
        for (index, placement) in placements.iter().enumerate() {
            self.touch(&placement.path);
            if let Err((staged, problem)) = self.make_whole(placement) {
                match problem {
                    Problem::Content { id, problem } => {
                        return Err(RestoreError::Content { path: staged.path.clone(), id, problem });
                    }
                    Problem::Disk(error) => {
                        let prepare = |source| RestoreError::Prepare { path: staged.path.clone(), source };
                        let mut why = of_one_path(error).map_err(prepare)?;
                        if let (LeftWhy::Refused(text), true) = (&mut why, staged.path != placement.path) {
                            *text = format!("{}: {text}", Shown(&staged.path));
                        }
                        self.left.push(Left { path: placement.path.clone(), why });
                        self.forget(placement).map_err(prepare)?;
                        refused.insert(index);
                    }
                }
            }
        }
        let mut index = 0;
        placements.retain(|_| {
            index += 1;
            !refused.contains(&(index - 1))
        });
        if placements.is_empty() {
            return Ok(());
        }
        let mut directories = self.touched.iter().map(Vec::as_slice);
        self.root
            .sync_file_systems(&mut directories)
            .map_err(|source| RestoreError::Prepare { path: Vec::new(), source })
    }

    fn make_whole<'p>(&self, placement: &'p Placement) -> Result<(), (&'p Staged, Problem)> {
        for staged in &placement.staged {
            let mut made = self.make(staged);
            // Left by a restore that was interrupted and forgotten, or put there to be in the way.
            if let Err(Problem::Disk(error)) = &made
                && error.kind() == io::ErrorKind::AlreadyExists
                && staged.at == placement.temporary
                && remove_whole(self.root, &staged.at).is_ok()
            {
                made = self.make(staged);
            }
            made.map_err(|problem| (staged, problem))?;
        }
        Ok(())
    }

    fn make(&self, staged: &Staged) -> Result<(), Problem> {
        match &staged.node {
            OwnedNode::Directory { .. } => self.root.make_dir(&staged.at).map_err(Problem::Disk),
            OwnedNode::Link { target } => self.root.make_link(&staged.at, target).map_err(Problem::Disk),
            OwnedNode::File { mode, size, content } => {
                let mut of_content = None;
                let written = self.root.write_file(&staged.at, *mode, &mut |out| {
                    let mut writer = CheckedWriter::new(out, *size);
                    let read = self.source.read(content, &mut writer);
                    match writer.finish(read, content) {
                        Ok(()) => Ok(()),
                        Err(Problem::Disk(error)) => Err(error),
                        Err(problem) => {
                            of_content = Some(problem);
                            Err(io::ErrorKind::InvalidData.into())
                        }
                    }
                });
                match (of_content, written) {
                    (Some(problem), _) => Err(problem),
                    (None, written) => written.map_err(Problem::Disk),
                }
            }
        }
    }

    /// Removes the temporaries of everything that was staged or begun, durably.
    pub(super) fn discard(&self, placements: &[Placement]) -> io::Result<()> {
        placements.iter().try_for_each(|placement| self.forget(placement))?;
        self.sync()
    }

    /// Removes what was made of a placement. What was moved away meanwhile, directory and all, is out of reach.
    fn forget(&self, placement: &Placement) -> io::Result<()> {
        match remove_whole(self.root, &placement.temporary) {
            Err(error) if !is_of_one_path(&error) => Err(error),
            _ => Ok(()),
        }
    }

    /// Puts everything in its place. An error that does not concern one path alone ends it half-way, and names the path.
    pub(super) fn put_in_place(&mut self, work: &Work) -> Result<(), (Vec<u8>, io::Error)> {
        for removal in &work.removals {
            let removed = self.remove(removal);
            self.note(&removal.path, removed)?;
        }
        for placement in &work.placements {
            let placed = self.place(placement);
            if !matches!(placed, Ok(None)) {
                self.forget(placement).map_err(|error| (placement.path.clone(), error))?;
            }
            self.note(&placement.path, placed)?;
        }
        for change in &work.modes {
            let changed = self.set_mode(change);
            self.note(&change.path, changed)?;
        }
        Ok(())
    }

    fn note(
        &mut self,
        path: &[u8],
        outcome: io::Result<Option<LeftWhy>>,
    ) -> Result<(), (Vec<u8>, io::Error)> {
        let why = match outcome {
            Ok(why) => why,
            Err(error) => Some(of_one_path(error).map_err(|error| (path.to_vec(), error))?),
        };
        self.left.extend(why.map(|why| Left { path: path.to_vec(), why }));
        Ok(())
    }

    fn remove(&mut self, removal: &Removal) -> io::Result<Option<LeftWhy>> {
        let Removal { path, seen } = removal;
        self.touch(path);
        let (removed, what) = match seen {
            Some(seen) => match self.root.stat(path)? {
                None => return Ok(None),
                Some(now) if !seen.is_still(&now) => return Ok(Some(LeftWhy::Changed)),
                Some(_) => (self.root.remove_file(path), DoneWhat::Removed),
            },
            None => (self.root.remove_dir(path), DoneWhat::DirectoryRemoved),
        };
        match removed {
            Ok(()) => self.done.push(Done { path: path.clone(), what }),
            Err(error) if is_not_there(&error) => {}
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {
                return Ok(Some(LeftWhy::UnknownFiles));
            }
            Err(error) => return Err(error),
        }
        Ok(None)
    }

    fn place(&mut self, placement: &Placement) -> io::Result<Option<LeftWhy>> {
        let Placement { path, temporary, staged, in_way, clear } = placement;
        self.touch(path);
        for removal in clear {
            if let Some(why) = self.remove(removal)? {
                return Ok(Some(why));
            }
        }
        let now = self.root.stat(path)?;
        if let Some(now) = &now
            && !in_way.is_some_and(|seen| seen.is_still(now))
        {
            return Ok(Some(LeftWhy::Changed));
        }
        let is_directory = matches!(staged.first(), Some(Staged { node: OwnedNode::Directory { .. }, .. }));
        if now.is_some() && is_directory {
            self.root.remove_file(path)?;
        }
        let (directory, name) = split(path);
        self.root.rename(directory, split(temporary).1, name)?;
        self.done.extend(staged.iter().map(|Staged { path, node, .. }| Done {
            path: path.clone(),
            what: match node {
                OwnedNode::File { .. } => DoneWhat::FileWritten,
                OwnedNode::Link { .. } => DoneWhat::LinkMade,
                OwnedNode::Directory { .. } => DoneWhat::DirectoryMade,
            },
        }));
        Ok(None)
    }

    fn set_mode(&mut self, change: &ModeChange) -> io::Result<Option<LeftWhy>> {
        let ModeChange { path, mode, seen } = change;
        self.has_new_modes = true;
        let now = self.root.stat(path)?;
        // Another name of the same file may have come first.
        let is_done = |now: &Seen| FileMode::from_permissions(now.permissions) == *mode;
        match now {
            Some(now) if seen.is_still(&now) => self.root.set_mode(path, *mode)?,
            Some(now) if is_done(&now) && seen.is_still(&Seen { permissions: seen.permissions, ..now }) => {}
            _ => return Ok(Some(LeftWhy::Changed)),
        }
        self.done.push(Done { path: path.clone(), what: DoneWhat::ModeChanged });
        Ok(None)
    }

    /// Makes everything durable that was changed: names in directories, permissions.
    pub(super) fn sync(&self) -> io::Result<()> {
        if self.touched.len() <= MAX_DIR_SYNCS && !self.has_new_modes {
            let synced: io::Result<()> = self.touched.iter().try_for_each(|path| self.root.sync_dir(path));
            // One that was moved away, or may not be read, is synced with all others.
            if synced.is_ok() {
                return Ok(());
            }
        }
        self.sync_everything()
    }

    /// Makes everything durable that anybody wrote, also an attempt before this one.
    pub(super) fn sync_everything(&self) -> io::Result<()> {
        self.root.sync_file_systems(&mut self.touched.iter().map(Vec::as_slice))
    }

    fn touch(&mut self, path: &[u8]) {
        let directory = split(path).0;
        if !self.touched.contains(directory) {
            self.touched.insert(directory.to_vec());
        }
    }
}

/// Why something could not be made.
enum Problem {
    Content { id: BlobId, problem: ContentProblem },
    Disk(io::Error),
}

/// A writer that hashes and counts what goes through it, and takes no more than there should be.
struct CheckedWriter<'a> {
    out: &'a mut dyn Write,
    hasher: blake3::Hasher,
    left: u64,
    too_long: bool,
    failed: bool,
}

impl<'a> CheckedWriter<'a> {
    fn new(out: &'a mut dyn Write, size: u64) -> CheckedWriter<'a> {
        CheckedWriter { out, hasher: blake3::Hasher::new(), left: size, too_long: false, failed: false }
    }

    fn finish(self, read: io::Result<()>, content: &BlobId) -> Result<(), Problem> {
        let damaged = Err(Problem::Content { id: *content, problem: ContentProblem::Damaged });
        match read {
            _ if self.too_long => damaged,
            Err(error) if self.failed => Err(Problem::Disk(error)),
            Err(error) => Err(Problem::Content { id: *content, problem: ContentProblem::Unreadable(error) }),
            Ok(()) if self.left > 0 || self.hasher.finalize().as_bytes() != content.as_bytes() => damaged,
            Ok(()) => Ok(()),
        }
    }
}

impl Write for CheckedWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() as u64 > self.left {
            self.too_long = true;
            return Err(io::ErrorKind::InvalidData.into());
        }
        let written = self.out.write(bytes).inspect_err(|error| {
            self.failed |= error.kind() != io::ErrorKind::Interrupted;
        })?;
        self.hasher.update(&bytes[..written]);
        self.left -= written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush().inspect_err(|_| self.failed = true)
    }
}
