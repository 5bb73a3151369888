//! Runs that have ended: their ledgers are compressed, read as before, and decompressed by whoever reopens one.

use rekindle_domain::pipeline::RunStatus;
use rekindle_domain::pipeline::config_change::ResumeWish;
use rekindle_store::disk::Disk;
use rekindle_testkit::sim::{Fault, FaultKind, OpKind};

use super::courses::{APPROVES, PASSES, ROUND, WRITES};
use super::home::{CONFIG, Home, new_run};
use crate::feed::Since;
use crate::pipelines::{FollowPipeline, ResumeRun};

fn force() -> ResumeRun {
    ResumeRun { wish: ResumeWish { force: true, accept_config: false }, ..ResumeRun::default() }
}

fn is_compressed(home: &Home) -> bool {
    home.store().is_compressed(home.run).expect("looked")
}

#[test]
fn a_run_that_ends_is_compressed_and_goes_on_when_it_is_reopened() {
    let mut home = Home::with_run(&["text no", WRITES, APPROVES, PASSES]);
    assert!(home.news().ends_with("failed"));
    assert!(is_compressed(&home));
    // It is told as before.
    let records = home.records().len();
    let pipelines = home.pipelines();
    assert_eq!(pipelines.ledger(home.run, 0, 100).expect("read").records.len(), records);
    assert_eq!(pipelines.ledger(home.run, 2, 1).expect("read").records[0].seq, 3);
    assert_eq!(pipelines.show(home.run).expect("shown").status, RunStatus::Failed);
    let followed = pipelines.follow(home.run, Since::After(2)).expect("followed");
    assert!(matches!(followed, FollowPipeline::Following(_)));
    drop((followed, pipelines));
    home.resume(force()).expect("it goes on");
    home.wait_long();
    assert!(home.news().starts_with("reopened; intend implement-2; begin implement-2"), "{}", home.course());
    assert_eq!(home.state().status, RunStatus::Completed);
    assert!(is_compressed(&home));
    let course = home.course();
    home.restart().wait_long();
    assert_eq!((home.course(), home.scripted.started()), (course, 4));
}

#[test]
fn a_run_that_goes_on_is_not_compressed_and_one_that_was_aborted_is_when_its_step_has_ended() {
    let mut home = Home::with_run(&["writes:code:1 hang", WRITES, APPROVES, PASSES]);
    home.pipelines().compress_ended();
    assert!(!is_compressed(&home));
    home.abort().expect("aborted");
    home.wait_long();
    assert_eq!((home.scripted.living(), is_compressed(&home)), (0, true));
    home.restart().wait_long();
    assert!(is_compressed(&home));
    home.resume(force()).expect("it goes on");
    home.wait_long();
    assert_eq!(home.state().status, RunStatus::Completed);
    assert!(is_compressed(&home));
}

#[test]
fn a_ledger_that_could_not_be_compressed_is_so_after_the_next_start() {
    let ledger = "ledger.ndjson.zst";
    for (kind, op) in [
        (FaultKind::NoSpace, OpKind::Create),
        (FaultKind::ShortThenNoSpace, OpKind::Write),
        (FaultKind::Eio, OpKind::Write),
        (FaultKind::Eio, OpKind::Sync),
        (FaultKind::Eio, OpKind::Rename),
        (FaultKind::Eio, OpKind::Read),
    ] {
        let mut home = Home::new(&[WRITES, APPROVES, PASSES]);
        home.disk.disk.inject(Fault::sticky(kind, 0).on(&[op]).at(ledger));
        home.start(new_run(CONFIG)).expect("started");
        home.settle();
        assert!(home.disk.disk.faults_struck() > 0, "{kind:?} {op}");
        assert_eq!((home.news().as_str(), is_compressed(&home)), (ROUND, false), "{kind:?} {op}");
        home.disk.disk.clear_faults();
        home.restart();
        home.pipelines().compress_ended();
        assert!(is_compressed(&home), "{kind:?} {op}");
        assert_eq!((home.course().as_str(), home.state().status), (ROUND, RunStatus::Completed));
    }
}

// What is removed last may fail too: then the ledger is there twice, and reads as before.
#[test]
fn a_ledger_that_is_there_twice_is_read_and_once_after_the_next_start() {
    let mut home = Home::new(&[WRITES, APPROVES, PASSES]);
    home.disk.disk.inject(Fault::sticky(FaultKind::Eio, 0).on(&[OpKind::Remove]).at("ledger.ndjson"));
    home.start(new_run(CONFIG)).expect("started");
    home.settle();
    let run = home.store().layout().run(home.run);
    let names = |home: &Home| -> Vec<String> {
        let listed = home.disk.list(&run).expect("a directory");
        let mut names: Vec<String> = listed.into_iter().map(|entry| entry.name).collect();
        names.retain(|name| name.starts_with("ledger"));
        names.sort();
        names
    };
    assert_eq!(names(&home), ["ledger.ndjson", "ledger.ndjson.zst"]);
    assert_eq!(home.news(), ROUND);
    home.disk.disk.clear_faults();
    // And what a daemon left that died over it.
    home.disk.disk.write_file(run.join("ledger.ndjson.zst.tmp"), b"half of it");
    home.restart();
    home.pipelines().compress_ended();
    assert_eq!((names(&home), home.course()), (vec!["ledger.ndjson.zst".to_owned()], ROUND.to_owned()));
    home.disk.disk.write_file(run.join("ledger.ndjson.tmp"), b"half of it");
    home.restart();
    home.pipelines().compress_ended();
    assert_eq!(names(&home), ["ledger.ndjson.zst"]);
}

#[test]
fn a_run_whose_ledger_cannot_be_decompressed_is_reopened_when_it_can() {
    for (kind, op) in [
        (FaultKind::NoSpace, OpKind::Create),
        (FaultKind::ShortThenNoSpace, OpKind::Write),
        (FaultKind::Eio, OpKind::Sync),
        (FaultKind::Eio, OpKind::Rename),
        (FaultKind::Eio, OpKind::Remove),
    ] {
        let mut home = Home::with_run(&["text no", WRITES, APPROVES, PASSES]);
        assert!(home.news().ends_with("failed") && is_compressed(&home));
        let course = home.course();
        home.disk.disk.inject(Fault::sticky(kind, 0).on(&[op]).at("ledger.ndjson"));
        home.resume(force()).expect_err("its ledger cannot be added to");
        assert!(home.disk.disk.faults_struck() > 0, "{kind:?} {op}");
        assert_eq!(home.course(), course, "{kind:?} {op}");
        home.disk.disk.clear_faults();
        home.restart().wait_long();
        assert_eq!(home.course(), course, "{kind:?} {op}");
        home.resume(force()).expect("it goes on");
        home.wait_long();
        assert_eq!(home.state().status, RunStatus::Completed, "{kind:?} {op}: {}", home.course());
        assert!(is_compressed(&home), "{kind:?} {op}");
    }
}
