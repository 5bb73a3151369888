//! Which path is answered by whom, and what is answered to the others.

use std::sync::Arc;

use axum::http::{Method, Uri};
use axum::{Router, middleware};
use rekindle_service::daemon::Daemon;
use rekindle_wire::code::Code;

use crate::answer_page::{self, ANSWER_PAGE};
use crate::app::App;
use crate::error::ApiError;
use crate::guard::HEALTH;
use crate::middleware::observe_request;
use crate::openapi::{
    self, Api, describe, describe_answer_links, describe_diff, describe_forks, describe_pipelines,
    describe_search, describe_snapshots, describe_tasks, describe_worktree,
};
use crate::routes::{daemon, diff, forks, pipelines, search, sessions, snapshots, tasks, waits, worktree};
use crate::sse::{all_sessions, pipeline, session, task};

const SNAPSHOTS: &str = "/api/sessions/{id}/snapshots";
const SNAPSHOT: &str = "/api/sessions/{id}/snapshots/{name}";
const SNAPSHOT_RESTORE: &str = "/api/sessions/{id}/snapshots/{name}/restore";
const WORKTREE: &str = "/api/sessions/{id}/worktree";
const WORKTREE_DIFF: &str = "/api/sessions/{id}/worktree/diff";
const WORKTREE_MERGE: &str = "/api/sessions/{id}/worktree/merge";
const RESTORE_FILES: &str = "/api/sessions/{id}/restore-files";

const LEDGER: &str = "/api/pipelines/{id}/ledger";
const PIPELINE_EVENTS: &str = "/api/pipelines/{id}/events";
const PIPELINE_RESUME: &str = "/api/pipelines/{id}/resume";
const PIPELINE_ABORT: &str = "/api/pipelines/{id}/abort";

