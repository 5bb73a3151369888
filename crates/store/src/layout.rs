//! Every path on disk, named once; which streams a home has, and how the lines of its logs are stored.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use rekindle_domain::blob_id::BlobId;
use rekindle_domain::id::{PipelineId, RunName, SessionId, StreamId, StreamKind, is_plain_name};

use crate::line_codec::Codec;

const LOG_SUFFIX: &str = ".messages.jsonl";
const BASE_SUFFIX: &str = ".base.jsonl";
const TOKENS_SUFFIX: &str = ".tokens.json";
const HISTORY_SUFFIX: &str = ".snapshots";
const SNAPSHOT_SUFFIX: &str = ".json";
const MANIFEST_SUFFIX: &str = ".manifest.json";
const SEGMENT_SUFFIX: &str = ".wal";
/// What a file is called until it is whole.
pub const TEMPORARY_SUFFIX: &str = ".tmp";
/// What a damaged segment of the write-ahead log is kept as.
pub const DAMAGED_SUFFIX: &str = ".damaged";
const DAMAGE_NOTE_SUFFIX: &str = ".damaged.json";
/// What the name of a pack ends in.
pub(crate) const PACK_SUFFIX: &str = ".pack";
/// What the name of a pack's index ends in.
pub(crate) const PACK_INDEX_SUFFIX: &str = ".idx";
const CRASH_REPORT_SUFFIX: &str = ".jsonl";
/// What the ledger of a pipeline run is called.
pub(crate) const LEDGER: &str = "ledger.ndjson";
/// What is added to the name of a log that is kept compressed.
const COMPRESSED_SUFFIX: &str = ".zst";
/// What the summary of a pipeline run is called: it is made from the ledger.
const RUN_SUMMARY: &str = "run.json";

/// Where everything lives below a home.
#[derive(Debug, Clone)]
pub struct Layout {
    home: PathBuf,
    streams: Streams,
    codec: Codec,
}

/// The kinds of streams that a home may have: sessions, and those listed here.
#[derive(Debug, Clone, Copy, Default)]
pub struct Streams(&'static [StreamType]);

/// A kind of stream beside sessions.
#[derive(Debug, Clone, Copy)]
pub struct StreamType {
    /// What tells it from others.
    pub kind: StreamKind,
    /// Returns where the log of such a stream is. Its directory is there before the stream's first record is appended.
    pub log: fn(&Layout, StreamId) -> PathBuf,
}

impl Streams {
    /// Returns the kind that a byte of the write-ahead log stands for.
    pub(crate) fn kind(self, byte: u8) -> Option<StreamKind> {
        if byte == StreamKind::SESSION.byte {
            return Some(StreamKind::SESSION);
        }
        self.0.iter().map(|known| known.kind).find(|kind| kind.byte == byte)
    }
}

/// The streams that every home has beside sessions.
const OWN_STREAMS: &[StreamType] = &[
    StreamType { kind: StreamKind::TASKS, log: |layout, _| layout.tasks().join("tasks.jsonl") },
    StreamType { kind: StreamKind::PIPELINE, log: |layout, stream| layout.run_of(stream).join(LEDGER) },
];

/// What a name in `sessions/` is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionFile {
    /// The log.
    Log(SessionId),
    /// The history that a fork goes on from.
    Base(SessionId),
    /// The snapshot.
    Snapshot(SessionId),
    /// The token index.
    Tokens(SessionId),
    /// The directory of kept snapshots.
    History(SessionId),
    /// The list cache.
    Index,
    /// A half-written file that a crash left behind.
    Temporary,
    /// The note that records are missing from the log.
    DamageNote(SessionId),
    /// Not ours.
    Foreign,
}

impl Layout {
    /// Returns the layout of a home.
    pub fn new(home: impl Into<PathBuf>) -> Layout {
        Layout::with_streams(home, OWN_STREAMS)
    }

    /// Returns the layout of a home that has streams of other kinds beside sessions.
    pub fn with_streams(home: impl Into<PathBuf>, streams: &'static [StreamType]) -> Layout {
        Layout { home: home.into(), streams: Streams(streams), codec: Codec::default() }
    }

    /// Returns the layout of the same home with lines stored in another way.
    #[cfg(test)]
    pub(crate) fn with_codec(self, codec: Codec) -> Layout {
        Layout { codec, ..self }
    }

