//! Export: sessions become a bundle, while they go on. Each log is read up to the record that was its last when the export looked at
//! it, and nobody is stopped for that.
//!
//! The table of contents comes first and has the hash and the size of everything: logs and snapshots are read twice, once for that
//! and once to be written; contents of files are named by their hash, and their trees know their sizes.

use std::collections::{BTreeMap, HashSet};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use rekindle_domain::blob_id::BlobId;
use rekindle_domain::bundle::{
    BUNDLE_FORMAT, BundledSession, CONTENTS, Contents, Member, MemberName, SnapshotEnding,
};
use rekindle_domain::event::Compression;
use rekindle_domain::id::SessionId;
use rekindle_domain::time::Timestamp;
use rekindle_store::blob_references::references_in;
use rekindle_store::blobs::{BlobError, Blobs};
use rekindle_store::disk::{DiskFile, OpenMode, SharedDisk};
use rekindle_store::kept_snapshots::KeptSnapshots;
use rekindle_store::layout::Layout;
use rekindle_store::log::{Cursor, StoredBytes};
use rekindle_store::offline::Offline;
use rekindle_store::{History, Want};
use rekindle_workspace::tree::{MAGIC, Node, load};
use rekindle_workspace::{CaptureOptions, ObjectSource};

use super::archive::{END, Hashing, header, padding, seal};
use super::{BundleError, Progress, Watcher};
use crate::workspaces::{BlobSource, Workspaces};

/// Fast, and good enough for text.
const LEVEL: i32 = 3;

/// How often progress is told, in bytes.
const STEP: u64 = 1 << 20;

/// What is to be exported, and what the bundle says of itself.
pub struct Export<'a> {
    /// The sessions.
    pub sessions: Vec<SessionId>,
    /// How their working directories are captured, if their files are to go along.
    pub files: Option<&'a dyn Fn(&Path) -> CaptureOptions<'static>>,
    /// The version that makes it.
    pub made_by: String,
    /// When.
    pub made_at: Timestamp,
    /// The machine, as people call it.
    pub machine: Option<String>,
}

/// What was exported.
#[derive(Debug)]
pub struct Exported {
    /// The table of contents.
    pub contents: Contents,
    /// What somebody should know who reads it elsewhere.
    pub notes: Vec<String>,
    /// Bytes of the bundle.
    pub bytes: u64,
}

/// Where a member's bytes come from.
enum Source {
    /// The history before a session's own log; by the number of the session.
    Base(usize),
    /// Its own log.
    Log(usize),
    /// A file that is never changed, and how long it is.
    File(Box<dyn DiskFile>, u64),
    /// A blob.
    Blob(BlobId),
}

/// The tree of each working directory whose files are asked for; none of one that is not there.
type Trees = BTreeMap<String, Option<BlobId>>;

/// Writes a bundle.
pub fn export(
    disk: &SharedDisk,
    layout: &Layout,
    asked: &Export<'_>,
    sink: &mut (dyn Write + Send),
    watcher: Watcher<'_>,
) -> Result<Exported, BundleError> {
    let workspaces = Workspaces::new(disk.clone(), layout.clone());
    let mut directories = Trees::new();
    if asked.files.is_some() {
        // Before the logs are looked at: a log tells of whatever an agent has done to the files by then.
        let offline = Offline::open(disk.clone(), layout.home())?;
        for session in &asked.sessions {
            let directory = offline.load(*session, Want::Status)?.state.working_dir;
            directories.entry(directory).or_insert(None);
        }
    }
    let open: Vec<String> = directories.keys().cloned().collect();
    capture_all(&workspaces, asked, &open, &mut directories, &mut |trees| {
        write_bundle(disk, layout, asked, trees, (&mut *sink, &mut *watcher))
    })
}

