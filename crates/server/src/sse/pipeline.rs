//! `GET /api/pipelines/{id}/events`: one run, its records and what its step waits for; the stream ends with the run.

use axum::body::Bytes;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use rekindle_service::daemon::{FollowPipeline, PipelineFollowing, PipelineTold};
use rekindle_wire::event::Reset;

use super::events::{Follower, events};
use super::start::Start;
use super::{event, record, reset};
use crate::app::App;
use crate::extract::Pipeline;
use crate::respond::Answer;
use crate::stop::Closing;

/// Follows a run.
pub(crate) async fn follow(app: App, Pipeline(id): Pipeline, start: Start, closing: Closing) -> Answer {
    match app.ask(move |daemon| Ok(daemon.follow_pipeline(id, start.since)?)).await? {
        FollowPipeline::Over => Ok(StatusCode::NO_CONTENT.into_response()),
        FollowPipeline::Following(following) => Ok(super::respond(events(*following, closing))),
    }
}

impl Follower for PipelineFollowing {
    async fn next_event(&mut self) -> Option<(Bytes, bool)> {
        self.next().await.map(|told| (frame(&told), matches!(told, PipelineTold::Reset { .. })))
    }
}

fn frame(told: &PipelineTold) -> Bytes {
    match told {
        PipelineTold::Record(line) => record(line),
        PipelineTold::Pending(pending) => event("pending", pending),
        PipelineTold::Reset { last_seq } => reset(&Reset { last_seq: *last_seq }),
    }
}
