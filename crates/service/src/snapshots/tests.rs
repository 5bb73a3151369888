//! The manager on a simulated disk, had to work by hand: what is taken when, what stays, and what a disk that fails does to it.

use rekindle_domain::event::{
    MessageUser, Options, Persistence, Provider, Raw, RunCompleted, RunStarted, SessionClosed,
    SessionCreated, SessionDeleted, SessionUpdated,
};
use rekindle_domain::id::{BootId, MessageId, RunId};
use rekindle_domain::line::{Draft, Line};
use rekindle_store::Opener;
use rekindle_store::disk::SharedDisk;
use rekindle_store::layout::Layout;
use rekindle_store::log::Cursor;
use rekindle_testkit::clock::SimClock;
use rekindle_testkit::sim::{Fault, FaultKind, SimDisk};

use super::*;

/// A home with a manager whose thread is the test's own.
struct Home {
    disk: SimDisk,
    clock: Arc<SimClock>,
    snapshots: Snapshots,
    session: SessionId,
    runs: u128,
    now: Instant,
}

impl Home {
    fn new(policy: Policy) -> Home {
        let (disk, clock) = (SimDisk::new(3), Arc::new(SimClock::default()));
        let (snapshots, session) = (open(&disk, &clock, policy), SessionId::mint(1, 1));
        let home = Home { disk, clock, snapshots, session, runs: 0, now: Instant::now() };
        home.begin(session, Options::default());
        home
    }

    /// Begins a session.
    fn begin(&self, session: SessionId, options: Options) {
        let created = SessionCreated {
            parent: None,
            title: "t".into(),
            working_dir: "/w".into(),
            provider: Provider { profile: "acp".into(), ..Provider::default() },
            options,
            env_names: Vec::new(),
            key: None,
            imported_from: None,
            idempotency_key: None,
            created_at: None,
            forked_from: None,
            restoring: None,
            worktree: None,
        };
        self.snapshots.store.create(session).expect("a session");
        self.append(session, vec![created.into()]);
    }

    fn append(&self, session: SessionId, records: Vec<Draft>) {
        self.snapshots.store.append(Append::durable(session, records)).expect("recorded");
    }

    fn say(&self) {
        let content = Raw::from_value(&"hello").expect("JSON");
        let message = MessageUser {
            message_id: MessageId::mint(1, 1),
            content,
            idempotency_key: None,
            queued: false,
            wait_id: None,
        };
        self.append(self.session, vec![message.into()]);
    }

    fn start_run(&mut self) -> RunId {
        self.runs += 1;
        let run_id = RunId::mint(1, self.runs);
        let started = RunStarted {
            run_id,
            boot_id: BootId::mint(0, 1),
            machine_boot: None,
            message_id: None,
            attempt: 1,
            continues: None,
            origin_run_id: None,
            task_id: None,
        };
        self.append(self.session, vec![started.into()]);
        run_id
    }

    fn end_run(&self, run_id: RunId) {
        self.append(self.session, vec![RunCompleted { run_id, stop_reason: None, usage: None }.into()]);
    }

    /// Lets time pass, and the manager do what is due then.
    fn pass(&mut self, seconds: u64) {
        self.snapshots.work(self.now);
        self.now += Duration::from_secs(seconds);
        self.snapshots.work(self.now);
    }

    /// Returns the snapshots that are there: record and reason.
    fn kept(&self) -> Vec<(u64, SnapshotReason)> {
        let kept = self.snapshots.kept();
        let read = |file: &SnapshotFile| kept.read(self.session, file.name).expect("it can be read");
        let files = kept.list(self.session).expect("a list");
        files.iter().map(read).map(|snapshot| (snapshot.seq, snapshot.reason)).collect()
    }

    fn last_seq(&self) -> u64 {
        self.snapshots.store.open_session(self.session).expect("open").state.last_seq
    }

    /// Returns the kinds of records about snapshots, in order.
    fn told(&self) -> Vec<String> {
        let reader = self.snapshots.store.reader(self.session).expect("a log");
        let mut lines = reader.forward(Cursor::START);
        let mut told = Vec::new();
        while let Some(line) = lines.next().expect("readable") {
            let line = Line::parse(line.bytes).expect("a record");
            if line.kind.starts_with("snapshot.") {
                told.push(line.kind.to_owned());
            }
        }
        told
    }
}

