//! The daemon itself: whether it is there, who it is, what it finds around it, and its end.

use axum::body::Body;
use axum::http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use rekindle_agent::find::{FoundAgent, find_all};
use rekindle_service::metrics::Format;
use rekindle_wire::code::Code;
use rekindle_wire::filter::HolderFilter;
use rekindle_wire::request::{Collect, ImportStaged, TestSink};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::app::App;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::extract::{Ask, Raw, json, json_if_any};
use crate::respond::{self, Answer};
use crate::stop::Ending;

/// `GET /healthz`: it listens. Asks nobody, so that a daemon with a stuck disk is still seen to live.
pub(crate) async fn alive() -> Answer {
    respond::json(StatusCode::OK, &Alive { status: "ok" })
}

/// It listens.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Alive {
    #[schemars(extend("const" = "ok"))]
    status: &'static str,
}

/// Its sessions are listed.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Ready {
    #[schemars(extend("const" = "ready"))]
    status: &'static str,
    /// What was going on when it began has been looked at.
    recovered: bool,
}

/// `GET /readyz`: the home is open and its sessions are listed. Recovery may still be going on.
pub(crate) async fn ready(app: App) -> Answer {
    let about = app.daemon.about();
    if !about.listed {
        return Err(
            ApiError::new(Code::NotReady, "the sessions are being listed").hint("try again in a moment")
        );
    }
    respond::json(StatusCode::OK, &Ready { status: "ready", recovered: about.recovered })
}

/// `GET /api/version`: who it is.
pub(crate) async fn version(app: App) -> Answer {
    respond::json(StatusCode::OK, &app.daemon.about())
}

/// `GET /metrics`: what is counted, for Prometheus and those who read its formats.
pub(crate) async fn metrics(app: App, headers: HeaderMap) -> Answer {
    let accept = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let format = Format::for_accept(&accept.collect::<Vec<_>>().join(","));
    let page = app.ask_at_once(move |daemon| Ok(daemon.metrics(format))).await?;
    let mut response = Response::new(Body::from(page));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(format.content_type()));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// Known agents.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "AgentList")]
pub(crate) struct Agents {
    /// Each, and whether it is on the daemon's `PATH`.
    agents: Vec<FoundAgent>,
}

/// `GET /api/agents`: known agents, and which are here; none is started.
pub(crate) async fn agents() -> Answer {
    respond::blocking(|| {
        let path = std::env::var_os("PATH").unwrap_or_default();
        respond::json(StatusCode::OK, &Agents { agents: find_all(&path) })
    })
    .await
}

/// `GET /api/holders`: the holders of the home.
pub(crate) async fn holders(app: App, Ask(filter): Ask<HolderFilter>) -> Answer {
    app.ask(move |daemon| respond::json(StatusCode::OK, &daemon.holders(&filter)?)).await
}

/// How the daemon is to end.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Shutdown {
    /// Agents end too; otherwise they work on.
    #[serde(default)]
    agents: bool,
}

/// The daemon will end.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ShuttingDown {
    /// Agents end too.
    agents: bool,
}

/// `POST /api/shutdown`: the answer comes first, then agents end if they are to, then the daemon.
pub(crate) async fn shutdown(app: App, by: Caller, Raw(body): Raw) -> Answer {
    let shutdown: Shutdown = json_if_any(&body)?;
    let agents = shutdown.agents;
    tokio::spawn(async move {
        tracing::info!(agents, by = by.name(), "shutdown was requested");
        let left = if agents {
            app.ask_at_once(move |daemon| Ok(daemon.stop_all(by.name()))).await.ok()
        } else {
            None
        };
        app.stop.now(Ending::Asked { agents_left: left });
    });
    respond::json(StatusCode::ACCEPTED, &ShuttingDown { agents })
}

/// `POST /api/imports`: takes in the sessions of a bundle that a command has staged in the home.
pub(crate) async fn import_staged(app: App, by: Caller, Raw(body): Raw) -> Answer {
    if !by.is_local() {
        let message =
            "a bundle is staged in the home itself: it can be imported only over the daemon's own socket";
        return Err(ApiError::new(Code::TokenScope, message));
    }
    app.ask(move |daemon| {
        let asked: ImportStaged = json(&body)?;
        respond::json(StatusCode::CREATED, &daemon.import_staged(&asked.staged)?)
    })
    .await
}

/// `POST /api/notify/test`: a test through a sink.
pub(crate) async fn test_sink(app: App, Raw(body): Raw) -> Answer {
    app.ask(move |daemon| {
        let asked: TestSink = json(&body)?;
        respond::json(StatusCode::OK, &daemon.test_sink(&asked.sink)?)
    })
    .await
}

/// `POST /api/gc`: removes what nobody needs any more.
pub(crate) async fn collect(app: App, by: Caller, Raw(body): Raw) -> Answer {
    if !by.is_local() {
        let message = "the garbage collection of a home can be started only over the daemon's own socket";
        return Err(ApiError::new(Code::TokenScope, message));
    }
    app.ask(move |daemon| {
        let asked: Collect = json_if_any(&body)?;
        respond::json(StatusCode::OK, &daemon.collect(&asked)?)
    })
    .await
}
