//! Sessions that made daemons crash: reported so that a crash in the middle of a report costs nothing but that report, left alone
//! without a look at their log, and released.

use std::sync::{Arc, Mutex, PoisonError};

use rekindle_domain::event::SessionDeleted;
use rekindle_domain::id::{BootId, SessionId};
use rekindle_domain::quarantine::Crash;
use rekindle_domain::time::Timestamp;
use rekindle_store::aside::set_aside;
use rekindle_store::check::{Code, Holding, check};
use rekindle_store::commit::Append;
use rekindle_store::crash_report::report;
use rekindle_store::layout::Layout;
use rekindle_store::offline::Offline;
use rekindle_store::{LoadError, OpenSessionError, Want};
use rekindle_testkit::rng::Rng;
use rekindle_testkit::sim::SimDisk;

use crate::common::{Home, marked, open};

fn crash(life: u128) -> Crash {
    Crash {
        at: Timestamp::from_millis(1_771_668_000_000 + life as i64),
        boot_id: BootId::mint(0, life),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        doing: "load".to_owned(),
        thread: "recovery".to_owned(),
        location: "fold.rs:1:1".to_owned(),
        message: format!("nobody expected life {life}"),
    }
}

fn add(disk: &SimDisk, session: SessionId, lives: &[u128]) {
    for life in lives {
        report(disk, &Layout::new("/home"), session, crash(*life)).expect("reported");
    }
}

fn findings(disk: &SimDisk) -> Vec<(Code, Option<SessionId>, String)> {
    let report = check(Arc::new(disk.clone()), "/home", Holding::Nothing, &mut |_| {}).expect("checked");
    let about = |code| matches!(code, Code::SessionQuarantined | Code::CrashReported);
    let found = report.findings.into_iter().filter(|finding| about(finding.code));
    found.map(|finding| (finding.code, finding.session, finding.what)).collect()
}

// I10: a session that makes every daemon crash is refused without a look at its log, and nobody else is concerned.
#[test]
fn a_session_that_crashed_two_daemons_is_left_alone_until_it_is_released() {
    let home = Home::with_sessions(2, 3);
    let [bad, good] = [home.sessions[0], home.sessions[1]];
    let Home { disk, clock, store, .. } = home;
    drop(store);
    add(&disk, bad, &[1, 1]);
    assert!(matches!(&findings(&disk)[..], [(Code::CrashReported, Some(session), _)] if *session == bad));
    let store = open(&disk, &clock).expect("opens");
    store.load(bad, Want::Everything).expect("threads of one life count once");
    drop(store);
    add(&disk, bad, &[2]);
    let found = findings(&disk);
    assert!(matches!(&found[..], [(Code::SessionQuarantined, Some(session), _)] if *session == bad));
    assert!(found[0].2.contains("twice") && found[0].2.contains("nobody expected life 2"), "{found:?}");
    let log = disk.read_file(Layout::new("/home").log(bad)).expect("a log");

    let store = open(&disk, &clock).expect("opens");
    let quarantined =
        |error: &LoadError| matches!(error, LoadError::Quarantined { session, .. } if *session == bad);
    assert!(store.load(bad, Want::Status).is_err_and(|error| quarantined(&error)));
    let opened = store.open_session(bad).map(drop);
    assert!(matches!(opened, Err(OpenSessionError::Load(error)) if quarantined(&error)));
    assert!(store.reader(bad).is_err(), "not even read");
    store.remove(bad).expect_err("nor removed");
    assert_eq!(store.stand_in(bad).state.last_seq, 0, "nothing of it is shown");
    let mut surveyed = Vec::new();
    store.survey(|session, loaded| surveyed.push((session, loaded.is_ok()))).expect("listed");
    surveyed.sort_unstable();
    assert_eq!(surveyed, [(bad, false), (good, true)]);
    let offline = Offline::open(Arc::new(disk.clone()), "/home").expect("a home");
    assert!(offline.load(bad, Want::Status).is_err_and(|error| quarantined(&error)));
    store.open_session(good).expect("the other");
    store.append(Append::durable(good, vec![marked(9, 1, None)])).expect("goes on");

    assert!(store.release_quarantine(bad).expect("released"));
    assert!(!store.release_quarantine(bad).expect("again"), "there is nothing left to forget");
    assert_eq!(disk.read_file(Layout::new("/home").log(bad)), Some(log), "nobody has touched it");
    store.open_session(bad).expect("it opens");
    store.append(Append::durable(bad, vec![marked(9, 1, None)])).expect("and goes on");
    drop(store);
    let store = open(&disk, &clock).expect("opens");
    store.open_session(bad).expect("it stays so");
    assert!(findings(&disk).is_empty());
}