fn open(disk: &SimDisk, clock: &Arc<SimClock>, policy: Policy) -> Snapshots {
    let opener = Opener { pid: 1, boot_id: BootId::mint(0, 1) };
    let shared: SharedDisk = Arc::new(disk.clone());
    let store = Store::open(shared, "/home", opener, clock.clone()).expect("a home");
    Snapshots::new(Arc::new(store), clock.clone(), policy)
}

#[test]
fn one_is_taken_at_the_end_of_a_run_and_every_five_minutes_while_something_happens() {
    let mut home = Home::new(Policy::default());
    home.pass(299);
    assert!(home.kept().is_empty(), "too early");
    home.pass(1);
    assert_eq!(home.kept(), [(1, SnapshotReason::Interval)]);
    let run = home.start_run();
    home.pass(10);
    home.end_run(run);
    let end = home.last_seq();
    home.pass(1);
    assert_eq!(home.kept()[1..], [(end, SnapshotReason::RunEnd)]);
    // Records about snapshots are no reason for the next.
    home.pass(1000);
    assert_eq!(home.kept().len(), 2);
    home.say();
    home.pass(1000);
    assert_eq!(home.kept()[2], (end + 2, SnapshotReason::Interval));
    assert_eq!(home.told(), ["snapshot.created"; 3]);
    let counts = &home.snapshots.counts;
    assert_eq!((counts.took.read().count, counts.failed.get()), (3, 0));
    assert!(counts.bytes.get() > 0 && counts.taken().map(|(_, count)| count).sum::<u64>() == 3);
}

// In the middle of the next run a fork could not begin there.
#[test]
fn the_snapshot_of_a_run_is_of_its_end_though_the_next_one_has_begun() {
    let mut home = Home::new(Policy::default());
    let run = home.start_run();
    home.end_run(run);
    let end = home.last_seq();
    home.snapshots.work(home.now);
    home.start_run();
    home.pass(1);
    assert_eq!(home.kept(), [(end, SnapshotReason::RunEnd)]);
    let name = SnapshotName { seq: end, number: 1 };
    let snapshot = home.snapshots.kept().read(home.session, name).expect("a snapshot");
    assert!(snapshot.state.open_run().is_none() && snapshot.state.last_seq == end);
    assert_eq!(snapshot.h, snapshot.state.last_hash);
}

#[test]
fn a_daemon_that_leaves_keeps_those_in_which_something_has_happened() {
    let mut home = Home::new(Policy::default());
    home.pass(300);
    let other = SessionId::mint(1, 2);
    home.begin(other, Options::default());
    home.snapshots.leave();
    assert_eq!(home.kept(), [(1, SnapshotReason::Interval)], "nothing has happened since");
    let kept = home.snapshots.kept();
    let files = kept.list(other).expect("a list");
    assert_eq!(files.len(), 1);
    assert_eq!(kept.read(other, files[0].name).expect("readable").reason, SnapshotReason::Exit);
}

#[test]
fn a_session_that_is_closed_is_kept_and_one_that_wants_none_is_not() {
    let mut home = Home::new(Policy::default());
    home.append(home.session, vec![SessionClosed::default().into()]);
    home.pass(1);
    assert_eq!(home.kept(), [(2, SnapshotReason::Exit)]);
    let quiet = SessionId::mint(1, 2);
    let none = Persistence { enabled: Some(false), ..Persistence::default() };
    home.begin(quiet, Options { persistence: Some(none), ..Options::default() });
    home.session = quiet;
    let run = home.start_run();
    home.end_run(run);
    home.pass(1000);
    home.append(quiet, vec![SessionClosed::default().into()]);
    home.pass(1000);
    assert!(home.kept().is_empty());
    // Whoever asks for one gets it.
    let (file, snapshot) = home.snapshots.take_now(quiet, SnapshotReason::Request).expect("taken");
    assert_eq!((file.name.seq, snapshot.reason), (4, SnapshotReason::Request));
    home.snapshots.leave();
    assert_eq!(home.kept().len(), 1, "none at the exit");
}

#[test]
fn settings_of_a_session_count_from_when_they_are_made() {
    let mut home = Home::new(Policy::default());
    let wanted = Persistence { keep: Some(2), interval_s: Some(5), ..Persistence::default() };
    let options = Options { persistence: Some(wanted), ..Options::default() };
    home.append(home.session, vec![SessionUpdated { options: Some(options), ..Default::default() }.into()]);
    for _ in 0..4 {
        home.say();
        home.pass(5);
    }
    let kept = home.kept();
    assert_eq!(kept.len(), 2, "the newest two: {kept:?}");
    assert_eq!(kept[1].0, home.last_seq() - 1, "the newest is of the newest record");
}

