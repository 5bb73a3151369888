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
pub(crate) fn find_repeated(
    workers: &Workers,
    state: &SessionState,
    key: Option<&Key>,
) -> Result<Option<MessageTaken>> {
    let Some(key) = key else { return Ok(None) };
    for seq in candidates(state, key) {
        let read = read_message(workers, state.id, seq).map_err(|error| {
            let message =
                format!("record {seq}, which may have the key {:?}, cannot be read: {error}", key.key);
            ServiceError::new(Code::Storage, message).hint(Hint::ExamineHome)
        })?;
        if let Some((stored, taken)) = read
            && key.is(&stored)?
        {
            return Ok(Some(taken));
        }
    }
    Ok(None)
}

/// Reads the key of a message from its record and what was answered to it, also from the next: a run that began with it at once
/// was recorded together with it.
fn read_message(
    workers: &Workers,
    session: SessionId,
    seq: u64,
) -> io::Result<Option<(String, MessageTaken)>> {
    let reader = workers.records.store.reader(session)?;
    let missing = || io::Error::from(io::ErrorKind::NotFound);
    let mut lines = reader.forward(reader.find(seq)?.ok_or_else(missing)?);
    let line = lines.next()?.ok_or_else(missing)?;
    let line = Line::parse(line.bytes).map_err(io::Error::other)?;
    let Ok(Event::MessageUser(message)) = line.event() else { return Ok(None) };
    let (message_id, queued) = (message.message_id, message.queued);
    let Some(stored) = message.idempotency_key.map(|stored| stored.into_owned()) else { return Ok(None) };
    let next = lines.next()?.filter(|_| !queued);
    let next = next.map(|line| Line::parse(line.bytes)).transpose().map_err(io::Error::other)?;
    let run_id = match next.map(|line| line.event()) {
        Some(Ok(Event::RunStarted(started))) if started.message_id == Some(message_id) => {
            Some(started.run_id)
        }
        _ => None,
    };
    Ok(Some((stored, MessageTaken { message_id, run_id, seq, queued: run_id.is_none() })))
}
