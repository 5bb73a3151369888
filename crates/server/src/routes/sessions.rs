//! Sessions: made, shown, changed, spoken to and ended. Bodies are read where they may take their time, away from
//! the threads that serve connections; only what is small and need not block is done there.

use axum::http::header::{
    CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE, LOCATION, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use rekindle_domain::id::{RunId, SessionId};
use rekindle_domain::projector::{Evidence, SessionStatus};
use rekindle_domain::time::Timestamp;
use rekindle_service::daemon::Created;
use rekindle_service::log::LogPage;
use rekindle_wire::code::Code;
use rekindle_wire::filter::Filter;
use rekindle_wire::hint::Hint;
use rekindle_wire::request::Change;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::app::App;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::extract::{Ask, Blob, Once, Raw, Session, json, json_if_any};
use crate::respond::{self, Answer};

/// Records of a page, if nobody says how many: a screenful for a person, a small answer for a program.
pub(super) const PAGE: usize = 200;

/// Most records of a page: with the largest payloads that a log keeps inline this is a quarter of a gigabyte.
pub(super) const MAX_PAGE: usize = 1000;

/// Largest body that is read on a thread that serves connections: some microseconds.
const SMALL: usize = 64 << 10;

/// A body that says nothing: left out, or an empty object.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Nothing {}

/// It is done, and there is nothing more to say.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Done {}

/// `POST /api/sessions`: makes a session, or goes on in the one with its key.
pub(crate) async fn create(app: App, once: Once, Raw(body): Raw) -> Answer {
    app.ask(move |daemon| {
        let (mut response, id) = match daemon.create(json(&body)?, once.of(&body).as_ref())? {
            Created::New(session) => (respond::json(StatusCode::CREATED, &session)?, session.id),
            Created::Known(known) => (respond::json(StatusCode::OK, &known)?, known.session.id),
        };
        if let Ok(place) = HeaderValue::try_from(format!("/api/sessions/{id}")) {
            response.headers_mut().insert(LOCATION, place);
        }
        Ok(response)
    })
    .await
}

/// `GET /api/sessions`: a page of sessions.
pub(crate) async fn list(app: App, Ask(filter): Ask<Filter>) -> Answer {
    app.ask(move |daemon| respond::json(StatusCode::OK, &daemon.sessions(&filter)?)).await
}

/// `GET /api/sessions/{id}`: one session.
pub(crate) async fn show(app: App, Session(id): Session) -> Answer {
    if let Some(session) = app.daemon.session_at_hand(id) {
        return respond::json(StatusCode::OK, &session);
    }
    app.ask_about(id, move |daemon| respond::json(StatusCode::OK, &daemon.session(id)?)).await
}

/// `PATCH /api/sessions/{id}`: changes a session.
pub(crate) async fn change(app: App, Session(id): Session, Raw(body): Raw) -> Answer {
    let change: Change = json(&body)?;
    if let Some(changed) = app.daemon.try_change(id, change.clone()) {
        changed.await?;
        return show(app, Session(id)).await;
    }
    app.ask_about(id, move |daemon| respond::json(StatusCode::OK, &daemon.change(id, change)?)).await
}

/// What a deletion says beside its session.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Deletion {
    /// Also if its run has not ended: 1, or 0.
    #[schemars(extend("enum" = ["1", "0", "true", "false"]))]
    force: Option<String>,
}

/// `DELETE /api/sessions/{id}`: removes a session.
pub(crate) async fn delete(
    app: App,
    by: Caller,
    Session(id): Session,
    Ask(deletion): Ask<Deletion>,
) -> Answer {
    let force = flag(deletion.force.as_deref(), "force")?;
    app.ask_about(id, move |daemon| Ok(daemon.delete(id, force, by.name())?)).await?;
    let mut response = Response::default();
    *response.status_mut() = StatusCode::NO_CONTENT;
    Ok(response)
}

/// `POST …/messages`: gives a session a message.
pub(crate) async fn message(app: App, Session(id): Session, once: Once, Raw(body): Raw) -> Answer {
    if body.len() <= SMALL {
        let (new, key) = (json(&body)?, once.of(&body));
        if let Some(given) = app.daemon.try_message(id, &new, key.as_ref())
            && let Some(taken) = given.await?
        {
            return respond::json(StatusCode::ACCEPTED, &taken);
        }
    }
    app.ask_about(id, move |daemon| {
        let taken = daemon.message(id, &json(&body)?, once.of(&body).as_ref())?;
        respond::json(StatusCode::ACCEPTED, &taken)
    })
    .await
}

/// What was cancelled.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Cancelled {
    /// The run; null if only what was queued is cancelled.
    run_id: Option<RunId>,
}

/// `POST …/cancel`: ends what it does, is about to do and has queued.
pub(crate) async fn cancel(app: App, by: Caller, Session(id): Session, Raw(body): Raw) -> Answer {
    app.ask_about(id, move |daemon| {
        let Nothing {} = json_if_any(&body)?;
        respond::json(StatusCode::ACCEPTED, &Cancelled { run_id: daemon.cancel(id, by.name())? })
    })
    .await
}

/// `POST …/resume`: continues it, or answers its wait by a token.
pub(crate) async fn resume(app: App, by: Caller, Session(id): Session, Raw(body): Raw) -> Answer {
    app.ask_about(id, move |daemon| {
        respond::json(StatusCode::ACCEPTED, &daemon.resume(id, json_if_any(&body)?, by.name())?)
    })
    .await
}

