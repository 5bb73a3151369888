//! Tasks asked for: what a request says becomes records, all of them in one append.

use std::collections::{BTreeMap, HashMap};

use rekindle_domain::event::{Dependency, Event, TaskCreated, TaskSpec, TaskStatus};
use rekindle_domain::id::TaskId;
use rekindle_domain::line::{Draft, Line};
use rekindle_domain::task::compose::user;
use rekindle_domain::task::dependencies::find_cycle;
use rekindle_domain::task::{TasksState, is_met};
use rekindle_wire::code::Code;
use rekindle_wire::hint::Hint;
use rekindle_wire::request::{MAX_BATCH, NewTask};

use super::Tasks;
use crate::commands::sessions::prepare;
use crate::commands::worktree_plan::WorktreePlanner;
use crate::error::{Result, ServiceError};
use crate::idempotency::Key;
use crate::ids::{millis, random};
use crate::lock::locked;

/// The most labels of a task, and characters of one.
const MOST_LABELS: usize = 32;
const LONGEST_LABEL: usize = 64;

/// The most characters of a name within a request, and tasks that one waits for.
const LONGEST_REF: usize = 255;
const MOST_DEPENDENCIES: usize = 1000;

impl Tasks {
    /// Makes tasks, all or none; a request that was made before finds what it made.
    pub(crate) fn create(&self, new: &[NewTask], key: Option<&Key>, by: &str) -> Result<Vec<TaskId>> {
        if new.is_empty() || new.len() > MAX_BATCH {
            let message = format!("a request must have 1 to {MAX_BATCH} tasks, not {}", new.len());
            return Err(ServiceError::new(Code::InvalidTask, message));
        }
        // Two with the same key, at the same time: the second finds what the first made.
        let _one_at_a_time = key.map(|key| self.keyed.lock(&key.key));
        let state = self.state()?;
        if let Some(made) = key.map(|key| self.made_by(&state, key, new.len())).transpose()?.flatten() {
            return Ok(made);
        }
        let now = millis(self.views.workers.records.now());
        let ids = in_order(now, || Ok(random()?), new.len())?;
        let names = references(new, &ids)?;
        let mut records = Vec::with_capacity(new.len());
        let mut waits = Vec::with_capacity(new.len());
        let mut worktrees = WorktreePlanner::new(&self.views);
        for (index, task) in new.iter().enumerate() {
            let number = |what: ServiceError| if new.len() > 1 { in_item(index, what) } else { what };
            let stored = key.map(|key| key.of_item(index, new.len()).as_stored());
            let (mut spec, met) = self.spec(task, &state, &names, stored, by).map_err(number)?;
            if let Some(worktree) = &task.worktree {
                let id = ids[index].as_str();
                let planned =
                    worktrees.plan(&task.working_dir, worktree, (&spec.title, id)).map_err(number)?;
                spec.working_dir = planned.working_dir;
                spec.worktree = Some(Box::new(planned.worktree));
            }
            waits.push(spec.after.iter().map(|one| one.task_id).collect::<Vec<_>>());
            let created =
                TaskCreated { task_id: ids[index], actor: user(by).into(), task: Box::new(spec), met };
            records.push(Draft::from(created));
        }
        if let Some(cycle) = find_cycle(&ids, &waits) {
            let circle: Vec<String> = cycle.iter().map(|index| item_name(*index, &new[*index])).collect();
            let message =
                format!("tasks depend on each other in a cycle: {} → {}", circle.join(" → "), circle[0]);
            return Err(ServiceError::new(Code::DependencyCycle, message));
        }
        let mut brought = locked(&self.brought);
        for (id, task) in ids.iter().zip(new).filter(|(_, task)| !task.env.is_empty()) {
            brought.insert(*id, task.env.clone());
        }
        drop(brought);
        self.append(records).inspect_err(|_| {
            let mut brought = locked(&self.brought);
            ids.iter().for_each(|id| drop(brought.remove(id)));
        })?;
        Ok(ids)
    }