    /// Returns how the lines of the home's logs are stored.
    pub(crate) fn codec(&self) -> Codec {
        self.codec
    }

    /// Returns the kinds of streams that the home may have.
    pub(crate) fn streams(&self) -> Streams {
        self.streams
    }

    /// The home itself.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// The format of the home.
    pub fn home_file(&self) -> PathBuf {
        self.home.join("home.json")
    }

    /// The lock that one daemon at a time holds.
    pub fn lock(&self) -> PathBuf {
        self.home.join("daemon.lock")
    }

    /// The list of access tokens.
    pub fn access(&self) -> PathBuf {
        self.home.join("access.json")
    }

    /// The lock of whoever changes that list.
    pub fn access_lock(&self) -> PathBuf {
        self.home.join("access.lock")
    }

    /// When access tokens were last used.
    pub fn access_used(&self) -> PathBuf {
        self.home.join("access-used.json")
    }

    /// The list of project files that are trusted.
    pub fn trusted_configs(&self) -> PathBuf {
        self.home.join("trusted.json")
    }

    /// The lock of whoever changes that list.
    pub fn trusted_configs_lock(&self) -> PathBuf {
        self.home.join("trusted.lock")
    }

    /// The write-ahead log's directory.
    pub fn wal(&self) -> PathBuf {
        self.home.join("wal")
    }

    /// One segment of the write-ahead log.
    pub fn segment(&self, number: u64) -> PathBuf {
        self.wal().join(format!("{number:08}{SEGMENT_SUFFIX}"))
    }

    /// Room for the records that must go through when the disk is full.
    pub fn reserve(&self) -> PathBuf {
        self.wal().join("reserve")
    }

    /// The sessions' directory.
    pub fn sessions(&self) -> PathBuf {
        self.home.join("sessions")
    }

    /// The list cache.
    pub fn index(&self) -> PathBuf {
        self.sessions().join("index.json")
    }

    /// The directory of the stream of tasks.
    pub fn tasks(&self) -> PathBuf {
        self.home.join("tasks")
    }

    /// What the tasks amount to that have not ended.
    pub fn tasks_state(&self) -> PathBuf {
        self.tasks().join("tasks.state.json")
    }

    /// The database of tasks, if it is not elsewhere.
    pub fn tasks_database(&self) -> PathBuf {
        self.home.join("tasks.db")
    }

    /// The directory of pipeline runs, a directory for each; there once there was one.
    pub fn runs(&self) -> PathBuf {
        self.home.join("runs")
    }

    /// The directory of a pipeline run.
    pub fn run(&self, pipeline: PipelineId) -> PathBuf {
        self.run_of(pipeline.into())
    }

    fn run_of(&self, stream: StreamId) -> PathBuf {
        // A run that has no name is never made here: its id stands for a place that nobody uses.
        let name = stream.pipeline().and_then(RunName::of).map(|name| name.to_string());
        self.runs().join(name.as_deref().unwrap_or(stream.as_str()))
    }

    /// The ledger of a pipeline run.
    pub fn ledger(&self, pipeline: PipelineId) -> PathBuf {
        self.stream_log(pipeline.into())
    }

    /// The summary of a pipeline run.
    pub fn run_summary(&self, pipeline: PipelineId) -> PathBuf {
        self.run(pipeline).join(RUN_SUMMARY)
    }

    /// The results of steps that runs share, a directory for each agent; there once there was one.
    pub fn cached_results(&self) -> PathBuf {
        self.home.join("cache")
    }

    /// The results of steps of an agent, by its name in the configuration of a project; none if that is no name.
    pub fn cached_results_of(&self, agent: &str) -> Option<PathBuf> {
        is_plain_name(agent).then(|| self.cached_results().join(agent))
    }

    /// The directory of notifications.
    pub fn notify(&self) -> PathBuf {
        self.home.join("notify")
    }

    /// The outbox of notifications: what waits to be delivered, and what was.
    pub fn outbox(&self) -> PathBuf {
        self.notify().join("outbox.jsonl")
    }

    /// A stream's log.
    pub fn stream_log(&self, stream: StreamId) -> PathBuf {
        match self.streams.0.iter().find(|known| known.kind.byte == stream.kind()) {
            Some(known) => (known.log)(self, stream),
            None => self.sessions().join(format!("{stream}{LOG_SUFFIX}")),
        }
    }

