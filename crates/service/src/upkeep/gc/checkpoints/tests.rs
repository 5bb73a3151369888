//! Which checkpoints are kept: the young ones, those of open runs, and as many as there is room for.

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use rekindle_domain::compose::begin::{Life, NewMessage, with_message};
use rekindle_domain::event::{
    CheckpointAt, CheckpointHow, Compression, Event, ForkedFrom, InterruptReason, Options, Provider, Raw,
    RunCheckpoint, RunCompleted, RunInterrupted, SessionCreated, SessionDeleted,
};
use rekindle_domain::id::{BootId, MessageId, RunId, SessionId};
use rekindle_domain::kept_snapshot::{KeptSnapshot, SnapshotReason};
use rekindle_store::commit::Append;
use rekindle_store::{Opener, Store};
use rekindle_testkit::clock::SimClock;
use rekindle_testkit::sim::SimDisk;
use rekindle_workspace::tree::{Entry, FileMode, TreeBuilder};

use super::*;
use crate::upkeep::expired_checkpoints;

const DAY: i64 = 24 * 60 * 60 * 1000;
const SESSION: u64 = 7;

struct Home {
    disk: SharedDisk,
    clock: Arc<SimClock>,
    store: Store,
    session: SessionId,
    runs: u64,
}

impl Home {
    fn new() -> Home {
        let (disk, clock) = (Arc::new(SimDisk::new(1)) as SharedDisk, Arc::new(SimClock::default()));
        let opener = Opener { pid: 1, boot_id: BootId::mint(0, 1) };
        let store = Store::open(disk.clone(), "/home", opener, clock.clone()).expect("a home");
        let session = SessionId::mint(SESSION, SESSION.into());
        store.create(session).expect("new");
        let home = Home { disk, clock, store, session, runs: 0 };
        home.append(vec![Event::from(created(None))]);
        home
    }

    /// Makes a fork of the session as it is now, which is the one that goes on.
    fn fork(&mut self) {
        let seq = self.store.open_session(self.session).expect("open").state.last_seq;
        let from = self.store.fork_point(self.session, seq).expect("readable").expect("such a record");
        self.session = SessionId::mint(SESSION, u128::from(seq) + 100);
        let first = vec![created(Some(from)).into()];
        self.store.fork(Append::durable(self.session, first)).expect("forked");
    }

    fn append(&self, events: Vec<Event<'static>>) {
        let records = events.into_iter().map(Into::into).collect();
        self.store.append(Append::durable(self.session, records)).expect("recorded");
    }

