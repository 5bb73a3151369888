//! What the operations on tasks are about.

use axum::http::StatusCode;
use rekindle_wire::code::Code;
use rekindle_wire::event::{Reset, TooSlow};
use rekindle_wire::filter::TaskFilter;
use rekindle_wire::request::{CancelTask, RetryTask, TaskPriority, TasksBody};
use rekindle_wire::view::{TaskList, TaskStatsView, TaskView, TasksMade, TransitionList};
use serde_json::{Value, json};

use super::operation::Operation;

pub(crate) fn create_tasks() -> Operation {
    let one = json!({"working_dir": "/repo", "agent": "claude", "prompt": "fix the failing test"});
    let chain = json!({"tasks": [
        {"working_dir": "/repo", "agent": "claude", "prompt": "write the tests", "ref": "tests"},
        {"working_dir": "/repo", "agent": "claude", "prompt": "make them pass", "after": ["tests"], "priority": 10},
    ]});
    Operation::new::<TasksMade>("tasks", "createTasks", "Ask for a task, or for several")
        .answers(StatusCode::CREATED, "On disk: the task, or `tasks` in the order of the request.")
        .more(
            "A task waits for its turn and becomes a run of a session of its own. Of several all are made or none; they may wait for \
             each other by `ref`. A task begins when what it waits for has ended, its time has come, no limit is reached, and nobody \
             else works in its directory, above it or below it. Names of variables in `env` are kept, values are not: after a restart \
             of the daemon a task whose variables are missing waits, and says so.",
        )
        .body::<TasksBody>(vec![("one", one), ("two, one after the other", chain)])
        .example(task())
        .appends()
        .refuses(NEW_TASK)
        .takes_idempotency_key()
}

/// What is refused of a task that is asked for.
const NEW_TASK: [Code; 13] = [
    Code::AgentUnknown,
    Code::DependencyCycle,
    Code::DependencyUnknown,
    Code::InvalidAgent,
    Code::InvalidContent,
    Code::InvalidEnv,
    Code::InvalidTask,
    Code::InvalidWorkingDir,
    Code::NoRandomness,
    Code::SettingUnknown,
    Code::TasksDamaged,
    Code::GitMissing,
    Code::WorktreeImpossible,
];

pub(crate) fn list_active_tasks() -> Operation {
    Operation::new::<TaskList>("tasks", "listActiveTasks", "List the tasks that have not ended")
        .answers(
            StatusCode::OK,
            "Those that run, with how far they have come; then those that wait, in the order of their turns.",
        )
        .example(json!({"tasks": [task()], "next": null}))
        .refuses([Code::Storage, Code::TasksDamaged])
}

pub(crate) fn list_tasks() -> Operation {
    Operation::new::<TaskList>("tasks", "listTasks", "List tasks, ended or not")
        .answers(StatusCode::OK, "A page of them, the newest first.")
        .more("From the database of tasks, which has everything that was recorded before the question. While it cannot be reached \
               this is refused; `/api/tasks/active` is answered all the same.")
        .query::<TaskFilter>()
        .example(json!({"tasks": [task()], "next": null}))
        .refuses([Code::InvalidCursor, Code::TasksDbUnavailable])
}

pub(crate) fn get_task_stats() -> Operation {
    Operation::new::<TaskStatsView>("tasks", "getTaskStats", "Say how tasks stand")
        .answers(
            StatusCode::OK,
            "How many stand where, and what came of those that ended in the last 24 hours.",
        )
        .example(json!({
            "as_of": "2026-02-21T10:00:00.000Z", "statuses": {"pending": 2, "completed": 40},
            "agents": {"claude": {"pending": 2, "completed": 40}},
            "day": {"ended": {"completed": 40}, "median_ms": 61000, "p90_ms": 240000, "tokens": 180000, "cost": 2.5,
                "interruptions": 3, "adoptions": 2, "verdicts": {"restored": 1}},
        }))
        .refuses([Code::TasksDbUnavailable])
}

