//! The state of the stream of tasks: every task that has not ended. Those that have are in the log, and in the projection.
//!
//! A copy shares everything with what it was copied from, so that taking one, for whoever looks or as the way back, costs nothing
//! however many tasks there are.

use std::ops::Bound;
use std::sync::Arc;

use rpds::{HashTrieMapSync, QueueSync, RedBlackTreeMapSync, RedBlackTreeSetSync};
use serde::{Deserialize, Serialize};

use super::transition::Standing;
use crate::chain::Position;
use crate::event::{Dependency, EndedTask, TaskSpec, TaskStatus};
use crate::id::{RunId, SessionId, TaskId};
use crate::session::MessageKey;
use crate::time::{Now, Timestamp};

/// Keys of requests that are remembered: whoever repeats a request does so within hours, and a batch has at most ten thousand.
pub const MAX_TASK_KEYS: usize = 50_000;

/// A task that has not ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// The task.
    pub id: TaskId,
    /// What was asked for.
    pub spec: Arc<TaskSpec>,
    /// Where it stands.
    pub status: TaskStatus,
    /// Why, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Attempts that have begun.
    pub attempt: u32,
    /// Records of it that count.
    pub transitions: u32,
    /// Why the latest attempt came to nothing, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_end: Option<String>,
    /// The session of the latest attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// The sessions of attempts before that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier_sessions: Vec<SessionId>,
    /// Its run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// The next attempt has a session of its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fresh: bool,
    /// How urgent it is.
    pub priority: i8,
    /// It is not to begin before this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Timestamp>,
    /// When it was asked for.
    pub created_at: Timestamp,
    /// Its newest record.
    pub updated_at: Timestamp,
    /// When its latest attempt began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// How long its earlier attempts went on, in milliseconds.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub earlier_ms: u64,
    /// Since when nothing of its own holds it back.
    pub eligible_at: Timestamp,
    /// Somebody wants it to end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel: Option<TaskCancel>,
    /// What has to end before it begins.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unmet: Vec<Dependency>,
    /// What ended as it must not have: it can never begin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_dependency: Option<TaskId>,
}

/// The wish that a task ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskCancel {
    /// Whose it is.
    pub actor: String,
    /// Why.
    pub reason: String,
    /// What the task has then come to.
    pub status: TaskStatus,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
fn is_zero(millis: &u64) -> bool {
    *millis == 0
}

impl Task {
    /// Returns how long its attempts went on, all together, in milliseconds.
    pub fn wall_ms(&self, now: &Now) -> u64 {
        let running = self.started_at.filter(|_| self.status != TaskStatus::Pending);
        self.earlier_ms.saturating_add(running.map_or(0, |started| now.millis_since(started)))
    }

    /// The same as of a record that was written then.
    pub(super) fn wall_ms_at(&self, ts: Timestamp) -> u64 {
        self.wall_ms(&Now { wall: ts, steady: ts })
    }

    /// Returns where it stands.
    pub fn standing(&self) -> Standing {
        Standing { status: self.status, attempt: self.attempt, transitions: self.transitions }
    }

    /// Returns the task as somebody must tell it who brings it back after its end.
    pub fn to_ended(&self, status: TaskStatus, reason: Option<String>, transitions: u32) -> EndedTask {
        EndedTask {
            task: (*self.spec).clone(),
            created_at: self.created_at,
            status,
            reason,
            attempt: self.attempt,
            session_id: self.session_id,
            earlier_sessions: self.earlier_sessions.clone(),
            run_id: self.run_id,
            priority: (self.priority != self.spec.priority).then_some(self.priority),
            earlier_ms: self.wall_ms_at(self.updated_at),
            transitions,
        }
    }
}

/// Every task that has not ended.
#[derive(Debug, Clone, Default)]
pub struct TasksState {
    pub(super) position: Position,
    pub(super) tasks: RedBlackTreeMapSync<TaskId, Arc<Task>>,
    /// Those of them that do not wait: few, however many do.
    begun: RedBlackTreeSetSync<TaskId>,
    /// Pairs of a task and one that waits for its end.
    dependents: RedBlackTreeSetSync<(TaskId, TaskId)>,
    /// Where the requests are that had a key, by the hash of that.
    pub(super) keys: HashTrieMapSync<u64, MessageKey>,
    /// The same, the oldest first.
    pub(super) oldest_keys: QueueSync<MessageKey>,
}

impl TasksState {
    /// Returns how far into the log the state has come.
    pub fn position(&self) -> Position {
        self.position
    }

    /// Moves the state to a position without looking at the record there.
    pub fn set_position(&mut self, position: Position) {
        self.position = position;
    }

