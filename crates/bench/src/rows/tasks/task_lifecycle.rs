//! A task is asked for, claimed with its session and its run, and ended with that: three appends, each on disk before the next.
//! Raw: the same bytes written and synced once for each; with many callers a bare group commit of them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use anyhow::Context as _;
use rekindle_domain::chain::Link;
use rekindle_domain::compose::begin::{Attempt, Life, NewMessage, task_session};
use rekindle_domain::event::RunCompleted;
use rekindle_domain::id::{BootId, MessageId, RunId, SessionId, StreamId, TaskId};
use rekindle_domain::line::{Draft, Envelope, write};
use rekindle_domain::task::{Task, compose};
use rekindle_seeded::Rng;
use rekindle_service::storage::Sessions;
use rekindle_store::Store;
use rekindle_store::commit::Append;

use crate::context::Context;
use crate::home;
use crate::measure::{Latencies, interleave, rate};
use crate::rows::append_many::{self, PRODUCERS};
use crate::rows::append_one;
use crate::table::{Row, Target, Unit};
use crate::task_records::created;

const STEPS: [&str; 3] = ["asked for", "claimed, its run begun", "ended with its run"];

pub(crate) fn run(context: &Context) -> anyhow::Result<Vec<Row>> {
    let (tasks, each, rounds) = context.pick((200, 40, 11), (50, 20, 5));
    let dir = context.directory()?;
    let caller = Caller::new(home::open(&dir.path().join("home"))?)?;
    let bytes = caller.bytes()?;
    let lines: Vec<&[u8]> = bytes.iter().map(Vec::as_slice).collect();

    let mut raw = append_one::Raw::create(&dir.path().join("raw"), 0)?;
    let raw = || raw_steps(&mut raw, &lines, tasks);
    let one = interleave("tasks from request to end, 1 caller", rounds, raw, || caller.alone(tasks))?;

    let mut raw = append_many::Raw::create(&dir.path().join("raw-many"))?;
    let raw = || raw.append_lines(each, &lines);
    let [many] = interleave("tasks from request to end, 32 callers", rounds, raw, || caller.many(each))?;

    let steps = STEPS.iter().zip(&bytes).zip(&one).map(|((step, bytes), rounds)| {
        let what = format!("a task is {step}, on disk, 1 caller, {} bytes, p50", bytes.len());
        Row::compared(what, Unit::Micros, rounds, Target::RatioAtMost(2.0))
    });
    let what = "… all three, 32 callers, appends";
    let many = Row::compared(what, Unit::PerSecond, &many, Target::RatioAtLeast(0.4));
    Ok(steps.chain([many]).collect())
}

fn raw_steps(raw: &mut append_one::Raw, lines: &[&[u8]], tasks: usize) -> anyhow::Result<[f64; 3]> {
    let mut latencies: [Latencies; 3] = Default::default();
    for _ in 0..tasks {
        for (latencies, line) in latencies.iter_mut().zip(lines) {
            latencies.time(|| raw.append_line(line))?;
        }
    }
    Ok(latencies.map(|latencies| latencies.percentile(0.5)))
}

/// Does with a store what the service does for a task.
struct Caller {
    store: Store,
    life: Life,
    /// Numbers of tasks so far.
    count: AtomicU64,
}

impl Caller {
    fn new(store: Store) -> anyhow::Result<Caller> {
        store.open_tasks().context("the tasks cannot be opened")?;
        let life = Life { boot_id: BootId::mint(0, 1), machine_boot: None };
        Ok(Caller { store, life, count: AtomicU64::new(0) })
    }

    /// Takes tasks from request to end, one after the other; returns what each step took.
    fn alone(&self, tasks: usize) -> anyhow::Result<[f64; 3]> {
        let [mut create, mut claim, mut end]: [Latencies; 3] = Default::default();
        for _ in 0..tasks {
            let n = self.next();
            let task = create.time(|| self.create(n))?;
            let (session, run) = claim.time(|| self.claim(task, n))?;
            end.time(|| self.end(session, run))?;
            self.store.close_session(session);
        }
        Ok([create, claim, end].map(|latencies| latencies.percentile(0.5)))
    }

