//! Runs that are over, and starts after that: nobody reads their ledgers to know of them, and no file beside a ledger hides what is in
//! it.

use rekindle_domain::pipeline::RunStatus;
use rekindle_domain::pipeline::config_change::ResumeWish;
use rekindle_store::disk::{Disk, OpenMode, read_all, write_all_at};
use rekindle_wire::filter::PipelineFilter;

use super::courses::{APPROVES, PASSES, ROUND, WRITES};
use super::home::{CONFIG, Home, new_run};
use crate::idempotency::Key;
use crate::pipelines::ResumeRun;

const LEDGER: &str = "ledger.ndjson";

/// A compressed ledger says in its last bytes how long it was: those are read, and they are fewer than any record has.
const ITS_END: u64 = 32;

fn file(home: &Home) -> Vec<u8> {
    read_all(&home.disk, &home.store().layout().run_summary(home.run), 1 << 20).expect("a file")
}

fn write_file(home: &Home, bytes: &[u8]) {
    let file = home.disk.open(&home.store().layout().run_summary(home.run), OpenMode::Replace);
    write_all_at(&*file.expect("a file"), bytes, 0).expect("written");
}

/// Two starts: what the first one still found in the write-ahead log is in ledgers at the second.
fn start_twice(home: &mut Home) -> u64 {
    home.restart().restart();
    let read = home.disk.gate.bytes_read(LEDGER);
    home.restart();
    home.disk.gate.bytes_read(LEDGER) - read
}

fn listed(home: &Home) -> Vec<(String, RunStatus, usize)> {
    let listed = home.pipelines().list(&PipelineFilter::default()).expect("a list");
    listed.pipelines.into_iter().map(|run| (run.task_id, run.status, run.stages.len())).collect()
}

#[test]
fn a_start_and_a_list_read_no_ledger_of_a_run_that_is_over() {
    let mut home = Home::with_run(&[WRITES, APPROVES, PASSES]);
    assert_eq!(home.news(), ROUND);
    let shown = serde_json::to_value(home.pipelines().show(home.run).expect("shown")).expect("JSON");
    home.wait_long();
    assert!(start_twice(&mut home) <= ITS_END);
    let read = home.disk.gate.bytes_read(LEDGER);
    let listed = home.pipelines().list(&PipelineFilter::default()).expect("a list");
    assert_eq!(serde_json::to_value(&listed.pipelines[0]).expect("JSON"), shown, "it says all the same");
    assert!(home.disk.gate.bytes_read(LEDGER) - read <= ITS_END, "nor does a list");
    // It is there all the same for whoever asks for it.
    assert_eq!(home.course(), ROUND);
    assert!(home.disk.gate.bytes_read(LEDGER) - read > 2 * ITS_END);
}

#[test]
fn an_aborted_run_is_over_when_its_agent_is_gone() {
    let mut home = Home::with_run(&["hang"]);
    home.abort().expect("aborted");
    home.wait_long();
    assert!(start_twice(&mut home) <= ITS_END);
    assert_eq!(home.scripted.living(), 0);
    assert_eq!(listed(&home), [("T-1".to_owned(), RunStatus::Aborted, 1)]);
}

#[test]
fn a_run_that_goes_on_is_read_whatever_is_beside_its_ledger() {
    // Who has hung is taken over; it works on when it was.
    let mut home = Home::with_run(&["text no", "hang"]);
    assert!(home.news().ends_with("failed"));
    home.wait_long();
    let before = file(&home);
    let wish = ResumeWish { force: true, accept_config: false };
    home.resume(ResumeRun { wish, ..ResumeRun::default() }).expect("it goes on");
    assert_eq!(listed(&home)[0].1, RunStatus::Running);
    // A power cut may leave an older file, half of one, or none.
    for bytes in [&before[..], &before[..before.len() / 2], b"", b"{}"] {
        home.daemon_ends();
        home.open();
        write_file(&home, bytes);
        home.daemon_ends();
        home.open();
        home.recover();
        assert_eq!(listed(&home)[0].1, RunStatus::Running);
        assert_eq!(home.scripted.living(), 1, "it was taken over");
    }
}

#[test]
fn a_file_that_was_deleted_comes_back_as_it_was() {
    let mut home = Home::with_run(&[WRITES, APPROVES, PASSES]);
    home.wait_long();
    let before = file(&home);
    home.daemon_ends();
    home.open();
    home.disk.remove_file(&home.store().layout().run_summary(home.run)).expect("removed");
    home.restart();
    assert_eq!(file(&home), before);
}

#[test]
fn a_request_that_is_repeated_is_found_without_a_ledger() {
    let mut home = Home::new(&[WRITES, APPROVES, PASSES]);
    let key = Key { key: "k".into(), body: [1; 32] };
    home.run = home.pipelines().create(new_run(CONFIG), Some(&key), "user:ada").expect("started");
    home.settle().wait_long();
    assert!(start_twice(&mut home) <= ITS_END);
    let read = home.disk.gate.bytes_read(LEDGER);
    let again = home.pipelines().create(new_run(CONFIG), Some(&key), "user:ada").expect("found");
    assert_eq!(again, home.run);
    assert!(home.disk.gate.bytes_read(LEDGER) - read <= ITS_END);
}
