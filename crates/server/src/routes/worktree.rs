//! The worktree of a session: compared, merged, removed.

use axum::http::StatusCode;
use rekindle_wire::request::MergeWorktree;
use schemars::JsonSchema;
use serde::Deserialize;

use super::sessions::flag;
use crate::app::App;
use crate::caller::Caller;
use crate::extract::{Ask, Raw, Session, json_if_any};
use crate::respond::{self, Answer};

/// How much of a difference.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct HowMuch {
    /// Which files and how many lines, without the lines themselves: 1, or 0.
    #[schemars(extend("enum" = ["1", "0", "true", "false"]))]
    stat: Option<String>,
}

/// Whether it goes whatever is in it.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Force {
    /// Also with work in it that is nowhere else, which is kept: 1, or 0.
    #[schemars(extend("enum" = ["1", "0", "true", "false"]))]
    force: Option<String>,
}

/// `GET …/worktree/diff`: what it has that its directory has not.
pub(crate) async fn diff(app: App, Session(id): Session, Ask(which): Ask<HowMuch>) -> Answer {
    let only_stat = flag(which.stat.as_deref(), "stat")?;
    app.ask_about(id, move |daemon| respond::json(StatusCode::OK, &daemon.diff_worktree(id, only_stat)?))
        .await
}

/// `POST …/worktree/merge`: brings it into the directory that it was made for.
pub(crate) async fn merge(app: App, by: Caller, Session(id): Session, Raw(body): Raw) -> Answer {
    app.ask_about(id, move |daemon| {
        let asked: MergeWorktree = json_if_any(&body)?;
        respond::json(StatusCode::OK, &daemon.merge_worktree(id, &asked, by.name())?)
    })
    .await
}

/// `DELETE …/worktree`: removes it.
pub(crate) async fn remove(app: App, by: Caller, Session(id): Session, Ask(asked): Ask<Force>) -> Answer {
    let is_forced = flag(asked.force.as_deref(), "force")?;
    app.ask_about(id, move |daemon| {
        respond::json(StatusCode::OK, &daemon.remove_worktree(id, is_forced, by.name())?)
    })
    .await
}
