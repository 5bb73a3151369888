//! Kept snapshots of a session: listed, shown, taken, removed.

use axum::http::header::LOCATION;
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;

use crate::app::App;
use crate::extract::{Raw, Session, SessionSnapshot, json_if_any};
use crate::respond::{self, Answer};
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

/// `DELETE …/snapshots/{name}`: lets go of one.
pub(crate) async fn remove(app: App, SessionSnapshot(id, name): SessionSnapshot) -> Answer {
    app.ask_about(id, move |daemon| Ok(daemon.remove_snapshot(id, name)?)).await?;
    let mut response = Response::default();
    *response.status_mut() = StatusCode::NO_CONTENT;
    Ok(response)
}
