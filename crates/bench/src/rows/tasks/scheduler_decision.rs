//! The scheduler decides once about ten thousand tasks that wait: the decision alone, when few may run and when only
//! directories keep tasks from beginning, and what a list of them takes, which has a decision in it.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

use anyhow::ensure;
use rekindle_domain::event::TaskSpec;
use rekindle_domain::id::{RunId, TaskId};
use rekindle_domain::task::scheduler::{By, Limits, OpenRun, Pending, Work, decide};
use rekindle_domain::time::{Clock, Timestamp};

use crate::context::{Context, progress};
use crate::home::WallClock;
use crate::lab::Lab;
use crate::measure::Latencies;
use crate::table::{Row, Target, Unit};
use crate::task_records::spec;

const PENDING: usize = 10_000;

/// Milliseconds of one decision.
const AT_MOST: f64 = 2.0;

/// Runs that go on, and how many tasks may.
const OPEN: usize = 8;
const MAY_RUN: usize = 16;

pub(crate) fn run(context: &Context) -> anyhow::Result<Vec<Row>> {
    let (times, rounds) = context.pick((50, 11), (20, 5));
    let queue = Queue::new();
    let row = |what: &str, figures: &[f64]| {
        let what = format!("a decision about {PENDING} tasks, {what}");
        Row::alone(what, Unit::Millis, figures, Target::AtMost(AT_MOST))
    };
    progress(&format!("measuring decisions, {rounds} rounds"));
    let few: Vec<f64> = (0..rounds).map(|_| queue.decide(times, MAY_RUN)).collect::<anyhow::Result<_>>()?;
    let many: Vec<f64> = (0..rounds).map(|_| queue.decide(times, PENDING)).collect::<anyhow::Result<_>>()?;
    let listed = listed(context, times, rounds)?;
    Ok(vec![
        row(&format!("{MAY_RUN} may run"), &few),
        row("only directories in the way", &many),
        Row::alone(
            "… listed by a daemon, with why each waits",
            Unit::Millis,
            listed.as_slice(),
            Target::None,
        ),
    ])
}

/// Tasks that wait.
struct Queue {
    now: Timestamp,
    tasks: Vec<Queued>,
}

/// A task that waits, with what a decision needs of it.
struct Queued {
    id: TaskId,
    spec: TaskSpec,
    directory: Arc<Path>,
    agent: String,
    since: Timestamp,
}

impl Queue {
    /// Makes tasks that have waited for up to a week.
    fn new() -> Queue {
        let now = WallClock.now();
        // Many work in the same directory, which is looked up once.
        let mut directories: HashMap<String, Arc<Path>> = HashMap::new();
        let task = |n: usize| {
            let spec = spec(n as u64);
            let named = directories.entry(spec.working_dir.clone());
            let directory = named.or_insert_with_key(|path| Path::new(path).into()).clone();
            let agent = spec.provider.name();
            let since = now.plus_millis(-60_000 * (PENDING - n) as i64);
            Queued { id: TaskId::mint(n as u64, n as u128), spec, directory, agent, since }
        };
        Queue { now, tasks: (0..PENDING).map(task).collect() }
    }

    /// Decides so often; returns the median, in milliseconds.
    fn decide(&self, times: usize, total: usize) -> anyhow::Result<f64> {
        let limits = Limits {
            total,
            agents: BTreeMap::from([("codex".to_owned(), total / 2)]),
            labels: BTreeMap::from([("nightly".to_owned(), total / 4)]),
            none_before: None,
        };
        let open: Vec<OpenRun<'_>> = (0..OPEN).map(|n| self.open(n)).collect();
        let mut latencies = Latencies::default();
        for _ in 0..times {
            let decision = latencies.time(|| decide(self.pending(), &open, &limits, self.now));
            ensure!(!decision.begin.is_empty() && !decision.wait.is_empty(), "nothing was decided");
        }
        Ok(latencies.percentile(0.5) / 1000.0)
    }

    fn pending(&self) -> Vec<Pending<'_>> {
        self.tasks.iter().map(Queued::pending).collect()
    }

    fn open(&self, n: usize) -> OpenRun<'_> {
        OpenRun { by: By::Run(RunId::mint(n as u64, 1)), work: self.tasks[n].work(), is_task: true }
    }
}

impl Queued {
    fn pending(&self) -> Pending<'_> {
        Pending {
            id: self.id,
            priority: self.spec.priority,
            created_at: self.since,
            eligible_at: self.since,
            hold: None,
            deadline: None,
            work: self.work(),
        }
    }

    fn work(&self) -> Work<'_> {
        Work { agent: &self.agent, directory: &self.directory, is_shared: false, labels: &self.spec.labels }
    }
}

/// Has a daemon list that many tasks, which wait for tomorrow; returns what each round took.
fn listed(context: &Context, times: usize, rounds: usize) -> anyhow::Result<Vec<f64>> {
    let lab = Lab::new(context)?;
    let mut link = lab.link()?;
    lab.queue_tasks(&mut link, PENDING)?;
    let request = rekindle_lab::request("GET", "/api/tasks/active", rekindle_lab::HOST, "");
    progress(&format!("measuring a list of {PENDING} tasks, {rounds} rounds"));
    let mut round = || {
        let mut latencies = Latencies::default();
        for _ in 0..times.div_ceil(5) {
            let answer = latencies.time(|| {
                link.send(request.as_bytes())?;
                link.receive()
            })?;
            answer.expect(200)?;
        }
        Ok(latencies.percentile(0.5) / 1000.0)
    };
    (0..rounds).map(|_| round()).collect()
}
