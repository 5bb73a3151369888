//! `GET /api/sessions/{id}/events`: one session, its records and what its agent is saying.

use axum::body::Bytes;
use rekindle_service::daemon::Following;

use super::events::{Follower, events};
use super::start::Start;
use super::{frame, is_last};
use crate::app::App;
use crate::extract::Session;
use crate::respond::Answer;
use crate::stop::Closing;

/// Follows a session.
pub(crate) async fn follow(app: App, Session(id): Session, start: Start, closing: Closing) -> Answer {
    let Start { since, attended } = start;
    let following = app.ask_about(id, move |daemon| Ok(daemon.follow(id, since, attended)?)).await?;
    Ok(super::respond(events(following, closing)))
}

impl Follower for Following {
    async fn next_event(&mut self) -> Option<(Bytes, bool)> {
        self.next().await.map(|told| (frame(&told), is_last(&told)))
    }
}
