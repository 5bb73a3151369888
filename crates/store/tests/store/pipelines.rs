//! Ledgers of pipeline runs on a disk that loses power: what was answered stays, an attempt's session and its step begin together or
//! not at all, and a run whose files are gone is not taken for one that never was.

use std::sync::{Arc, Mutex, PoisonError};

use rekindle_domain::blob_id::BlobId;
use rekindle_domain::event::{
    PipelineStarted, ProjectConfig, RunCompleted, RunStarted, StepCounts, StepFinished,
};
use rekindle_domain::id::{BootId, PipelineId, RunId, RunName, SessionId, StepId, StepKey};
use rekindle_domain::line::Draft;
use rekindle_domain::pipeline::compose::{self, Intention};
use rekindle_domain::pipeline::{PipelineState, RunStatus};
use rekindle_store::check::{Code, Holding, Report, check};
use rekindle_store::commit::{Append, Commits, Inline};
use rekindle_store::disk::Disk;
use rekindle_store::log::Cursor;
use rekindle_store::offline::Offline;
use rekindle_store::{AppendError, LoadError, PipelineRuns, Store, Want};
use rekindle_testkit::rng::Rng;
use rekindle_testkit::sim::{Fault, FaultKind, OpKind, SimDisk};

use crate::common::{Home, created, open};

const CONFIG: &str = r#"{"version":1,"agents":{"a":{"agent":"claude"}},"tasks":[{"id":"T-1","goal":"Make it so"}],
    "pipelines":{"default":{"stages":[{"name":"implement","agent":"a"},{"name":"review","agent":"a"},{"name":"verify","check":["true"]}]}}}"#;

const RUN: &str = "run-20251020-140818-4f9f29a1";
pub(crate) const LEDGER: &str = "/home/runs/run-20251020-140818-4f9f29a1/ledger.ndjson";

/// Appends of a whole run: its start, and for each of three steps its beginning and its end.
pub(crate) const APPENDS: usize = 7;

fn name() -> RunName {
    RUN.parse().expect("a name")
}

pub(crate) fn id() -> PipelineId {
    name().pipeline_id()
}

pub(crate) fn tree(n: u8) -> BlobId {
    BlobId::from_bytes([n; 32])
}

pub(crate) fn intention(step: &StepId) -> Intention {
    let key = StepKey::from_bytes(*BlobId::of(step.to_string().as_bytes()).as_bytes());
    Intention { key, from: tree(1), agent: None, inputs_hash: tree(0) }
}

fn started() -> Vec<Draft> {
    let config: ProjectConfig = serde_json::from_str(CONFIG).expect("a configuration");
    let started = PipelineStarted {
        pipeline: "default".into(),
        task: Box::new(config.tasks[0].clone()),
        config: Box::new(config),
        config_hash: tree(0),
        snapshot_id: "snap-010101010101".into(),
        tree: tree(1),
        working_dir: "/repo".into(),
        origin: "/repo".into(),
        on_cut: None,
        by: "user:ada".into(),
        on_drift: None,
        budget: None,
        no_cache: false,
        options: None,
        idempotency_key: None,
    };
    compose::start(id(), started, intention(&"implement-1".parse().expect("a step"))).expect("a start")
}

/// The session of a step, and the run in it.
fn session(step: usize) -> (SessionId, RunId) {
    (SessionId::mint(step as u64 + 1, 7), RunId::mint(step as u64 + 1, 7))
}

pub(crate) fn state(store: &Store<Inline>) -> PipelineState {
    store.open_pipeline(id()).expect("readable").expect("it is there").fold
}

/// Does the append that comes next behind so many others.
fn proceed(store: &Store<Inline>, done: usize) -> Result<(), AppendError> {
    if done == 0 {
        return store.append(Append::durable(id(), started())).map(drop);
    }
    let state = state(store);
    let step = state.current_step().expect("a step").clone();
    let (session_id, run_id) = session((done - 1) / 2);
    let append = if done % 2 == 1 {
        store.create(session_id).map_err(|error| AppendError::Storage(Arc::new(error)))?;
        let run = RunStarted {
            run_id,
            boot_id: BootId::mint(0, 1),
            machine_boot: None,
            message_id: None,
            attempt: 1,
            continues: None,
            origin_run_id: None,
            task_id: None,
        };
        let began = compose::begin(&step, session_id, run_id);
        Append::durable(session_id, vec![created(), run.into()]).and(id(), vec![began])
    } else {
        let finished = StepFinished {
            step_id: step.id.clone(),
            key: step.key,
            outcome: "completed".into(),
            payload: None,
            payload_blob: None,
            to: tree(1),
            files_touched: None,
            usage: None,
            cached: false,
            counts: StepCounts::default(),
        };
        let records =
            compose::finish(&state, finished, |_, next| Ok(intention(next))).expect("it may follow");
        let ended = RunCompleted { run_id, stop_reason: None, usage: None };
        Append::durable(id(), records).and(session_id, vec![ended.into()])
    };
    store.append_together(append).map(drop)
}

