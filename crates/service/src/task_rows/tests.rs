//! Rows made of the logs of a simulated home: in whatever order and however often the database fails, they say what the logs say.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rekindle_domain::blob_id::BlobId;
use rekindle_domain::compose::begin::{Attempt, Life, NewMessage, session, task_session};
use rekindle_domain::event::{
    MessageAgent, Options, ParentStep, PipelineStarted, ProjectConfig, Provider, Raw, RunCompleted,
    RunFailed, SessionCreated, StepCounts, StepFinished, TaskClaimed, TaskCreated, TaskEnded, TaskKind,
    TaskSpec, TaskStatus,
};
use rekindle_domain::id::{
    BootId, MessageId, PipelineId, RunId, RunName, SessionId, StepKey, StreamId, TaskId,
};
use rekindle_domain::line::Draft;
use rekindle_domain::pipeline::compose::{self, Intention};
use rekindle_domain::time::Timestamp;
use rekindle_store::commit::Append;
use rekindle_store::{Opener, Store};
use rekindle_taskdb::{
    DbError, Dialect, PipelineProjection, Row, Sql, Sqlite, TaskDb, TaskQuery, Value, task_of_run,
};
use rekindle_testkit::clock::SimClock;
use rekindle_testkit::sim::SimDisk;

use super::*;

const PIPELINE: &str = r#"{"tasks":[{"id":"T-1","goal":"Make it so"}],
    "pipelines":{"default":{"stages":[{"name":"implement","agent":"a","prompt":"p"}]}}}"#;

/// A home in which tasks were done.
struct Home {
    store: Store,
    clock: Arc<SimClock>,
    owner: Owner,
    sessions: Vec<SessionId>,
    runs: Vec<PipelineId>,
}

impl Home {
    fn new() -> Home {
        let clock = Arc::new(SimClock::default());
        let opener = Opener { pid: 1, boot_id: boot() };
        let store = Store::open(Arc::new(SimDisk::new(1)), "/home", opener, clock.clone()).expect("a home");
        store.open_tasks().expect("a stream of tasks");
        let owner = owner_of(store.home_id());
        Home { store, clock, owner, sessions: Vec::new(), runs: Vec::new() }
    }

    /// Has a task asked for, begun and ended.
    fn task(&mut self, n: u64, status: TaskStatus) -> TaskId {
        let (task_id, session_id, run_id) = self.begin(n);
        let said = MessageAgent {
            run_id: Some(run_id),
            message_id: MessageId::mint(n, 2),
            content: Raw::text(&format!("done with {n}")),
            partial: false,
        };
        let end: Draft = match status {
            TaskStatus::Failed => RunFailed { run_id, error: "no".into() }.into(),
            _ => RunCompleted { run_id, stop_reason: Some("end_turn".into()), usage: None }.into(),
        };
        let ended = TaskEnded { task_id, attempt: 1, status, actor: "agent".into(), reason: None };
        let append = Append::durable(session_id, vec![said.into(), end]);
        self.append(append.and(StreamId::tasks(), vec![ended.into()]));
        task_id
    }

    /// Has a task asked for and begun: the claim and the session are one append.
    fn begin(&mut self, n: u64) -> (TaskId, SessionId, RunId) {
        let (task_id, session_id) = (TaskId::mint(n, 1), SessionId::mint(n, 1));
        let run_id = RunId::mint(n, 1);
        let created = TaskCreated { task_id, actor: "user".into(), task: Box::new(spec(n)), met: Vec::new() };
        self.append(Append::durable(StreamId::tasks(), vec![created.into()]));
        let (actor, first) = ("scheduler".into(), (message(n), run_id));
        let claimed =
            TaskClaimed { task_id, attempt: 1, session_id, run_id, actor, reason: None, resume_prompt: None };
        let records = task_session(&spec(n), first, Attempt { task_id, number: 1 }, &life());
        self.open(session_id);
        self.append(Append::durable(session_id, records).and(StreamId::tasks(), vec![claimed.into()]));
        (task_id, session_id, run_id)
    }

    /// Has somebody begin a run by hand, which goes on.
    fn run_by_hand(&mut self, n: u64) -> SessionId {
        self.run_of_step(n, None)
    }

