//! Waits: what agents and programs ask of people, and the answers.

use axum::http::StatusCode;
use rekindle_wire::filter::WaitFilter;

use crate::app::App;
use crate::caller::Caller;
use crate::extract::{Ask, Once, Raw, Session, Wait, json, json_if_any};
use crate::respond::{self, Answer};
use crate::routes::sessions::Nothing;

/// `GET /api/waits`: open and void waits, oldest first.
pub(crate) async fn list(app: App, Ask(filter): Ask<WaitFilter>) -> Answer {
    app.ask(move |daemon| respond::json(StatusCode::OK, &daemon.waits(&filter)?)).await
}

/// `POST /api/sessions/{id}/waits`: a wait for a program that drives the session.
pub(crate) async fn open(app: App, by: Caller, Session(id): Session, once: Once, Raw(body): Raw) -> Answer {
    app.ask_about(id, move |daemon| {
        let opened = daemon.open_wait(id, &json(&body)?, once.of(&body), by.name())?;
        respond::json(StatusCode::CREATED, &opened)
    })
    .await
}

/// `GET /api/waits/{id}`: one wait, over or not.
pub(crate) async fn show(app: App, Wait(id): Wait) -> Answer {
    app.ask(move |daemon| respond::json(StatusCode::OK, &daemon.wait(id)?)).await
}

/// `POST /api/waits/{id}/token`: a further token, shown once.
pub(crate) async fn mint(app: App, by: Caller, Wait(id): Wait, Raw(body): Raw) -> Answer {
    app.ask(move |daemon| {
        let Nothing {} = json_if_any(&body)?;
        respond::json(StatusCode::OK, &daemon.mint(id, by.name())?)
    })
    .await
}

/// `POST /api/waits/{id}/links`: links that answer the wait, shown once.
pub(crate) async fn links(app: App, by: Caller, Wait(id): Wait, Raw(body): Raw) -> Answer {
    app.ask(move |daemon| {
        let Nothing {} = json_if_any(&body)?;
        respond::json(StatusCode::OK, &daemon.mint_answer_links(id, by.name())?)
    })
    .await
}

/// `POST /api/waits/{id}/view`: what a resume token is for.
pub(crate) async fn view(app: App, Wait(id): Wait, Raw(body): Raw) -> Answer {
    app.ask(move |daemon| respond::json(StatusCode::OK, &daemon.token_view(id, &json(&body)?)?)).await
}

/// `POST /api/waits/{id}/answer`: the answer to a wait.
pub(crate) async fn answer(app: App, by: Caller, Wait(id): Wait, Raw(body): Raw) -> Answer {
    app.ask(move |daemon| respond::json(StatusCode::ACCEPTED, &daemon.answer(id, json(&body)?, by.name())?))
        .await
}
