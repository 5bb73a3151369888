//! What goes into a bundle: the histories of sessions, their kept snapshots and transcripts, and the objects that these name. Runs of
//! pipelines are gathered in `gather_runs`, the results that these share in `gather_results`.

use std::collections::{BTreeMap, HashSet};
use std::io::{self, Read, Write};

use rekindle_domain::blob_id::BlobId;
use rekindle_domain::bundle::{
    BundledRun, BundledSession, BundledTranscript, Member, MemberName, SnapshotEnding,
};
use rekindle_domain::event::Compression;
use rekindle_domain::id::{SessionId, StepKey};
use rekindle_domain::pipeline::cached_result::CachedResult;
use rekindle_domain::session::SessionState;
use rekindle_store::blob_references::references_in;
use rekindle_store::blobs::{BlobError, Blobs};
use rekindle_store::disk::{DiskFile, OpenMode, SharedDisk};
use rekindle_store::kept_snapshots::KeptSnapshots;
use rekindle_store::log::{Cursor, LogReader, StoredBytes};
use rekindle_store::offline::Offline;
use rekindle_store::{History, Want};
use rekindle_workspace::tree::MAGIC;

use super::super::archive::Hashing;
use super::super::{BundleError, transcripts};
use super::pins::ExportPins;
use super::trees::Objects;
use super::{Export, Trees};

/// Where a member's bytes come from.
pub(super) enum Source {
    /// The history before a session's own log; by the number of the session.
    Base(usize),
    /// Its own log.
    Log(usize),
    /// The ledger of a run; by the number of the run.
    Ledger(usize),
    /// A file whose beginning is never changed, and how much of it counts.
    File(Box<dyn DiskFile>, u64),
    /// Bytes that are at hand.
    Bytes(Vec<u8>),
    /// A blob.
    Blob(BlobId),
}

/// What goes into a bundle.
pub(super) struct Gathered<'a> {
    pub(super) offline: &'a Offline,
    asked: &'a Export<'a>,
    pub(super) blobs: Blobs,
    pub(super) sessions: Vec<BundledSession>,
    pub(super) runs: Vec<BundledRun>,
    pub(super) members: Vec<(Member, Source)>,
    /// The history of each session, and where its own log ends.
    histories: Vec<(History, Cursor)>,
    /// What each session's history and snapshots may name.
    named: Vec<HashSet<BlobId>>,
    /// The ledger of each run, where it ends, and what it may name.
    pub(super) ledgers: Vec<(LogReader, Cursor, HashSet<BlobId>)>,
    /// The results that steps of these runs share.
    pub(super) results: BTreeMap<StepKey, CachedResult<'static>>,
    pub(super) notes: Vec<String>,
}

