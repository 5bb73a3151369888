//! Cancels: of what goes on in a session, asked for by somebody or by a message that comes instead.

use std::sync::Arc;
use std::sync::mpsc::sync_channel;

use rekindle_domain::compose::cancel::is_possible;
use rekindle_domain::event::CancelReason;
use rekindle_domain::id::{RunId, SessionId};
use rekindle_domain::line::Draft;

use crate::drive::worker::{Cancelling, Command, Workers};
use crate::error::ServiceError;

/// Cancels what goes on, what is about to go on and what waits for its turn.
pub(crate) fn cancel(
    workers: &Arc<Workers>,
    session: SessionId,
    why: CancelReason,
    by: &str,
) -> Result<Option<RunId>, ServiceError> {
    let current = workers.records.store.open_session(session)?;
    if let Some(damage) = &current.damage {
        return Err(ServiceError::damaged(damage));
    }
    if !is_possible(&current.state) {
        return Err(ServiceError::nothing_running());
    }
    let (reply, answer) = sync_channel(1);
    let cancelling = Cancelling { why, by: by.to_owned(), behind: Vec::new(), after: None, reply };
    workers.tell(session, Command::Cancel(Box::new(cancelling)))?;
    answer.recv().unwrap_or_else(|_| Err(ServiceError::leaving())).map(|cancelled| cancelled.run_id)
}

/// Cancels what is waited for because a message comes instead, in one append with that message. Fails if anything has
/// happened since a record was the newest. Returns the number of the message's record, which is the last of its append.
pub(crate) fn say_instead(
    workers: &Arc<Workers>,
    session: SessionId,
    message: Vec<Draft>,
    after: u64,
) -> Result<u64, ServiceError> {
    let (reply, answer) = sync_channel(1);
    let (why, by, after) = (CancelReason::NewMessage, "user".to_owned(), Some(after));
    let cancelling = Cancelling { why, by, behind: message, after, reply };
    workers.tell(session, Command::Cancel(Box::new(cancelling)))?;
    let cancelled = answer.recv().unwrap_or_else(|_| Err(ServiceError::leaving()))?;
    // Someone else cancelled just before: then the message was not recorded, and is looked at again.
    let recorded = cancelled.recorded.ok_or_else(ServiceError::moved)?;
    Ok(recorded.last_seq)
}