/// Captures directories one after the other, and exports while nobody can collect anything of them.
fn capture_all<T>(
    workspaces: &Workspaces,
    asked: &Export<'_>,
    open: &[String],
    trees: &mut Trees,
    export: &mut dyn FnMut(&Trees) -> Result<T, BundleError>,
) -> Result<T, BundleError> {
    let (Some((directory, rest)), Some(options)) = (open.split_first(), asked.files) else {
        return export(trees);
    };
    if !Path::new(directory).is_dir() {
        // It is told as a note: the session can go on elsewhere without its files.
        return capture_all(workspaces, asked, rest, trees, export);
    }
    workspaces.capture_while(options(&PathBuf::from(directory)), |captured| {
        trees.insert(directory.clone(), Some(captured.tree));
        capture_all(workspaces, asked, rest, trees, export)
    })?
}

fn write_bundle(
    disk: &SharedDisk,
    layout: &Layout,
    asked: &Export<'_>,
    trees: &Trees,
    (sink, watcher): (&mut (dyn Write + Send), Watcher<'_>),
) -> Result<Exported, BundleError> {
    let offline = Offline::open(disk.clone(), layout.home())?;
    let mut gathered = Gathered::new(&offline);
    for session in &asked.sessions {
        gathered.add_session(*session, trees)?;
    }
    gathered.add_blobs()?;
    let contents = Contents {
        format: BUNDLE_FORMAT,
        made_by: asked.made_by.clone(),
        made_at: asked.made_at,
        machine: asked.machine.clone(),
        sessions: std::mem::take(&mut gathered.sessions),
        members: gathered.members.iter().map(|(member, _)| member.clone()).collect(),
    };
    contents.check()?;
    let bytes = gathered.write(&contents, sink, watcher)?;
    Ok(Exported { contents, notes: gathered.notes, bytes })
}

/// What goes into a bundle.
struct Gathered<'a> {
    offline: &'a Offline,
    blobs: Blobs,
    sessions: Vec<BundledSession>,
    members: Vec<(Member, Source)>,
    /// The history of each session, and where its own log ends.
    histories: Vec<(History, Cursor)>,
    /// Blobs that a log or a snapshot may name.
    named: HashSet<BlobId>,
    notes: Vec<String>,
}