    /// Has a run begun in a session that is part of nothing, or of the first step of a pipeline run.
    fn run_of_step(&mut self, n: u64, of: Option<PipelineId>) -> SessionId {
        let parent =
            of.map(|pipeline_id| ParentStep { pipeline_id, step_id: "implement-1".parse().expect("a step") });
        let (session_id, spec) = (SessionId::mint(n, 2), spec(n));
        let created = SessionCreated {
            parent: parent.map(Box::new),
            title: spec.title.into(),
            working_dir: spec.working_dir.into(),
            provider: spec.provider,
            options: spec.options,
            env_names: Vec::new(),
            key: None,
            imported_from: None,
            idempotency_key: None,
            created_at: None,
            forked_from: None,
            restoring: None,
            worktree: None,
        };
        let run_id = RunId::mint(n, 2);
        let records = session(created, Some((message(n), run_id)), &life());
        self.open(session_id);
        let mut append = Append::durable(session_id, records);
        if let Some(run) = of {
            let state = self.store.open_pipeline(run).expect("readable").expect("there").fold;
            let began = compose::begin(state.current_step().expect("a step"), session_id, run_id);
            append = append.and(run, vec![began]);
        }
        self.append(append);
        session_id
    }

    /// Has a pipeline run started and its step begun: the attempt and its session are one append.
    fn pipeline(&mut self, n: u64) -> PipelineId {
        let config: ProjectConfig = serde_json::from_str(PIPELINE).expect("a configuration");
        let run = RunName::mint(n * 1_000, n).pipeline_id();
        let tree = BlobId::of(b"tree");
        let started = PipelineStarted {
            pipeline: "default".into(),
            task: Box::new(config.tasks[0].clone()),
            config: Box::new(config),
            config_hash: tree,
            snapshot_id: "snap-1".into(),
            tree,
            working_dir: "/w".into(),
            origin: "/w".into(),
            on_cut: None,
            by: "user:ada".into(),
            on_drift: None,
            budget: None,
            no_cache: false,
            options: None,
            idempotency_key: None,
        };
        let (key, inputs_hash) = (StepKey::from_bytes([7; 32]), tree);
        let first = Intention { key, from: tree, agent: None, inputs_hash };
        self.store.create_pipeline(run).expect("made");
        self.append(Append::durable(run, compose::start(run, started, first).expect("a start")));
        let session_id = self.run_of_step(n, Some(run));
        let state = self.store.open_pipeline(run).expect("readable").expect("there").fold;
        let step = state.current_step().expect("a step");
        let finished = StepFinished {
            step_id: step.id.clone(),
            key,
            outcome: "completed".into(),
            payload: None,
            payload_blob: None,
            to: tree,
            files_touched: None,
            usage: None,
            cached: false,
            counts: StepCounts::default(),
        };
        let run_id = RunId::mint(n, 2);
        let completed = RunCompleted { run_id, stop_reason: None, usage: None };
        self.append(Append::durable(session_id, vec![completed.into()]));
        let records = compose::finish(&state, finished, |_, _| unreachable!("there is no other step"));
        self.append(Append::durable(run, records.expect("an end")));
        self.runs.push(run);
        run
    }

    fn open(&mut self, session: SessionId) {
        self.store.create(session).expect("a session");
        self.sessions.push(session);
    }

    fn append(&self, append: Append) {
        self.store.append(append).expect("recorded");
        self.clock.advance(1_000);
    }

    /// Writes everything that the database does not have.
    fn catch_up(&self, db: &mut TaskDb) -> Result<(), CatchUpError> {
        catch_up(&self.store, &self.owner, db)?;
        for session in &self.sessions {
            while self.catch_up_one(db, *session, UnknownTask::Wait)? == Reached::More {}
        }
        for run in &self.runs {
            while catch_up_pipeline(&self.store, &self.owner, db, *run, u64::MAX)? == Reached::More {}
        }
        Ok(())
    }

    fn catch_up_one(
        &self,
        db: &mut TaskDb,
        session: SessionId,
        unknown: UnknownTask,
    ) -> Result<Reached, CatchUpError> {
        catch_up_session(&self.store, &self.owner, db, session, u64::MAX, unknown)
    }

    fn differences(&self, db: &mut TaskDb) -> Option<String> {
        let since = Timestamp::from_millis(0);
        compare(&self.store, &self.owner, db, since, &mut |_, _| {}).expect("compared").first
    }
}

fn boot() -> BootId {
    BootId::mint(0, 1)
}

fn life() -> Life {
    Life { boot_id: boot(), machine_boot: None }
}

fn message(n: u64) -> NewMessage {
    let (message_id, content) = (MessageId::mint(n, 1), Raw::text("fix it"));
    NewMessage { message_id, content, idempotency_key: None, wait_id: None }
}

fn spec(n: u64) -> TaskSpec {
    TaskSpec {
        kind: TaskKind::Task,
        parent_id: None,
        title: format!("task {n}"),
        prompt: Raw::text("fix it"),
        working_dir: "/w".into(),
        worktree: None,
        provider: Provider { profile: "acp".into(), agent: Some("demo".into()), ..Provider::default() },
        options: Options::default(),
        env_names: Vec::new(),
        priority: 0,
        not_before: None,
        deadline_at: None,
        max_attempts: 3,
        repeatable: false,
        shared: false,
        budget: None,
        labels: vec!["night".into()],
        after: Vec::new(),
        idempotency_key: None,
        created_by: None,
    }
}