/// Says which path is answered by whom, and what each is about.
pub(crate) fn api() -> Api {
    Api::default()
        .route(Method::GET, HEALTH, daemon::alive, describe::get_health())
        .route(Method::GET, "/readyz", daemon::ready, describe::get_readiness())
        .route(Method::GET, "/metrics", daemon::metrics, describe::get_metrics())
        .route(Method::GET, "/api/openapi.json", openapi::show, describe::get_openapi())
        .route(Method::GET, "/api/version", daemon::version, describe::get_version())
        .route(Method::GET, "/api/agents", daemon::agents, describe::list_agents())
        .route(Method::GET, "/api/holders", daemon::holders, describe::list_holders())
        .route(Method::POST, "/api/shutdown", daemon::shutdown, describe::shut_down())
        .route(Method::POST, "/api/imports", daemon::import_staged, describe::take_in_import())
        .route(Method::POST, "/api/gc", daemon::collect, describe::collect())
        .route(Method::POST, "/api/notify/test", daemon::test_sink, describe::test_sink())
        .route(Method::GET, "/api/events", all_sessions::follow, describe::follow_all_sessions())
        .route(Method::GET, "/api/search", search::search, describe_search::search())
        .route(Method::GET, "/api/sessions", sessions::list, describe::list_sessions())
        .route(Method::POST, "/api/sessions", sessions::create, describe::create_session())
        .route(Method::GET, "/api/sessions/{id}", sessions::show, describe::get_session())
        .route(Method::PATCH, "/api/sessions/{id}", sessions::change, describe::change_session())
        .route(Method::DELETE, "/api/sessions/{id}", sessions::delete, describe::delete_session())
        .route(Method::POST, "/api/sessions/{id}/messages", sessions::message, describe::send_message())
        .route(Method::POST, "/api/sessions/{id}/cancel", sessions::cancel, describe::cancel_session())
        .route(Method::POST, "/api/sessions/{id}/resume", sessions::resume, describe::resume_session())
        .route(Method::POST, "/api/sessions/{id}/fork", forks::fork, describe_forks::fork_session())
        .route(Method::GET, "/api/sessions/{id}/rewind", forks::plan_rewind, describe_forks::plan_rewind())
        .route(Method::POST, "/api/sessions/{id}/rewind", forks::rewind, describe_forks::rewind_session())
        .route(Method::POST, RESTORE_FILES, forks::restore_files, describe_forks::restore_files())
        .route(Method::POST, "/api/sessions/{id}/close", sessions::close, describe::close_session())
        .route(Method::POST, "/api/sessions/{id}/release", sessions::release, describe::release_session())
        .route(Method::POST, "/api/sessions/{id}/waits", waits::open, describe::open_wait())
        .route(Method::GET, "/api/sessions/{id}/log", sessions::log, describe::get_session_log())
        .route(Method::GET, "/api/sessions/{id}/status", sessions::status, describe::get_session_status())
        .route(Method::GET, "/api/sessions/{id}/diff", diff::show, describe_diff::get_session_diff())
        .route(Method::GET, WORKTREE_DIFF, worktree::diff, describe_worktree::get_worktree_diff())
        .route(Method::POST, WORKTREE_MERGE, worktree::merge, describe_worktree::merge_worktree())
        .route(Method::DELETE, WORKTREE, worktree::remove, describe_worktree::remove_worktree())
        .route(Method::GET, "/api/sessions/{id}/events", session::follow, describe::follow_session())
        .route(Method::GET, SNAPSHOTS, snapshots::list, describe_snapshots::list_snapshots())
        .route(Method::POST, SNAPSHOTS, snapshots::take, describe_snapshots::take_snapshot())
        .route(Method::GET, SNAPSHOT, snapshots::show, describe_snapshots::get_snapshot())
        .route(Method::POST, SNAPSHOT_RESTORE, snapshots::restore, describe_snapshots::restore_snapshot())
        .route(Method::DELETE, SNAPSHOT, snapshots::remove, describe_snapshots::remove_snapshot())
        .route(Method::GET, "/api/blobs/{id}", sessions::blob, describe::get_blob())
        .route(Method::POST, "/api/tasks", tasks::create, describe_tasks::create_tasks())
        .route(Method::GET, "/api/tasks", tasks::list, describe_tasks::list_tasks())
        .route(Method::GET, "/api/tasks/stats", tasks::stats, describe_tasks::get_task_stats())
        .route(Method::GET, "/api/tasks/active", tasks::active, describe_tasks::list_active_tasks())
        .route(Method::GET, "/api/tasks/{id}", tasks::show, describe_tasks::get_task())
        .route(
            Method::GET,
            "/api/tasks/{id}/transitions",
            tasks::transitions,
            describe_tasks::get_task_history(),
        )
        .route(Method::GET, "/api/tasks/{id}/events", task::follow, describe_tasks::follow_task())
        .route(Method::POST, "/api/tasks/{id}/cancel", tasks::cancel, describe_tasks::cancel_task())
        .route(Method::POST, "/api/tasks/{id}/retry", tasks::retry, describe_tasks::retry_task())
        .route(Method::POST, "/api/tasks/{id}/priority", tasks::priority, describe_tasks::set_task_priority())
        .route(Method::POST, "/api/pipelines", pipelines::create, describe_pipelines::start_pipelines())
        .route(Method::GET, "/api/pipelines", pipelines::list, describe_pipelines::list_pipelines())
        .route(Method::GET, "/api/pipelines/{id}", pipelines::show, describe_pipelines::get_pipeline())
        .route(Method::GET, LEDGER, pipelines::ledger, describe_pipelines::get_ledger())
        .route(Method::GET, PIPELINE_EVENTS, pipeline::follow, describe_pipelines::follow_pipeline())
        .route(Method::POST, PIPELINE_RESUME, pipelines::resume, describe_pipelines::resume_pipeline())
        .route(Method::POST, PIPELINE_ABORT, pipelines::abort, describe_pipelines::abort_pipeline())
        .route(Method::GET, "/api/waits", waits::list, describe::list_waits())
        .route(Method::GET, "/api/waits/{id}", waits::show, describe::get_wait())
        .route(Method::POST, "/api/waits/{id}/token", waits::mint, describe::create_wait_token())
        .route(
            Method::POST,
            "/api/waits/{id}/links",
            waits::links,
            describe_answer_links::create_answer_links(),
        )
        .route(Method::POST, "/api/waits/{id}/view", waits::view, describe_answer_links::view_token())
        .route(Method::POST, "/api/waits/{id}/answer", waits::answer, describe::answer_wait())
        .route(Method::GET, ANSWER_PAGE, answer_page::show, describe_answer_links::get_answer_page())
}

/// Puts all paths together.
pub(crate) fn router(app: App) -> Router {
    api()
        .into_router()
        .fallback(no_such_path)
        .method_not_allowed_fallback(no_such_method)
        .layer(middleware::from_fn_with_state(Arc::clone(&app.daemon), observe_request::<Arc<Daemon>>))
        .with_state(app)
}

async fn no_such_path(uri: Uri) -> ApiError {
    // A path may be as long as a request's head.
    let path: String = uri.path().chars().take(200).collect();
    ApiError::new(Code::NoSuchPath, format_args!("there is nothing at {path}"))
        .hint("GET /api/openapi.json lists all paths")
}

async fn no_such_method(method: Method) -> ApiError {
    let message = format!("this path does not support {method}");
    ApiError::new(Code::NoSuchMethod, message).hint("the Allow header lists the methods it supports")
}