    /// Puts a tree with one file of so many bytes that nothing makes smaller.
    fn tree(&self, seed: u8, bytes: usize) -> BlobId {
        let mut state = u32::from(seed) + 1;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        };
        let content: Vec<u8> = (0..bytes).map(|_| next()).collect();
        let batch = self.store.blobs().batch().expect("a batch");
        let id = batch.put(&content).expect("put");
        let file = Node::File { mode: FileMode::Plain, size: bytes as u64, content: id };
        let mut tree = TreeBuilder::new();
        tree.push(&Entry { name: b"file", node: file }).expect("an entry");
        let tree = batch.put(tree.finish().bytes()).expect("put");
        drop(batch.commit().expect("committed"));
        tree
    }

    /// Keeps a snapshot of the session that names a tree.
    fn keep_snapshot(&self, tree: BlobId) {
        let state = (*self.store.open_session(self.session).expect("open").state).clone();
        let kept = KeptSnapshot::new(state, SnapshotReason::Request, SimClock::default_start(), Some(tree));
        self.store.keep_snapshots(&[(kept, Compression::Zstd)]).pop().expect("one").expect("kept");
    }

    /// Records a run with a checkpoint at its start; it ends, unless it is to go on.
    fn run(&mut self, tree: BlobId, ends: bool) {
        self.runs += 1;
        let (run_id, message_id) = (RunId::mint(1, self.runs.into()), MessageId::mint(1, self.runs.into()));
        let content = Raw::text("do it").into_owned();
        let message = NewMessage { message_id, content, idempotency_key: None, wait_id: None };
        let life = Life { boot_id: BootId::mint(0, 1), machine_boot: None };
        let begun = with_message(message, run_id, &life);
        self.store.append(Append::durable(self.session, begun)).expect("recorded");
        self.append(vec![Event::from(RunCheckpoint {
            run_id,
            at: CheckpointAt::Start,
            how: CheckpointHow::Live,
            root: "/".into(),
            tree: Some(tree),
            not_taken: None,
            git: None,
            rules: None,
            skipped: None,
            files_touched: None,
            directory: None,
            files_changed: None,
        })]);
        if ends {
            self.append(vec![Event::from(RunCompleted { run_id, stop_reason: None, usage: None })]);
        }
    }

    /// Returns which of some trees are still named, and how many checkpoints were let go.
    fn kept(&self, days: u64, max_bytes: u64, trees: &[BlobId]) -> (Vec<bool>, u64) {
        let keep = Duration::from_secs(days * 24 * 60 * 60);
        let now = UNIX_EPOCH + Duration::from_millis(self.millis());
        let retention = CheckpointRetention { keep, max_bytes };
        // Caches name what their log does, and a fresh write-ahead log names nothing old.
        self.store.snapshot(self.session).expect("a snapshot");
        rekindle_store::commit::Commits::checkpoint(self.store.committer()).expect("a checkpoint");
        let layout = Layout::new("/home");
        let kept = references(&self.disk, &layout, &self.store.blobs(), retention, now).expect("read");
        let named = kept.references.referenced;
        (trees.iter().map(|tree| named.contains(tree)).collect(), kept.expired)
    }

    fn millis(&self) -> u64 {
        use rekindle_domain::time::Clock;
        u64::try_from(self.clock.now().as_millis()).expect("after 1970")
    }
}

fn created(forked_from: Option<ForkedFrom>) -> SessionCreated<'static> {
    SessionCreated {
        parent: None,
        title: "t".into(),
        working_dir: "/".into(),
        provider: Provider::default(),
        options: Options::default(),
        env_names: Vec::new(),
        idempotency_key: None,
        created_at: None,
        forked_from: forked_from.map(Box::new),
        restoring: None,
        worktree: None,
        key: None,
        imported_from: None,
    }
}

#[test]
fn old_checkpoints_are_let_go_and_those_of_an_open_run_stay() {
    let mut home = Home::new();
    let trees = [home.tree(1, 100), home.tree(2, 100), home.tree(3, 100)];
    home.run(trees[0], true);
    home.clock.advance(20 * DAY);
    home.run(trees[1], true);
    home.clock.advance(5 * DAY);
    home.run(trees[2], false);
    assert_eq!(home.kept(30, u64::MAX, &trees), (vec![true, true, true], 0));
    home.clock.advance(10 * DAY);
    assert_eq!(home.kept(30, u64::MAX, &trees), (vec![false, true, true], 1));
    home.clock.advance(365 * DAY);
    assert_eq!(home.kept(30, u64::MAX, &trees), (vec![false, false, true], 2));
    // A tree that a newer checkpoint names too is not old.
    home.append(vec![Event::from(RunCompleted {
        run_id: RunId::mint(1, 3),
        stop_reason: None,
        usage: None,
    })]);
    home.run(trees[0], true);
    assert_eq!(home.kept(30, u64::MAX, &trees), (vec![true, false, false], 3));
}

#[test]
fn the_oldest_checkpoints_go_when_they_take_too_much_room() {
    let mut home = Home::new();
    let trees = [home.tree(1, 5_000), home.tree(2, 5_000), home.tree(3, 5_000)];
    for tree in trees {
        home.run(tree, true);
        home.clock.advance(1000);
    }
    // The same files again take no more room.
    home.run(trees[2], true);
    assert_eq!(home.kept(30, 20_000, &trees), (vec![true, true, true], 0));
    assert_eq!(home.kept(30, 12_000, &trees), (vec![false, true, true], 1));
    assert_eq!(home.kept(30, 6_000, &trees), (vec![false, false, true], 2));
    assert_eq!(home.kept(30, 0, &trees), (vec![false, false, false], 4));
}