/// A home with a run that has come so far.
pub(crate) fn home_with(appends: usize) -> Home {
    let home = Home::with_sessions(0, 0);
    home.store.create_pipeline(id()).expect("a new run");
    (0..appends).for_each(|done| proceed(&home.store, done).expect("appended"));
    home
}

/// What a home says of the run and of the sessions of its steps.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Told {
    pub(crate) run: PipelineState,
    sessions: Vec<u64>,
}

pub(crate) fn told(store: &Store<Inline>) -> Result<Told, String> {
    let run = match store.open_pipeline(id()).map_err(|error| error.to_string())? {
        Some(committed) => match committed.damage {
            Some(damage) => return Err(format!("it is called damaged: {damage:?}")),
            None => committed.fold,
        },
        None => PipelineState::empty(id()),
    };
    let records = |step: usize| match store.load(session(step).0, Want::Status) {
        Ok(loaded) => Ok(loaded.state.last_seq),
        Err(LoadError::NotFound(_)) => Ok(0),
        Err(error) => Err(error.to_string()),
    };
    Ok(Told { run, sessions: (0..3).map(records).collect::<Result<_, _>>()? })
}

/// After a crash: the run is where it was behind some append, none that was answered is missing, and it goes on and stays.
fn judge(image: &SimDisk, home: &Home, expected: &[Told], answered: usize) -> Result<(), String> {
    let store = open(image, &home.clock).map_err(|error| format!("cannot open: {error:?}"))?;
    let found = told(&store)?;
    let at = expected.iter().position(|told| *told == found);
    let at = at.ok_or_else(|| format!("that was never so: {found:?}"))?;
    if at < answered {
        return Err(format!("{answered} appends were answered, and {at} are there"));
    }
    if at == APPENDS {
        return Ok(());
    }
    if store.open_pipeline(id()).map_err(|error| error.to_string())?.is_none() {
        store.create_pipeline(id()).map_err(|error| format!("cannot be made: {error}"))?;
    }
    for step in 0..3 {
        if found.sessions[step] > 0 {
            store.open_session(session(step).0).map_err(|error| error.to_string())?;
        }
    }
    proceed(&store, at).map_err(|error| format!("does not go on: {error}"))?;
    store.committer().checkpoint().map_err(|error| format!("no checkpoint: {error}"))?;
    let again =
        open(&image.power_cut(&mut Rng::new(5)), &home.clock).map_err(|error| format!("{error:?}"))?;
    let (now, then) = (told(&store)?, told(&again)?);
    if now != then { Err(format!("{now:?} has become {then:?}")) } else { Ok(()) }
}

// I1, I3, I11, I14
#[test]
fn a_run_that_is_crashed_at_every_operation_is_where_it_was_behind_some_append() {
    let home = Home::with_sessions(0, 0);
    let (answered, points) = (Arc::new(Mutex::new(0)), Arc::new(Mutex::new(Vec::new())));
    let (seen, known, handle) = (points.clone(), answered.clone(), home.disk.clone());
    home.disk.set_observer(Box::new(move |op| {
        let answered: usize = *known.lock().unwrap_or_else(PoisonError::into_inner);
        let point = (op.to_string(), handle.fork(), answered);
        seen.lock().unwrap_or_else(PoisonError::into_inner).push(point);
    }));
    let mut expected = vec![told(&home.store).expect("nothing yet")];
    home.store.create_pipeline(id()).expect("a new run");
    for done in 0..APPENDS {
        proceed(&home.store, done).expect("appended");
        *answered.lock().unwrap_or_else(PoisonError::into_inner) = done + 1;
        expected.push(told(&home.store).expect("it is there"));
        if done % 3 == 2 {
            home.store.committer().checkpoint().expect("a checkpoint");
        }
    }
    home.disk.clear_observer();
    assert_eq!(expected[APPENDS].run.status, RunStatus::Completed);
    let points = std::mem::take(&mut *points.lock().unwrap_or_else(PoisonError::into_inner));
    assert!(points.len() > 40, "{} places to crash at", points.len());
    let mut rng = Rng::new(11);
    for (index, (op, picture, answered)) in points.into_iter().enumerate() {
        for power in [true, true, false] {
            let image = if power { picture.power_cut(&mut rng) } else { picture.process_kill(&mut rng) };
            if let Err(why) = judge(&image, &home, &expected, answered) {
                panic!("crash {index} before {op}, power cut {power}: {why}");
            }
        }
    }
}

