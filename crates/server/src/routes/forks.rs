//! Forks of sessions, and sessions that are taken back.

use axum::http::header::LOCATION;
use axum::http::{HeaderValue, StatusCode};
use rekindle_domain::id::{RunId, SessionId};
use rekindle_wire::request::NewRewind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::app::App;
use crate::caller::Caller;
use crate::extract::{Ask, Once, Raw, Session, json_if_any};
use crate::respond::{self, Answer};

/// `POST …/fork`: makes a session that goes on from a point of this one.
pub(crate) async fn fork(app: App, Session(id): Session, once: Once, Raw(body): Raw) -> Answer {
    app.ask_about(id, move |daemon| {
        // The same words about another session ask for something else.
        let asked = [id.as_str().as_bytes(), b" ", &body].concat();
        let forked = daemon.fork(id, json_if_any(&body)?, once.of(&asked).as_ref())?;
        created(&forked, forked.session.id)
    })
    .await
}

/// Which run a rewind goes back before.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct To {
    /// The run: the latest without it.
    to: Option<RunId>,
}

/// `GET …/rewind`: what a rewind would do.
pub(crate) async fn plan_rewind(app: App, Session(id): Session, Ask(To { to }): Ask<To>) -> Answer {
    app.ask_about(id, move |daemon| {
        let new = NewRewind { to, ..NewRewind::default() };
        respond::json(StatusCode::OK, &daemon.plan_rewind(id, &new)?)
    })
    .await
}

/// `POST …/rewind`: takes it back to before a run.
pub(crate) async fn rewind(app: App, by: Caller, Session(id): Session, once: Once, Raw(body): Raw) -> Answer {
    app.ask_about(id, move |daemon| {
        let asked = [id.as_str().as_bytes(), b" rewind ", &body].concat();
        let rewound = daemon.rewind(id, &json_if_any(&body)?, once.of(&asked).as_ref(), by.name())?;
        created(&rewound, rewound.session.id)
    })
    .await
}

/// `POST …/restore-files`: puts its files back to before a run, while it goes on.
pub(crate) async fn restore_files(app: App, by: Caller, Session(id): Session, Raw(body): Raw) -> Answer {
    app.ask_about(id, move |daemon| {
        let restoring = daemon.restore_files(id, &json_if_any(&body)?, by.name())?;
        respond::json(StatusCode::ACCEPTED, &restoring)
    })
    .await
}

/// Answers with what was made, and where its session is.
pub(super) fn created(made: &impl Serialize, session: SessionId) -> Answer {
    let mut response = respond::json(StatusCode::CREATED, made)?;
    if let Ok(place) = HeaderValue::try_from(format!("/api/sessions/{session}")) {
        response.headers_mut().insert(LOCATION, place);
    }
    Ok(response)
}