fn temporary() -> TaskDb {
    TaskDb::open(Box::new(Sqlite::temporary().expect("a database"))).expect("tables")
}

fn open_file(path: &Path) -> TaskDb {
    TaskDb::open(Box::new(Sqlite::open(path).expect("a file"))).expect("tables")
}

// I2: the logs of one append are not written at the same moment.
#[test]
fn a_session_is_not_written_before_its_task() {
    let mut home = Home::new();
    let mut db = temporary();
    let (task, session, _) = home.begin(1);
    assert_eq!(home.catch_up_one(&mut db, session, UnknownTask::Wait).expect("read"), Reached::UnknownTask);
    assert!(db.cursors(&home.owner.home_id).expect("asked").is_empty(), "nothing of it counts as written");
    home.catch_up(&mut db).expect("caught up");
    let rows = db.tasks(&[task]).expect("asked");
    assert_eq!(rows[0].progress.as_ref().map(|progress| progress.turns), Some(1), "{rows:?}");
    // One whose row was removed has none any more, and keeps nothing else from being written.
    let mut db = temporary();
    assert_eq!(home.catch_up_one(&mut db, session, UnknownTask::PassOver).expect("read"), Reached::End);
    assert_eq!(db.cursors(&home.owner.home_id).expect("asked").len(), 1);
}

#[test]
fn attempts_at_steps_are_parts_of_their_run() {
    let mut home = Home::new();
    let run = home.pipeline(1);
    let mut db = temporary();
    home.catch_up(&mut db).expect("caught up");
    let task = task_of_run(run).expect("a number");
    let query = TaskQuery { parent: Some(task), limit: 10, ..TaskQuery::default() };
    let parts = db.list(&query).expect("listed").tasks;
    assert_eq!((parts.len(), parts[0].session_id, parts[0].kind), (1, Some(home.sessions[0]), TaskKind::Run));
    let rows = db.tasks(&[task]).expect("asked");
    assert_eq!(
        (rows[0].kind, rows[0].status, rows[0].parent_id),
        (TaskKind::Pipeline, TaskStatus::Completed, None)
    );
    // How long the ledger is says that nothing is behind.
    let bytes = home.store.ledger_size(run).expect("there");
    let known = db.pipeline_cursors(&home.owner.home_id).expect("asked");
    let state = known[0].1.state.as_deref().expect("a state");
    assert_eq!(serde_json::from_str::<PipelineProjection>(state).ok().map(|known| known.bytes), bytes);
    // One that goes on after its row was removed has it again, with its history.
    let (row, told) = (rows[0].clone(), db.transitions(task).expect("asked"));
    let later = Timestamp::from_millis(i64::MAX / 2);
    assert!(db.remove_ended(&home.owner.home_id, later, Timestamp::from_millis(0)).expect("removed") > 0);
    assert!(db.tasks(&[task]).expect("asked").is_empty());
    assert_eq!(
        catch_up_pipeline(&home.store, &home.owner, &mut db, run, u64::MAX).expect("read"),
        Reached::End
    );
    assert_eq!(db.tasks(&[task]).expect("asked"), [row]);
    assert_eq!(db.transitions(task).expect("asked"), told);
}

// I2, I3: dies in the middle of every statement.
#[test]
fn wherever_the_database_dies_its_rows_are_those_of_one_that_did_not() {
    let mut home = Home::new();
    home.task(1, TaskStatus::Completed);
    home.run_by_hand(2);
    home.task(3, TaskStatus::Failed);
    home.begin(4);
    home.pipeline(5);
    let directory = tempfile::tempdir().expect("a directory");
    let mut wanted = temporary();
    home.catch_up(&mut wanted).expect("caught up");
    let all = |db: &mut TaskDb| db.tasks_behind(&home.owner.home_id, None, 100).expect("rows");
    let wanted = all(&mut wanted);
    assert_eq!(wanted.len(), 6);
    let mut deaths = 0;
    for statements in 0.. {
        let path = directory.path().join(format!("{statements}.db"));
        let left = AtomicUsize::new(statements);
        drop(open_file(&path));
        let sql = Dying { sql: Sqlite::open(&path).expect("a file"), left };
        // Dropped without a word more, as by a death: what was begun is not ended.
        let died = TaskDb::open(Box::new(sql)).map_err(CatchUpError::from);
        let died = died.and_then(|mut db| home.catch_up(&mut db)).is_err();
        let mut db = open_file(&path);
        home.catch_up(&mut db).expect("caught up");
        assert_eq!(all(&mut db), wanted, "{statements} statements");
        assert_eq!(home.differences(&mut db), None, "{statements} statements");
        if !died {
            break;
        }
        deaths += 1;
    }
    assert!(deaths > 50, "{deaths}");
}

