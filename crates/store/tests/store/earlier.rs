//! A session of the earlier layout: a snapshot that has what the log has not, and a log without hashes.

use std::sync::Arc;

use rekindle_domain::id::SessionId;
use rekindle_domain::session::SessionState;
use rekindle_store::Want;
use rekindle_testkit::clock::SimClock;
use rekindle_testkit::sim::SimDisk;

use crate::common::open;

const SNAPSHOT: &str = r#"{"id":"sess_123","title":"Fix flaky test","working_dir":"/repo","provider":{"type":"native","model":"m"},
    "created_at":"2026-02-21T10:00:00Z","updated_at":"2026-02-21T10:03:14Z","last_seq":147,"run":null}"#;
const LOG: &str = concat!(
    r#"{"seq":146,"ts":"2026-02-21T10:01:25Z","kind":"run.waiting","run_id":"run_9f5","wait_kind":"tool_result","resume_token_id":"rt_5f0"}"#,
    "\n",
    r#"{"seq":147,"ts":"2026-02-21T10:02:02Z","kind":"run.interrupted","run_id":"run_9f5","reason":"process_exit"}"#,
    "\n",
);
const SNAPSHOT_PATH: &str = "/home/sessions/sess_123.json";
const LOG_PATH: &str = "/home/sessions/sess_123.messages.jsonl";

fn named(state: &SessionState) -> (&str, &str, String) {
    (&state.title, &state.working_dir, state.created_at.to_string())
}

const NAMED: (&str, &str, &str) = ("Fix flaky test", "/repo", "2026-02-21T10:00:00.000Z");

fn check(state: &SessionState) {
    let (title, dir, created) = named(state);
    assert_eq!((title, dir, created.as_str()), NAMED);
    assert!(state.run.as_ref().is_some_and(|run| run.end.is_some()) && state.recovery.interruption.is_some());
}

// I2: the only copy of something is in the log before it is written over.
#[test]
fn what_only_a_snapshot_of_the_earlier_layout_has_is_put_into_the_log_first() {
    let session: SessionId = "sess_123".parse().expect("an id");
    let (disk, clock) = (SimDisk::new(3), Arc::new(SimClock::default()));
    drop(open(&disk, &clock).expect("an empty home"));
    disk.write_file(SNAPSHOT_PATH, SNAPSHOT.as_bytes());
    disk.write_file(LOG_PATH, LOG.as_bytes());

    // Looking changes nothing, and shows what there is.
    let store = open(&disk, &clock).expect("opens");
    check(&store.load(session, Want::Everything).expect("loads").state);
    assert_eq!(disk.read_file(SNAPSHOT_PATH).expect("it is there"), SNAPSHOT.as_bytes());
    assert_eq!(disk.read_file(LOG_PATH).expect("it is there"), LOG.as_bytes());

    // Opening it to be appended to puts the facts into the log, once.
    for _ in 0..2 {
        let state = store.open_session(session).expect("opens").state;
        check(&state);
        assert_eq!(state.last_seq, 148);
        store.close_session(session);
    }
    store.snapshot(session).expect("a cache now");
    drop(store);
    let with_cache = open(&disk, &clock).expect("opens").load(session, Want::Everything).expect("loads");
    let bare = SimDisk::new(4);
    drop(open(&bare, &clock).expect("an empty home"));
    bare.write_file(LOG_PATH, &disk.read_file(LOG_PATH).expect("a log"));
    let alone = open(&bare, &clock).expect("opens").load(session, Want::Everything).expect("loads");
    assert_eq!(alone.state, with_cache.state);
    assert!(alone.damage.is_none() && alone.unlogged.is_empty());
    check(&alone.state);
}
