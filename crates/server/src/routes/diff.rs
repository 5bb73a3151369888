//! What a run did to the files of its directory.

use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::Deserialize;

use super::sessions::flag;
use crate::app::App;
use crate::extract::{Ask, Session};
use crate::respond::{self, Answer};

/// Which run, and how much of what it did.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WhichDiff {
    /// The run, or the beginning of its id; the latest that has checkpoints without it.
    run: Option<String>,
    /// Which files and how many lines, without the lines themselves: 1, or 0.
    #[schemars(extend("enum" = ["1", "0", "true", "false"]))]
    stat: Option<String>,
}

/// `GET …/diff`: what a run did to the files of its directory.
pub(crate) async fn show(app: App, Session(id): Session, Ask(which): Ask<WhichDiff>) -> Answer {
    let only_stat = flag(which.stat.as_deref(), "stat")?;
    app.ask_about(id, move |daemon| {
        respond::json(StatusCode::OK, &daemon.diff(id, which.run.as_deref(), only_stat)?)
    })
    .await
}
