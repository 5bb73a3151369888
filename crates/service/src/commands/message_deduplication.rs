//! Messages that were given before: the idempotency key tells, and the record of the first time has the answer.

use std::io;

use rekindle_domain::event::Event;
use rekindle_domain::id::SessionId;
use rekindle_domain::line::Line;
use rekindle_domain::session::{MessageKey, SessionState};
use rekindle_wire::code::Code;
use rekindle_wire::hint::Hint;
use rekindle_wire::view::MessageTaken;

use crate::drive::worker::Workers;
use crate::error::{Result, ServiceError};
use crate::idempotency::Key;

/// Returns the records that may be of a message with a key.
pub(super) fn candidates<'a>(state: &'a SessionState, key: &'a Key) -> impl Iterator<Item = u64> + 'a {
    let wanted = MessageKey::new(&key.as_stored(), 0);
    state.message_keys.iter().filter(move |known| known.is_like(wanted)).map(|known| known.seq)
}

/// Looks for a message that was given with this key before; its record tells what was answered.
pub(crate) fn known(
    workers: &Workers,
    state: &SessionState,
    key: Option<&Key>,
) -> Result<Option<MessageTaken>> {
    let Some(key) = key else { return Ok(None) };
    for seq in candidates(state, key) {
        let taken = taken_before(workers, state.id, key, seq).map_err(|error| {
            let message =
                format!("record {seq}, which may have the key {:?}, cannot be read: {error}", key.key);
            ServiceError::new(Code::Storage, message).hint(Hint::ExamineHome)
        })?;
        if let Some(taken) = taken.transpose()? {
            return Ok(Some(taken));
        }
    }
    Ok(None)
}

/// Reads what was answered to a message from its record, and from the next: a run that began with it at once was recorded
/// together with it. Nothing if the record has another key, which may look the same.
fn taken_before(
    workers: &Workers,
    session: SessionId,
    key: &Key,
    seq: u64,
) -> io::Result<Option<Result<MessageTaken>>> {
    let reader = workers.records.store.reader(session)?;
    let missing = || io::Error::from(io::ErrorKind::NotFound);
    let mut lines = reader.forward(reader.find(seq)?.ok_or_else(missing)?);
    let line = lines.next()?.ok_or_else(missing)?;
    let line = Line::parse(line.bytes).map_err(io::Error::other)?;
    let Ok(Event::MessageUser(message)) = line.event() else { return Ok(None) };
    match message.idempotency_key.as_deref().map(|stored| key.is(stored)) {
        Some(Ok(true)) => {}
        Some(Err(error)) => return Ok(Some(Err(error))),
        Some(Ok(false)) | None => return Ok(None),
    }
    let (message_id, queued) = (message.message_id, message.queued);
    let next = lines.next()?.filter(|_| !queued);
    let next = next.map(|line| Line::parse(line.bytes)).transpose().map_err(io::Error::other)?;
    let run_id = match next.map(|line| line.event()) {
        Some(Ok(Event::RunStarted(started))) if started.message_id == Some(message_id) => {
            Some(started.run_id)
        }
        _ => None,
    };
    Ok(Some(Ok(MessageTaken { message_id, run_id, seq, queued: run_id.is_none() })))
}