    /// Returns what a task asks for, and which of its dependencies have ended as it wants.
    fn spec(
        &self,
        new: &NewTask,
        state: &TasksState,
        names: &HashMap<&str, TaskId>,
        idempotency_key: Option<String>,
        by: &str,
    ) -> Result<(TaskSpec, Vec<TaskId>)> {
        check(new)?;
        let prepared = prepare(&new.session(), None)?;
        let mut met = Vec::new();
        let mut after: BTreeMap<TaskId, Dependency> = BTreeMap::new();
        for (name, condition) in new.after.iter().map(|one| one.parts()) {
            let unknown = || {
                let message = format!("there is no task {name} to wait for");
                ServiceError::new(Code::DependencyUnknown, message)
            };
            let task_id = match names.get(name) {
                Some(id) => *id,
                None => name.parse::<TaskId>().map_err(|_| unknown())?,
            };
            if state.get(task_id).is_none() && !names.values().any(|id| *id == task_id) {
                let ended: TaskStatus = self.ended_status(task_id)?.ok_or_else(unknown)?;
                if is_met(condition, ended) {
                    met.push(task_id);
                }
            }
            after.insert(task_id, Dependency { task_id, condition });
        }
        let created = prepared.created;
        let spec = TaskSpec {
            kind: Default::default(),
            parent_id: None,
            title: created.title.into_owned(),
            prompt: prepared
                .prompt
                .ok_or_else(|| ServiceError::new(Code::InvalidContent, "a task needs a prompt"))?,
            working_dir: created.working_dir.into_owned(),
            worktree: None,
            provider: created.provider,
            options: created.options,
            env_names: created.env_names,
            priority: new.priority,
            not_before: new.not_before,
            deadline_at: new.deadline_at,
            max_attempts: new.max_attempts,
            repeatable: new.repeatable,
            shared: new.shared,
            budget: new.budget,
            labels: new.labels.clone(),
            after: after.into_values().collect(),
            idempotency_key,
            created_by: Some(user(by)),
        };
        Ok((spec, met))
    }

    /// Finds the tasks that a key made; one that was used for something else is an error.
    fn made_by(&self, state: &TasksState, key: &Key, count: usize) -> Result<Option<Vec<TaskId>>> {
        let first = key.of_item(0, count);
        // Whether it was one task or several is told by the key as it was stored.
        let other = if count == 1 { key.of_item(0, 2) } else { key.clone() };
        if let Some(seq) = state.request_like(&other.as_stored())
            && let Some((_, stored)) = self.created_at(seq)?
            && other.names(&stored)
        {
            return Err(key.reused());
        }
        let Some(seq) = state.request_like(&first.as_stored()) else { return Ok(None) };
        let Some((_, stored)) = self.created_at(seq)? else { return Ok(None) };
        if !first.is(&stored)? {
            return Ok(None);
        }
        let mut made = Vec::with_capacity(count);
        for index in 0..count as u64 {
            let Some((task, _)) = self.created_at(seq + index)? else { return Err(key.reused()) };
            made.push(task);
        }
        Ok(Some(made))
    }

    /// Reads the request that a record of the stream is: its task, and its key as it is stored.
    fn created_at(&self, seq: u64) -> Result<Option<(TaskId, String)>> {
        let read = || {
            let reader = self.store.tasks_reader()?;
            let Some(cursor) = reader.find(seq)? else { return Ok(None) };
            let mut lines = reader.forward(cursor);
            let Some(raw) = lines.next()? else { return Ok(None) };
            let found = Line::parse(raw.bytes).ok().and_then(|line| match line.event().ok()? {
                Event::TaskCreated(created) => {
                    Some((created.task_id, created.task.idempotency_key.clone().unwrap_or_default()))
                }
                _ => None,
            });
            Ok::<_, std::io::Error>(found)
        };
        read().map_err(|error| ServiceError::caused_by(Code::Storage, error))
    }
}