    /// A stream's log once it is kept compressed; none of a stream that goes on for ever.
    pub fn compressed_log(&self, stream: StreamId) -> Option<PathBuf> {
        stream.pipeline()?;
        let mut name = self.stream_log(stream).into_os_string();
        name.push(COMPRESSED_SUFFIX);
        Some(name.into())
    }

    /// The note that records are missing from a stream's log.
    pub(crate) fn stream_damage_note(&self, stream: StreamId) -> PathBuf {
        match stream.session() {
            Some(session) => self.damage_note(session),
            None => {
                let mut name = self.stream_log(stream).into_os_string();
                name.push(DAMAGE_NOTE_SUFFIX);
                name.into()
            }
        }
    }

    /// The directories that the logs of streams are in; that of sessions is always among them.
    pub(crate) fn log_directories(&self, streams: impl Iterator<Item = StreamId>) -> BTreeSet<PathBuf> {
        let mut directories = BTreeSet::from([self.sessions()]);
        for stream in streams.filter(|stream| stream.session().is_none()) {
            directories.extend(self.stream_log(stream).parent().map(Path::to_owned));
        }
        directories
    }

    /// A session's log.
    pub fn log(&self, id: SessionId) -> PathBuf {
        self.stream_log(id.into())
    }

    /// The history that a fork goes on from, once its parent's log is gone: the lines before its own.
    pub fn base(&self, id: SessionId) -> PathBuf {
        self.sessions().join(format!("{id}{BASE_SUFFIX}"))
    }

    /// A session's snapshot.
    pub fn snapshot(&self, id: SessionId) -> PathBuf {
        self.sessions().join(format!("{id}{SNAPSHOT_SUFFIX}"))
    }

    /// A session's token index.
    pub fn tokens(&self, id: SessionId) -> PathBuf {
        self.sessions().join(format!("{id}{TOKENS_SUFFIX}"))
    }

    /// A session's kept snapshots.
    pub fn history(&self, id: SessionId) -> PathBuf {
        self.sessions().join(format!("{id}{HISTORY_SUFFIX}"))
    }

    /// The note that records are missing from a session's log: what the log alone cannot tell.
    pub fn damage_note(&self, id: SessionId) -> PathBuf {
        self.sessions().join(format!("{id}{DAMAGE_NOTE_SUFFIX}"))
    }

    /// The blobs' directory.
    pub fn blobs(&self) -> PathBuf {
        self.home.join("blobs")
    }

    /// The lock that whoever keeps or removes a blob has for that moment.
    pub fn blobs_lock(&self) -> PathBuf {
        self.blobs().join("lock")
    }

    /// The directory of the blobs whose hash begins with two digits.
    pub fn blob_shard(&self, id: &BlobId) -> PathBuf {
        self.blobs().join(format!("{:02x}", id.as_bytes()[0]))
    }

    /// One blob.
    pub fn blob(&self, id: &BlobId) -> PathBuf {
        self.blob_shard(id).join(format!("{id}.zst"))
    }

    /// The lock of the process that writes packs or relies on some, for as long as it does.
    pub fn batch_lock(&self) -> PathBuf {
        self.blobs().join("batch.lock")
    }

    /// Tells whether a path in the blobs' directory is one of those that all blobs share.
    pub(crate) fn is_shared_by_blobs(&self, path: &Path) -> bool {
        path == self.blobs_lock() || path == self.batch_lock() || path == self.packs()
    }

    /// The directory of the packs.
    pub fn packs(&self) -> PathBuf {
        self.blobs().join("packs")
    }

    /// One pack. Its name is 32 hex digits.
    pub(crate) fn pack(&self, id: &impl std::fmt::Display) -> PathBuf {
        self.packs().join(format!("{id}{PACK_SUFFIX}"))
    }

    /// The index of a pack.
    pub(crate) fn pack_index(&self, id: &impl std::fmt::Display) -> PathBuf {
        self.packs().join(format!("{id}{PACK_INDEX_SUFFIX}"))
    }

    /// Snapshots of working directories: a manifest for each tree that is kept by name, and what makes the next capture quick.
    pub fn workspaces(&self) -> PathBuf {
        self.home.join("workspaces")
    }

    /// The manifest of a tree.
    pub fn manifest(&self, tree: &BlobId) -> PathBuf {
        self.workspaces().join(format!("{tree}{MANIFEST_SUFFIX}"))
    }

