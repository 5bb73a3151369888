//! The scheduler: which of the pending tasks begin now, which can never begin, and what each of the others waits for. One pure
//! decision; whoever asks brings the clock, what is open, and the limits.
//!
//! A step of a pipeline run that waits for its place is a pending task too, by the id of the task that its run is and as old as
//! that: one order for both, so that neither keeps the other waiting for ever.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use super::directory_conflicts::DirectoryConflicts;
use crate::id::{RunId, TaskId};
use crate::time::Timestamp;

/// After this time a task counts as one more urgent, so that none waits for ever behind those that come later.
const AGES_EVERY_MS: u64 = 60 * 60 * 1000;

/// A pending task.
#[derive(Debug, Clone)]
pub struct Pending<'a> {
    /// The task.
    pub id: TaskId,
    /// How urgent it is, from -100 to 100.
    pub priority: i8,
    /// When it was asked for.
    pub created_at: Timestamp,
    /// Since when nothing of its own holds it back; it ages from then on.
    pub eligible_at: Timestamp,
    /// What holds it back, of its own.
    pub hold: Option<Hold<'a>>,
    /// When it is too late for it.
    pub deadline: Option<Timestamp>,
    /// Where it works, and with what.
    pub work: Work<'a>,
}

/// What holds a task back, whatever the others do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold<'a> {
    /// It is not to begin before this time, by its maker's wish or because its last attempt failed just now.
    Until(Timestamp),
    /// Another task has to end first.
    After(TaskId),
    /// Another task ended as it must not have: this one can never begin.
    DependencyFailed(TaskId),
    /// Variables that its agent needs are not known.
    MissingVariables(&'a [String]),
}

/// What a run takes up while it is open.
#[derive(Debug, Clone, Copy)]
pub struct Work<'a> {
    /// The agent's name.
    pub agent: &'a str,
    /// The directory, absolute and without links.
    pub directory: &'a Path,
    /// It may work where others do.
    pub is_shared: bool,
    /// Its labels.
    pub labels: &'a [String],
}

/// An open run, of a task or not; or what is as good as one: a step of a pipeline run that was given its place, or a directory that such
/// a run has to itself.
#[derive(Debug, Clone, Copy)]
pub struct OpenRun<'a> {
    /// Who it is.
    pub by: By,
    /// What it takes up.
    pub work: Work<'a>,
    /// It is a task's, or a step's: those alone count against the limits. In its directory every run counts.
    pub is_task: bool,
}

/// How many tasks may run at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// In all.
    pub total: usize,
    /// With one agent.
    pub agents: BTreeMap<String, usize>,
    /// With one label.
    pub labels: BTreeMap<String, usize>,
    /// None before this time: the budget of the day is used up.
    pub none_before: Option<Timestamp>,
}

/// What came of a look at the pending tasks.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Decision<'a> {
    /// Those that begin now, the most urgent first.
    pub begin: Vec<TaskId>,
    /// Those that can never begin, and why.
    pub fail: Vec<(TaskId, Failed)>,
    /// The others, by rank.
    pub wait: Vec<Waiting<'a>>,
    /// When to look again although nothing has happened.
    pub look_again: Option<Timestamp>,
}

/// Why a task can never begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failed {
    /// Its deadline has passed.
    Deadline,
    /// What it depends on ended as it must not have.
    Dependency(TaskId),
}

/// A task that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting<'a> {
    /// The task.
    pub id: TaskId,
    /// What for.
    pub why: Why<'a>,
}

/// What a task waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why<'a> {
    /// Something of its own.
    Held(Hold<'a>),
    /// As many tasks run as may.
    Total,
    /// As many tasks run with its agent as may.
    Agent(&'a str),
    /// As many tasks with this label run as may.
    Label(&'a str),
    /// Somebody works in its directory, above it or below it.
    Directory(By),
    /// The budget of the day is used up, until then.
    DayBudget(Timestamp),
}

/// Who works in a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// An open run.
    Run(RunId),
    /// A task that begins now, or a pipeline run.
    Task(TaskId),
}

/// Decides which of the pending tasks begin now. They are gone through by rank: what one has to wait for keeps no other back.
pub fn decide<'a>(
    mut pending: Vec<Pending<'a>>,
    open: &[OpenRun<'a>],
    limits: &'a Limits,
    now: Timestamp,
) -> Decision<'a> {
    let mut decision = Decision::default();
    let mut load = Load::of(open, limits);
    for task in &mut pending {
        if let Some(Hold::Until(until)) = task.hold
            && until <= now
        {
            (task.hold, task.eligible_at) = (None, task.eligible_at.max(until));
        }
    }
    let none_before = limits.none_before.filter(|until| *until > now);
    let day = none_before.map(Why::DayBudget);
    decision.wait.reserve(pending.len());
    for task in by_rank(&pending, now) {
        if let Some(failed) = failed(task, now) {
            decision.fail.push((task.id, failed));
            continue;
        }
        match task.hold.map(Why::Held).or(day).or_else(|| load.in_the_way(&task.work)) {
            None => {
                load.add(&task.work, By::Task(task.id));
                decision.begin.push(task.id);
            }
            Some(why) => {
                let until = match task.hold {
                    Some(Hold::Until(until)) => Some(until),
                    _ => none_before,
                };
                decision.look_again = [decision.look_again, until, task.deadline].into_iter().flatten().min();
                decision.wait.push(Waiting { id: task.id, why });
            }
        }
    }
    decision
}