/// Makes ids whose order is that of the request: of tasks that were asked for at the same time the first has its turn first. The number
/// stands right behind the time, so that few characters tell them apart.
fn in_order(millis: u64, mut random: impl FnMut() -> Result<u128>, count: usize) -> Result<Vec<TaskId>> {
    // An id has room for 80 random bits; the first 15 of them are enough for counting.
    let numbered = |index: u128, random: u128| index << 65 | random & ((1 << 65) - 1);
    (0..count as u128)
        .map(|index| {
            let random = random()?;
            Ok(TaskId::mint(millis, if count == 1 { random } else { numbered(index, random) }))
        })
        .collect()
}

/// Refuses what makes no sense.
fn check(new: &NewTask) -> Result<()> {
    let wrong = |message: &str| Err(ServiceError::new(Code::InvalidTask, message));
    if !(-100..=100).contains(&new.priority) {
        return wrong("priority must be -100 to 100");
    }
    if !(1..=100).contains(&new.max_attempts) {
        return wrong("max_attempts must be 1 to 100");
    }
    let is_label = |label: &String| (1..=LONGEST_LABEL).contains(&label.chars().count());
    if new.labels.len() > MOST_LABELS || !new.labels.iter().all(is_label) {
        return wrong("a task may have at most 32 labels of 1 to 64 characters each");
    }
    if new.reference.as_ref().is_some_and(|name| name.is_empty() || name.chars().count() > LONGEST_REF) {
        return wrong("a ref must have 1 to 255 characters");
    }
    if new.after.len() > MOST_DEPENDENCIES {
        return wrong("a task may wait for at most 1000 others");
    }
    match new.budget {
        Some(budget) if budget.cost.is_some_and(|cost| !cost.is_finite() || cost < 0.0) => {
            wrong("the cost of a budget must not be negative")
        }
        _ => Ok(()),
    }
}

/// Returns the tasks of a request that have names in it.
fn references<'a>(new: &'a [NewTask], ids: &[TaskId]) -> Result<HashMap<&'a str, TaskId>> {
    let mut names = HashMap::new();
    for (task, id) in new.iter().zip(ids) {
        let Some(name) = task.reference.as_deref() else { continue };
        if names.insert(name, *id).is_some() {
            let message = format!("two tasks of the request have the ref {name:?}");
            return Err(ServiceError::new(Code::InvalidTask, message));
        }
    }
    Ok(names)
}

fn item_name(index: usize, task: &NewTask) -> String {
    task.reference.clone().unwrap_or_else(|| format!("tasks[{index}]"))
}

/// Says in which item of a request something is wrong.
fn in_item(index: usize, mut error: ServiceError) -> ServiceError {
    error.message = format!("tasks[{index}]: {}", error.message);
    error
}

impl Key {
    /// Returns the key of one item of a request.
    fn of_item(&self, index: usize, count: usize) -> Key {
        let key = if count == 1 { self.key.clone() } else { format!("{}/{index}", self.key) };
        Key { key, body: self.body }
    }

    /// Tells whether a stored key has this name, whatever it was used for.
    fn names(&self, stored: &str) -> bool {
        rekindle_domain::session::MessageKey::name(stored) == self.key
    }

    fn reused(&self) -> ServiceError {
        let message = format!("the key {:?} was used for another request", self.key);
        ServiceError::new(Code::KeyReused, message).hint(Hint::UseNewKey)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_of_one_request_are_in_its_order() {
        for random in [0, u128::MAX, 12_345] {
            let ids = in_order(1_771_668_000_000, || Ok(random), MAX_BATCH).expect("ids");
            assert!(ids.is_sorted_by(|one, next| one < next));
            assert!(*ids.last().expect("many") < TaskId::mint(1_771_668_000_001, 0));
            // `task_`, ten digits of time, three that count.
            assert!(ids.is_sorted_by(|one, next| one.as_str()[..18] < next.as_str()[..18]));
        }
    }
}
