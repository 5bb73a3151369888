//! `GET /api/tasks/{id}/events`: one task, its records and those of its runs; the stream ends with the task.

use axum::body::Bytes;
use axum::extract::FromRequestParts;
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::IntoResponse;
use rekindle_service::feed::{FollowTask, TaskFollowing, TaskPoint, TaskTold};
use rekindle_wire::code::Code;
use rekindle_wire::event::Reset;

use super::events::{Follower, events};
use super::start::number;
use super::{encode_frame, kind_name, reset, too_slow};
use crate::app::App;
use crate::error::ApiError;
use crate::extract::Task;
use crate::respond::Answer;
use crate::stop::Closing;

/// Follows a task.
pub(crate) async fn follow(app: App, Task(id): Task, Behind(since): Behind, closing: Closing) -> Answer {
    match app.ask(move |daemon| Ok(daemon.follow_task(id, since)?)).await? {
        FollowTask::Over => Ok(StatusCode::NO_CONTENT.into_response()),
        FollowTask::Following(following) => Ok(super::respond(events(*following, closing))),
    }
}

impl Follower for TaskFollowing {
    async fn next_event(&mut self) -> Option<(Bytes, bool)> {
        self.next().await.map(|told| (frame(&told), !matches!(told, TaskTold::Record(..))))
    }
}

/// Writes what a follower is told as one event. A record's own encoding is another one: its id here is that of the task.
fn frame(told: &TaskTold) -> Bytes {
    match told {
        TaskTold::Record(point, line) => {
            let head = format!("event: {}\nid: {}\n", kind_name(&line.kind), point_text(point));
            encode_frame(head.as_bytes(), line.line.as_bytes())
        }
        TaskTold::Reset { last_seq } => reset(&Reset { last_seq: *last_seq }),
        TaskTold::TooSlow => too_slow(),
    }
}

/// Writes the id of an event: `<tasks seq>.<attempt>.<seq>.<h>`.
fn point_text(point: &TaskPoint) -> String {
    let TaskPoint { tasks_seq, attempt, session_seq, h } = point;
    let h = h.map_or_else(|| "0".repeat(16), |h| h.to_string());
    format!("{tasks_seq}.{attempt}.{session_seq}.{h}")
}

/// Reads the id of an event.
fn read_point(text: &str) -> Option<TaskPoint> {
    let mut parts = text.split('.');
    let [tasks_seq, attempt, session_seq] = [parts.next()?, parts.next()?, parts.next()?].map(number);
    let (h, None) = (parts.next()?, parts.next()) else { return None };
    let h = h.parse().ok().map(|hash| Some(hash).filter(|_| h != "0".repeat(16)))?;
    Some(TaskPoint {
        tasks_seq: tasks_seq?,
        attempt: u32::try_from(attempt?).ok()?,
        session_seq: session_seq?,
        h,
    })
}

/// The event behind which a stream begins, as a request says it.
pub(crate) struct Behind(Option<TaskPoint>);

impl<S: Send + Sync> FromRequestParts<S> for Behind {
    type Rejection = ApiError;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Behind, ApiError> {
        let Some(value) = parts.headers.get("last-event-id") else { return Ok(Behind(None)) };
        let text = value.to_str().map(str::trim).unwrap_or("?");
        if text.is_empty() {
            return Ok(Behind(None));
        }
        let error = || {
            let message = "Last-Event-ID must be the id of an event: three numbers and 16 hex digits, separated by dots";
            ApiError::new(Code::InvalidLastEventId, message).hint("leave it out to begin at the start")
        };
        read_point(text).map(|point| Behind(Some(point))).ok_or_else(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_read_as_it_is_written_and_no_other() {
        for id in ["12.1.7.4df9e30ab1d947d5", "3.0.0.4df9e30ab1d947d5", "3.2.1.0000000000000000"] {
            assert_eq!(read_point(id).map(|point| point_text(&point)).as_deref(), Some(id));
        }
        for bad in [
            "",
            "1",
            "1.2.3",
            "1.2.3.x",
            "1.2.3.4df9e30ab1d947d5.5",
            "-1.2.3.4df9e30ab1d947d5",
            "1.99999999999.3.4df9e30ab1d947d5",
        ] {
            assert_eq!(read_point(bad), None, "{bad}");
        }
    }
}