#[test]
fn a_run_that_was_cut_keeps_its_checkpoints_until_the_session_goes_on() {
    let mut home = Home::new();
    let tree = home.tree(1, 100);
    home.run(tree, false);
    let run_id = RunId::mint(1, 1);
    let cut = RunInterrupted {
        run_id,
        reason: InterruptReason::AgentExit,
        uncertain: Vec::new(),
        uncertain_turn: false,
        detail: None,
    };
    home.append(vec![Event::from(cut)]);
    home.clock.advance(100 * DAY);
    assert_eq!(home.kept(30, u64::MAX, &[tree]), (vec![true], 0));
    let other = home.tree(2, 100);
    home.run(other, true);
    assert_eq!(home.kept(30, u64::MAX, &[tree, other]), (vec![false, true], 1));
}

#[test]
fn the_checkpoint_at_which_a_fork_was_made_stays_also_when_its_parent_is_gone() {
    let mut home = Home::new();
    let trees = [home.tree(1, 100), home.tree(2, 100), home.tree(3, 100)];
    let parent = home.session;
    home.run(trees[0], true);
    home.run(trees[1], true);
    home.fork();
    // A fork of the fork, before that has a checkpoint of its own, was made at the same one.
    home.fork();
    home.run(trees[2], true);
    home.clock.advance(100 * DAY);
    assert_eq!(home.kept(30, u64::MAX, &trees), (vec![false, true, false], 2));
    home.store.open_session(parent).expect("open");
    home.store.append(Append::durable(parent, vec![SessionDeleted::default().into()])).expect("recorded");
    home.store.remove(parent).expect("removed");
    // Its history is in the base file of the fork now, where it is no more and no less than it was.
    assert_eq!(home.kept(30, u64::MAX, &trees), (vec![false, true, false], 2));
}

#[test]
fn what_a_kept_snapshot_names_stays_with_what_its_record_says() {
    let mut home = Home::new();
    let trees = [home.tree(1, 5_000), home.tree(2, 5_000)];
    home.run(trees[0], true);
    home.run(trees[1], true);
    home.keep_snapshot(trees[0]);
    home.clock.advance(100 * DAY);
    // The newest run is in the state that the snapshot has.
    assert_eq!(home.kept(30, 0, &trees), (vec![true, true], 0));
}

#[test]
fn what_was_let_go_is_noted_before_it_goes() {
    let mut home = Home::new();
    let layout = Layout::new("/home");
    let trees = [home.tree(1, 100), home.tree(2, 100)];
    home.run(trees[0], true);
    home.clock.advance(100 * DAY);
    home.run(trees[1], true);
    let now = UNIX_EPOCH + Duration::from_millis(home.millis());
    let retention = CheckpointRetention { keep: Duration::from_secs(60), max_bytes: u64::MAX };
    rekindle_store::commit::Commits::checkpoint(home.store.committer()).expect("a checkpoint");
    let kept = references(&home.disk, &layout, &home.store.blobs(), retention, now).expect("read");
    assert_eq!(kept.expired_trees, BTreeSet::from([trees[0]]));
    assert!(kept.bytes > 0);
    expired_checkpoints::note(&*home.disk, &layout, &kept.expired_trees).expect("noted");
    let noted = expired_checkpoints::read(&*home.disk, &layout);
    assert_eq!(noted, HashSet::from([rekindle_workspace::tree::short_name(&trees[0])]));
    // The note is no reason to keep anything, and says the same the next time.
    let again = references(&home.disk, &layout, &home.store.blobs(), retention, now).expect("read");
    assert_eq!(again.expired_trees, kept.expired_trees);
    expired_checkpoints::note(&*home.disk, &layout, &BTreeSet::new()).expect("noted");
    assert!(expired_checkpoints::read(&*home.disk, &layout).is_empty());
}
