//! Tasks: asked for, listed, shown, cancelled, tried again, made more urgent.

use axum::http::header::LOCATION;
use axum::http::{HeaderValue, StatusCode};
use rekindle_wire::filter::TaskFilter;
use rekindle_wire::request::{NewTasks, TaskPriority};
use rekindle_wire::view::TaskList;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::app::App;
use crate::caller::Caller;
use crate::extract::{Ask, Once, Raw, Task, json, json_if_any};
use crate::respond::{self, Answer};

/// Tells whether a body asks for several tasks; what else is wrong with it is found out when it is read.
fn asks_for_several(body: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Peek {
        tasks: Option<IgnoredAny>,
    }
    serde_json::from_slice::<Peek>(body).is_ok_and(|peek| peek.tasks.is_some())
}

/// `POST /api/tasks`: asks for a task, or for several.
pub(crate) async fn create(app: App, by: Caller, once: Once, Raw(body): Raw) -> Answer {
    app.ask(move |daemon| {
        let key = once.of(&body);
        if asks_for_several(&body) {
            let new: NewTasks = json(&body)?;
            let tasks = daemon.create_tasks(&new.tasks, key.as_ref(), by.name())?;
            return respond::json(StatusCode::CREATED, &TaskList { tasks, next: None });
        }
        let made = daemon.create_tasks(&[json(&body)?], key.as_ref(), by.name())?;
        let mut response = respond::json(StatusCode::CREATED, &made.first())?;
        if let Some(place) = made.first().map(|task| HeaderValue::try_from(format!("/api/tasks/{}", task.id)))
        {
            place.map(|place| response.headers_mut().insert(LOCATION, place)).ok();
        }
        Ok(response)
    })
    .await
}

/// `GET /api/tasks`: a page of tasks.
pub(crate) async fn list(app: App, Ask(filter): Ask<TaskFilter>) -> Answer {
    app.ask(move |daemon| respond::json(StatusCode::OK, &daemon.tasks(&filter)?)).await
}

/// `GET /api/tasks/stats`: how tasks stand.
pub(crate) async fn stats(app: App) -> Answer {
    app.ask(move |daemon| respond::json(StatusCode::OK, &daemon.task_stats()?)).await
}

/// `GET /api/tasks/{id}/transitions`: the history of a task.
pub(crate) async fn transitions(app: App, Task(id): Task) -> Answer {
    app.ask(move |daemon| respond::json(StatusCode::OK, &daemon.task_transitions(id)?)).await
}

/// `GET /api/tasks/active`: those that have not ended.
pub(crate) async fn active(app: App) -> Answer {
    app.ask(move |daemon| respond::json(StatusCode::OK, &daemon.active_tasks()?)).await
}

/// `GET /api/tasks/{id}`: one task.
pub(crate) async fn show(app: App, Task(id): Task) -> Answer {
    app.ask(move |daemon| respond::json(StatusCode::OK, &daemon.task(id)?)).await
}

/// `POST /api/tasks/{id}/cancel`: ends a task.
pub(crate) async fn cancel(app: App, by: Caller, Task(id): Task, Raw(body): Raw) -> Answer {
    app.ask(move |daemon| {
        let asked = json_if_any(&body)?;
        respond::json(StatusCode::OK, &daemon.cancel_task(id, &asked, by.name())?)
    })
    .await
}

/// `POST /api/tasks/{id}/retry`: has a task attempted again.
pub(crate) async fn retry(app: App, by: Caller, Task(id): Task, Raw(body): Raw) -> Answer {
    app.ask(move |daemon| {
        let asked = json_if_any(&body)?;
        respond::json(StatusCode::OK, &daemon.retry_task(id, &asked, by.name())?)
    })
    .await
}

/// `POST /api/tasks/{id}/priority`: makes a task more or less urgent.
pub(crate) async fn priority(app: App, by: Caller, Task(id): Task, Raw(body): Raw) -> Answer {
    app.ask(move |daemon| {
        let TaskPriority { priority } = json(&body)?;
        respond::json(StatusCode::OK, &daemon.set_task_priority(id, priority, by.name())?)
    })
    .await
}