/// `POST …/close`: ends it; its log stays.
pub(crate) async fn close(app: App, by: Caller, Session(id): Session, Raw(body): Raw) -> Answer {
    app.ask_about(id, move |daemon| {
        let Nothing {} = json_if_any(&body)?;
        daemon.close(id, by.name())?;
        respond::json(StatusCode::ACCEPTED, &Done {})
    })
    .await
}

/// `POST …/release`: has it tried again after it made the daemon crash.
pub(crate) async fn release(app: App, Session(id): Session, Raw(body): Raw) -> Answer {
    app.ask(move |daemon| {
        let Nothing {} = json_if_any(&body)?;
        respond::json(StatusCode::OK, &daemon.release(id)?)
    })
    .await
}

/// What a session is doing.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "StatusOfSession")]
pub(crate) struct Status {
    /// The session.
    id: SessionId,
    /// What it is doing.
    status: SessionStatus,
    /// Since when.
    since: Timestamp,
    /// How that is known.
    evidence: Evidence,
}

/// `GET …/status`: what it is doing, since when, and how that is known.
pub(crate) async fn status(app: App, Session(id): Session) -> Answer {
    app.ask_about(id, move |daemon| {
        let session = daemon.session(id)?;
        let (status, since, evidence) = (session.status, session.since, session.evidence);
        respond::json(StatusCode::OK, &Status { id, status, since, evidence })
    })
    .await
}

/// Which records of a log.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Page {
    /// Behind this record; 0 for the beginning.
    #[serde(default)]
    pub(super) after: u64,
    /// Most to be told: 200 without it; more than 1000 never are.
    #[schemars(range(min = 1))]
    pub(super) limit: Option<usize>,
}

/// `GET …/log`: records as they stand in the log.
pub(crate) async fn log(app: App, Session(id): Session, Ask(page): Ask<Page>) -> Answer {
    let limit = page.limit.unwrap_or(PAGE);
    if limit == 0 {
        return Err(ApiError::new(Code::InvalidQuery, "a limit of 0 returns nothing")
            .advise(Hint::ChooseLimit { most: MAX_PAGE }));
    }
    app.ask_about(id, move |daemon| {
        let page = daemon.log(id, page.after, limit.min(MAX_PAGE))?;
        Ok(respond::bytes(StatusCode::OK, records(&page)))
    })
    .await
}

/// Reads a parameter that is 1 or 0.
pub(super) fn flag(text: Option<&str>, name: &str) -> Result<bool, ApiError> {
    match text {
        Some("1" | "true") => Ok(true),
        None | Some("0" | "false") => Ok(false),
        Some(_) => Err(ApiError::new(Code::InvalidQuery, format_args!("{name} must be 1 or 0"))),
    }
}

/// `GET /api/blobs/{id}`: a payload that is kept apart from the log. What it names never changes; what it is only its reader
/// knows, so nothing shows it by itself.
pub(crate) async fn blob(app: App, Blob(id): Blob) -> Answer {
    let bytes = app.ask(move |daemon| Ok(daemon.blob(&id)?)).await?;
    let mut response = respond::bytes(StatusCode::OK, bytes);
    for (name, value) in [
        (CONTENT_TYPE, "application/octet-stream"),
        (CONTENT_DISPOSITION, "attachment"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (CACHE_CONTROL, "private, max-age=31536000, immutable"),
    ] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    Ok(response)
}

/// Joins lines to one answer; each is JSON already and stays as it is.
pub(super) fn records(page: &LogPage) -> Vec<u8> {
    let LogPage { records, next, damage, history_missing } = page;
    let size: usize = records.iter().map(|line| line.line.len() + 1).sum();
    let mut body = Vec::with_capacity(size + 48);
    body.extend_from_slice(b"{\"records\":[");
    for (index, line) in records.iter().enumerate() {
        if index > 0 {
            body.push(b',');
        }
        body.extend_from_slice(line.line.as_bytes());
    }
    body.extend_from_slice(b"],\"next\":");
    body.extend_from_slice(next.map_or("null".to_owned(), |next| next.to_string()).as_bytes());
    if let Some(damage) = damage {
        let (offset, detail) = (damage.offset, serde_json::json!(damage.detail));
        body.extend_from_slice(format!(",\"damage\":{{\"offset\":{offset},\"detail\":{detail}}}").as_bytes());
    }
    if let Some(missing) = history_missing {
        let (before, detail) = (missing.before, serde_json::json!(missing.detail));
        let text = format!(",\"history_missing\":{{\"before\":{before},\"detail\":{detail}}}");
        body.extend_from_slice(text.as_bytes());
    }
    body.push(b'}');
    body
}

#[cfg(test)]
mod tests {
    use rekindle_service::log::LogLine;
    use rekindle_wire::view::HistoryMissing;

    use super::*;

    #[test]
    fn records_are_not_rewritten() {
        let line = |seq: u64| LogLine {
            seq,
            kind: "session.closed".to_owned(),
            hash: None,
            line: format!("{{\"seq\":{seq}, \"x\":1.0}}"),
        };
        let page =
            LogPage { records: vec![line(1), line(2)], next: Some(2), damage: None, history_missing: None };
        let text = br#"{"records":[{"seq":1, "x":1.0},{"seq":2, "x":1.0}],"next":2}"#;
        assert_eq!(records(&page), text);
        let page = LogPage { records: Vec::new(), next: None, damage: None, history_missing: None };
        assert_eq!(records(&page), br#"{"records":[],"next":null}"#);
        let missing = HistoryMissing { before: 7, detail: "it is \"gone\"".to_owned() };
        let page = LogPage { history_missing: Some(missing), ..page };
        let text = br#"{"records":[],"next":null,"history_missing":{"before":7,"detail":"it is \"gone\""}}"#;
        assert_eq!(records(&page), text);
    }
}