    /// The same by many callers at once; returns how many appends a second that is.
    fn many(&self, each: usize) -> anyhow::Result<[f64; 1]> {
        let one = || -> anyhow::Result<()> {
            for n in std::iter::repeat_with(|| self.next()).take(each) {
                let (session, run) = self.claim(self.create(n)?, n)?;
                self.end(session, run)?;
            }
            Ok(())
        };
        let begin = Instant::now();
        std::thread::scope(|scope| {
            let callers: Vec<_> = (0..PRODUCERS).map(|_| scope.spawn(one)).collect();
            callers.into_iter().try_for_each(|caller| caller.join().expect("a caller does not panic"))
        })?;
        Ok([rate(each * PRODUCERS * STEPS.len(), begin.elapsed())])
    }

    fn next(&self) -> u64 {
        self.count.fetch_add(1, Ordering::Relaxed)
    }

    fn create(&self, n: u64) -> anyhow::Result<TaskId> {
        let task = TaskId::mint(n, random(n));
        self.store.open_tasks()?;
        self.store.append(Append::durable(StreamId::tasks(), vec![created(task, n)]))?;
        Ok(task)
    }

    fn claim(&self, task: TaskId, n: u64) -> anyhow::Result<(SessionId, RunId)> {
        let tasks = self.store.open_tasks()?.fold;
        let (session, run) = (SessionId::mint(n, random(n)), RunId::mint(n, random(n)));
        let [records, claimed] =
            self.claim_records(tasks.get(task).context("no such task")?, session, run, n);
        self.store.create(session)?;
        self.store.append(Append::durable(session, records).and(StreamId::tasks(), claimed))?;
        Ok((session, run))
    }

    fn claim_records(&self, task: &Task, session: SessionId, run: RunId, n: u64) -> [Vec<Draft>; 2] {
        let spec = &task.spec;
        let message = NewMessage {
            message_id: MessageId::mint(n, random(n)),
            content: spec.prompt.clone(),
            idempotency_key: None,
            wait_id: None,
        };
        let attempt = Attempt { task_id: task.id, number: 1 };
        let records = task_session(spec, (message, run), attempt, &self.life);
        [records, vec![compose::claim(task, session, run, None)]]
    }

    /// Ends the run; that its task ends with it is added on the way, as for everybody who ends one.
    fn end(&self, session: SessionId, run: RunId) -> anyhow::Result<()> {
        Sessions::append(&self.store, Append::durable(session, vec![completed(run)]))?;
        Ok(())
    }

    /// Returns what the three appends of one task write into the logs.
    fn bytes(&self) -> anyhow::Result<[Vec<u8>; 3]> {
        let n = self.next();
        let task = self.create(n)?;
        let (session, run) = (SessionId::mint(n, random(n)), RunId::mint(n, random(n)));
        let tasks = self.store.open_tasks()?.fold;
        let task = tasks.get(task).context("no such task")?;
        let [records, claimed] = self.claim_records(task, session, run, n);
        self.claim(task.id, n)?;
        let tasks = self.store.open_tasks()?.fold;
        let running = tasks.get(task.id).context("no such task")?;
        let current = self.store.current(session).context("no such session")?;
        let so_far = rekindle_domain::task::retry::RunSoFar::of(&current.state).context("no run")?;
        let end = completed(run);
        let task_end = compose::with_run(running, so_far, session, &end.event).context("its task goes on")?;
        self.end(session, run)?;
        Ok([lines(&[], &[created(task.id, n)])?, lines(&records, &claimed)?, lines(&[end], &[task_end])?])
    }
}

/// Returns the random part of an id: without one, ids would be hard to tell apart by their hashes.
fn random(n: u64) -> u128 {
    Rng::new(n).bits()
}

fn completed(run_id: RunId) -> Draft {
    RunCompleted { run_id, stop_reason: Some("end_turn".into()), usage: None }.into()
}

/// Writes records as they stand in the logs.
fn lines(of_session: &[Draft], of_tasks: &[Draft]) -> anyhow::Result<Vec<u8>> {
    let (mut log, mut last) = (Vec::new(), None);
    for draft in of_session.iter().chain(of_tasks) {
        let place = Envelope { seq: 1000, ts: "2026-02-21T10:00:00.000Z", at: None, more: false };
        last = Some(write(draft, place, Link::new(StreamId::tasks(), last), &mut log)?);
    }
    Ok(log)
}
