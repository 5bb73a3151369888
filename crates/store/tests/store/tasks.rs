//! The stream of tasks on a disk that loses power: a task and its run are recorded together or not at all, and the cache of what has
//! not ended saves reading without being believed.

use std::collections::BTreeMap;

use rekindle_domain::event::{
    Event, Options, Provider, Raw, RunCompleted, RunFailed, RunStarted, TaskCreated, TaskKind, TaskSpec,
    TaskStatus,
};
use rekindle_domain::id::{BootId, RunId, SessionId, StreamId, TaskId};
use rekindle_domain::line::{Draft, Line};
use rekindle_domain::session::SessionState;
use rekindle_domain::task::retry::RunSoFar;
use rekindle_domain::task::transition::{Standing, Transition, task_of, transition};
use rekindle_domain::task::{Task, TasksState, compose};
use rekindle_store::commit::{Append, Commits, Inline};
use rekindle_store::{AppendError, Store};
use rekindle_testkit::rng::Rng;
use rekindle_testkit::sim::SimDisk;

use crate::common::{Home, created, open};

const LOG: &str = "/home/tasks/tasks.jsonl";
const CACHE: &str = "/home/tasks/tasks.state.json";

fn task(n: u64) -> TaskId {
    TaskId::mint(n, n.into())
}

fn run(n: u64, attempt: u32) -> RunId {
    RunId::mint(n, attempt.into())
}

fn asked(n: u64) -> Draft {
    let spec = TaskSpec {
        kind: TaskKind::Task,
        parent_id: None,
        title: format!("task {n}"),
        prompt: Raw::text("do it"),
        working_dir: "/w".into(),
        worktree: None,
        provider: Provider { profile: "acp".into(), ..Provider::default() },
        options: Options::default(),
        env_names: Vec::new(),
        priority: 0,
        not_before: None,
        deadline_at: None,
        max_attempts: 3,
        repeatable: true,
        shared: false,
        budget: None,
        labels: Vec::new(),
        after: Vec::new(),
        idempotency_key: None,
        created_by: None,
    };
    TaskCreated { task_id: task(n), actor: "user:ada".into(), task: Box::new(spec), met: Vec::new() }.into()
}

/// A queue over a store, in which tasks are worked on by hand.
struct Queue<'a>(&'a Store<Inline>);

impl Queue<'_> {
    fn tasks(&self) -> TasksState {
        self.0.stream::<TasksState>(StreamId::tasks()).expect("it is open").fold
    }

    fn get(&self, n: u64) -> Task {
        Task::clone(self.tasks().get(task(n)).expect("it has not ended"))
    }

    fn ask(&self, n: u64) {
        self.0.append(Append::durable(StreamId::tasks(), vec![asked(n)])).expect("asked");
    }

    /// Begins an attempt of a task in a session: a new one for the first.
    fn claim(&self, n: u64, session: SessionId) -> Result<(), AppendError> {
        let task = self.get(n);
        let (run_id, attempt) = (run(n, task.attempt + 1), task.attempt + 1);
        let started = RunStarted {
            run_id,
            boot_id: BootId::mint(0, 1),
            machine_boot: None,
            message_id: None,
            attempt,
            continues: None,
            origin_run_id: None,
            task_id: Some(task.id),
        };
        let first = (attempt == 1).then(|| {
            self.0.create(session).expect("a new session");
            created()
        });
        let records = first.into_iter().chain([started.into()]).collect();
        let claimed = vec![compose::claim(&task, session, run_id, None)];
        self.0.append_together(Append::durable(session, records).and(StreamId::tasks(), claimed)).map(drop)
    }

    /// Ends the run of a task, and with it the task or its attempt.
    fn end(&self, n: u64, session: SessionId, error: Option<&'static str>) {
        let task = self.get(n);
        let run_id = task.run_id.expect("it runs");
        let end: Event<'static> = match error {
            Some(error) => RunFailed { run_id, error: error.into() }.into(),
            None => RunCompleted { run_id, stop_reason: None, usage: None }.into(),
        };
        let state = self.0.current(session).expect("open").state;
        let run = RunSoFar::of(&state).expect("a run");
        let with = compose::with_run(&task, run, session, &end);
        let append =
            Append::durable(session, vec![end.into()]).and(StreamId::tasks(), with.into_iter().collect());
        self.0.append_together(append).expect("ended");
    }
}