// I14: whoever reports a crash may be killed or lose power in the middle of it.
#[test]
fn a_report_that_is_cut_short_hides_no_other() {
    let home = Home::with_sessions(1, 1);
    let session = home.sessions[0];
    let Home { disk, clock, store, .. } = home;
    drop(store);
    add(&disk, session, &[1]);
    let (seen, handle) = (Arc::new(Mutex::new(Vec::new())), disk.clone());
    let points = seen.clone();
    disk.set_observer(Box::new(move |_| {
        points.lock().unwrap_or_else(PoisonError::into_inner).push(handle.fork());
    }));
    add(&disk, session, &[2]);
    disk.clear_observer();
    let mut rng = Rng::new(3);
    let points = std::mem::take(&mut *seen.lock().unwrap_or_else(PoisonError::into_inner));
    assert!(points.len() > 3, "{}", points.len());
    for (index, picture) in points.into_iter().enumerate() {
        for image in [picture.power_cut(&mut rng), picture.process_kill(&mut rng)] {
            open(&image, &clock).expect("it opens with whatever is there");
            // Whether or not the second was written, the third is the second that counts.
            add(&image, session, &[3]);
            let store = open(&image, &clock).expect("opens");
            let found = store.quarantine(session).unwrap_or_else(|| panic!("crash {index}"));
            assert_eq!(found.message, "nobody expected life 3", "crash {index}");
        }
    }
}

#[test]
fn reports_go_with_their_session() {
    let home = Home::with_sessions(1, 1);
    let session = home.sessions[0];
    add(&home.disk, session, &[1]);
    home.store.append(Append::durable(session, vec![SessionDeleted::default().into()])).expect("recorded");
    home.store.remove(session).expect("removed");
    let left = home.disk.paths().into_iter().find(|path| path.to_string_lossy().contains(session.as_str()));
    assert_eq!(left, None);
}

#[test]
fn what_a_panic_says_is_kept_up_to_a_bound() {
    let home = Home::with_sessions(1, 1);
    let mut long = crash(1);
    long.message = "é".repeat(100_000);
    for life in 1..=2 {
        let crash = Crash { boot_id: BootId::mint(0, life), ..long.clone() };
        report(&home.disk, &Layout::new("/home"), home.sessions[0], crash).expect("reported");
    }
    let home = home.reopen_same();
    let found = home.store.quarantine(home.sessions[0]).expect("quarantined");
    assert!((1000..=2000).contains(&found.message.len()), "{}", found.message.len());
}

// I1, I10: what the write-ahead log alone has is not lost with the next segment, though nobody looks into a record.
#[test]
fn a_quarantined_log_is_completed_by_its_bytes_alone() {
    for behind in [&b""[..], b"{\"seq\":"] {
        let home = Home::with_sessions(2, 6);
        let [bad, good] = [home.sessions[0], home.sessions[1]];
        let Home { disk, clock, store, .. } = home;
        drop(store);
        let paths = [bad, good].map(|session| Layout::new("/home").log(session));
        let logs = paths.each_ref().map(|path| disk.read_file(path).expect("a log"));
        // The end of both is in the write-ahead log alone; or everything is there, and something behind it.
        for (path, log) in paths.iter().zip(&logs) {
            let written = if behind.is_empty() { &log[..log.len() / 2] } else { log };
            disk.write_file(path, &[written, behind].concat());
        }
        add(&disk, bad, &[1, 2]);
        let store = open(&disk, &clock).expect("opens");
        assert_eq!(
            disk.read_file(&paths[0]),
            Some([&logs[0][..], behind].concat()),
            "completed, and nothing cut"
        );
        assert_eq!(disk.read_file(&paths[1]).as_ref(), Some(&logs[1]), "as every other is");
        drop(store);
        // The write-ahead log does not have it any more.
        let store = open(&disk, &clock).expect("opens");
        assert!(store.release_quarantine(bad).expect("released"));
        let current = store.open_session(bad).expect("it opens");
        assert!(current.damage.is_none() && current.state.last_seq >= 6, "{:?}", current.damage);
        store.append(Append::durable(bad, vec![marked(9, 1, None)])).expect("and goes on");
    }
}

#[test]
fn a_quarantined_session_is_set_aside_with_its_reports() {
    let home = Home::with_sessions(1, 1);
    let session = home.sessions[0];
    let Home { disk, store, .. } = home;
    drop(store);
    add(&disk, session, &[1, 2]);
    let layout = Layout::new("/home");
    let aside = set_aside(&disk, &layout, session).expect("set aside");
    assert!(disk.read_file(aside.join("crashes.jsonl")).is_some());
    assert_eq!(disk.read_file(layout.crash_report(session)), None);
    assert_eq!(disk.read_file(layout.log(session)), None);
    assert_eq!(set_aside(&disk, &layout, session).expect("again"), aside, "a second time changes nothing");
    assert!(findings(&disk).is_empty());
}
