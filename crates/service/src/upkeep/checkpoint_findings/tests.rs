//! Lost checkpoints and left restores, found and told apart from what was let go.

use std::collections::BTreeSet;
use std::sync::Arc;

use rekindle_domain::compose::begin::{Life, NewMessage, with_message};
use rekindle_domain::event::{
    CheckpointAt, CheckpointHow, Event, Imported, Options, Provider, Raw, RunCheckpoint, SessionCreated,
    SessionUpdated,
};
use rekindle_domain::id::{BootId, MessageId, RunId, SessionId};
use rekindle_store::check::Severity;
use rekindle_store::commit::Append;
use rekindle_store::disk::replace;
use rekindle_store::layout::Layout;
use rekindle_store::{Opener, Store};
use rekindle_testkit::clock::SimClock;
use rekindle_testkit::sim::SimDisk;
use rekindle_workspace::tree::{Entry, FileMode, TreeBuilder};

use super::*;

struct Home {
    disk: SharedDisk,
    layout: Layout,
    store: Store,
    session: SessionId,
}

impl Home {
    fn new() -> Home {
        let disk = Arc::new(SimDisk::new(1)) as SharedDisk;
        let opener = Opener { pid: 1, boot_id: BootId::mint(0, 1) };
        let store =
            Store::open(disk.clone(), "/home", opener, Arc::new(SimClock::default())).expect("a home");
        let session = SessionId::mint(1, 1);
        store.create(session).expect("new");
        let home = Home { disk, layout: Layout::new("/home"), store, session };
        home.append(SessionCreated {
            parent: None,
            title: "t".into(),
            working_dir: "/somewhere/else".into(),
            provider: Provider::default(),
            options: Options::default(),
            env_names: Vec::new(),
            idempotency_key: None,
            created_at: None,
            forked_from: None,
            restoring: None,
            worktree: None,
            key: None,
            imported_from: None,
        });
        home
    }

    fn append(&self, event: impl Into<Event<'static>>) {
        let records = vec![event.into().into()];
        self.store.append(Append::durable(self.session, records)).expect("recorded");
    }

    /// Puts a tree with some files, all but those left out, and records it as the checkpoint of a run.
    fn checkpoint(&self, files: &[&[u8]], left_out: usize) -> BlobId {
        let batch = self.store.blobs().batch().expect("a batch");
        let mut tree = TreeBuilder::new();
        for (number, content) in files.iter().enumerate() {
            let id = BlobId::of(content);
            if number >= left_out {
                batch.put(content).expect("put");
            }
            let node = Node::File { mode: FileMode::Plain, size: content.len() as u64, content: id };
            tree.push(&Entry { name: format!("{number}").as_bytes(), node }).expect("an entry");
        }
        let tree = batch.put(tree.finish().bytes()).expect("put");
        drop(batch.commit().expect("committed"));
        self.record(tree);
        tree
    }

    fn record(&self, tree: BlobId) {
        let (run_id, message_id) = (RunId::mint(1, 1), MessageId::mint(1, 1));
        let content = Raw::text("do it").into_owned();
        let message = NewMessage { message_id, content, idempotency_key: None, wait_id: None };
        let life = Life { boot_id: BootId::mint(0, 1), machine_boot: None };
        let begun = with_message(message, run_id, &life);
        self.store.append(Append::durable(self.session, begun)).expect("recorded");
        self.append(RunCheckpoint {
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
        });
    }

    fn findings(&self) -> Vec<Finding> {
        let offline = Offline::open(self.disk.clone(), "/home").expect("a home");
        inspect_checkpoints(&self.disk, &offline).expect("looked")
    }

    fn codes(&self) -> Vec<Code> {
        self.findings().iter().map(|finding| finding.code).collect()
    }
}

#[test]
fn a_checkpoint_that_is_whole_is_no_finding_and_one_that_lacks_something_is_an_error() {
    let home = Home::new();
    home.checkpoint(&[b"a", b"b", b"c"], 0);
    assert_eq!(home.codes(), []);
    let home = Home::new();
    home.checkpoint(&[b"a", b"b", b"c"], 2);
    let [found] = &home.findings()[..] else { panic!("{:?}", home.findings()) };
    assert_eq!((found.code, found.severity), (Code::CheckpointDamaged, Severity::Error));
    assert!(found.what.contains(&format!("{} is missing, and 1 more", BlobId::of(b"a"))), "{}", found.what);
    assert!(found.what.contains(home.session.as_str()), "{}", found.what);
    assert!(!found.remedy.contains("rm ") && !found.remedy.contains("elete"), "{}", found.remedy);
    assert_eq!(found.session, None, "its log is not damaged");
    let home = Home::new();
    home.record(BlobId::of(b"a tree that was never kept"));
    assert_eq!(home.codes(), [Code::CheckpointDamaged]);
}

#[test]
fn what_was_let_go_or_stayed_elsewhere_is_a_note() {
    let home = Home::new();
    let tree = home.checkpoint(&[b"a", b"b"], 1);
    expired_checkpoints::note(&*home.disk, &home.layout, &BTreeSet::from([tree])).expect("noted");
    let [found] = &home.findings()[..] else { panic!("{:?}", home.findings()) };
    assert_eq!((found.code, found.severity), (Code::CheckpointExpired, Severity::Note));
    assert!(found.what.ends_with(": 1."), "{}", found.what);

    let home = Home::new();
    home.checkpoint(&[b"a", b"b"], 1);
    home.append(SessionUpdated { imported: Some(Imported::default()), ..SessionUpdated::default() });
    assert_eq!(home.codes(), [Code::CheckpointExpired]);
}

#[test]
fn a_note_that_cannot_be_read_hides_nothing() {
    let home = Home::new();
    home.checkpoint(&[b"a"], 1);
    home.disk.create_dir(&home.layout.workspaces()).expect("made");
    replace(&*home.disk, &home.layout.expired_checkpoints(), b"{").expect("written");
    assert_eq!(home.codes(), [Code::CheckpointDamaged]);
}

#[test]
fn a_restore_that_has_not_come_to_its_end_is_told_with_both_ways() {
    let home = Home::new();
    let (from, to) = (BlobId::of(b"before"), BlobId::of(b"wanted"));
    let journal = home.layout.restore_journal(Path::new("/somewhere/else"));
    for directory in [home.layout.workspaces(), home.layout.restoring()] {
        home.disk.create_dir(&directory).expect("made");
    }
    let text = serde_json::json!({"from": from, "to": to}).to_string();
    replace(&*home.disk, &journal, text.as_bytes()).expect("written");
    let [found] = &home.findings()[..] else { panic!("{:?}", home.findings()) };
    assert_eq!((found.code, found.severity), (Code::RestoreLeft, Severity::Warning));
    for words in ["/somewhere/else", &short_name(&from), &short_name(&to)] {
        assert!(found.what.contains(words), "{words} in {}", found.what);
    }
    // The store is open: whoever has the home may be at work.
    assert!(found.remedy.starts_with("Nothing to do if it is still running"), "{}", found.remedy);
    replace(&*home.disk, &journal, b"{").expect("written");
    let [found] = &home.findings()[..] else { panic!("{:?}", home.findings()) };
    assert!(found.code == Code::RestoreLeft && found.remedy.starts_with("Keep it"), "{}", found.remedy);
}
