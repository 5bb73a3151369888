//! Waiting for the outcome of a message, whoever begins, continues and ends its runs.

use std::sync::Arc;

use rekindle_domain::id::{MessageId, SessionId};
use rekindle_domain::line::Line;
use rekindle_domain::message_outcome::{MessageOutcome, Pending};
use tokio::task::spawn_blocking;

use super::{Feed, Following, Since, Told};
use crate::error::{Result, ServiceError};
use crate::show::Views;

/// Waits for the outcome of a message whose record has this number. What has happened to it already is in the log, so that
/// whoever died while waiting waits again in the same way.
pub(crate) async fn await_outcome(
    feed: &Arc<Feed>,
    views: &Arc<Views>,
    session: SessionId,
    message: MessageId,
    seq: u64,
) -> Result<MessageOutcome> {
    let (mut pending, mut last) = (Pending::new(message), seq);
    loop {
        let (of, at) = (feed.clone(), views.clone());
        let begun = spawn_blocking(move || Following::new(&of, &at, session, Since::After(last)));
        let mut following = begun.await.map_err(|_| ServiceError::leaving())??;
        loop {
            match following.next().await {
                Some(Told::Record(record)) => {
                    last = record.seq;
                    let line = Line::parse(record.line.as_bytes()).ok();
                    let event = line.as_ref().and_then(|line| line.event().ok());
                    if let Some(outcome) = event.and_then(|event| pending.apply(&event)) {
                        return Ok(outcome);
                    }
                }
                Some(Told::Words(_) | Told::Status(_) | Told::HistoryMissing(_)) => {}
                Some(Told::Deleted) => return Err(ServiceError::no_session(session)),
                Some(Told::Damaged(damage)) => return Err(ServiceError::damaged(&damage)),
                Some(Told::Reset { .. }) => return Err(ServiceError::moved()),
                // What was missed is read from the log.
                Some(Told::TooSlow) => break,
                None => return Err(ServiceError::leaving()),
            }
        }
    }
}
