//! Cancels: of what goes on in a session, asked for by somebody or by a message that comes instead.

use std::sync::Arc;

use rekindle_domain::compose::cancel::is_possible;
use rekindle_domain::event::CancelReason;
use rekindle_domain::id::{RunId, SessionId};
use rekindle_domain::line::Draft;

use crate::drive::worker::{Cancelled, Cancelling, Command, Workers};
use crate::error::{Result, ServiceError};

/// Cancels what goes on, what is about to go on and what waits for its turn.
pub(crate) fn cancel(
    workers: &Arc<Workers>,
    session: SessionId,
    why: CancelReason,
    by: &str,
) -> Result<Option<RunId>> {
    let current = workers.records.store.open_session(session)?;
    if let Some(damage) = &current.damage {
        return Err(ServiceError::damaged(damage));
    }
    if !is_possible(&current.state) {
        return Err(ServiceError::nothing_running());
    }
    ask(workers, session, why, by, Vec::new(), None).map(|cancelled| cancelled.run_id)
}

/// Cancels what is waited for because a message comes instead, in one append with that message. Fails if anything has
/// happened since a record was the newest. Returns the number of the message's record, which is the last of its append.
pub(crate) fn cancel_with_message(
    workers: &Arc<Workers>,
    session: SessionId,
    message: Vec<Draft>,
    after: u64,
) -> Result<u64> {
    let cancelled = ask(workers, session, CancelReason::NewMessage, "user", message, Some(after))?;
    // Someone else cancelled just before: then the message was not recorded, and is looked at again.
    let recorded = cancelled.recorded.ok_or_else(ServiceError::moved)?;
    Ok(recorded.last_seq)
}

fn ask(
    workers: &Arc<Workers>,
    session: SessionId,
    why: CancelReason,
    by: &str,
    behind: Vec<Draft>,
    after: Option<u64>,
) -> Result<Cancelled> {
    workers.ask(session, |reply| {
        Command::Cancel(Box::new(Cancelling { why, by: by.to_owned(), behind, after, reply }))
    })
}