/// Returns the tasks, the most urgent first. Only short keys are moved; few ids have to be compared.
fn by_rank<'a, 'b>(pending: &'b [Pending<'a>], now: Timestamp) -> impl Iterator<Item = &'b Pending<'a>> {
    let mut keys: Vec<(Reverse<i64>, Timestamp, &Pending<'a>)> =
        pending.iter().map(|task| (Reverse(rank(task, now)), task.created_at, task)).collect();
    keys.sort_unstable_by(|(rank, at, task), (other_rank, other_at, other)| {
        rank.cmp(other_rank).then_with(|| at.cmp(other_at)).then_with(|| task.id.cmp(&other.id))
    });
    keys.into_iter().map(|(.., task)| task)
}

/// Returns why a task can never begin, if so.
fn failed(task: &Pending<'_>, now: Timestamp) -> Option<Failed> {
    match task.hold {
        Some(Hold::DependencyFailed(on)) => Some(Failed::Dependency(on)),
        _ if task.deadline.is_some_and(|deadline| deadline <= now) => Some(Failed::Deadline),
        _ => None,
    }
}

/// Returns the rank of a task: its priority, and one more for every whole hour that only others kept it.
fn rank(task: &Pending<'_>, now: Timestamp) -> i64 {
    let hours = match task.hold {
        None => now.millis_since(task.eligible_at.min(now)) / AGES_EVERY_MS,
        Some(_) => 0,
    };
    i64::from(task.priority).saturating_add(i64::try_from(hours).unwrap_or(i64::MAX))
}

/// What open runs take up of what there is.
struct Load<'a> {
    limits: &'a Limits,
    total: usize,
    agents: HashMap<&'a str, usize>,
    labels: HashMap<&'a str, usize>,
    directories: DirectoryConflicts<'a, By>,
}

impl<'a> Load<'a> {
    fn of(open: &[OpenRun<'a>], limits: &'a Limits) -> Load<'a> {
        let directories = DirectoryConflicts::new();
        let mut load = Load { limits, total: 0, agents: HashMap::new(), labels: HashMap::new(), directories };
        for run in open {
            load.directories.add(run.work.directory, run.by);
            if run.is_task {
                load.count(&run.work);
            }
        }
        load
    }

    fn add(&mut self, work: &Work<'a>, by: By) {
        self.directories.add(work.directory, by);
        self.count(work);
    }

    fn count(&mut self, work: &Work<'a>) {
        self.total += 1;
        *self.agents.entry(work.agent).or_default() += 1;
        for label in work.labels {
            *self.labels.entry(label).or_default() += 1;
        }
    }

    /// Returns what keeps some work from beginning.
    fn in_the_way(&self, work: &Work<'a>) -> Option<Why<'a>> {
        if self.total >= self.limits.total {
            return Some(Why::Total);
        }
        let is_full = |limits: &BTreeMap<String, usize>, running: &HashMap<&str, usize>, name: &str| {
            limits.get(name).is_some_and(|most| running.get(name).copied().unwrap_or(0) >= *most)
        };
        if is_full(&self.limits.agents, &self.agents, work.agent) {
            return Some(Why::Agent(work.agent));
        }
        if let Some(label) =
            work.labels.iter().find(|label| is_full(&self.limits.labels, &self.labels, label))
        {
            return Some(Why::Label(label));
        }
        if work.is_shared {
            return None;
        }
        self.directories.find(work.directory).map(Why::Directory)
    }
}

#[cfg(test)]
mod tests;