#[test]
fn of_a_session_and_its_step_nothing_is_left_when_one_refuses() {
    let home = home_with(2);
    let before = told(&home.store).expect("it is there");
    // The step goes on already: a second attempt is refused, and its session with it.
    let step = before.run.current_step().expect("a step").clone();
    let (other, run_id) = session(2);
    home.store.create(other).expect("a new session");
    let append =
        Append::durable(other, vec![created()]).and(id(), vec![compose::begin(&step, other, run_id)]);
    let refused = home.store.append_together(append);
    assert!(matches!(refused, Err(AppendError::IllegalTransition(_))), "{refused:?}");
    home.store.close_session(other);
    assert_eq!(told(&home.store), Ok(before));
}

#[test]
fn whoever_looks_at_a_run_that_is_just_being_made_does_not_take_it_from_its_maker() {
    let home = Home::with_sessions(0, 0);
    home.store.create_pipeline(id()).expect("a new run");
    let looked_at = home.store.open_pipeline(id()).expect("readable").expect("it is there");
    assert_eq!(looked_at.fold.position().last_seq, 0);
    home.store.close_pipeline(id());
    home.store.append(Append::durable(id(), started())).expect("its maker goes on");
    // Given up, it is open to nobody.
    let other = RunName::mint(1, 1).pipeline_id();
    home.store.create_pipeline(other).expect("another run");
    home.store.abandon_pipeline(other);
    assert!(matches!(home.store.append(Append::durable(other, started())), Err(AppendError::NotOpen(_))));
}

#[test]
fn a_name_is_used_once_and_runs_are_listed_by_it() {
    let home = home_with(1);
    let again = home.store.create_pipeline(id()).expect_err("it exists");
    assert_eq!(again.kind(), std::io::ErrorKind::AlreadyExists);
    let nameless = home.store.create_pipeline(PipelineId::from_ulid(u128::MAX)).expect_err("it has no name");
    assert_eq!(nameless.kind(), std::io::ErrorKind::InvalidInput);
    let other = RunName::mint(1_700_000_000_000, 1);
    home.store.create_pipeline(other.pipeline_id()).expect("another");
    home.disk.write_file("/home/runs/notes.txt", b"mine");
    home.disk.write_file("/home/runs/run-20251020-140818-00000000", b"a file");
    let foreign = vec!["notes.txt".to_owned(), "run-20251020-140818-00000000".to_owned()];
    let expected = PipelineRuns { runs: vec![other, name()], foreign };
    assert_eq!(home.store.pipelines().expect("listed"), expected);
    let offline = Offline::open(Arc::new(home.disk.fork()), "/home").expect("a home");
    assert_eq!(offline.pipelines().expect("listed"), expected);
    assert_eq!(offline.ledger_reader(id()).expect("a ledger").end(), reader_end(&home.store));
    // One that has something on its way to disk stays.
    home.store.committer().checkpoint().expect("a checkpoint");
    home.store.close_pipeline(id());
    assert!(home.store.pipeline(id()).is_none());
    assert_eq!(state(&home.store).position().last_seq, 2);
}

/// Removes the directory of the run, and that of all runs with it.
fn remove_run(disk: &SimDisk, all: bool) -> bool {
    let removed = disk.remove(LEDGER) && disk.remove_dir(format!("/home/runs/{RUN}").as_ref()).is_ok();
    removed && (!all || disk.remove_dir("/home/runs".as_ref()).is_ok())
}

fn reader_end(store: &Store<Inline>) -> Cursor {
    store.ledger_reader(id()).expect("a ledger").end()
}

fn doctor(disk: &SimDisk) -> Report {
    check(Arc::new(disk.clone()), "/home", Holding::Nothing, &mut |_| {}).expect("checked")
}

pub(crate) fn found(disk: &SimDisk) -> Vec<(Code, String)> {
    // Sessions without caches are not what this is about, nor are segments that are kept for damage that is found anyway.
    let other = [Code::HomeInUse, Code::SnapshotMissing, Code::IndexMissing, Code::WalKept];
    let findings = doctor(disk).findings.into_iter().filter(|finding| !other.contains(&finding.code));
    findings.map(|finding| (finding.code, finding.path.display().to_string())).collect()
}

#[test]
fn a_home_without_runs_opens_and_nothing_is_amiss() {
    let home = Home::with_sessions(1, 1);
    assert!(!home.disk.paths().iter().any(|path| path.starts_with("/home/runs")));
    assert_eq!(home.store.pipelines().expect("listed"), PipelineRuns::default());
    assert!(home.store.open_pipeline(id()).expect("looked for").is_none());
    assert!(home.store.pipeline(id()).is_none(), "whoever looks makes nothing");
    assert_eq!(found(&home.disk.fork()), []);
}

