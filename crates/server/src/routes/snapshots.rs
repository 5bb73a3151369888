//! Kept snapshots of a session: listed, shown, taken, restored, removed.

use axum::http::header::LOCATION;
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;

use crate::app::App;
use crate::caller::Caller;
use crate::extract::{Once, Raw, Session, SessionSnapshot, json_if_any};
use crate::respond::{self, Answer};
use crate::routes::forks::created;
use crate::routes::sessions::Nothing;

/// `GET …/snapshots`: those that are kept, the latest first.
pub(crate) async fn list(app: App, Session(id): Session) -> Answer {
    app.ask_about(id, move |daemon| respond::json(StatusCode::OK, &daemon.snapshots(id)?)).await
}

/// `POST …/snapshots`: takes one now.
pub(crate) async fn take(app: App, Session(id): Session, Raw(body): Raw) -> Answer {
    app.ask_about(id, move |daemon| {
        let Nothing {} = json_if_any(&body)?;
        let snapshot = daemon.take_snapshot(id)?;
        let mut response = respond::json(StatusCode::CREATED, &snapshot)?;
        if let Ok(place) = HeaderValue::try_from(format!("/api/sessions/{id}/snapshots/{}", snapshot.name)) {
            response.headers_mut().insert(LOCATION, place);
        }
        Ok(response)
    })
    .await
}

/// `GET …/snapshots/{name}`: one of them, with what the session was.
pub(crate) async fn show(app: App, SessionSnapshot(id, name): SessionSnapshot) -> Answer {
    app.ask_about(id, move |daemon| respond::json(StatusCode::OK, &daemon.snapshot(id, name)?)).await
}

/// `POST …/snapshots/{name}/restore`: makes a session that goes on from it.
pub(crate) async fn restore(
    app: App,
    by: Caller,
    SessionSnapshot(id, name): SessionSnapshot,
    once: Once,
    Raw(body): Raw,
) -> Answer {
    app.ask_about(id, move |daemon| {
        // The same words about another snapshot ask for something else.
        let asked = [format!("{id} restore {name} ").as_bytes(), &body].concat();
        let (new, key) = (json_if_any(&body)?, once.of(&asked));
        let restored = daemon.restore_snapshot((id, name), &new, key.as_ref(), by.name())?;
        created(&restored, restored.session.id)
    })
    .await
}

/// `DELETE …/snapshots/{name}`: lets go of one.
pub(crate) async fn remove(app: App, SessionSnapshot(id, name): SessionSnapshot) -> Answer {
    app.ask_about(id, move |daemon| Ok(daemon.remove_snapshot(id, name)?)).await?;
    let mut response = Response::default();
    *response.status_mut() = StatusCode::NO_CONTENT;
    Ok(response)
}