    /// Returns the tree that a name in `workspaces/` is the manifest of.
    pub fn manifest_tree(name: &str) -> Option<BlobId> {
        name.strip_suffix(MANIFEST_SUFFIX)?.parse().ok()
    }

    /// The record of the latest capture of a tree that is kept by name: where, under which rules, what was skipped.
    pub fn capture_record(&self, tree: &BlobId) -> PathBuf {
        self.workspaces().join(format!("{tree}.capture.json"))
    }

    /// Names of what exports are writing at this moment.
    pub fn exports(&self) -> PathBuf {
        self.home().join("exports")
    }

    /// The note of when the home was last collected by itself.
    pub fn collected(&self) -> PathBuf {
        self.home().join("collected.json")
    }

    /// The note of checkpoints whose files were let go.
    pub fn expired_checkpoints(&self) -> PathBuf {
        self.workspaces().join("expired.json")
    }

    /// Journals of restores that are at work, or were interrupted.
    pub fn restoring(&self) -> PathBuf {
        self.workspaces().join("restoring")
    }

    /// The journal of a restore of a directory.
    pub fn restore_journal(&self, root: &Path) -> PathBuf {
        self.restoring().join(format!("{}.json", path_key(root)))
    }

    /// The lock of whoever restores a directory.
    pub fn restore_lock(&self, root: &Path) -> PathBuf {
        self.restoring().join(format!("{}.lock", path_key(root)))
    }

    /// Receipts of restores that have come to their end, until that is recorded elsewhere.
    pub fn restored(&self) -> PathBuf {
        self.workspaces().join("restored")
    }

    /// The receipt of the latest restore of a directory.
    pub fn restore_receipt(&self, root: &Path) -> PathBuf {
        self.restored().join(format!("{}.json", path_key(root)))
    }

    /// Returns the directory in which a session's worktree is merged, or compared: there for as long as that takes.
    pub fn worktree_scratch(&self, id: SessionId) -> PathBuf {
        self.worktree_scratches().join(id.as_str())
    }

    /// Returns where those directories are.
    pub fn worktree_scratches(&self) -> PathBuf {
        self.workspaces().join("merging")
    }

    /// Returns where worktrees leave what is kept of them when they, or their sessions, are removed.
    pub fn removed_worktrees(&self) -> PathBuf {
        self.home.join("removed-worktrees")
    }

    /// Returns the bundle with what a removed worktree had that was nowhere else.
    pub fn worktree_bundle(&self, id: SessionId) -> PathBuf {
        self.removed_worktrees().join(format!("{id}.bundle"))
    }

    /// Returns the note of a worktree whose session was removed.
    pub fn worktree_note(&self, id: SessionId) -> PathBuf {
        self.removed_worktrees().join(format!("{id}.json"))
    }

    /// Stat caches, one for each directory that was captured.
    pub fn stat_caches(&self) -> PathBuf {
        self.workspaces().join("stat")
    }

    /// The stat cache of a directory.
    pub fn stat_cache(&self, root: &Path) -> PathBuf {
        self.stat_caches().join(format!("{}.cache", path_key(root)))
    }

    /// Bundles that are being imported: a directory for each until its sessions are moved to their place.
    pub fn imports(&self) -> PathBuf {
        self.home.join("imports")
    }

    /// The lock of whoever imports a bundle, for as long as that takes.
    pub fn imports_lock(&self) -> PathBuf {
        self.imports().join("lock")
    }

    /// The directory in which a bundle is staged: it has the layout of a home, with nothing but sessions.
    pub fn staging(&self, name: &str) -> PathBuf {
        self.imports().join(name)
    }

    /// Where sessions go whose log is damaged, when someone says so.
    pub fn damaged(&self) -> PathBuf {
        self.home.join("damaged")
    }

    /// The n-th directory with what was a session's files.
    pub fn aside(&self, id: SessionId, number: u64) -> PathBuf {
        self.damaged().join(format!("{id}.{number}"))
    }

    /// The note in such a directory that the good beginning of its log has become the session's log again.
    pub fn kept_prefix(&self, aside: &Path) -> PathBuf {
        aside.join("prefix-kept.json")
    }

    /// The reports of crashes, a file for each session that a daemon was working on.
    pub fn crashes(&self) -> PathBuf {
        self.home.join("crashes")
    }

    /// The reports of the crashes of daemons that were working on a session.
    pub fn crash_report(&self, id: SessionId) -> PathBuf {
        self.crashes().join(format!("{id}{CRASH_REPORT_SUFFIX}"))
    }