pub(crate) fn get_task_history() -> Operation {
    Operation::new::<TransitionList>("tasks", "getTaskHistory", "Show the history of a task")
        .answers(StatusCode::OK, "What happened to it, who did it and why, without a gap.")
        .of_task()
        .example(json!({"transitions": [{
            "n": 1, "from": null, "to": "pending", "reason": null, "actor": "user:local", "at": "2026-02-21T10:00:00.000Z",
            "metadata": null,
        }]}))
        .refuses([Code::TasksDbUnavailable])
}

pub(crate) fn follow_task() -> Operation {
    let id = json!({"type": "string", "pattern": "^[0-9]{1,19}\\.[0-9]{1,9}\\.[0-9]{1,19}\\.[0-9a-f]{16}$", "examples": ["12.1.7.4df9e30ab1d947d5"]});
    Operation::new::<String>("tasks", "followTask", "Follow a task to its end")
        .answers(StatusCode::OK, "Server-sent events.")
        .more(
            "Every record of the task and of its runs is an event: its kind is the event's name, its line the data, and the id says how \
             far both streams were told: `<tasks seq>.<attempt>.<seq>.<h>`. The stream ends behind `task.ended`. Whoever comes again \
             with the id of that gets 204, which keeps a browser from coming again; if the task was brought back since, it goes on.",
        )
        .also_answers_nothing("The task has ended, and `Last-Event-ID` is the id of its end.")
        .of_task()
        .header("Last-Event-ID", "The id of the last event that was seen.", id, Code::InvalidLastEventId)
        .event::<Reset>("reset", "The logs have no such record: forget what you have and begin again.")
        .event::<TooSlow>("too_slow", "The follower is 1024 news behind: connect again with the last id.")
        .refuses([Code::Storage, Code::TaskStateConflict])
}

pub(crate) fn get_task() -> Operation {
    Operation::new::<TaskView>("tasks", "getTask", "Show a task")
        .answers(StatusCode::OK, "The task, whether or not it has ended.")
        .of_task()
        .example(task())
        .refuses([Code::Storage, Code::TasksDamaged])
}

pub(crate) fn cancel_task() -> Operation {
    Operation::new::<TaskView>("tasks", "cancelTask", "Cancel a task")
        .answers(StatusCode::OK, "On disk. One that waits has ended; one that runs ends with its run.")
        .of_task()
        .body_if_any::<CancelTask>(vec![("with a reason", json!({"reason": "not needed any more"}))])
        .example(task())
        .appends()
        .refuses([Code::TaskStateConflict, Code::TasksDamaged])
}

pub(crate) fn retry_task() -> Operation {
    Operation::new::<TaskView>("tasks", "retryTask", "Attempt a task again that failed or was cancelled")
        .answers(StatusCode::OK, "On disk: it waits for its turn.")
        .more("The next attempt goes on in the session of the last one, unless `fresh` asks for a new one.")
        .of_task()
        .body_if_any::<RetryTask>(vec![("in a new session", json!({"fresh": true}))])
        .example(task())
        .appends()
        .refuses([Code::InvalidEnv, Code::Moved, Code::TaskStateConflict, Code::TasksDamaged])
}

pub(crate) fn set_task_priority() -> Operation {
    Operation::new::<TaskView>("tasks", "setTaskPriority", "Make a task more or less urgent")
        .answers(StatusCode::OK, "On disk.")
        .of_task()
        .body::<TaskPriority>(vec![("urgent", json!({"priority": 50}))])
        .example(task())
        .appends()
        .refuses([Code::InvalidTask, Code::TaskStateConflict, Code::TasksDamaged])
}

/// A task, for examples.
fn task() -> Value {
    json!({
        "id": "task_01khz0p6r8vk6mqj3b8y2c9d4e", "kind": "task", "parent_id": null, "title": "fix the failing test",
        "working_dir": "/repo", "branch": null, "pipeline_run": null, "agent": "claude", "status": "pending", "reason": null, "attempt": 0, "max_attempts": 3,
        "session_id": null, "run_id": null, "priority": 0, "not_before": null, "deadline_at": null, "budget": null,
        "labels": [], "after": [], "created_by": "user:local", "created_at": "2026-02-21T10:00:00.000Z",
        "updated_at": "2026-02-21T10:00:00.000Z", "started_at": null, "ended_at": null, "position": 1,
        "waits_for": "the limit of running tasks is reached", "progress": null, "files_touched": null, "result": null, "exit": null,
    })
}
