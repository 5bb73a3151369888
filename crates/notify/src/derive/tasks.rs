//! Notices of tasks, from the records of their stream one after the other. A task has ended if the fold says so: a record of an
//! attempt that is over ends nothing, and one that is to be attempted again has not failed.

use rekindle_domain::event::{Event, TaskEnded, TaskStatus, is_usual_stop};
use rekindle_domain::id::{StreamId, TaskId};
use rekindle_domain::line::Line;
use rekindle_domain::task::{Task, TasksState};
use rekindle_domain::time::Timestamp;

use super::{Derived, event_id, one_line};
use crate::notice::{Notice, NoticeKind};

/// What the reason begins with of a task whose agent lacks variables.
const MISSING_VARIABLES: &str = "env_missing";

/// A task that ended before anybody looked, and the attempt that ended it.
#[derive(Debug, Clone)]
pub struct EndedTaskFacts {
    /// The task as it was before its end.
    pub task: Task,
    /// How it ended, and with which attempt.
    pub ended: Option<(TaskStatus, u32)>,
}

/// Looks up tasks that the fold does not know: they ended before it began.
pub trait TaskLookup {
    /// Returns a task from its history.
    fn task(&self, id: TaskId) -> Option<EndedTaskFacts>;
}

/// The notices that some records of the stream of tasks make.
pub struct TaskNotices<'a> {
    /// The tasks as of before the next record.
    fold: TasksState,
    lookup: &'a dyn TaskLookup,
    found: Vec<Derived>,
    /// The record of the last task that ended.
    last_end: Option<(u64, Timestamp, Timestamp)>,
}

impl<'a> TaskNotices<'a> {
    /// Begins before the first of the records, with the tasks as they were then.
    pub fn new(before: TasksState, lookup: &'a dyn TaskLookup) -> TaskNotices<'a> {
        TaskNotices { fold: before, lookup, found: Vec::new(), last_end: None }
    }

    /// Takes in the next record.
    pub fn push(&mut self, line: &Line<'_>) {
        let Ok(event) = line.event() else { return };
        if let Event::TaskEnded(ended) = &event {
            self.end(line, ended);
        }
        let _ = self.fold.apply(line.seq, line.time(), &event);
        if let Event::TaskWaiting(waiting) = &event
            && waiting.reason.starts_with(MISSING_VARIABLES)
            && let Some(task) = self.fold.get(waiting.task_id).cloned()
            && task.attempt == waiting.attempt
        {
            self.tell(line, NoticeKind::Waiting, &task, Some(&waiting.reason));
        }
    }

    /// Returns what there is to tell; `after` are the tasks behind the last record. With the last of those that waited for their turn
    /// or ran the queue is empty: whoever waits for a person was told.
    pub fn finish(mut self, after: &TasksState) -> Vec<Derived> {
        if let Some((seq, at, recorded_at)) = self.last_end.filter(|_| is_queue_empty(after)) {
            let notice = Notice {
                event_id: event_id(StreamId::tasks(), seq),
                kind: NoticeKind::QueueEmpty,
                at,
                session_id: None,
                run_id: None,
                task_id: None,
                title: "no task is waiting or running any more".into(),
                agent: None,
                directory: None,
                reason: None,
                question: None,
                last_words: None,
            };
            self.found.push(Derived { notice, recorded_at, continues: None });
        }
        self.found
    }

    fn end(&mut self, line: &Line<'_>, ended: &TaskEnded<'_>) {
        let task = match self.fold.get(ended.task_id) {
            Some(task) if task.attempt == ended.attempt => Task::clone(task),
            Some(_) => return,
            None => match self.lookup.task(ended.task_id) {
                Some(facts) if facts.ended == Some((ended.status, ended.attempt)) => facts.task,
                _ => return,
            },
        };
        self.last_end = Some((line.seq, line.happened_at(), line.time()));
        let kind = match ended.status {
            TaskStatus::Completed => NoticeKind::Completed,
            TaskStatus::Failed => NoticeKind::Failed,
            // A person ended it, who knows.
            _ => return,
        };
        let said = ended.reason.as_deref().filter(|reason| !is_usual_stop(reason));
        self.tell(line, kind, &task, said);
    }

    fn tell(&mut self, line: &Line<'_>, kind: NoticeKind, task: &Task, reason: Option<&str>) {
        let notice = Notice {
            event_id: event_id(StreamId::tasks(), line.seq),
            kind,
            at: line.happened_at(),
            session_id: task.session_id,
            run_id: task.run_id,
            task_id: Some(task.id),
            title: task.spec.title.clone(),
            agent: Some(task.spec.provider.name()),
            directory: Some(task.spec.working_dir.clone()),
            reason: reason.map(one_line),
            question: None,
            last_words: None,
        };
        self.found.push(Derived { notice, recorded_at: line.time(), continues: None });
    }
}

/// Tells whether no task waits for its turn or runs.
pub fn is_queue_empty(tasks: &TasksState) -> bool {
    !tasks.has_pending() && tasks.begun().all(|task| task.status == TaskStatus::WaitingInput)
}