#[test]
fn rows_that_say_something_else_than_the_logs_are_found_and_written_anew() {
    let mut home = Home::new();
    let ended = home.task(1, TaskStatus::Completed);
    let by_hand = home.run_by_hand(2);
    home.task(3, TaskStatus::Failed);
    let run = task_of_run(home.pipeline(5)).expect("a number");
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("tasks.db");
    let mut db = open_file(&path);
    home.catch_up(&mut db).expect("caught up");
    assert_eq!(home.differences(&mut db), None);
    // Being behind is not being wrong.
    home.task(4, TaskStatus::Completed);
    assert_eq!(home.differences(&mut db), None);
    home.catch_up(&mut db).expect("caught up");
    assert_eq!(home.differences(&mut db), None);
    drop(db);
    for (change, found) in [
        (format!("UPDATE tasks SET status = 'failed' WHERE task_id = '{ended}'"), "as failed instead of completed"),
        (format!("UPDATE tasks SET title = 'x' WHERE task_id = '{ended}'"), "the row of"),
        (format!("UPDATE tasks SET progress = NULL WHERE session_id = '{by_hand}'"), "the row of"),
        (format!("DELETE FROM tasks WHERE task_id = '{ended}'"), "it does not have"),
        (format!("DELETE FROM task_transitions WHERE task_id = '{ended}' AND n = 3"), "instead of 3"),
        (format!("DELETE FROM task_transitions WHERE task_id = '{ended}' AND n = 1"), "line 1 of the history"),
        ("UPDATE task_transitions SET actor = 'me' WHERE n = 2".into(), "line 2 of the history"),
        (format!("UPDATE tasks SET status = 'failed' WHERE task_id = '{run}'"), "as failed instead of completed"),
        (format!("UPDATE tasks SET parent_id = NULL WHERE parent_id = '{run}'"), "the row of"),
        (format!("DELETE FROM tasks WHERE task_id = '{run}'"), "it does not have"),
        ("UPDATE counters SET tasks = tasks + 1".into(), "its counts"),
        (
            "INSERT INTO tasks SELECT 'task_0000000000000000000000zzzz', home_id, host, kind, parent_id, title, prompt, \
             working_dir, agent, agent_name, options, env_names, isolation, branch, priority, not_before, deadline_at, \
             max_attempts, repeatable, budget, labels, created_by, idempotency_key, status, reason, attempt, NULL, run_id, \
             resume_prompt, progress, files_touched, result, usage, exit, created_at, updated_at, started_at, ended_at, \
             transitions, took_ms, tokens, cost_micros, verdict FROM tasks LIMIT 1"
                .into(),
            "which no log mentions",
        ),
    ] {
        let mut sql = Sqlite::open(&path).expect("a file");
        sql.run(&change).expect("changed");
        let mut db = TaskDb::open(Box::new(sql)).expect("tables");
        let told = home.differences(&mut db);
        assert!(told.as_ref().is_some_and(|told| told.contains(found)), "{change}: {told:?}");
        write_all(&home.store, &home.owner, &mut db, &home.sessions, &home.runs).expect("written");
        assert_eq!(home.differences(&mut db), None, "{change}");
    }
}

/// A database that dies behind so many statements.
struct Dying {
    sql: Sqlite,
    left: AtomicUsize,
}

impl Dying {
    fn count(&self) -> Result<(), DbError> {
        let died = || DbError::Unreachable("it died".into());
        let counted =
            self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        counted.map(drop).map_err(|_| died())
    }
}

impl Sql for Dying {
    fn dialect(&self) -> Dialect {
        self.sql.dialect()
    }

    fn run(&mut self, statements: &str) -> Result<(), DbError> {
        self.count()?;
        self.sql.run(statements)
    }

    fn execute_all<'a>(
        &mut self,
        statement: &str,
        values: &mut dyn Iterator<Item = Vec<Value<'a>>>,
    ) -> Result<(), DbError> {
        for values in values {
            self.count()?;
            self.sql.execute_all(statement, &mut [values].into_iter())?;
        }
        Ok(())
    }

    fn query(&mut self, statement: &str, values: &[Value<'_>]) -> Result<Vec<Row>, DbError> {
        self.count()?;
        self.sql.query(statement, values)
    }

    fn roll_back(&mut self) {}

    fn lock_schema(&mut self) -> Result<(), DbError> {
        self.sql.lock_schema()
    }
}