impl<'a> Gathered<'a> {
    fn new(offline: &'a Offline) -> Gathered<'a> {
        Gathered {
            offline,
            blobs: offline.blobs(),
            sessions: Vec::new(),
            members: Vec::new(),
            histories: Vec::new(),
            named: HashSet::new(),
            notes: Vec::new(),
        }
    }

    /// Adds a session: what it goes on from, its log, its kept snapshots.
    fn add_session(&mut self, session: SessionId, trees: &Trees) -> Result<(), BundleError> {
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
                "its log is of an earlier version; use the session once, and try again".into(),
            ));
        }
        let unread = |source| BundleError::Io { path: self.offline.layout().log(session), source };
        let history = self.offline.history(session).map_err(unread)?;
        if let Some(why) = &history.missing {
            self.notes.push(format!("what {session} was forked from is not in the bundle: {why}"));
        }
        let (seq, h, end) = (state.last_seq, state.last_hash, history.end_of(state));
        let tree = trees.get(&state.working_dir).copied().flatten();
        if tree.is_none() && trees.contains_key(&state.working_dir) {
            let note =
                format!("the files of {session} are not in the bundle: there is no {}", state.working_dir);
            self.notes.push(note);
        }
        let (title, working_dir) = (state.title.clone(), state.working_dir.clone());
        self.sessions.push(BundledSession { session_id: session, title, working_dir, seq, h, tree });
        let number = self.histories.len();
        self.histories.push((history, end));
        if self.stretch(&Source::Base(number)).is_some_and(|bytes| bytes.left() > 0) {
            self.add_stretch(MemberName::Base(session), Source::Base(number))?;
        }
        self.add_stretch(MemberName::Log(session), Source::Log(number))?;
        self.add_snapshots(session, seq)
    }

    /// Returns a stretch of a history.
    fn stretch(&self, source: &Source) -> Option<StoredBytes<'_>> {
        let (number, is_base) = match source {
            Source::Base(number) => (*number, true),
            Source::Log(number) => (*number, false),
            Source::File(..) | Source::Blob(_) => return None,
        };
        let (history, end) = self.histories.get(number)?;
        let own = history.own();
        let (from, to) = if is_base { (Cursor::START, own) } else { (own, *end) };
        Some(history.reader.stored(from, to))
    }

    fn add_stretch(&mut self, name: MemberName, source: Source) -> Result<(), BundleError> {
        let mut named = std::mem::take(&mut self.named);
        let Some(stretch) = self.stretch(&source) else { return Ok(()) };
        let mut hashing = Hashing::new(stretch);
        let read = references_in(&mut hashing, &mut named);
        let (size, hash) = (hashing.count, hashing.id());
        self.named = named;
        read.map_err(|source| BundleError::Io { path: self.offline.layout().home().to_owned(), source })?;
        self.members.push((Member { name, size, hash }, source));
        Ok(())
    }

    /// Adds the snapshots that were kept by the record at which the log is exported.
    fn add_snapshots(&mut self, session: SessionId, seq: u64) -> Result<(), BundleError> {
        let kept = KeptSnapshots::new(self.offline.disk().clone(), self.offline.layout().clone());
        for file in kept.list(session)?.into_iter().filter(|file| file.name.seq <= seq) {
            let ending = match file.compression() {
                Compression::Zstd => SnapshotEnding::Zstd,
                Compression::Gzip => SnapshotEnding::Gzip,
                Compression::None => SnapshotEnding::Plain,
            };
            let unread = |source| BundleError::Io { path: file.path.clone(), source };
            // One that is damaged, or too new, is no reason to leave a session behind.
            let Ok(snapshot) = kept.read(session, file.name) else {
                self.notes.push(format!("snapshot {} of {session} cannot be read and stays here", file.name));
                continue;
            };
            let text = serde_json::to_vec(&snapshot).map_err(|error| unread(error.into()))?;
            references_in(&mut &text[..], &mut self.named).map_err(unread)?;
            let opened = self.offline.disk().open(&file.path, OpenMode::Read).map_err(unread)?;
            let mut hashing = Hashing::new(AtOffset { file: &*opened, at: 0, end: file.size });
            io::copy(&mut hashing, &mut io::sink()).map_err(unread)?;
            let (size, hash) = (hashing.count, hashing.id());
            let name = MemberName::Snapshot(session, file.name, ending);
            self.members.push((Member { name, size, hash }, Source::File(opened, size)));
        }
        Ok(())
    }

    /// Adds the blobs that are named, but for trees; and the trees that are asked for, with everything in them.
    fn add_blobs(&mut self) -> Result<(), BundleError> {
        let mut sizes: BTreeMap<BlobId, u64> = BTreeMap::new();
        let mut named: Vec<BlobId> = std::mem::take(&mut self.named).into_iter().collect();
        named.sort_unstable();
        for id in named {
            let mut looked = Looked::default();
            match self.blobs.copy_to(&id, &mut looked) {
                // Any 64 digits of a log may be a name: most are none of an object.
                Err(BlobError::Missing(_)) => {}
                Err(error) => return Err(error.into()),
                Ok(_) if looked.beginning.starts_with(MAGIC) => {}
                Ok(size) => drop(sizes.insert(id, size)),
            }
        }
        let source = BlobSource(self.blobs.clone());
        let roots: HashSet<BlobId> = self.sessions.iter().filter_map(|session| session.tree).collect();
        for root in roots {
            add_tree(&source, root, &mut sizes)?;
        }
        for (id, size) in sizes {
            self.members.push((Member { name: MemberName::Blob(id), size, hash: id }, Source::Blob(id)));
        }
        Ok(())
    }

    /// Writes everything, compressed, with the hash behind it; returns how many bytes that took.
    fn write(
        &self,
        contents: &Contents,
        sink: &mut (dyn Write + Send),
        watcher: Watcher<'_>,
    ) -> Result<u64, BundleError> {
        let unwritten = BundleError::unwritten;
        let table = contents.to_bytes().map_err(|error| unwritten(error.into()))?;
        let total = contents.members.iter().map(|member| member.size).sum();
        let mut encoder = zstd::Encoder::new(Hashing::new(sink), LEVEL).map_err(unwritten)?;
        encoder.include_checksum(true).map_err(unwritten)?;
        // Compressed beside whoever reads and hashes what is written.
        let workers = std::thread::available_parallelism().map_or(1, |cores| cores.get().min(4));
        encoder.multithread(workers as u32).map_err(unwritten)?;
        let mut out = Out { encoder, done: 0, told: 0, total, watcher };
        out.begin(CONTENTS, table.len() as u64).map_err(unwritten)?;
        out.encoder.write_all(&table).map_err(unwritten)?;
        out.pad(table.len() as u64).map_err(unwritten)?;
        for (member, source) in &self.members {
            self.write_member(member, source, &mut out)?;
        }
        out.encoder.write_all(&END).map_err(unwritten)?;
        let hashed = out.encoder.finish().map_err(unwritten)?;
        let seal = seal(&hashed.hash());
        hashed.inner.write_all(&seal).and_then(|()| hashed.inner.flush()).map_err(unwritten)?;
        Ok(hashed.count + seal.len() as u64)
    }

    fn write_member(
        &self,
        member: &Member,
        source: &Source,
        out: &mut Out<'_, '_>,
    ) -> Result<(), BundleError> {
        let changed = |why: String| BundleError::Member { name: member.name.clone(), why };
        out.begin(&member.name.to_string(), member.size).map_err(BundleError::unwritten)?;
        match source {
            Source::Blob(id) => {
                let size = self.blobs.copy_to(id, out)?;
                if size != member.size {
                    return Err(changed(format!("it has {size} bytes here, not {}", member.size)));
                }
            }
            Source::File(file, size) => {
                out.copy(&mut AtOffset { file: &**file, at: 0, end: *size }, member)?;
            }
            Source::Base(_) | Source::Log(_) => {
                if let Some(mut stretch) = self.stretch(source) {
                    out.copy(&mut stretch, member)?;
                }
            }
        }
        out.pad(member.size).map_err(BundleError::unwritten)
    }
}

