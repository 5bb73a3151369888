//! Files that go along: those of the directory as it is now, and those of checkpoints and kept snapshots.

use std::time::Duration;

use rekindle_domain::blob_id::BlobId;
use rekindle_domain::checkpoint::due;
use rekindle_domain::event::Compression;
use rekindle_domain::kept_snapshot::{KeptSnapshot, SnapshotReason};
use rekindle_store::Want;
use rekindle_store::offline::Offline;
use rekindle_workspace::CaptureOptions;
use rekindle_workspace::tree::{Entry, FileMode, MAGIC, Node, Tree, TreeBuilder};
use tempfile::TempDir;

use super::*;
use crate::upkeep::{CheckpointRetention, GcOptions, gc};
use crate::workspaces::Workspaces;
use crate::{all_checkpoints, find_run_checkpoints};

fn options(root: &Path) -> CaptureOptions<'static> {
    CaptureOptions::new(root)
}

fn workspaces(disk: &SimDisk) -> Workspaces {
    Workspaces::new(shared(disk), Layout::new(HOME))
}

/// Returns how the session is exported with its files.
fn with_files() -> Export<'static> {
    Export { files: Some(&options), ..alone() }
}

/// A home, a directory, and the trees of it in the order in which it had them.
struct Worked {
    disk: SimDisk,
    directory: TempDir,
    trees: Vec<BlobId>,
}

