//! A home whose lines are not stored as they are read: whatever reads or writes a line beside the codec fails here.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use rekindle_domain::event::{AgentNotice, Provider, SessionCreated, SessionDeleted};
use rekindle_domain::id::{BootId, SessionId};
use rekindle_domain::line::{Draft, Line};
use rekindle_domain::time::{Clock, Timestamp};

use super::Codec;
use crate::aside::{keep_prefix, set_aside};
use crate::commit::{Append, Commits, Inline, Limits};
use crate::disk::{RealDisk, SharedDisk};
use crate::layout::Layout;
use crate::log::{Cursor, Follow};
use crate::offline::Offline;
use crate::redo::Completion;
use crate::{Opener, Store, Want};

struct Still;

impl Clock for Still {
    fn now(&self) -> Timestamp {
        "2026-02-21T10:00:00.000Z".parse().expect("a time")
    }
}

fn layout(home: &Path) -> Layout {
    Layout::new(home).with_codec(Codec::Hex)
}

fn open(home: &Path) -> Store<Inline> {
    let opener = Opener { pid: 1, boot_id: BootId::mint(0, 1) };
    Store::open_inline(Arc::new(RealDisk), layout(home), opener, Arc::new(Still), Limits::default())
        .expect("it opens")
}

fn created() -> Draft {
    SessionCreated {
        parent: None,
        title: "t".into(),
        working_dir: "/w".into(),
        provider: Provider { profile: "acp".into(), ..Provider::default() },
        options: Default::default(),
        env_names: Vec::new(),
        key: None,
        imported_from: None,
        idempotency_key: None,
        created_at: None,
        forked_from: None,
        restoring: None,
        worktree: None,
    }
    .into()
}

fn notice(number: u64) -> Draft {
    AgentNotice { run_id: None, what: format!("n{number}").into(), text: Some("häh".into()), raw: None }
        .into()
}

/// Copies a home as the death of its owner would leave it.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("made");
    for entry in fs::read_dir(from).expect("listed").flatten() {
        let target = to.join(entry.file_name());
        if entry.file_type().expect("a type").is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("copied");
        }
    }
}

/// Checks that a session has records up to a number, in every way of reading them.
fn check(store: &Store<Inline>, session: SessionId, last: u64) {
    let loaded = store.load(session, Want::Everything).expect("it loads");
    assert_eq!((loaded.state.last_seq, loaded.damage, loaded.torn), (last, None, None));
    let reader = store.reader(session).expect("a log");
    let mut lines = reader.forward(Cursor::START);
    for seq in 1..=last {
        let raw = lines.next().expect("readable").expect("a line");
        assert_eq!(Line::parse(raw.bytes).expect("a record").seq, seq);
        assert_eq!(reader.find(seq).expect("readable"), Some(raw.start));
    }
    assert_eq!(lines.next().expect("readable"), None);
    let tail = reader.last(reader.end(), 2).expect("readable");
    let seqs: Vec<u64> = tail.iter().map(|(_, line)| Line::parse(line).expect("a record").seq).collect();
    assert_eq!(seqs, [last - 1, last]);
    let Follow::Lines(lines) = store.follower(session, Cursor::START).poll().expect("followed") else {
        panic!("nothing was lost");
    };
    assert!(lines.len() as u64 == last && lines.iter().all(|line| Line::parse(line).is_ok()));
    assert_eq!(store.broken_before(session, reader.end()).expect("readable"), None);
}

#[test]
fn lines_are_stored_in_one_way_and_read_in_another_by_everyone() {
    let place = tempfile::tempdir().expect("a directory");
    let home = place.path().join("home");
    let (session, deleted) = (SessionId::mint(1, 1), SessionId::mint(2, 2));
    let store = open(&home);
    for id in [session, deleted] {
        store.create(id).expect("made");
        store.append(Append::durable(id, vec![created(), notice(1)])).expect("appended");
    }
    store.append(Append::durable(session, vec![notice(2), notice(3)])).expect("appended");
    store.append(Append::durable(deleted, vec![SessionDeleted::default().into()])).expect("appended");
    check(&store, session, 4);
    let log = fs::read(layout(&home).log(session)).expect("a log");
    assert!(log.iter().all(|byte| byte.is_ascii_hexdigit() || *byte == b'\n'), "stored in hex");

    // A start that finds a log torn in the middle of what the write-ahead log has, and the log of a deletion gone.
    let crashed = place.path().join("crashed");
    copy(&home, &crashed);
    fs::write(layout(&crashed).log(session), &log[..log.len() - 70]).expect("torn");
    fs::remove_file(layout(&crashed).log(deleted)).expect("gone");
    let offline = Offline::regardless(Arc::new(RealDisk), layout(&crashed)).expect("it can be looked at");
    assert_eq!(offline.load(session, Want::Status).expect("it loads").state.last_seq, 4);
    let again = open(&crashed);
    assert_eq!(fs::read(layout(&crashed).log(session)).expect("a log"), log);
    let removed =
        again.recovered().sessions().any(|(id, done)| id == deleted && *done == Completion::Removed);
    assert!(removed, "{:?}", again.recovered());
    check(&again, session, 4);

    // Caches fit the log, and a log without a write-ahead log is read by itself.
    store.snapshot(session).expect("written");
    store.append(Append::durable(session, vec![notice(4)])).expect("appended");
    store.committer().checkpoint().expect("a checkpoint");
    drop(store);
    let store = open(&home);
    assert!(store.load(session, Want::Everything).expect("it loads").read_from > 0, "the snapshot is used");
    check(&store, session, 5);
    drop(store);

    // The good beginning of a damaged log goes on.
    let disk: SharedDisk = Arc::new(RealDisk);
    let layout = layout(&home);
    let mut bytes = fs::read(layout.log(session)).expect("a log");
    let end = bytes.len();
    bytes[end - 300] ^= 1;
    fs::write(layout.log(session), &bytes).expect("damaged");
    set_aside(&*disk, &layout, session).expect("set aside");
    fs::remove_dir_all(layout.wal()).expect("nothing names it any more");
    let kept = keep_prefix(&*disk, &layout, session, Still.now(), |_, _| Vec::new()).expect("kept");
    check(&open(&home), session, kept.records + 1);
}