/// Adds a tree with everything in it: the objects, and how large each is.
fn add_tree(
    source: &dyn ObjectSource,
    root: BlobId,
    sizes: &mut BTreeMap<BlobId, u64>,
) -> Result<(), BundleError> {
    let (mut open, mut seen) = (vec![root], HashSet::from([root]));
    while let Some(id) = open.pop() {
        let tree = load(source, &id)?;
        sizes.insert(id, tree.bytes().len() as u64);
        for entry in tree.entries() {
            match entry.node {
                Node::File { size, content, .. } => drop(sizes.insert(content, size)),
                Node::Directory { tree } => {
                    if seen.insert(tree) {
                        open.push(tree);
                    }
                }
                Node::Link { .. } => {}
            }
        }
    }
    Ok(())
}

/// A bundle that is being written.
struct Out<'a, 's> {
    encoder: zstd::Encoder<'static, Hashing<&'s mut (dyn Write + Send)>>,
    done: u64,
    told: u64,
    total: u64,
    watcher: Watcher<'a>,
}

impl Out<'_, '_> {
    fn begin(&mut self, name: &str, size: u64) -> io::Result<()> {
        self.encoder.write_all(&header(name, size)?)
    }

    fn pad(&mut self, size: u64) -> io::Result<()> {
        self.encoder.write_all(&END[..padding(size)])
    }

    /// Copies a member, which must still be what it was when the table was made.
    fn copy(&mut self, bytes: &mut dyn Read, member: &Member) -> Result<(), BundleError> {
        let mut hashing = Hashing::new(bytes);
        io::copy(&mut hashing, self).map_err(BundleError::unwritten)?;
        if (hashing.count, hashing.id()) != (member.size, member.hash) {
            let why = "it was changed while it was exported".to_owned();
            return Err(BundleError::Member { name: member.name.clone(), why });
        }
        Ok(())
    }
}

impl Write for Out<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.encoder.write(bytes)?;
        self.done += written as u64;
        if self.done - self.told >= STEP {
            self.told = self.done;
            (self.watcher)(Progress { doing: "exporting", done: self.done, total: self.total });
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.encoder.flush()
    }
}

/// A file, read from its beginning to a place.
struct AtOffset<'a> {
    file: &'a dyn DiskFile,
    at: u64,
    end: u64,
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
struct Looked {
    beginning: Vec<u8>,
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