    /// Returns a task that has not ended.
    pub fn get(&self, task: TaskId) -> Option<&Arc<Task>> {
        self.tasks.get(&task)
    }

    /// Returns the tasks that have not ended, in the order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Task>> {
        self.tasks.values()
    }

    /// Returns those of them whose attempt goes on, in the same order.
    pub fn begun(&self) -> impl Iterator<Item = &Arc<Task>> {
        self.begun.iter().filter_map(|task| self.tasks.get(task))
    }

    /// Tells whether any of them waits for its turn.
    pub fn has_pending(&self) -> bool {
        self.tasks.size() > self.begun.size()
    }

    /// Returns how many there are.
    pub fn len(&self) -> usize {
        self.tasks.size()
    }

    /// Tells whether there is none.
    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Returns the record of the request that may have had the key of this one; the record tells whether it had.
    pub fn request_like(&self, stored_key: &str) -> Option<u64> {
        self.keys.get(&MessageKey::new(stored_key, 0).hash()).map(|key| key.seq)
    }

    /// Remembers the key of a request, and forgets the oldest when there are too many.
    pub(super) fn add_key(&mut self, key: MessageKey) {
        self.keys.insert_mut(key.hash(), key);
        self.oldest_keys.enqueue_mut(key);
        if self.oldest_keys.len() > MAX_TASK_KEYS
            && let Some(oldest) = self.oldest_keys.peek().copied()
        {
            self.oldest_keys.dequeue_mut();
            if self.keys.get(&oldest.hash()) == Some(&oldest) {
                self.keys.remove_mut(&oldest.hash());
            }
        }
    }

    /// Puts a task in its place, with what it waits for.
    pub(super) fn put(&mut self, task: Task) {
        for dependency in &task.unmet {
            self.dependents.insert_mut((dependency.task_id, task.id));
        }
        match task.status {
            TaskStatus::Pending => drop(self.begun.remove_mut(&task.id)),
            _ => self.begun.insert_mut(task.id),
        }
        self.tasks.insert_mut(task.id, Arc::new(task));
    }

    /// Takes a task out, with what it waited for.
    pub(super) fn take(&mut self, task: TaskId) {
        let Some(taken) = self.tasks.get(&task).cloned() else { return };
        self.tasks.remove_mut(&task);
        self.begun.remove_mut(&task);
        for dependency in &taken.unmet {
            self.dependents.remove_mut(&(dependency.task_id, task));
        }
    }

    /// Returns who waits for the end of a task.
    pub(super) fn dependents(&self, task: TaskId) -> impl Iterator<Item = TaskId> {
        let behind = self.dependents.range((Bound::Included((task, lowest())), Bound::Unbounded));
        behind.take_while(move |(on, _)| *on == task).map(|(_, dependent)| *dependent)
    }

    /// Takes out who waits for the end of a task.
    pub(super) fn take_dependents(&mut self, task: TaskId) -> Vec<TaskId> {
        let dependents: Vec<TaskId> = self.dependents(task).collect();
        for dependent in &dependents {
            self.dependents.remove_mut(&(task, *dependent));
        }
        dependents
    }
}

/// Returns the id before all others.
fn lowest() -> TaskId {
    TaskId::from_ulid(0)
}

impl PartialEq for TasksState {
    /// What it says of tasks and keys; how it is held in memory does not count.
    fn eq(&self, other: &TasksState) -> bool {
        self.position == other.position
            && self.tasks.iter().eq(other.tasks.iter())
            && self.oldest_keys.iter().eq(other.oldest_keys.iter())
    }
}

/// The state as its cache keeps it.
#[derive(Serialize, Deserialize)]
struct Stored {
    version: u32,
    position: Position,
    keys: Vec<MessageKey>,
    tasks: Vec<Arc<Task>>,
}

/// The version of the cache that this code writes.
pub const TASKS_VERSION: u32 = 1;

impl Serialize for TasksState {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let keys = self.oldest_keys.iter().copied().collect();
        let tasks = self.tasks.values().cloned().collect();
        Stored { version: TASKS_VERSION, position: self.position, keys, tasks }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for TasksState {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<TasksState, D::Error> {
        let Stored { version, position, keys, tasks } = Stored::deserialize(deserializer)?;
        if version != TASKS_VERSION {
            return Err(serde::de::Error::custom(format!("version {version} is not known")));
        }
        let mut state = TasksState { position, ..TasksState::default() };
        keys.into_iter().for_each(|key| state.add_key(key));
        tasks.into_iter().for_each(|task| state.put(Arc::unwrap_or_clone(task)));
        Ok(state)
    }
}