/// What the log of tasks says of every task, read record by record; numbers and transitions without a gap.
fn history(disk: &SimDisk) -> BTreeMap<TaskId, Standing> {
    let mut standings = BTreeMap::new();
    for (index, bytes) in disk.read_file(LOG).unwrap_or_default().split_inclusive(|b| *b == b'\n').enumerate()
    {
        let line = Line::parse(bytes.strip_suffix(b"\n").expect("a whole line")).expect("a record");
        assert_eq!(line.seq, index as u64 + 1);
        let event = line.event().expect("of a known kind");
        let id = task_of(&event).expect("about a task");
        let before: Option<Standing> = standings.get(&id).copied();
        match transition(before, &event).expect("it may follow") {
            Transition::Changed(now) => {
                assert_eq!(now.transitions, before.map_or(0, |before| before.transitions) + 1);
                standings.insert(id, now);
            }
            Transition::Ignored => panic!("nothing in this script is late"),
        }
    }
    standings
}

/// After any crash: the tasks and their sessions say the same, every task that was asked for is there, and none runs twice.
fn check(disk: &SimDisk, home: &Home, asked: u64, what: &str) {
    let store = open(disk, &home.clock).unwrap_or_else(|error| panic!("{what}: {error}"));
    let tasks = store.open_tasks().unwrap_or_else(|error| panic!("{what}: {error}"));
    assert!(tasks.damage.is_none(), "{what}: {:?}", tasks.damage);
    let history = history(disk);
    assert_eq!(history.len() as u64, asked, "{what}: none is lost");
    let mut open_runs = 0;
    for (id, standing) in &history {
        let known = tasks.fold.get(*id);
        assert_eq!(
            known.map(|task| task.standing()),
            (!standing.status.is_ended()).then_some(*standing),
            "{what}"
        );
        let Some(session) = known.and_then(|task| task.session_id) else { continue };
        let state = store.open_session(session).unwrap_or_else(|error| panic!("{what}: {error}")).state;
        let is_open = |state: &SessionState| state.open_run().is_some_and(|run| run.task_id == Some(*id));
        assert_eq!(is_open(&state), standing.status == TaskStatus::Running, "{what}: {id} and its run");
        open_runs += u32::from(is_open(&state));
    }
    let running = history.values().filter(|standing| standing.status == TaskStatus::Running).count();
    assert_eq!(open_runs as usize, running, "{what}: each runs once");
}

#[test]
fn a_day_of_tasks_survives_a_power_cut_behind_every_record() {
    let home = Home::with_sessions(0, 0);
    home.store.open_tasks().expect("an empty stream");
    let queue = Queue(&home.store);
    let sessions: Vec<_> = (0..4).map(|n| SessionId::mint(100 + n, n.into())).collect();
    let mut asked = 0;
    let mut rng = Rng::new(11);
    let mut survive = |asked: u64, what: &str| {
        for cut in 0..4 {
            check(&home.disk.power_cut(&mut rng), &home, asked, &format!("{what}, cut {cut}"));
        }
    };
    for n in 0..4 {
        queue.ask(n);
        asked += 1;
        survive(asked, "asked for");
    }
    queue.claim(0, sessions[0]).expect("claimed");
    survive(asked, "claimed");
    queue.claim(1, sessions[1]).expect("claimed");
    queue.end(0, sessions[0], None);
    survive(asked, "completed");
    assert!(home.store.cache_tasks().expect("written").is_some());
    survive(asked, "cached");
    queue.end(1, sessions[1], Some("overloaded"));
    assert_eq!(queue.get(1).status, TaskStatus::Pending);
    survive(asked, "to be tried again");
    queue.claim(1, sessions[1]).expect("the second attempt, in the same session");
    survive(asked, "tried again");
    for draft in compose::cancel(&queue.get(2), "user:ada", "not needed", TaskStatus::Cancelled) {
        home.store.append(Append::durable(StreamId::tasks(), vec![draft])).expect("cancelled");
        survive(asked, "cancelled");
    }
    home.store.committer().checkpoint().expect("a checkpoint");
    survive(asked, "checkpoint");
    queue.claim(3, sessions[3]).expect("claimed");
    queue.end(1, sessions[1], None);
    survive(asked, "the last");
    let left: Vec<_> = queue.tasks().iter().map(|task| task.id).collect();
    assert_eq!(left, [task(3)]);
}

