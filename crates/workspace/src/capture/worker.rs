//! One thread of a capture: takes directories and parts of large ones from the pool, and makes a directory's tree when its
//! last part is done.

use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use rekindle_domain::blob_id::BlobId;
use rustix::fs::{AtFlags, FileType, fstat, readlinkat, statat};
use rustix::io::Errno;

use super::listing::{Names, list, recorded};
use super::node::{Contents, Listing, Node, Task, build};
use super::open::{is_exhausted, is_gone, retry};
use super::read::{FileToRead, ReadError, ReadFile, failure};
use super::unchanged_directory;
use super::{CaptureError, Shared, Totals};
use crate::record::{Found, Known, RecordEntries, RecordView, RecordWriter};
use crate::rules::{Decision, IGNORE_FILES, IgnoreFiles, MAX_IGNORE_FILE_BYTES, Repository};
use crate::skipped::{Skip, SkipReason};
use crate::stamp::{DirectoryStamp, FileStamp, now_ns};
use crate::tree::{MAX_DEPTH, MAX_TARGET_BYTES};

/// How many names of a directory are one task: enough to be worth it, few enough to share a large directory.
const PART: usize = 512;

/// What a thread gathered.
#[derive(Default)]
pub(super) struct Output {
    pub(super) skips: Vec<Skip>,
    pub(super) ignore_files: Vec<(Vec<u8>, BlobId)>,
    /// Directories for the next cache; without a record where the last one has it.
    pub(super) records: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    pub(super) files_read: u64,
    /// What could not be understood, for people.
    pub(super) notes: Vec<String>,
}

impl Output {
    pub(super) fn add(&mut self, mut other: Output) {
        self.skips.append(&mut other.skips);
        self.ignore_files.append(&mut other.ignore_files);
        self.records.append(&mut other.records);
        self.files_read += other.files_read;
        self.notes.append(&mut other.notes);
    }
}

/// What came of entering a directory.
enum Entered {
    /// No tree.
    Nothing,
    /// The tree of before.
    Unchanged(BlobId, Totals),
    /// Its names are dealt with, or handed out: it has to be finished.
    Listed,
}

/// A thread of a capture, with its buffers.
pub(super) struct Worker<'s, 'a> {
    shared: &'s Shared<'a>,
    output: Output,
    entries: Vec<u8>,
    content: Vec<u8>,
    ids: Vec<BlobId>,
}

type Result<T> = std::result::Result<T, CaptureError>;

impl<'s, 'a> Worker<'s, 'a> {
    pub(super) fn new(shared: &'s Shared<'a>) -> Worker<'s, 'a> {
        Worker {
            shared,
            output: Output::default(),
            entries: Vec::new(),
            content: Vec::new(),
            ids: Vec::new(),
        }
    }

    /// Works until nothing is left, and returns what was gathered.
    pub(super) fn work(mut self) -> Output {
        while let Some((task, _unfinished)) = self.shared.pool.next() {
            let done = if (self.shared.options.stop)() {
                Err(CaptureError::Stopped { cache: None })
            } else {
                self.run(task)
            };
            if let Err(error) = done {
                self.shared.fail(error);
            }
        }
        self.output
    }

    fn run(&mut self, task: Task<'a>) -> Result<()> {
        match task {
            Task::Directory(node) => match self.enter(&node)? {
                Entered::Listed => self.finish(node),
                Entered::Unchanged(tree, totals) => self.leave(&node, Some(tree), totals),
                Entered::Nothing => self.leave(&node, None, Totals::default()),
            },
            Task::Part { node, directory, range, known } => {
                self.part(&node, &directory, range, known)?;
                self.finish(node)
            }
        }
    }

    fn skip(&mut self, path: Vec<u8>, reason: SkipReason) {
        self.output.skips.push(Skip { path, reason });
    }

    fn skip_directory(&mut self, node: &Node<'a>, reason: SkipReason) {
        let path = node.path.strip_suffix(b"/").unwrap_or(&node.path);
        self.skip(path.to_vec(), reason);
    }