    /// Returns the session that a name in `crashes/` is about.
    pub fn crashed_session(name: &str) -> Option<SessionId> {
        name.strip_suffix(CRASH_REPORT_SUFFIX)?.parse().ok()
    }

    /// What repairs took away or changed, as it was; a directory for each time.
    pub fn repairs(&self) -> PathBuf {
        self.home.join("repairs")
    }

    /// The directories every home has, parents first.
    pub fn directories(&self) -> [PathBuf; 5] {
        [self.home.clone(), self.wal(), self.sessions(), self.tasks(), self.blobs()]
    }
}

/// Returns what stands for a directory in the names of files about it.
fn path_key(directory: &Path) -> String {
    let mut digits = BlobId::of(directory.as_os_str().as_encoded_bytes()).to_string();
    digits.truncate(32);
    digits
}

/// Returns the number of a segment's file name.
pub fn segment_number(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(SEGMENT_SUFFIX)?;
    let number = digits.parse().ok()?;
    (format!("{number:08}") == digits && number > 0).then_some(number)
}

/// Tells what a name in `sessions/` is.
pub fn session_file(name: &str) -> SessionFile {
    // Each name of a session ends differently, and that of a snapshot as several others do: it comes last.
    type Suffix = (&'static str, fn(SessionId) -> SessionFile);
    const SUFFIXES: [Suffix; 6] = [
        (DAMAGE_NOTE_SUFFIX, SessionFile::DamageNote),
        (LOG_SUFFIX, SessionFile::Log),
        (BASE_SUFFIX, SessionFile::Base),
        (TOKENS_SUFFIX, SessionFile::Tokens),
        (HISTORY_SUFFIX, SessionFile::History),
        (SNAPSHOT_SUFFIX, SessionFile::Snapshot),
    ];
    let of_session = |(suffix, kind): &Suffix| Some(kind(name.strip_suffix(suffix)?.parse().ok()?));
    match name {
        "index.json" => SessionFile::Index,
        _ if name.ends_with(TEMPORARY_SUFFIX) => SessionFile::Temporary,
        _ => SUFFIXES.iter().find_map(of_session).unwrap_or(SessionFile::Foreign),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_apart() {
        let id: SessionId = "sess_123".parse().expect("an id");
        let layout = Layout::new("/home");
        let name = |path: PathBuf| path.file_name().expect("a name").to_string_lossy().into_owned();
        for (path, expected) in [
            (layout.log(id), SessionFile::Log(id)),
            (layout.base(id), SessionFile::Base(id)),
            (layout.snapshot(id), SessionFile::Snapshot(id)),
            (layout.tokens(id), SessionFile::Tokens(id)),
            (layout.history(id), SessionFile::History(id)),
            (layout.damage_note(id), SessionFile::DamageNote(id)),
            (layout.index(), SessionFile::Index),
        ] {
            assert_eq!(session_file(&name(path)), expected);
        }
        for foreign in ["", ".json", "notes.txt", "sess_.json", "run_1.json", "sess_a.b.json"] {
            assert_eq!(session_file(foreign), SessionFile::Foreign, "{foreign}");
        }
        assert_eq!(session_file("sess_123.json.tmp"), SessionFile::Temporary);
    }

    #[test]
    fn the_directory_of_a_run_is_called_by_its_name() {
        let layout = Layout::new("/home");
        let name: RunName = "run-20251020-140818-4f9f29a1".parse().expect("a name");
        let ledger = "/home/runs/run-20251020-140818-4f9f29a1/ledger.ndjson";
        assert_eq!(layout.ledger(name.pipeline_id()), Path::new(ledger));
        let nameless = PipelineId::from_ulid(u128::MAX);
        assert_eq!(layout.run(nameless), Path::new("/home/runs").join(nameless.as_str()));
    }

    #[test]
    fn segment_names_come_back_and_others_do_not() {
        let layout = Layout::new("/home");
        for number in [1, 99_999_999, 100_000_000] {
            let path = layout.segment(number);
            assert_eq!(segment_number(&path.file_name().expect("a name").to_string_lossy()), Some(number));
        }
        for name in ["reserve", "1.wal", "00000000.wal", "00000001.wal.tmp", "-0000001.wal", "+0000001.wal"] {
            assert_eq!(segment_number(name), None, "{name}");
        }
    }
}