impl Worked {
    /// A session with a run that has ended and one that goes on; each changed the directory's file.
    fn new() -> Worked {
        let (disk, directory) = (SimDisk::new(1), tempfile::tempdir().expect("a directory"));
        let mut worked = Worked { disk, directory, trees: Vec::new() };
        let store = open(&worked.disk);
        store.create(session()).expect("made");
        let root = worked.directory.path().to_str().expect("text").to_owned();
        let provider = r#"{"type":"acp","agent":"claude","model":null}"#;
        let fields = format!(
            r#"{{"title":"a title","working_dir":{root:?},"provider":{provider},"options":{{"resume":"auto","on_uncertain":"ask"}}}}"#
        );
        let mut checkpoint = |run: u32, at: &str, content: &str| {
            let tree = worked.capture(content);
            record(
                "run.checkpoint",
                &format!(
                    r#"{{"run_id":"run_{run}","at":"{at}","how":"live","root":{root:?},"tree":"{tree}"}}"#
                ),
            )
        };
        let started = |run: u32| {
            let fields = format!(r#"{{"run_id":"run_{run}","boot_id":"boot_a","message_id":"msg_{run}"}}"#);
            record("run.started", &fields)
        };
        let asked =
            |run: u32| record("message.user", &format!(r#"{{"message_id":"msg_{run}","content":"do it"}}"#));
        let records = vec![
            record("session.created", &fields),
            asked(1),
            started(1),
            checkpoint(1, "start", "one"),
            record("run.completed", r#"{"run_id":"run_1","stop_reason":"end_turn"}"#),
            checkpoint(1, "end", "two"),
            asked(2),
            started(2),
            checkpoint(2, "start", "two"),
        ];
        store.append(Append::durable(session(), records)).expect("appended");
        drop(store);
        worked
    }

    /// Writes the directory's file, and captures the directory.
    fn capture(&mut self, content: &str) -> BlobId {
        std::fs::write(self.directory.path().join("file"), content).expect("written");
        let captured = workspaces(&self.disk).capture_for_now(options(self.directory.path()));
        let tree = captured.expect("captured").tree;
        self.trees.push(tree);
        tree
    }

    /// Puts objects into the blob store that no directory has.
    fn put(&self, objects: &[&[u8]]) -> Vec<BlobId> {
        let blobs = rekindle_store::blobs::Blobs::reading(shared(&self.disk), Layout::new(HOME));
        let batch = blobs.batch().expect("a batch");
        let ids = objects.iter().map(|object| batch.put(object).expect("put")).collect();
        drop(batch.commit().expect("committed"));
        ids
    }

    /// Appends a record.
    fn append(&self, record: Draft) {
        let store = open(&self.disk);
        store.open_session(session()).expect("opened");
        store.append(Append::durable(session(), vec![record])).expect("appended");
    }
}

/// Returns a tree with one file.
fn tree_with(name: &[u8], content: &[u8]) -> Tree {
    let mut tree = TreeBuilder::new();
    let (size, content) = (content.len() as u64, BlobId::of(content));
    tree.push(&Entry { name, node: Node::File { mode: FileMode::Plain, size, content } }).expect("an entry");
    tree.finish()
}

/// Returns what the file of a tree has, restored into a directory of its own.
fn restored(disk: &SimDisk, tree: BlobId) -> String {
    let place = tempfile::tempdir().expect("a directory");
    workspaces(disk).restore(tree, options(place.path())).expect("restored");
    std::fs::read_to_string(place.path().join("file")).expect("read")
}

/// A reader of a bundle that has the home collected while it waits for more.
struct Collects<'a> {
    disk: &'a SimDisk,
    bundle: Vec<u8>,
    expired: Option<u64>,
}

impl std::io::Write for Collects<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.expired.is_none() {
            self.expired = Some(collected(self.disk));
        }
        self.bundle.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Lets go of every checkpoint that nothing holds, and returns how many are past their time.
fn collected(disk: &SimDisk) -> u64 {
    let checkpoints = Some(CheckpointRetention { keep: Duration::ZERO, max_bytes: 0 });
    let done = gc(&shared(disk), Path::new(HOME), GcOptions { checkpoints, ..GcOptions::default() });
    let done = done.expect("collected");
    assert!(done.failed.is_empty() && done.left.is_empty(), "{done:?}");
    done.expired_checkpoints
}

// I12: a table of contents that was written is kept to, whoever collects meanwhile.
#[test]
fn a_collection_in_the_middle_of_an_export_takes_nothing_that_is_exported() {
    let worked = Worked::new();
    // The write-ahead log names what was written lately.
    let store = open(&worked.disk);
    rekindle_store::commit::Commits::checkpoint(store.committer()).expect("a checkpoint");
    drop(store);
    // What a dead export had pinned does not count.
    let dead = Layout::new(HOME).exports().join("1.names");
    worked.disk.write_file(&dead, worked.trees[0].to_string().as_bytes());
    let mut sink = Collects { disk: &worked.disk, bundle: Vec::new(), expired: None };
    let (disk, layout) = (shared(&worked.disk), Layout::new(HOME));
    let exported = export(&disk, &layout, &with_files(), &mut sink, &mut |_| {}).expect("exported");
    assert_eq!(sink.expired, Some(0), "all of them are held, beside what is held anyway");
    assert_eq!(exported.contents.sessions[0].checkpoints.len(), 2);
    assert!(worked.disk.paths().iter().all(|path| !path.starts_with(layout.exports())), "no pins are left");
    let other = SimDisk::new(3);
    imported(&other, &sink.bundle).expect("imported");
    assert_eq!(restored(&other, worked.trees[0]), "one");
    // Once it is done nobody holds them.
    assert!(collected(&worked.disk) > 0);
    let blobs = rekindle_store::blobs::Blobs::reading(disk, layout);
    assert!(!blobs.contains(&worked.trees[0]).expect("looked"), "past its time");
}

#[test]
fn files_of_now_and_of_checkpoints_are_there_in_the_other_home() {
    let mut worked = Worked::new();
    let now = worked.capture("three");
    let (bundle, exported) = exported_as(&worked.disk, &with_files());
    let bundled = &exported.contents.sessions[0];
    let mut expected = vec![worked.trees[0], worked.trees[1]];
    expected.sort_unstable();
    assert_eq!((bundled.tree, &bundled.checkpoints), (Some(now), &expected));
    assert_eq!(exported.notes, Vec::<String>::new());
    let (to, by_now) = (SimDisk::new(2), "three");
    let sessions = imported(&to, &bundle).expect("imported");
    assert_eq!((sessions[0].tree, sessions[0].checkpoints), (Some(now), 2));
    for (tree, content) in [(worked.trees[0], "one"), (worked.trees[1], "two"), (now, by_now)] {
        assert_eq!(restored(&to, tree), content);
    }
    // What each run did is told there too; of the one that was lost by what there was when the bundle was made.
    let offline = Offline::open(shared(&to), HOME).expect("a home");
    let reader = offline.reader(session()).expect("a log");
    for (run, from, into) in [("run_1", "one", "two"), ("run_2", "two", by_now)] {
        let found = find_run_checkpoints(&reader, Some(run)).expect("read").expect("checkpoints");
        let tree = |checkpoint: &Option<rekindle_domain::event::RunCheckpoint>| {
            checkpoint.as_ref().and_then(|checkpoint| checkpoint.tree).expect("a tree")
        };
        let (start, end) = (tree(&found.start), tree(&found.end));
        assert_eq!((restored(&to, start), restored(&to, end)), (from.into(), into.into()), "{run}");
        assert_eq!(workspaces(&to).compare(start, end).count(), 1, "{run}");
    }
    assert_eq!(all_checkpoints(&reader).expect("read").len(), 4);
    let state = offline.load(session(), Want::Everything).expect("loaded").state;
    assert!(due(&state).is_nothing(), "nobody captures a directory of another machine");
    assert_eq!(errors(&to), Vec::<String>::new());
}

#[test]
fn without_files_no_tree_goes_along() {
    let worked = Worked::new();
    let (bundle, exported) = exported_as(&worked.disk, &alone());
    assert!(
        exported.contents.sessions[0].tree.is_none() && exported.contents.sessions[0].checkpoints.is_empty()
    );
    let to = SimDisk::new(2);
    imported(&to, &bundle).expect("imported");
    assert!(!worked.trees.iter().any(|tree| workspaces(&to).has(tree)));
}

#[test]
fn trees_of_kept_snapshots_go_along() {
    let mut worked = Worked::new();
    let kept = worked.capture("kept");
    worked.capture("later");
    let store = open(&worked.disk);
    let state = (*store.open_session(session()).expect("open").state).clone();
    let snapshot =
        KeptSnapshot::new(state, SnapshotReason::Request, Timestamp::from_millis(1_000), Some(kept));
    store.keep_snapshots(&[(snapshot, Compression::Zstd)]).pop().expect("one").expect("kept");
    drop(store);
    let (bundle, exported) = exported_as(&worked.disk, &with_files());
    assert!(exported.contents.sessions[0].checkpoints.contains(&kept));
    let to = SimDisk::new(2);
    imported(&to, &bundle).expect("imported");
    assert_eq!(restored(&to, kept), "kept");
    let snapshots = rekindle_store::kept_snapshots::KeptSnapshots::new(shared(&to), Layout::new(HOME));
    let names: Vec<_> = snapshots.list(session()).expect("a list").iter().map(|file| file.name).collect();
    assert_eq!(snapshots.read(session(), names[0]).expect("a snapshot").tree, Some(kept));
    assert_eq!(errors(&to), Vec::<String>::new());
}

#[test]
fn an_old_checkpoint_that_is_gone_or_not_whole_is_no_reason_to_leave_a_session_behind() {
    let worked = Worked::new();
    let hollow = worked.put(&[tree_with(b"file", b"collected").bytes()])[0];
    let gone = BlobId::of(b"expired long ago");
    for tree in [hollow, gone] {
        let title = format!(r#"{{"title":"the trees of then: {tree}"}}"#);
        worked.append(record("session.updated", &title));
    }
    let (bundle, exported) = exported_as(&worked.disk, &with_files());
    assert!(
        exported.notes.len() == 1 && exported.notes[0].contains(&hollow.to_string()),
        "{:?}",
        exported.notes
    );
    assert_eq!(exported.contents.sessions[0].checkpoints.len(), 2);
    let to = SimDisk::new(2);
    imported(&to, &bundle).expect("imported");
    assert!(!workspaces(&to).has(&hollow));
}

#[test]
fn files_that_look_like_trees_are_files() {
    let mut worked = Worked::new();
    let looks = [MAGIC, b"and then none"].concat();
    let hollow = tree_with(b"file", b"nowhere");
    std::fs::write(worked.directory.path().join("looks"), &looks).expect("written");
    std::fs::write(worked.directory.path().join("hollow"), hollow.bytes()).expect("written");
    let now = worked.capture("now");
    // One of the files is a tree of this very bundle.
    let below = workspaces(&worked.disk).walk(worked.trees[0]).count();
    assert_eq!(below, 1);
    let mut bytes = Vec::new();
    let blobs = rekindle_store::blobs::Blobs::reading(shared(&worked.disk), Layout::new(HOME));
    blobs.copy_to(&worked.trees[0], &mut bytes).expect("read");
    std::fs::write(worked.directory.path().join("known"), &bytes).expect("written");
    let (bundle, exported) = exported_as(&worked.disk, &with_files());
    assert_ne!(exported.contents.sessions[0].tree, Some(now));
    let to = SimDisk::new(2);
    let tree = imported(&to, &bundle).expect("imported")[0].tree.expect("a tree");
    let place = tempfile::tempdir().expect("a directory");
    workspaces(&to).restore(tree, options(place.path())).expect("restored");
    for (name, expected) in [("looks", &looks[..]), ("hollow", hollow.bytes()), ("known", &bytes)] {
        assert_eq!(std::fs::read(place.path().join(name)).expect("read"), expected, "{name}");
    }
    assert_eq!(restored(&to, worked.trees[0]), "one");
}

#[test]
fn what_checkpoints_share_is_in_a_bundle_once() {
    let mut worked = Worked::new();
    for index in 0..100 {
        std::fs::write(worked.directory.path().join(format!("same-{index}")), format!("{index}"))
            .expect("written");
    }
    worked.capture("now");
    let members = |worked: &Worked| exported_as(&worked.disk, &with_files()).1.contents.members.len();
    let before = members(&worked);
    let tree = worked.capture("other");
    worked.append(record("session.updated", &format!(r#"{{"title":"{tree}"}}"#)));
    worked.capture("now");
    // Another state of one file: its content and its tree.
    assert_eq!(members(&worked), before + 2);
}
