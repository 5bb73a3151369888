//! Homes: who may open one, what of it may be missing, and the store with its thread on a real disk.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use rekindle_domain::event::{
    RunCancelled, RunStarted, RunWaiting, SessionDeleted, TokenMinted, TokenRevoked, TokenScope, WaitKind,
};
use rekindle_domain::id::{BootId, RunId, SessionId, TokenId, WaitId};
use rekindle_domain::time::Timestamp;
use rekindle_store::blobs::{BlobError, BlobId, COLLECT_AFTER, MAX_BLOB};
use rekindle_store::commit::{Append, Expect};
use rekindle_store::disk::{Disk, DiskFile, Entry, OpenMode, RealDisk, Stat};
use rekindle_store::home::{self, HomeError, Origin};
use rekindle_store::layout::Layout;
use rekindle_store::{AppendError, LoadError, OpenError, Opener, Store, Want};
use rekindle_testkit::clock::SimClock;
use rekindle_testkit::rng::Rng;
use rekindle_testkit::sim::SimDisk;

use crate::common::{Home, created, marked, markers, open};

fn real(home: &std::path::Path) -> Result<Store, OpenError> {
    let opener = Opener { pid: 42, boot_id: BootId::mint(1, 1) };
    Store::open(Arc::new(RealDisk), home, opener, Arc::new(SimClock::default()))
}

/// I1: an answer is about what everyone can see.
#[test]
fn whoever_was_answered_sees_what_it_did_and_nobody_what_was_refused() {
    const APPENDS: u64 = 400;
    let home = tempfile::tempdir().expect("a directory");
    let store = real(home.path()).expect("opens");
    let session = SessionId::mint(1, 1);
    store.create(session).expect("a new session");
    store.append(Append::durable(session, vec![created()])).expect("the first record");
    let last = || store.open_session(session).expect("a session").state.last_seq;
    std::thread::scope(|scope| {
        for writer in 0..3 {
            let (store, last) = (&store, &last);
            scope.spawn(move || {
                for marker in 0..APPENDS {
                    let append = Append::quick(session, vec![marked(writer * APPENDS + marker, 30, None)]);
                    let receipt = store.append(append).expect("a record");
                    // One of them hardly ever looks: what is not looked at is right all the same.
                    if writer > 0 || marker % 300 == 299 {
                        assert!(last() >= receipt.last_seq);
                    }
                }
            });
        }
        let mut before = 0;
        for _ in 0..APPENDS {
            let now = last();
            assert!(now >= before, "{now} after {before}");
            before = now;
        }
    });
    let before = last();
    store.append(Append::durable(session, vec![created()])).expect_err("made twice");
    assert_eq!(last(), before);
    store.append(Append::durable(session, vec![SessionDeleted { by: None }.into()])).expect("a record");
    store.remove(session).expect("removed");
    assert!(store.open_session(session).is_err(), "gone, and not to be seen");
}