#[test]
fn a_task_that_does_not_wait_is_not_begun_and_nothing_is_left_of_the_try() {
    let home = Home::with_sessions(0, 0);
    home.store.open_tasks().expect("an empty stream");
    let (queue, session, other) = (Queue(&home.store), SessionId::mint(100, 0), SessionId::mint(101, 0));
    queue.ask(1);
    let early = queue.get(1);
    queue.claim(1, session).expect("claimed");
    home.store.create(other).expect("a new session");
    let claimed = vec![compose::claim(&early, other, run(9, 9), None)];
    let again =
        home.store.append_together(Append::durable(other, vec![created()]).and(StreamId::tasks(), claimed));
    assert!(matches!(again, Err(AppendError::IllegalTransition(_))), "{again:?}");
    assert_eq!(home.disk.read_file(format!("/home/sessions/{other}.jsonl")), None);
    assert_eq!(queue.get(1).session_id, Some(session));
}

#[test]
fn a_start_reads_what_the_cache_does_not_have_and_believes_it_only_if_it_fits() {
    let home = Home::with_sessions(0, 0);
    home.store.open_tasks().expect("an empty stream");
    let queue = Queue(&home.store);
    (0..5).for_each(|n| queue.ask(n));
    assert_eq!(home.store.cache_tasks().expect("written"), Some(5));
    (5..8).for_each(|n| queue.ask(n));
    home.store.committer().checkpoint().expect("a checkpoint");
    let whole = queue.tasks();
    let load = |disk: &SimDisk| open(disk, &home.clock).expect("opens").open_tasks().expect("it is read");
    assert_eq!(load(&home.disk.fork()).fold, whole);
    // What the cache has is not read again: damage there is not met.
    let log = home.disk.read_file(LOG).expect("there");
    let noise = |at: usize| {
        let disk = home.disk.fork();
        let mut bytes = log.clone();
        bytes[at] = b'#';
        disk.write_file(LOG, &bytes);
        disk
    };
    let loaded = load(&noise(40));
    assert!(loaded.damage.is_none() && loaded.fold == whole);
    assert!(load(&noise(log.len() - 40)).damage.is_some());
    // A cache that is missing, unreadable or of another log costs reading all of it, and nothing else.
    let cache = home.disk.read_file(CACHE).expect("there");
    let hash = whole_cache(&cache).position().last_hash.expect("chained").to_string();
    let other = String::from_utf8(cache.clone()).expect("text").replace(&hash, "0123456789abcdef");
    for bytes in [&b""[..], b"{", &cache[..cache.len() / 2], other.as_bytes()] {
        let disk = home.disk.fork();
        disk.write_file(CACHE, bytes);
        let loaded = load(&disk);
        assert!(loaded.damage.is_none() && loaded.fold == whole, "{}", String::from_utf8_lossy(bytes));
    }
    // One that knows more than the log proves that the log has lost something.
    let disk = home.disk.fork();
    let three = log.split_inclusive(|byte| *byte == b'\n').take(3).map(<[u8]>::len).sum::<usize>();
    disk.write_file(LOG, &log[..three]);
    assert!(load(&disk).damage.is_some());
}

fn whole_cache(bytes: &[u8]) -> TasksState {
    serde_json::from_slice(bytes).expect("a cache")
}