    /// Lists a directory and deals with its names, or hands them out in parts.
    fn enter(&mut self, node: &Arc<Node<'a>>) -> Result<Entered> {
        if node.depth > MAX_DEPTH {
            self.skip_directory(node, SkipReason::TooDeep);
            return Ok(Entered::Nothing);
        }
        let shared = self.shared;
        let before_ns = now_ns();
        let opened =
            shared.root.directory(&node.path).and_then(|directory| Ok((fstat(&directory)?, directory)));
        let (stat, directory) = match opened {
            Ok(opened) => opened,
            Err(error) => return self.cannot_list(node, error),
        };
        if node.depth > 0 {
            let identity = (stat.st_dev, stat.st_ino);
            if let Some((_, reason)) = shared.apart.iter().find(|(apart, _)| *apart == identity) {
                if let Some(reason) = reason {
                    self.skip_directory(node, *reason);
                }
                return Ok(Entered::Nothing);
            }
        }
        let known = shared.cache.directory(&node.path);
        let stamp = FileStamp::of(&stat);
        let is_settled = shared.root.has_exact_directories(stat.st_dev) && stamp.is_settled(before_ns);
        let stamp = is_settled.then(|| DirectoryStamp::of(&stamp));
        let unchanged = known.filter(|known| stamp.is_some() && known.stamp() == stamp);
        let listed = match unchanged {
            Some(_) => None,
            None => match list(&directory, &mut self.entries) {
                Ok(names) => Some(names),
                Err(error) => return self.cannot_list(node, error),
            },
        };
        let has_git = node.depth > 0 && listed.as_ref().is_some_and(|names| names.has_git);
        let repository = match has_git {
            true => {
                let path = shared.absolute(&node.path);
                if Repository::is_linked_worktree(&path) {
                    self.skip_directory(node, SkipReason::Worktree);
                    return Ok(Entered::Nothing);
                }
                Repository::at(&path).map(Arc::new)
            }
            false => None,
        };
        if let Some(repository) = &repository {
            repository.remember(shared.cache.repositories());
            shared.repositories.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(repository));
        }
        for name in listed.iter().flat_map(|names| &names.refused) {
            self.skip(node.path_of(name), SkipReason::Name);
        }
        let ignore_files = self.ignore_files(node, &directory, listed.as_ref(), known.as_ref());
        let rules = node.above.enter(&node.path, node.decision, ignore_files, repository);
        let same_rules = known.is_some_and(|known| known.rules() == rules.key());
        if same_rules
            && let Some(known) = unchanged
            && let Some(totals) = unchanged_directory::compare(
                &directory,
                &known,
                shared.options.max_file,
                shared.sink,
                &mut self.ids,
            )
        {
            shared.count(totals.files, totals.bytes)?;
            self.output.records.push((node.path.clone(), None));
            return Ok(Entered::Unchanged(known.tree(), totals));
        }
        let names = match (listed, unchanged) {
            (Some(names), _) => names,
            (None, Some(known)) if same_rules => recorded(&known),
            // What was ignored may count now: then it has to be known what it is.
            (None, _) => match list(&directory, &mut self.entries) {
                Ok(names) => names,
                Err(error) => return self.cannot_list(node, error),
            },
        };
        // A stamp stands for the names in the record: not where something else was found that has to be looked at each time.
        let stamp = stamp.filter(|_| names.refused.is_empty() && !(names.has_git && node.depth > 0));
        let count = names.len();
        node.contents().found = vec![Found::Nothing; count];
        let listing = node.listing.get_or_init(|| Listing { names, stamp, rules, known, same_rules });
        let known = known.map(|known| known.entries());
        if count <= PART {
            self.part(node, &directory, 0..count, known)?;
        } else {
            self.hand_out(node, listing, directory, known);
        }
        Ok(Entered::Listed)
    }

    fn cannot_list(&mut self, node: &Node<'a>, error: Errno) -> Result<Entered> {
        let path = || self.shared.absolute(&node.path);
        if is_exhausted(error) {
            return Err(CaptureError::Exhausted { path: path(), source: error.into() });
        }
        if node.depth == 0 {
            return Err(CaptureError::Root { root: path(), source: error.into() });
        }
        if !is_gone(error) {
            self.skip_directory(node, SkipReason::Unreadable);
        }
        Ok(Entered::Nothing)
    }

    /// Returns the names of the contents of a directory's ignore files, from the cache if they look the same. Without a list the
    /// directory has the names that are known of it.
    fn ignore_files(
        &mut self,
        node: &Node<'a>,
        directory: &OwnedFd,
        listed: Option<&Names>,
        known: Option<&RecordView<'a>>,
    ) -> [Option<BlobId>; 2] {
        IGNORE_FILES.map(|name| {
            let name = name.as_bytes();
            let known = known.and_then(|known| known.entries().find(name));
            let is_there = match listed {
                Some(names) => names.kind_of(name) == Some(FileType::RegularFile),
                None => known.is_some(),
            };
            is_there.then_some(())?;
            let stat = retry(|| statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)).ok()?;
            let stamp = FileStamp::of(&stat);
            if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
                return None;
            }
            let path = node.path_of(name);
            if stamp.size > MAX_IGNORE_FILE_BYTES {
                let path = self.shared.absolute(&path);
                let limit = MAX_IGNORE_FILE_BYTES >> 20;
                self.output
                    .notes
                    .push(format!("{} is larger than {limit} MiB and is ignored", path.display()));
                return None;
            }
            let id = match known {
                Some(Known::File(before, id)) if before == stamp => id,
                _ => BlobId::of(&self.shared.root.read(&path)?),
            };
            self.output.ignore_files.push((path, id));
            Some(id)
        })
    }

    fn hand_out(
        &mut self,
        node: &Arc<Node<'a>>,
        listing: &Listing<'a>,
        directory: OwnedFd,
        mut known: Option<RecordEntries<'a>>,
    ) {
        let directory = Arc::new(directory);
        let mut parts = Vec::new();
        for start in (0..listing.names.len()).step_by(PART) {
            if let Some(known) = &mut known {
                known.skip_before(listing.names.get(start).0);
            }
            let range = start..(start + PART).min(listing.names.len());
            let (node, directory) = (Arc::clone(node), Arc::clone(&directory));
            parts.push(Task::Part { node, directory, range, known: known.clone() });
        }
        node.unfinished.fetch_add(parts.len(), Ordering::AcqRel);
        self.shared.pool.push(parts.into_iter().rev());
    }

    /// Deals with some names of a directory.
    fn part(
        &mut self,
        node: &Arc<Node<'a>>,
        directory: &OwnedFd,
        range: Range<usize>,
        mut known: Option<RecordEntries<'a>>,
    ) -> Result<()> {
        let listing = node.listing.get().expect("a directory is listed before its parts are dealt with");
        let mut found = Vec::with_capacity(range.len());
        let mut reused = Vec::new();
        let mut directories = Vec::new();
        let (mut files, mut bytes) = (0, 0);
        // Before any file of this part is opened; the earlier, the fewer are taken for settled.
        let before_ns = now_ns();
        for index in range.clone() {
            let (name, kind) = listing.names.get(index);
            let known = known.as_mut().and_then(|known| known.find(name));
            let decision = self.decide(node, listing, name, kind, known);
            let what = match (kind, decision) {
                (FileType::Directory, Decision::Ignore) => Found::IgnoredDirectory,
                (FileType::Directory, decision) => {
                    directories.push((index, decision));
                    Found::Directory { only_listed: decision == Decision::OnlyListed, tree: None }
                }
                (_, Decision::Ignore | Decision::OnlyListed) => Found::Ignored,
                (FileType::Symlink, Decision::Include) => self.link(node, directory, name)?,
                (FileType::RegularFile, Decision::Include) => {
                    let what = self.file(node, directory, name, known, before_ns)?;
                    if let Found::File { stamp, .. } = &what {
                        (files, bytes) = (files + 1, bytes + stamp.size);
                    }
                    what
                }
                (_, Decision::Include) => {
                    self.skip(node.path_of(name), SkipReason::Special);
                    Found::Nothing
                }
            };
            if let (Found::File { stamp, content, .. }, Some(Known::File(before, id))) = (&what, known)
                && (*stamp, *content) == (before, id)
            {
                reused.push((found.len(), id));
            }
            found.push(what);
        }
        self.shared.count(files, bytes)?;
        self.check_reused(node, listing, directory, range.start, &mut found, &reused)?;
        for (slot, found) in node.contents().found[range].iter_mut().zip(found) {
            *slot = found;
        }
        self.hand_out_directories(node, listing, directories);
        Ok(())
    }

    fn decide(
        &self,
        node: &Node<'a>,
        listing: &Listing<'a>,
        name: &[u8],
        kind: FileType,
        known: Option<Known<'a>>,
    ) -> Decision {
        let is_directory = kind == FileType::Directory;
        match known.map(|known| known.decision()) {
            Some((was_directory, decision)) if listing.same_rules && was_directory == is_directory => {
                decision
            }
            _ => listing.rules.decide(&node.path_of(name), is_directory, &self.shared.root),
        }
    }

    /// Reads files again whose contents are known and not there any more.
    fn check_reused(
        &mut self,
        node: &Node<'a>,
        listing: &Listing<'a>,
        directory: &OwnedFd,
        start: usize,
        found: &mut [Found],
        reused: &[(usize, BlobId)],
    ) -> Result<()> {
        let ids: Vec<BlobId> = reused.iter().map(|(_, id)| *id).collect();
        if ids.is_empty() || self.shared.sink.reuse_all(&ids) {
            return Ok(());
        }
        for (index, id) in reused {
            if !self.shared.sink.reuse(id) {
                let name = listing.names.get(start + index).0;
                found[*index] = self.file(node, directory, name, None, now_ns())?;
            }
        }
        Ok(())
    }

    fn hand_out_directories(
        &mut self,
        node: &Arc<Node<'a>>,
        listing: &Listing<'a>,
        directories: Vec<(usize, Decision)>,
    ) {
        if directories.is_empty() {
            return;
        }
        node.unfinished.fetch_add(directories.len(), Ordering::AcqRel);
        let child = |(index, decision): (usize, Decision)| {
            let mut path = node.path_of(listing.names.get(index).0);
            path.push(b'/');
            let parent = Some((Arc::clone(node), index));
            let rules = Arc::clone(&listing.rules);
            Task::Directory(Arc::new(Node::new(parent, path, node.depth + 1, rules, decision)))
        };
        self.shared.pool.push(directories.into_iter().rev().map(child));
    }

    fn link(&mut self, node: &Node<'a>, directory: &OwnedFd, name: &[u8]) -> Result<Found> {
        match retry(|| readlinkat(directory, name, Vec::new())) {
            Ok(target) if (1..=MAX_TARGET_BYTES).contains(&target.as_bytes().len()) => {
                Ok(Found::Link(target.into_bytes().into_boxed_slice()))
            }
            Ok(_) => {
                self.skip(node.path_of(name), SkipReason::TooLarge);
                Ok(Found::Nothing)
            }
            // It was a link when the directory was listed.
            Err(Errno::INVAL) => {
                self.skip(node.path_of(name), SkipReason::Changing);
                Ok(Found::Nothing)
            }
            Err(error) => {
                let read = failure(error);
                self.outcome(node, name, read)
            }
        }
    }

    /// Returns what a file is: as it is known if it looks the same, else as it is read.
    fn file(
        &mut self,
        node: &Node<'a>,
        directory: &OwnedFd,
        name: &[u8],
        known: Option<Known<'a>>,
        before_ns: i64,
    ) -> Result<Found> {
        let stat = match retry(|| statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)) {
            Ok(stat) => stat,
            Err(error) => return self.outcome(node, name, failure(error)),
        };
        let max_file = self.shared.options.max_file;
        if let Some(Known::File(before, content)) = known {
            let stamp = FileStamp::of(&stat);
            if stamp == before && stamp.size <= max_file {
                return Ok(Found::File { stamp, content, is_settled: true });
            }
        }
        let shared = self.shared;
        let file = FileToRead { directory, name, max_file, sink: shared.sink, stop: shared.options.stop };
        let read = file.read(stat, before_ns, &mut self.content);
        self.outcome(node, name, read)
    }

    fn outcome(
        &mut self,
        node: &Node<'a>,
        name: &[u8],
        read: std::result::Result<ReadFile, ReadError>,
    ) -> Result<Found> {
        let path = || self.shared.absolute(&node.path_of(name));
        match read {
            Ok(ReadFile::Content { stamp, content, is_settled }) => {
                self.output.files_read += 1;
                Ok(Found::File { stamp, content, is_settled })
            }
            Ok(ReadFile::Gone) => Ok(Found::Nothing),
            Ok(ReadFile::Skip(reason)) => {
                self.skip(node.path_of(name), reason);
                Ok(Found::Nothing)
            }
            Err(ReadError::Stopped) => Err(CaptureError::Stopped { cache: None }),
            Err(ReadError::Exhausted(error)) => {
                Err(CaptureError::Exhausted { path: path(), source: error.into() })
            }
            Err(ReadError::Sink(source)) => Err(CaptureError::Sink { path: path(), source }),
        }
    }

    /// Counts a part of a directory as done; after the last one its tree is made.
    fn finish(&mut self, node: Arc<Node<'a>>) -> Result<()> {
        if node.unfinished.fetch_sub(1, Ordering::AcqRel) > 1 {
            return Ok(());
        }
        let Contents { found, below } = std::mem::take(&mut *node.contents());
        let listing = node.listing.get().expect("a directory is listed before it is finished");
        let mut totals = below;
        let mut is_settled = true;
        let mut is_whole = true;
        let mut record =
            RecordWriter::new(listing.rules.key(), listing.names.total_bytes() + found.len() * 72);
        for (index, found) in found.iter().enumerate() {
            record.push(listing.names.get(index).0, found);
            match found {
                Found::File { stamp, is_settled: settled, .. } => {
                    totals.add(&Totals { files: 1, bytes: stamp.size, ..Totals::default() });
                    is_settled &= settled;
                }
                Found::Link(_) => totals.links += 1,
                Found::Directory { tree: Some(_), .. } => totals.directories += 1,
                Found::Nothing | Found::Directory { tree: None, .. } => is_whole = false,
                Found::Ignored | Found::IgnoredDirectory => {}
            }
        }
        let stamp = listing.stamp.filter(|_| is_whole);
        let sink = self.shared.sink;
        let same =
            listing.known.filter(|known| is_settled && record.is_same_as(known) && sink.reuse(&known.tree()));
        if let Some(known) = same {
            let renewed = (known.stamp() != stamp).then(|| record.finish(&known.tree(), stamp));
            self.output.records.push((node.path.clone(), renewed));
            return self.leave(&node, Some(known.tree()), totals);
        }
        let Some(tree) = build(&listing.names, &found) else {
            self.skip_directory(&node, SkipReason::TooLarge);
            return self.leave(&node, None, Totals::default());
        };
        let failed = |source| CaptureError::Sink { path: self.shared.absolute(&node.path), source };
        let id = sink.put(tree.bytes()).map_err(failed)?;
        self.output.records.push((node.path.clone(), Some(record.finish(&id, stamp))));
        self.leave(&node, Some(id), totals)
    }

    /// Tells the directory around a directory what became of it: its tree, or that it is not there.
    fn leave(&mut self, node: &Node<'a>, tree: Option<BlobId>, totals: Totals) -> Result<()> {
        let Some((parent, index)) = &node.parent else {
            *self.shared.finished.lock().unwrap_or_else(PoisonError::into_inner) =
                tree.map(|tree| (tree, totals));
            return Ok(());
        };
        {
            let mut contents = parent.contents();
            if let Found::Directory { tree: slot, .. } = &mut contents.found[*index] {
                *slot = tree;
            }
            contents.below.add(&totals);
        }
        self.finish(Arc::clone(parent))
    }
}