#[test]
fn an_interval_longer_than_any_clock_is_never_over() {
    let mut home = Home::new(Policy::default());
    let never =
        Persistence { interval_s: Some(u64::MAX), max_age_s: Some(u64::MAX), ..Persistence::default() };
    let options = Options { persistence: Some(never), ..Options::default() };
    home.append(home.session, vec![SessionUpdated { options: Some(options), ..Default::default() }.into()]);
    home.say();
    home.pass(86_400);
    assert!(home.kept().is_empty());
    home.snapshots.leave();
    assert_eq!(home.kept().len(), 1, "one at the exit");
}

// I12: told once, not every five minutes; and when there is room again, it is made up for.
#[test]
fn a_full_disk_is_told_once_and_the_snapshot_is_made_up_for() {
    let mut home = Home::new(Policy::default());
    home.disk.inject(Fault::sticky(FaultKind::NoSpace, 0).at(".snapshots"));
    for _ in 0..3 {
        home.say();
        home.pass(300);
    }
    assert!(home.kept().is_empty());
    assert_eq!(home.told(), ["snapshot.failed"]);
    assert_eq!(home.snapshots.counts.failed.get(), 3);
    home.disk.clear_faults();
    home.pass(300);
    assert_eq!(home.told(), ["snapshot.failed", "snapshot.created"]);
    assert_eq!(home.kept(), [(home.last_seq() - 1, SnapshotReason::Interval)]);
    // The next trouble is told again.
    home.disk.inject(Fault::sticky(FaultKind::NoSpace, 0).at(".snapshots"));
    home.say();
    home.pass(300);
    assert_eq!(home.told().len(), 3);
}

#[test]
fn whoever_asks_is_told_why_there_is_no_snapshot() {
    let home = Home::new(Policy::default());
    home.disk.inject(Fault::sticky(FaultKind::NoSpace, 0).at(".snapshots"));
    let error = home.snapshots.take_now(home.session, SnapshotReason::Request).expect_err("no room");
    assert_eq!(error.code, rekindle_wire::code::Code::StorageFull);
    let missing = home.snapshots.remove(home.session, SnapshotName { seq: 7, number: 1 });
    assert_eq!(missing.map_err(|error| error.code), Err(rekindle_wire::code::Code::SnapshotNotFound));
}

#[test]
fn nothing_is_kept_of_a_session_that_is_being_removed() {
    let mut home = Home::new(Policy::default());
    let run = home.start_run();
    home.end_run(run);
    home.snapshots.work(home.now);
    home.append(home.session, vec![SessionDeleted::default().into()]);
    home.snapshots.store.remove(home.session).expect("removed");
    home.pass(1000);
    home.snapshots.leave();
    let history = Layout::new("/home").history(home.session);
    assert!(home.disk.paths().iter().all(|path| !path.starts_with(&history)), "{:?}", home.disk.paths());
}

// A snapshot whose record was lost is there all the same; a record whose snapshot was lost is nowhere.
#[test]
fn a_power_cut_leaves_no_record_without_its_snapshot() {
    let mut home = Home::new(Policy::default());
    let points: Arc<Mutex<Vec<SimDisk>>> = Arc::default();
    let run = home.start_run();
    home.end_run(run);
    let (seen, handle) = (points.clone(), home.disk.clone());
    home.disk.set_observer(Box::new(move |_| locked(&seen).push(handle.fork())));
    home.pass(1);
    home.disk.clear_observer();
    let mut points = std::mem::take(&mut *locked(&points));
    points.push(home.disk.fork());
    assert!(points.len() > 5, "{} operations are too few to die between", points.len());
    let mut rng = rekindle_testkit::rng::Rng::new(11);
    let mut with_record = 0;
    for (index, point) in points.into_iter().enumerate() {
        for round in 0..4 {
            let disk = if round % 2 == 0 { point.power_cut(&mut rng) } else { point.process_kill(&mut rng) };
            let snapshots = open(&disk, &home.clock, Policy::default());
            let (clock, session, now) = (home.clock.clone(), home.session, home.now);
            let after = Home { disk, clock, snapshots, session, runs: 0, now };
            let told = after.told().len();
            with_record += told;
            assert!(after.kept().len() >= told, "at {index}: {:?}", after.kept());
        }
    }
    assert!(with_record > 0, "some have come that far");
}