#[test]
fn a_newer_home_is_refused_and_left_alone() {
    let home = Home::with_sessions(1, 1);
    let disk = home.disk.fork();
    disk.write_file("/home/home.json", br#"{"format":3}"#);
    let before = disk.ops();
    let error = open(&disk, &home.clock).err().expect("refused");
    assert!(matches!(error, OpenError::Home(HomeError::Newer { found: 3, .. })), "{error}");
    assert!(error.to_string().contains("newer Rekindle"), "{error}");
    assert_eq!(disk.ops(), before, "nothing was written");
    disk.write_file("/home/home.json", b"rubbish");
    let error = open(&disk, &home.clock).err().expect("refused");
    assert!(error.to_string().contains("home.json"), "{error}");
}

#[test]
fn a_directory_used_for_something_else_is_not_made_a_home() {
    let disk = SimDisk::new(1);
    disk.write_file("/home/thesis.txt", b"mine");
    let before = disk.ops();
    let error = open(&disk, &Arc::default()).err().expect("refused");
    assert!(error.to_string().contains("thesis.txt"), "{error}");
    assert_eq!(disk.ops(), before, "nothing was touched");
}

/// Commands that a script gives at once where there is no home yet: each of them makes it, or finds it made.
#[test]
fn several_may_make_the_same_home_at_the_same_moment() {
    const MAKERS: usize = 8;
    for round in 0..20 {
        let above = tempfile::tempdir().expect("a directory");
        let layout = Layout::new(above.path().join("state/home"));
        let begin = std::sync::Barrier::new(MAKERS);
        std::thread::scope(|scope| {
            for _ in 0..MAKERS {
                scope.spawn(|| {
                    begin.wait();
                    let made = home::prepare(&RealDisk, &layout);
                    made.and_then(|()| home::check(&RealDisk, &layout))
                        .unwrap_or_else(|error| panic!("round {round}: {error}"));
                });
            }
        });
        let names = RealDisk.list(layout.home()).expect("listed").into_iter().map(|entry| entry.name);
        let left: Vec<String> = names.filter(|name| name.ends_with(".tmp")).collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

#[test]
fn a_token_index_of_another_history_is_not_believed() {
    let home = rich_home();
    let path = format!("/home/sessions/{}.tokens.json", home.sessions[0]);
    let expected = home.store.load(home.sessions[0], Want::Everything).expect("loads").tokens;
    let text = String::from_utf8(home.disk.read_file(&path).expect("an index")).expect("text");
    let at = text.find("\"last_hash\":\"").expect("a hash") + 13;
    let other = if text.as_bytes()[at] == b'0' { "1" } else { "0" };
    let forged = format!("{}{other}{}", &text[..at], &text[at + 1..])
        .replace("\"secret_hash\":\"00\"", "\"secret_hash\":\"66\"");
    let disk = home.disk.fork();
    disk.write_file(&path, forged.as_bytes());
    let home = home.reopen(disk);
    assert_eq!(home.store.load(home.sessions[0], Want::Everything).expect("loads").tokens, expected);
}

#[test]
fn a_token_index_behind_its_snapshot_is_not_believed() {
    let home = rich_home();
    let session = home.sessions[0];
    let path = format!("/home/sessions/{session}.tokens.json");
    let behind = home.disk.read_file(&path).expect("an index");
    let token = TokenId::mint(1, 1);
    let revoked = TokenRevoked {
        resume_token_id: token,
        wait_id: Some(WaitId::mint(1, 1)),
        reason: "cancelled".into(),
        by: None,
    };
    home.store.append(Append::durable(session, vec![revoked.into()])).expect("revoked");
    home.store.snapshot(session).expect("a snapshot");
    let expected = home.store.load(session, Want::Everything).expect("loads").tokens;
    let disk = home.disk.fork();
    disk.write_file(&path, &behind);
    let home = home.reopen(disk);
    assert_eq!(home.store.load(session, Want::Everything).expect("loads").tokens, expected);
}

// I2, I10
#[test]
fn an_entry_of_the_list_that_is_newer_or_stale_is_passed_over() {
    let home = rich_home();
    let list = String::from_utf8(home.disk.read_file("/home/sessions/index.json").expect("a list"));
    let entry = format!("{{\"version\":1,\"id\":\"{}\",\"title\":\"t\"", home.sessions[1]);
    let (list, newer) = (list.expect("text"), entry.replace("\"version\":1", "\"version\":2"));
    assert!(list.contains(&entry), "{list}");
    let disk = home.disk.fork();
    let newer = newer.replace("\"title\":\"t\"", "\"title\":\"x\"");
    disk.write_file("/home/sessions/index.json", list.replace(&entry, &newer).as_bytes());
    let home = home.reopen(disk);
    let survey = home.store.survey(|session, loaded| {
        let state = home.store.load(session, Want::Everything).expect("readable").state;
        assert_eq!(loaded.expect("readable").state, state);
    });
    survey.expect("listed");
}

#[test]
fn a_newer_write_ahead_log_is_refused_and_left_alone() {
    let home = Home::with_sessions(1, 1);
    let disk = home.disk.fork();
    let mut header = b"RKNDLWAL\x03\0\0\0\0\0\0\0".to_vec();
    header.extend_from_slice(&9u64.to_le_bytes());
    header.extend_from_slice(&[0; 16]);
    header.extend_from_slice(&crc32c::crc32c(&header).to_le_bytes());
    disk.write_file("/home/wal/00000009.wal", &header);
    let error = open(&disk, &home.clock).err().expect("refused");
    assert!(error.to_string().contains("format 3"), "{error}");
    assert_eq!(disk.read_file("/home/wal/00000009.wal"), Some(header));
}

#[test]
fn the_second_owner_is_told_who_the_first_is() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = real(directory.path()).expect("the first");
    let error = real(directory.path()).err().expect("the second is refused");
    assert!(
        matches!(&error, OpenError::Home(HomeError::Locked { owner, .. }) if owner.pid == Some(42)),
        "{error}"
    );
    assert!(error.to_string().contains("process 42"), "{error}");
    drop(store);
    assert_eq!(real(directory.path()).expect("free again").origin(), Origin::Same);
}

/// A disk on which someone puts another file in the place of each that was just opened.
struct Swapping(RealDisk);

impl Disk for Swapping {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Box<dyn DiskFile>> {
        let file = self.0.open(path, mode)?;
        let other = path.with_extension("other");
        self.0.open(&other, OpenMode::CreateNew)?;
        self.0.rename(&other, path)?;
        Ok(file)
    }
    fn stat(&self, path: &Path) -> io::Result<Stat> {
        self.0.stat(path)
    }
    fn list(&self, dir: &Path) -> io::Result<Vec<Entry>> {
        self.0.list(dir)
    }
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.0.create_dir(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.0.rename(from, to)
    }
    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.0.remove_file(path)
    }
    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.0.remove_dir(path)
    }
    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.0.sync_dir(path)
    }
    fn set_mode(&self, path: &Path, mode: u32) -> io::Result<()> {
        self.0.set_mode(path, mode)
    }
}