impl<'a> Gathered<'a> {
    pub(super) fn new(offline: &'a Offline, asked: &'a Export<'a>) -> Gathered<'a> {
        Gathered {
            offline,
            asked,
            blobs: offline.blobs(),
            sessions: Vec::new(),
            runs: Vec::new(),
            members: Vec::new(),
            histories: Vec::new(),
            named: Vec::new(),
            ledgers: Vec::new(),
            results: BTreeMap::new(),
            notes: Vec::new(),
        }
    }

    /// Adds a session: what it goes on from, its log, its kept snapshots, what its agent wrote down.
    pub(super) fn add_session(&mut self, session: SessionId, trees: &Trees) -> Result<(), BundleError> {
        let refused = |why: String| BundleError::NotExportable { session, why };
        let loaded = self.offline.load(session, Want::Status)?;
        let state = &loaded.state;
        if let Some(damage) = &loaded.damage {
            return Err(refused(format!("its log is damaged {damage}")));
        }
        if state.deleted {
            return Err(refused("it is being removed".into()));
        }
        if !loaded.unlogged.is_empty() || !state.is_created() {
            return Err(refused(
                "its log was written by an earlier version; use the session once, and try again".into(),
            ));
        }
        let unread = |source| BundleError::Io { path: self.offline.layout().log(session), source };
        let history = self.offline.history(session).map_err(unread)?;
        if let Some(why) = &history.missing {
            self.notes
                .push(format!("the session that {session} was forked from is not in the bundle: {why}"));
        }
        let tree = trees.get(&state.working_dir).copied().flatten();
        if tree.is_none() && trees.contains_key(&state.working_dir) {
            let note =
                format!("the files of {session} are not in the bundle: {} does not exist", state.working_dir);
            self.notes.push(note);
        }
        let (number, end) = (self.histories.len(), history.end_of(state));
        self.histories.push((history, end));
        self.named.push(HashSet::new());
        if self.stretch(&Source::Base(number)).is_some_and(|bytes| bytes.left() > 0) {
            self.add_stretch(MemberName::Base(session), Source::Base(number))?;
        }
        self.add_stretch(MemberName::Log(session), Source::Log(number))?;
        self.add_snapshots(session, state.last_seq)?;
        let transcript = self.add_transcript(state)?;
        self.sessions.push(BundledSession {
            session_id: session,
            title: state.title.clone(),
            working_dir: state.working_dir.clone(),
            seq: state.last_seq,
            h: state.last_hash,
            tree,
            checkpoints: Vec::new(),
            transcript,
        });
        Ok(())
    }

    /// Returns a stretch of a history.
    pub(super) fn stretch(&self, source: &Source) -> Option<StoredBytes<'_>> {
        let (number, is_base) = match source {
            Source::Base(number) => (*number, true),
            Source::Log(number) => (*number, false),
            Source::Ledger(number) => {
                let (ledger, end, _) = self.ledgers.get(*number)?;
                return Some(ledger.stored(Cursor::START, *end));
            }
            Source::File(..) | Source::Bytes(_) | Source::Blob(_) => return None,
        };
        let (history, end) = self.histories.get(number)?;
        let own = history.own();
        let (from, to) = if is_base { (Cursor::START, own) } else { (own, *end) };
        Some(history.reader.stored(from, to))
    }

    fn add_stretch(&mut self, name: MemberName, source: Source) -> Result<(), BundleError> {
        let mut named = self.named.pop().unwrap_or_default();
        let Some(stretch) = self.stretch(&source) else { return Ok(()) };
        let mut hashing = Hashing::new(stretch);
        let read = references_in(&mut hashing, &mut named);
        let (size, hash) = (hashing.count, hashing.id());
        self.named.push(named);
        read.map_err(|source| BundleError::Io { path: self.offline.layout().home().to_owned(), source })?;
        self.members.push((Member { name, size, hash }, source));
        Ok(())
    }

    /// Adds the snapshots that were kept by the record at which the log is exported.
    fn add_snapshots(&mut self, session: SessionId, seq: u64) -> Result<(), BundleError> {
        let kept = KeptSnapshots::new(self.offline.disk().clone(), self.offline.layout().clone());
        let mut named = self.named.pop().unwrap_or_default();
        for file in kept.list(session)?.into_iter().filter(|file| file.name.seq <= seq) {
            let ending = match file.compression() {
                Compression::Zstd => SnapshotEnding::Zstd,
                Compression::Gzip => SnapshotEnding::Gzip,
                Compression::None => SnapshotEnding::Plain,
            };
            let unread = |source| BundleError::Io { path: file.path.clone(), source };
            // One that is damaged, or too new, is no reason to leave a session behind.
            let Ok(snapshot) = kept.read(session, file.name) else {
                self.notes.push(format!(
                    "snapshot {} of {session} cannot be read and is not in the bundle",
                    file.name
                ));
                continue;
            };
            let text = serde_json::to_vec(&snapshot).map_err(|error| unread(error.into()))?;
            references_in(&mut &text[..], &mut named).map_err(unread)?;
            let opened = self.offline.disk().open(&file.path, OpenMode::Read).map_err(unread)?;
            let name = MemberName::Snapshot(session, file.name, ending);
            self.add_file(name, opened, file.size).map_err(unread)?;
        }
        self.named.push(named);
        Ok(())
    }

    /// Adds what the session's agent wrote down of it itself, where its place is known.
    fn add_transcript(&mut self, state: &SessionState) -> Result<Option<BundledTranscript>, BundleError> {
        let Some(directories) = &self.asked.transcripts else { return Ok(None) };
        let session = state.id;
        match transcripts::find(&**self.offline.disk(), directories, state)? {
            Err(why) => {
                self.notes.push(format!("the transcript of {session} is not in the bundle: {why}"));
                Ok(None)
            }
            Ok(found) => {
                let unread = |source| BundleError::Io { path: found.file.clone(), source };
                let opened = self.offline.disk().open(&found.file, OpenMode::Read).map_err(unread)?;
                self.add_file(MemberName::Transcript(session), opened, found.size).map_err(unread)?;
                Ok(Some(found.bundled))
            }
        }
    }

