//! Runs of pipelines: started, listed, shown, resumed, aborted; and their ledgers.

use axum::http::header::LOCATION;
use axum::http::{HeaderValue, StatusCode};
use rekindle_wire::code::Code;
use rekindle_wire::filter::PipelineFilter;
use rekindle_wire::hint::Hint;
use rekindle_wire::view::PipelineList;

use super::sessions::{MAX_PAGE, PAGE, Page, records};
use crate::app::App;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::extract::{Ask, Once, Pipeline, Raw, json, json_if_any};
use crate::respond::{self, Answer};

/// `POST /api/pipelines`: starts a run for each task, all or none.
pub(crate) async fn create(app: App, by: Caller, once: Once, Raw(body): Raw) -> Answer {
    app.ask(move |daemon| {
        let key = once.of(&body);
        let pipelines = daemon.start_pipelines(json(&body)?, key.as_ref(), by.name())?;
        let place = match &pipelines[..] {
            [one] => HeaderValue::try_from(format!("/api/pipelines/{}", one.run_id)).ok(),
            _ => None,
        };
        let mut response = respond::json(StatusCode::CREATED, &PipelineList { pipelines, next: None })?;
        if let Some(place) = place {
            response.headers_mut().insert(LOCATION, place);
        }
        Ok(response)
    })
    .await
}

/// `GET /api/pipelines`: a page of runs.
pub(crate) async fn list(app: App, Ask(filter): Ask<PipelineFilter>) -> Answer {
    app.ask(move |daemon| respond::json(StatusCode::OK, &daemon.pipelines(&filter)?)).await
}

/// `GET /api/pipelines/{id}`: one run.
pub(crate) async fn show(app: App, Pipeline(id): Pipeline) -> Answer {
    app.ask(move |daemon| respond::json(StatusCode::OK, &daemon.pipeline(id)?)).await
}

/// `GET /api/pipelines/{id}/ledger`: records as they stand in the ledger.
pub(crate) async fn ledger(app: App, Pipeline(id): Pipeline, Ask(page): Ask<Page>) -> Answer {
    let limit = page.limit.unwrap_or(PAGE);
    if limit == 0 {
        return Err(ApiError::new(Code::InvalidQuery, "a limit of 0 returns nothing")
            .advise(Hint::ChooseLimit { most: MAX_PAGE }));
    }
    app.ask(move |daemon| {
        let page = daemon.ledger(id, page.after, limit.min(MAX_PAGE))?;
        Ok(respond::bytes(StatusCode::OK, records(&page)))
    })
    .await
}

/// `POST /api/pipelines/{id}/resume`: has a run go on.
pub(crate) async fn resume(app: App, by: Caller, Pipeline(id): Pipeline, Raw(body): Raw) -> Answer {
    app.ask(move |daemon| {
        let asked = json_if_any(&body)?;
        respond::json(StatusCode::ACCEPTED, &daemon.resume_pipeline(id, asked, by.name())?)
    })
    .await
}

/// `POST /api/pipelines/{id}/abort`: ends a run.
pub(crate) async fn abort(app: App, by: Caller, Pipeline(id): Pipeline, Raw(body): Raw) -> Answer {
    app.ask(move |daemon| {
        let asked = json_if_any(&body)?;
        respond::json(StatusCode::OK, &daemon.abort_pipeline(id, &asked, by.name())?)
    })
    .await
}