#[test]
fn a_lock_on_a_file_that_is_no_longer_there_is_no_lock() {
    let directory = tempfile::tempdir().expect("a directory");
    let layout = Layout::new(directory.path());
    let boot = BootId::mint(1, 1);
    let refused = home::lock(&Swapping(RealDisk), &layout, 1, boot).err();
    assert!(matches!(refused, Some(HomeError::Locked { .. })), "{refused:?}");
    home::lock(&RealDisk, &layout, 1, boot).expect("without the other one it is free");
}

// I9
#[test]
fn a_copied_home_is_recognised() {
    let directory = tempfile::tempdir().expect("a directory");
    let (first, copy) = (directory.path().join("first"), directory.path().join("copy"));
    assert_eq!(real(&first).expect("opens").origin(), Origin::New);
    let copied = std::process::Command::new("cp").arg("-a").arg(&first).arg(&copy).status().expect("cp runs");
    assert!(copied.success());
    assert_eq!(real(&copy).expect("opens").origin(), Origin::Copied);
    assert_eq!(real(&copy).expect("opens").origin(), Origin::Same, "from then on it is a home of its own");
    assert_eq!(real(&first).expect("opens").origin(), Origin::Same);
}

// I7
#[test]
fn of_many_who_expect_the_same_record_one_wins() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = real(directory.path()).expect("opens");
    let session = SessionId::mint(1, 1);
    store.create(session).expect("new");
    store.append(Append::durable(session, vec![created()])).expect("created");
    let outcomes: Vec<_> = std::thread::scope(|scope| {
        let race = |marker| {
            let append = Append {
                expect: Expect::LastSeq(1),
                ..Append::durable(session, vec![marked(marker, 5, None)])
            };
            store.append(append)
        };
        let threads: Vec<_> = (0..100).map(|marker| scope.spawn(move || race(marker))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1);
    assert!(
        outcomes.iter().all(|outcome| matches!(outcome, Ok(_) | Err(AppendError::Moved { found: 2, .. })))
    );
}

/// I3: one caller's records come in order, whoever commits them: the committer's thread what was handed over, and the caller what he
/// waits for, if nobody is in the way.
#[test]
fn what_was_handed_over_comes_before_what_a_caller_commits_himself() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = real(directory.path()).expect("opens");
    let sessions = [1, 2, 3].map(|n| SessionId::mint(1, n));
    for session in sessions {
        store.create(session).expect("new");
        store.append(Append::durable(session, vec![created()])).expect("created");
    }
    let work = |session, rounds: u64| {
        let (mut last_seq, mut tickets) = (1, Vec::new());
        for round in 0..rounds {
            for _ in 0..round % 4 {
                let append = Append::quick(session, vec![marked(round, 20, None)]);
                tickets.push(store.committer().submit(append));
                last_seq += 1;
            }
            let append = Append {
                expect: Expect::LastSeq(last_seq),
                ..Append::durable(session, vec![marked(round, 5, None)])
            };
            last_seq = store.append(append).expect("nothing in between").last_seq;
        }
        tickets.into_iter().for_each(|ticket| drop(ticket.wait().expect("recorded")));
        last_seq
    };
    let [alone, one, other] = sessions;
    assert_eq!(work(alone, 200), 1 + 200 + 300);
    // Beside somebody who is in the way now and then.
    std::thread::scope(|scope| {
        scope.spawn(|| work(one, 100));
        assert_eq!(work(other, 100), 1 + 100 + 150);
    });
}

