//! The interface described for programs, as OpenAPI. A path gets into the router together with its description, from
//! which the document is made: there is no path without one.

pub(crate) mod describe;
pub(crate) mod describe_answer_links;
pub(crate) mod describe_diff;
pub(crate) mod describe_forks;
pub(crate) mod describe_pipelines;
pub(crate) mod describe_search;
pub(crate) mod describe_snapshots;
pub(crate) mod describe_tasks;
pub(crate) mod describe_worktree;
pub(crate) mod operation;
mod schemas;

use std::collections::{BTreeMap, HashSet};
use std::sync::OnceLock;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::handler::Handler;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, on};
use futures_util::future::{Either, Ready, ready};
use rekindle_wire::code::{Code, REFUSED};
use serde_json::{Map, Value, json};

use self::operation::Operation;
use self::schemas::Schemas;
use crate::app::App;
use crate::extract::{MAX_BODY, no_query};
use crate::guard::{is_open_to_all, needed};
use crate::respond::{self, Answer};
use crate::router::api;

/// Paths with who answers them and what they say of themselves.
#[derive(Default)]
pub(crate) struct Api {
    router: Router<App>,
    described: Vec<(Method, &'static str, Operation)>,
}

impl Api {
    /// Answers requests to a path. The guard says who may ask on TCP; the look whether anyone listens and the page for people are open to all.
    pub(crate) fn route<T: 'static>(
        mut self,
        method: Method,
        path: &'static str,
        by: impl Handler<T, App>,
        operation: Operation,
    ) -> Api {
        let refuses = operation.refuses_queries();
        let filter = MethodFilter::try_from(method.clone()).expect("the router knows the method");
        self.router = self.router.route(path, on(filter, Asked { by, refuses }));
        let operation = if refuses { operation.refuses([Code::InvalidQuery]) } else { operation };
        let needs_token = !is_open_to_all(&method, path);
        let operation = if needs_token { operation.needs(needed(&method, path)) } else { operation };
        self.described.push((method, path, operation));
        self
    }

    /// Returns who answers.
    pub(crate) fn into_router(self) -> Router<App> {
        self.router.layer(DefaultBodyLimit::max(MAX_BODY))
    }

    /// Returns what they say of themselves.
    fn document(&self) -> Value {
        let mut schemas = Schemas::new();
        let mut paths: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
        for (method, path, operation) in &self.described {
            let method = method.as_str().to_ascii_lowercase();
            paths.entry(path).or_default().insert(method, operation.write(&mut schemas));
        }
        // Every error has this shape, whether or not an operation says more of it.
        schemas.error();
        let mut document = json!({
            "openapi": "3.1.0",
            "info": {
                "title": "Rekindle",
                "version": env!("CARGO_PKG_VERSION"),
                "description": describe::ABOUT,
                "license": {"name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0"},
            },
            "servers": [{"url": "/", "description": "The daemon's unix socket, or its address on TCP"}],
            "tags": describe::tags(),
            "paths": paths,
            "components": {
                "schemas": schemas.finish(),
                "securitySchemes": {"token": describe::token()},
            },
        });
        schemas::add_known_agents(&mut document);
        schemas::add_maximums(&mut document);
        document
    }
}

/// Whoever answers, and whether a query is a slip of the pen there: it is refused before they are asked.
#[derive(Clone)]
struct Asked<H> {
    by: H,
    refuses: bool,
}

impl<T, H: Handler<T, App>> Handler<T, App> for Asked<H> {
    // No allocation for what hardly ever happens.
    type Future = Either<Ready<Response>, H::Future>;

    fn call(self, request: Request, app: App) -> Self::Future {
        match if self.refuses { no_query(request.uri()) } else { Ok(()) } {
            Ok(()) => Either::Right(self.by.call(request, app)),
            Err(error) => Either::Left(ready(error.into_response())),
        }
    }
}

/// Returns the document; it is made once.
pub(crate) fn document() -> &'static [u8] {
    static DOCUMENT: OnceLock<Vec<u8>> = OnceLock::new();
    DOCUMENT.get_or_init(|| serde_json::to_vec(&api().document()).unwrap_or_default())
}

/// `GET /api/openapi.json`: this.
pub(crate) async fn show() -> Answer {
    respond::blocking(|| Ok(respond::bytes(StatusCode::OK, document().to_vec()))).await
}

/// Tells whether a description says that a request may be refused like this. Looked at in tests and debug builds only.
pub(crate) fn declares(method: &Method, path: &str, status: StatusCode, code: &str) -> bool {
    type Declared = HashSet<(Method, &'static str, u16, &'static str)>;
    static DECLARED: OnceLock<Declared> = OnceLock::new();
    let declared = DECLARED.get_or_init(|| {
        let each = |(method, path, operation): (Method, &'static str, Operation)| {
            operation
                .refusals
                .into_iter()
                .map(move |code| (method.clone(), path, code.status(), code.as_str()))
        };
        api().described.into_iter().flat_map(each).collect()
    });
    let method = if method == Method::HEAD { Method::GET } else { method.clone() };
    status == StatusCode::METHOD_NOT_ALLOWED
        || code == REFUSED
        || declared.contains(&(method, path, status.as_u16(), code))
}

#[cfg(test)]
mod tests;