    /// Adds so much of a file.
    fn add_file(&mut self, name: MemberName, file: Box<dyn DiskFile>, size: u64) -> io::Result<()> {
        let mut hashing = Hashing::new(AtOffset::new(&*file, size));
        io::copy(&mut hashing, &mut io::sink())?;
        let (size, hash) = (hashing.count, hashing.id());
        self.members.push((Member { name, size, hash }, Source::File(file, size)));
        Ok(())
    }

    /// Keeps what is named from being collected. A home that cannot be written is collected by nobody.
    pub(super) fn pin(&mut self, disk: &SharedDisk) -> Option<ExportPins> {
        let trees = self.sessions.iter().filter_map(|session| session.tree);
        let of_runs = self.ledgers.iter().flat_map(|(_, _, named)| named.iter().copied());
        let more = trees.chain(of_runs).collect();
        self.named.push(more);
        // Not through what only looks at a home.
        let pins = ExportPins::new(disk, self.offline.layout(), &self.named);
        self.named.pop();
        pins.inspect_err(|error| {
            tracing::warn!("the exported files are not protected from garbage collection: {error}")
        })
        .ok()
    }

    /// Adds the objects that are named; of trees only those that are asked for, each with everything in it.
    pub(super) fn add_objects(&mut self) -> Result<(), BundleError> {
        let mut objects = Objects::new(self.blobs.clone());
        self.add_trees_of_runs(&mut objects)?;
        self.add_results(&objects)?;
        for tree in self.sessions.iter().filter_map(|session| session.tree) {
            objects.add_tree(tree)?;
        }
        for (session, named) in self.sessions.iter_mut().zip(std::mem::take(&mut self.named)) {
            let mut named: Vec<BlobId> = named.into_iter().collect();
            named.sort_unstable();
            for id in named {
                if objects.is_tree(&id) == Some(true) {
                    session.checkpoints.push(id);
                    continue;
                }
                let mut looked = Looked::default();
                match self.blobs.copy_to(&id, &mut looked) {
                    // Any 64 digits of a log may be a name: most are none of an object.
                    Err(BlobError::Missing(_)) => {}
                    Err(error) => return Err(error.into()),
                    Ok(_) if looked.beginning.starts_with(MAGIC) && self.asked.files.is_none() => {}
                    Ok(_) if looked.beginning.starts_with(MAGIC) => match objects.add_tree(id) {
                        Ok(()) => session.checkpoints.push(id),
                        // An old checkpoint is no reason to leave a session behind.
                        Err(error) => {
                            let (session, why) = (session.session_id, crate::error::chain(&error));
                            self.notes
                                .push(format!("the files {id} of {session} are not in the bundle: {why}"));
                        }
                    },
                    Ok(size) => objects.add(id, size),
                }
            }
        }
        for (id, size) in objects.into_members() {
            self.members.push((Member { name: MemberName::Blob(id), size, hash: id }, Source::Blob(id)));
        }
        Ok(())
    }
}

/// A file, read from its beginning to a place.
pub(super) struct AtOffset<'a> {
    file: &'a dyn DiskFile,
    at: u64,
    end: u64,
}

impl<'a> AtOffset<'a> {
    pub(super) fn new(file: &'a dyn DiskFile, end: u64) -> AtOffset<'a> {
        AtOffset { file, at: 0, end }
    }
}

impl Read for AtOffset<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end - self.at).unwrap_or(usize::MAX).min(buf.len());
        let read = self.file.read_at(&mut buf[..left], self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

/// Keeps the beginning of an object that is looked at.
#[derive(Default)]
pub(super) struct Looked {
    pub(super) beginning: Vec<u8>,
}

impl Write for Looked {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = MAGIC.len().saturating_sub(self.beginning.len());
        self.beginning.extend_from_slice(&bytes[..room.min(bytes.len())]);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