// I1, I3
#[test]
fn many_producers_on_a_real_disk_lose_and_repeat_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let sessions: Vec<_> = (0..4).map(|n| SessionId::mint(1, n)).collect();
    let store = real(directory.path()).expect("opens");
    for session in &sessions {
        store.create(*session).expect("new");
        store.append(Append::durable(*session, vec![created()])).expect("created");
    }
    std::thread::scope(|scope| {
        for producer in 0..8 {
            let (store, sessions) = (&store, &sessions);
            scope.spawn(move || {
                for n in 0..50 {
                    let session = sessions[(producer + n) as usize % sessions.len()];
                    let records =
                        vec![marked(producer * 1000 + n, 50, None), marked(producer * 1000 + n, 5, None)];
                    let append = if n % 3 == 0 {
                        Append::quick(session, records)
                    } else {
                        Append::durable(session, records)
                    };
                    store.append(append).expect("recorded");
                }
            });
        }
    });
    drop(store);
    let store = real(directory.path()).expect("opens again");
    let mut total = 0;
    store
        .survey(|_, loaded| {
            let loaded = loaded.expect("readable");
            assert!(loaded.damage.is_none() && loaded.torn.is_none() && loaded.oddities.is_empty());
            total += loaded.state.last_seq;
        })
        .expect("listed");
    assert_eq!(total, 4 + 8 * 50 * 2);
}

/// A home with sessions that have tokens, waits, snapshots and an index.
fn rich_home() -> Home {
    let home = Home::with_sessions(3, 3);
    let session = home.sessions[0];
    let (run_id, wait_id, token) = (RunId::mint(1, 1), WaitId::mint(1, 1), TokenId::mint(1, 1));
    let started = RunStarted {
        run_id,
        boot_id: BootId::mint(1, 1),
        machine_boot: None,
        message_id: None,
        attempt: 1,
        continues: None,
        origin_run_id: None,
        task_id: None,
    };
    let waiting = RunWaiting {
        run_id,
        wait_id,
        wait_kind: WaitKind::Permission,
        resume_token_id: token,
        deadline_at: None,
        tool_call_id: None,
        request: None,
        by: None,
        idempotency_key: None,
    };
    let minted = TokenMinted {
        resume_token_id: token,
        wait_id,
        secret_hash: "00".into(),
        scope: TokenScope { session_id: session, run_id, wait_id, option_id: None },
        expires_at: None,
        by: None,
    };
    home.store.append(Append::durable(session, vec![started.into()])).expect("started");
    home.store.snapshot(session).expect("a snapshot before the wait");
    home.store.append(Append::durable(session, vec![waiting.into(), minted.into()])).expect("waiting");
    for session in &home.sessions[..2] {
        home.store.snapshot(*session).expect("a snapshot");
    }
    home.append(50).expect("a tail behind the snapshot");
    let mut states = Vec::new();
    home.store.survey(|_, loaded| states.push(loaded.expect("readable").state)).expect("listed");
    home.store.write_index(states.iter(), false).expect("a list");
    let later = Append::durable(home.sessions[2], vec![marked(51, 5, None)]);
    home.store.append(later).expect("what the list does not have");
    home
}

// I2
#[test]
fn any_subset_of_caches_may_be_deleted() {
    let home = rich_home();
    let answers = |disk: &SimDisk| {
        let store = open(disk, &home.clock).expect("opens");
        let mut answers = Vec::new();
        store
            .survey(|session, loaded| {
                let loaded = loaded.expect("readable");
                assert!(loaded.damage.is_none());
                let everything = store.load(session, Want::Everything).expect("readable");
                assert_eq!(everything.state, loaded.state);
                assert!(
                    !loaded.state.has_waits() || loaded.tokens == everything.tokens,
                    "a wait has its tokens"
                );
                answers.push((session, everything.state, everything.tokens));
            })
            .expect("listed");
        answers.sort_by_key(|(session, ..)| *session);
        answers
    };
    let expected = answers(&home.disk.fork());
    assert!(expected[0].1.has_waits() && !expected[0].2.tokens.is_empty());
    let is_cache = |name: &str| name.contains("/sessions/") && !name.ends_with(".messages.jsonl");
    let caches: Vec<_> =
        home.disk.paths().into_iter().filter(|path| is_cache(&path.to_string_lossy())).collect();
    assert!(caches.len() >= 4, "{caches:?}");
    for subset in 0..1u32 << caches.len() {
        let disk = home.disk.fork();
        for (bit, cache) in caches.iter().enumerate() {
            if subset & 1 << bit != 0 {
                disk.remove(cache);
            }
        }
        assert_eq!(answers(&disk), expected, "without {subset:b} of {caches:?}");
    }
}