#[test]
fn what_a_crash_left_at_the_end_of_a_ledger_is_cut_off() {
    let home = home_with(3);
    let whole = told(&home.store).expect("it is there");
    home.store.committer().checkpoint().expect("a checkpoint");
    let log = home.disk.read_file(LEDGER).expect("a ledger");
    let disk = home.disk.fork();
    disk.write_file(LEDGER, &[&log[..], b"{\"seq\":6,\"ts\":\"20"].concat());
    assert_eq!(found(&disk), [(Code::LogTorn, LEDGER.to_owned())]);
    let store = open(&disk, &home.clock).expect("opens");
    assert_eq!(told(&store), Ok(whole));
    assert_eq!(disk.read_file(LEDGER), Some(log));
    store.open_session(session(1).0).expect_err("it has not begun");
    proceed(&store, 3).expect("it goes on");
}

#[test]
fn damage_is_found_and_nothing_is_added_behind_it() {
    let home = home_with(3);
    home.store.committer().checkpoint().expect("a checkpoint");
    let len = home.disk.read_file(LEDGER).expect("a ledger").len() as u64;
    for what in ["a byte", "the end", "the file", "its directory", "all runs"] {
        let disk = home.disk.fork();
        let done = match what {
            "a byte" => disk.flip_byte(LEDGER, 40),
            "the end" => disk.truncate_file(LEDGER, len - 10),
            "the file" => disk.remove(LEDGER),
            "its directory" => remove_run(&disk, false),
            _ => remove_run(&disk, true),
        };
        assert!(done, "{what}");
        // Whoever comes later finds the same: the first start leaves a note.
        for start in 0..3 {
            assert_eq!(found(&disk), [(Code::LogDamaged, LEDGER.to_owned())], "{what}, start {start}");
            let store = open(&disk, &home.clock).expect("the home opens");
            assert_eq!(store.pipelines().expect("listed").runs, [name()], "{what}");
            let damaged = store.open_pipeline(id()).expect("readable").expect("it is known").damage;
            assert!(damaged.is_some(), "{what}, start {start}");
            let refused = store.append(Append::durable(id(), vec![compose::abort(None, "user:ada")]));
            let refused = refused.expect_err("nothing is added");
            assert!(matches!(refused, AppendError::Damaged { .. }), "{what}: {refused}");
            store.create_pipeline(id()).expect_err("its name is taken");
            store.committer().checkpoint().expect("others are not concerned");
        }
    }
}

#[test]
fn a_directory_that_somebody_removed_comes_back_from_the_write_ahead_log() {
    let home = home_with(3);
    let whole = told(&home.store).expect("it is there");
    let disk = home.disk.fork();
    let log = disk.read_file(LEDGER).expect("a ledger");
    assert!(remove_run(&disk, true));
    assert_eq!(found(&disk), [(Code::LogRefill, LEDGER.to_owned())], "nothing is lost");
    let offline = Offline::open(Arc::new(disk.clone()), "/home").expect("a home");
    assert_eq!(offline.pipelines().expect("listed").runs, [name()]);
    // Where it cannot be made again yet, its records are served all the same.
    let stuck = disk.fork();
    stuck.inject(Fault::sticky(FaultKind::NoSpace, 0).on(&[OpKind::CreateDir]).at("/runs"));
    let store = open(&stuck, &home.clock).expect("opens");
    assert_eq!((told(&store), store.pipelines().expect("listed").runs), (Ok(whole.clone()), vec![name()]));
    store.create_pipeline(id()).expect_err("its name is taken");
    drop(store);
    stuck.clear_faults();
    for disk in [disk, stuck] {
        let store = open(&disk, &home.clock).expect("opens");
        assert_eq!(told(&store), Ok(whole.clone()));
        let again = open(&disk.power_cut(&mut Rng::new(3)), &home.clock).expect("opens");
        assert_eq!(told(&again), Ok(whole.clone()));
        assert_eq!(disk.read_file(LEDGER).as_deref(), Some(&log[..]));
    }
}

#[test]
fn the_doctor_knows_what_is_in_a_run_and_leaves_the_rest_alone() {
    let home = home_with(APPENDS);
    home.store.committer().checkpoint().expect("a checkpoint");
    let disk = home.disk.fork();
    assert_eq!(found(&disk), []);
    disk.write_file(format!("/home/runs/{RUN}/run.json"), b"{}");
    assert_eq!(found(&disk), [], "a summary is ours");
    let foreign = ["/home/runs/notes.txt".to_owned(), format!("/home/runs/{RUN}/notes.txt")];
    foreign.iter().for_each(|path| disk.write_file(path, b"mine"));
    let mut told = found(&disk);
    told.sort_by(|a, b| a.1.cmp(&b.1));
    let mut expected = foreign.map(|path| (Code::ForeignName, path));
    expected.sort_by(|a, b| a.1.cmp(&b.1));
    assert_eq!(told, expected);
}
