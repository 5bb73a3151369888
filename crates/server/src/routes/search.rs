//! A search through the logs of all sessions.

use std::sync::Arc;

use axum::http::StatusCode;
use rekindle_wire::filter::SearchFilter;
use tokio::sync::Semaphore;

use crate::app::App;
use crate::extract::Ask;
use crate::respond::{self, Answer};

/// Searches that run at the same time: each takes one thread that may block, and what a disk can give. The others wait without one.
const AT_ONCE: usize = 2;

/// Returns what whoever searches holds.
pub(crate) fn searchers() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(AT_ONCE))
}

/// `GET /api/search`: a page of records that have the words.
pub(crate) async fn search(app: App, Ask(filter): Ask<SearchFilter>) -> Answer {
    // It is never closed; without it nobody would be kept from searching.
    let turn = Arc::clone(&app.searchers).acquire_owned().await.ok();
    app.ask(move |daemon| {
        // Until it is done, also if whoever asked has gone away.
        let _turn = turn;
        respond::json(StatusCode::OK, &daemon.search(&filter)?)
    })
    .await
}
