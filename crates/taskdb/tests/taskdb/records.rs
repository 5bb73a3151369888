//! Records of tasks, and their projection into a database.

use std::collections::HashMap;

use rekindle_domain::event::{
    Dependency, DependencyCondition, Event, Options, Provider, Raw, TaskCancelRequested, TaskChanged,
    TaskClaimed, TaskCreated, TaskEnded, TaskKind, TaskRequeued, TaskSpec, TaskStatus, TaskWaiting,
};
use rekindle_domain::id::{RunId, SessionId, TaskId};
use rekindle_domain::task::transition::task_of;
use rekindle_domain::time::Timestamp;
use rekindle_taskdb::project::{Owner, project};
use rekindle_taskdb::{Batch, Cursor, TaskDb, TaskRow};

pub(crate) const STREAM: &str = "tasks_home";

pub(crate) fn id(n: u64) -> TaskId {
    TaskId::mint(1_771_668_000_000 + n, n.into())
}

pub(crate) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(1_771_668_000_000 + seconds * 1_000)
}

pub(crate) fn owner(home: &str) -> Owner {
    Owner { home_id: home.into(), host: "machine".into() }
}

pub(crate) fn spec(n: u64) -> TaskSpec {
    TaskSpec {
        kind: TaskKind::Task,
        parent_id: (n % 5 == 4).then(|| id(n - 4)),
        title: format!("Task {n}: 100% \"quoted\" \u{1F525}"),
        prompt: Raw::text("do it\nwell \u{0} \u{1F525}"),
        working_dir: format!("/work/{}", n % 3),
        worktree: None,
        provider: Provider {
            profile: "acp".into(),
            agent: Some(["claude", "codex"][n as usize % 2].into()),
            ..Provider::default()
        },
        options: Options::default(),
        env_names: vec!["KEY".into()],
        priority: (n % 7) as i8 - 3,
        not_before: (n.is_multiple_of(4)).then(|| at(60)),
        deadline_at: None,
        max_attempts: 3,
        repeatable: n.is_multiple_of(2),
        shared: false,
        budget: None,
        labels: if n.is_multiple_of(3) { vec!["ci".into(), "a_b%".into()] } else { Vec::new() },
        after: if n % 6 == 5 {
            vec![Dependency { task_id: id(n - 1), condition: DependencyCondition::Ended }]
        } else {
            Vec::new()
        },
        idempotency_key: Some(format!("key-{n} aa")),
        created_by: Some("user:ada".into()),
    }
}

/// A day of tasks: each goes another way.
pub(crate) fn day(tasks: u64) -> Vec<Event<'static>> {
    let session = |n: u64| SessionId::mint(1, n.into());
    let mut events: Vec<Event<'static>> = Vec::new();
    for n in 0..tasks {
        let (task_id, scheduler) = (id(n), "scheduler");
        let claim = |attempt: u32| -> Event<'static> {
            let (session_id, run_id) = (session(n), RunId::mint(attempt.into(), n.into()));
            let actor = scheduler.into();
            TaskClaimed { task_id, attempt, session_id, run_id, actor, reason: None, resume_prompt: None }
                .into()
        };
        let end = |attempt: u32, status: TaskStatus| -> Event<'static> {
            TaskEnded { task_id, attempt, status, actor: "agent".into(), reason: Some("end_turn".into()) }
                .into()
        };
        let task = Box::new(spec(n));
        events.push(TaskCreated { task_id, actor: "user:ada".into(), task, met: Vec::new() }.into());
        match n % 8 {
            0 => events.extend([claim(1), end(1, TaskStatus::Completed)]),
            1 => events.push(claim(1)),
            2 => {
                let waiting =
                    TaskWaiting { task_id, attempt: 1, actor: "agent".into(), reason: "permission".into() };
                events.extend([claim(1), waiting.into()]);
            }
            3 => {
                let (actor, reason) = (scheduler.into(), "retry: overloaded".into());
                let again =
                    TaskRequeued { task_id, attempt: 1, actor, reason, delay_ms: 5_000, fresh: false };
                events.extend([claim(1), again.into(), claim(2), end(2, TaskStatus::Failed)]);
            }
            4 => {
                let (actor, reason) = ("user:ada".into(), "not needed".into());
                let status = TaskStatus::Cancelled;
                let asked = TaskCancelRequested { task_id, actor, reason, status };
                events.extend([asked.into(), end(0, TaskStatus::Cancelled)]);
            }
            5 => {
                let urgent =
                    TaskChanged { task_id, actor: "user:ada".into(), priority: Some(99), reason: None };
                events.push(urgent.into());
            }
            // Late: it counts for nothing.
            6 => events.extend([claim(1), end(1, TaskStatus::Completed), end(1, TaskStatus::Failed)]),
            _ => {}
        }
    }
    events
}

/// Writes records behind those that a database has, so many at a time.
pub(crate) fn write_events(db: &mut TaskDb, owner: &Owner, events: &[Event<'static>], at_once: usize) {
    let begin = db.cursor(&owner.home_id, STREAM).expect("asked").map_or(0, |cursor| cursor.seq as usize);
    for (index, events) in events[begin..].chunks(at_once).enumerate() {
        let first = begin + index * at_once;
        let mut ids: Vec<TaskId> = events.iter().filter_map(task_of).collect();
        ids.sort_unstable();
        ids.dedup();
        let before: HashMap<TaskId, TaskRow> =
            db.tasks(&ids).expect("asked").into_iter().map(|row| (row.task_id, row)).collect();
        let mut rows: HashMap<TaskId, Option<TaskRow>> =
            before.iter().map(|(task, row)| (*task, Some(row.clone()))).collect();
        let mut transitions = Vec::new();
        for (offset, event) in events.iter().enumerate() {
            let task = task_of(event).expect("of a task");
            let when = at((first + offset) as i64);
            transitions.extend(project(owner, task, rows.entry(task).or_default(), event, when));
        }
        let rows = rows.into_iter().filter_map(|(task, row)| Some((task, row?))).collect();
        let seq = (first + events.len()) as u64;
        let cursor = Cursor { seq, h: format!("{seq:016x}"), state: None };
        let batch = Batch::new(owner, STREAM, &before, rows, transitions, cursor);
        db.write(&batch).expect("written");
    }
}