// I10
#[test]
fn one_newer_snapshot_isolates_that_session_only() {
    let home = rich_home();
    let newer = home.sessions[1];
    let path = format!("/home/sessions/{newer}.json");
    let snapshot = String::from_utf8(home.disk.read_file(&path).expect("a snapshot")).expect("text");
    let like_ours = snapshot.replacen("\"version\":1", "\"version\":2", 1);
    for text in [like_ours.as_str(), r#"{"version":2,"shape":"another"}"#] {
        let disk = home.disk.fork();
        disk.write_file(&path, text.as_bytes());
        disk.remove("/home/sessions/index.json");
        let store = open(&disk, &home.clock).expect("opens");
        let (mut good, mut bad) = (0, Vec::new());
        store
            .survey(|session, loaded| match loaded {
                Ok(_) => good += 1,
                Err(error) => bad.push((session, error)),
            })
            .expect("listed");
        assert_eq!(good, 2);
        assert!(
            matches!(&bad[..], [(session, LoadError::Newer { found: 2, .. })] if *session == newer),
            "{bad:?}"
        );
        store.snapshot(newer).expect_err("it is not overwritten");
        assert_eq!(disk.read_file(&path).as_deref(), Some(text.as_bytes()));
    }
}

#[test]
fn unknown_fields_of_a_snapshot_are_kept_when_it_is_rewritten() {
    let home = rich_home();
    let path = format!("/home/sessions/{}.json", home.sessions[1]);
    let snapshot = String::from_utf8(home.disk.read_file(&path).expect("a snapshot")).expect("text");
    let disk = home.disk.fork();
    disk.write_file(
        &path,
        snapshot.replacen("\"version\":1,", "\"version\":1,\"mood\":\"calm\",", 1).as_bytes(),
    );
    let home = home.reopen(disk);
    home.store.open_session(home.sessions[1]).expect("opens");
    home.store.append(Append::durable(home.sessions[1], vec![marked(9, 1, None)])).expect("recorded");
    home.store.snapshot(home.sessions[1]).expect("rewritten");
    let text = String::from_utf8(home.disk.read_file(&path).expect("a snapshot")).expect("text");
    assert!(text.contains(r#""mood":"calm""#), "{text}");
}

#[test]
fn a_clock_that_goes_back_changes_no_order() {
    let home = Home::with_sessions(1, 2);
    home.clock.advance(-3_600_000);
    home.append(7).expect("recorded");
    let loaded = home.store.load(home.sessions[0], Want::Status).expect("loads");
    assert_eq!(loaded.state.last_seq, 4);
    assert!(loaded.oddities.is_empty());
    assert_eq!(loaded.state.updated_at, SimClock::default_start(), "the newest time never goes back");
    assert_eq!(markers(&home.disk, home.sessions[0]), [0, 1, 7]);
    assert!(Timestamp::from_millis(0) < loaded.state.created_at);
}

#[test]
fn sessions_cannot_be_made_twice_nor_removed_unasked() {
    let home = Home::with_sessions(1, 1);
    home.store.create(home.sessions[0]).expect_err("it exists");
    home.store.remove(home.sessions[0]).expect_err("nobody deleted it");
    assert_eq!(markers(&home.disk, home.sessions[0]), [0]);
    let missing = SessionId::mint(99, 99);
    assert!(matches!(home.store.load(missing, Want::Status), Err(LoadError::NotFound(_))));
    assert!(matches!(home.store.append(Append::durable(missing, vec![])), Err(AppendError::NotOpen(_))));
    let empty = home.store.append(Append::durable(home.sessions[0], vec![]));
    assert!(matches!(empty, Err(AppendError::Unwritable(_))));
    let huge = home.store.append(Append::durable(home.sessions[0], vec![marked(1, 2 << 20, None)]));
    assert!(matches!(huge, Err(AppendError::TooLarge { .. })));
    let list = vec![marked(1, 5, None), marked(1, 2 << 20, None)];
    let half = home.store.append(Append::durable(home.sessions[0], list));
    assert!(matches!(half, Err(AppendError::TooLarge { .. })));
    home.append(2).expect("and all of that changed nothing");
    assert_eq!(markers(&home.disk, home.sessions[0]), [0, 2]);
    let illegal = RunCancelled { run_id: RunId::mint(9, 9), by: None }.into();
    let group = [marked(3, 5, None), illegal, marked(4, 5, None)];
    let group = group.map(|draft| Append::durable(home.sessions[0], vec![draft])).into();
    let outcomes = home.store.committer().append_all(group);
    assert!(matches!(&outcomes[..], [Ok(_), Err(AppendError::IllegalTransition(_)), Ok(_)]), "{outcomes:?}");
    for seed in 0..20 {
        let cut = home.disk.power_cut(&mut Rng::new(seed));
        let store = open(&cut, &home.clock).expect("the home opens after a power cut");
        assert!(store.recovered().wal_damage.is_empty(), "nothing of what was refused is written");
        assert_eq!(markers(&cut, home.sessions[0]), [0, 2, 3, 4]);
    }
    let home = home.reopen_same();
    home.store.remove(home.sessions[0]).expect_err("nor one that is not open");
    assert_eq!(markers(&home.disk, home.sessions[0]), [0, 2, 3, 4]);
}

#[test]
fn blobs_are_checked_limited_and_collected_late() {
    let home = Home::with_sessions(1, 0);
    let blobs = home.store.blobs();
    let (kept, unnamed) = (blobs.put(&[7; 300_000]).expect("kept"), blobs.put(b"unnamed").expect("kept"));
    assert_eq!(blobs.put(&[7; 300_000]).expect("the same again"), kept);
    assert_eq!(blobs.get(&kept.blob).expect("there"), [7; 300_000]);
    assert!(matches!(blobs.put(&vec![0; (64 << 20) + 1]), Err(BlobError::TooLarge(_))));
    assert!("../../etc/passwd".parse::<BlobId>().is_err() && "AB".repeat(32).parse::<BlobId>().is_err());
    assert!("ab".parse::<BlobId>().is_err());
    let (path, other) = [&kept, &unnamed].map(|it| home.store.layout().blob(&it.blob)).into();
    home.disk.write_file(&path, &home.disk.read_file(other).expect("a blob"));
    assert!(matches!(blobs.get(&kept.blob), Err(BlobError::Damaged { .. })), "another one in its place");
    blobs.put(&[7; 300_000]).expect("replaced");
    let bomb = vec![0; MAX_BLOB + 2];
    let id = BlobId::of(&bomb);
    let packed = zstd::bulk::compress(&bomb, 1).expect("packed");
    home.disk.write_file(home.store.layout().blob(&id), &packed);
    assert!(matches!(blobs.get(&id), Err(BlobError::Damaged { .. })), "no more than the limit is unpacked");
    home.disk.remove(home.store.layout().blob(&id));
    home.disk.flip_byte(&path, 20);
    assert!(matches!(blobs.get(&kept.blob), Err(BlobError::Damaged { .. })));
    blobs.put(&[7; 300_000]).expect("a bad copy is replaced");
    blobs.get(&kept.blob).expect("good again");
    let named = [kept.blob].into();
    let now = SystemTime::UNIX_EPOCH;
    let (half, foreign) = ("/home/blobs/ab/x.zst.tmp", "/home/blobs/ab/notes.txt");
    home.disk.write_file(half, b"half");
    home.disk.write_file(foreign, b"mine");
    assert_eq!(
        blobs.begin_collection().expect("begun").collect_blobs(&named, now).expect("listed"),
        [],
        "too young"
    );
    assert!(home.disk.read_file(half).is_some(), "too young");
    let later = now + 400 * COLLECT_AFTER;
    assert_eq!(
        blobs.begin_collection().expect("begun").collect_blobs(&named, later).expect("listed"),
        vec![unnamed.blob]
    );
    assert!(matches!(blobs.get(&unnamed.blob), Err(BlobError::Missing(_))));
    blobs.get(&kept.blob).expect("a named one stays");
    assert_eq!(home.disk.read_file(half), None, "what a crash left goes");
    assert!(home.disk.read_file(foreign).is_some(), "what is not ours stays");
}
