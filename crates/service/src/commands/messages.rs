//! Messages to a session: given to its agent at once if nothing goes on, else they wait for their turn.

use std::io;
use std::sync::Arc;

use rekindle_agent::blob::oversize;
use rekindle_domain::compose::begin::{self as composed, Given, Turn};
use rekindle_domain::event::{Event, Raw};
use rekindle_domain::id::{MessageId, RunId, SessionId, WaitId};
use rekindle_domain::line::{Draft, Line};
use rekindle_domain::projector::{HolderProof, WaitState, wait_state};
use rekindle_domain::session::{MessageKey, SessionState};
use rekindle_store::commit::{Append, Expect, Receipt};
use rekindle_wire::code::Code;
use rekindle_wire::request::{Content, NewMessage, whole_json};
use rekindle_wire::view::MessageTaken;
use serde_json::Value;

use crate::commands::cancel::say_instead;
use crate::drive::environment::check;
use crate::drive::live::{Unsent, keep_large};
use crate::drive::worker::{Command, Workers};
use crate::error::ServiceError;
use crate::idempotency::Key;
use crate::ids::{millis, random};
use crate::test_knobs::crash_point;

/// Tries of an append that someone else came before.
const TRIES: usize = 16;

/// Names a message, and the run that may begin with it.
pub(crate) fn named(
    workers: &Workers,
    content: Raw<'static>,
    key: Option<&Key>,
    wait_id: Option<WaitId>,
) -> Result<(composed::NewMessage, RunId), ServiceError> {
    let now = millis(workers.records.now());
    let (message_id, run_id) = (MessageId::mint(now, random()?), RunId::mint(now, random()?));
    let idempotency_key = key.map(Key::as_stored);
    Ok((composed::NewMessage { message_id, content, idempotency_key, wait_id }, run_id))
}

/// What a message comes to.
enum Plan {
    /// It was given before.
    Known(MessageTaken),
    /// It is new.
    New(New),
}

/// A message that nobody has given before.
struct New {
    message_id: MessageId,
    records: Vec<Draft>,
    /// What is said in the run that begins with it; else it waits for its turn.
    begun: Option<Unsent>,
    /// Whoever is waited for need not answer any more.
    instead: bool,
    expect: Expect,
}

impl New {
    fn append(&self, session: SessionId) -> Append {
        Append { expect: self.expect, ..Append::durable(session, self.records.clone()) }
    }

    fn run_id(&self) -> Option<RunId> {
        self.begun.as_ref().map(|unsent| unsent.run_id)
    }
}

fn plan(
    workers: &Workers,
    state: &SessionState,
    content: Raw<'static>,
    names: Option<Draft>,
    key: Option<&Key>,
    wait_id: Option<WaitId>,
) -> Result<Plan, ServiceError> {
    if state.deleted {
        return Err(ServiceError::no_session(state.id));
    }
    if let Some(taken) = known(workers, state, key)? {
        return Ok(Plan::Known(taken));
    }
    if state.closed {
        return Err(ServiceError::new(Code::SessionClosed, "the session takes no more messages")
            .hint("begin another one with rekindle run"));
    }
    if let Some(wait) = wait_id.filter(|wait| !is_void(state, *wait)) {
        return Err(ServiceError::wait_closed(wait));
    }
    let now = Expect::LastSeq(state.last_seq);
    // A key and a wait were looked for in what there was, and names are added to it: nothing may have come since.
    let looked = key.is_some() || wait_id.is_some() || names.is_some();
    let expect = if looked { now } else { Expect::Anything };
    let (message, run_id) = named(workers, content.clone(), key, wait_id)?;
    let message_id = message.message_id;
    let given = composed::message(state, message, names, run_id, &workers.agents.supervisor.life());
    let Given { records, turn } = given
        .map_err(|full| ServiceError::new(Code::QueueFull, full).hint("rekindle cancel empties the queue"))?;
    let begun = (turn == Turn::Now).then(|| Unsent::message(run_id, content));
    // Whoever gives another message its turn must have seen the queue as it is.
    let expect = if turn == Turn::BehindOldest { now } else { expect };
    let instead = turn == Turn::InsteadOfAnswer;
    Ok(Plan::New(New { message_id, records, begun, instead, expect }))
}

/// Tells whether a wait is void by what is recorded: only then its answer can begin a run. What is only seen of an agent is
/// recorded in a moment.
pub(crate) fn is_void(state: &SessionState, wait: WaitId) -> bool {
    let found = state.run.as_ref().and_then(|run| Some((run, run.wait(wait)?)));
    found.is_some_and(|(run, wait)| wait_state(run, wait, HolderProof::Pending) == WaitState::Void)
}

/// Returns the records that may be of a message with a key.
fn candidates<'a>(state: &'a SessionState, key: &'a Key) -> impl Iterator<Item = u64> + 'a {
    let wanted = MessageKey::new(&key.as_stored(), 0);
    state.message_keys.iter().filter(move |known| known.is_like(wanted)).map(|known| known.seq)
}

/// Looks for a message that was given with this key before; its record tells what was answered.
pub(crate) fn known(
    workers: &Workers,
    state: &SessionState,
    key: Option<&Key>,
) -> Result<Option<MessageTaken>, ServiceError> {
    let Some(key) = key else { return Ok(None) };
    for seq in candidates(state, key) {
        let taken = taken_before(workers, state.id, key, seq).map_err(|error| {
            let message =
                format!("record {seq}, which may have the key {:?}, cannot be read: {error}", key.key);
            ServiceError::new(Code::Storage, message).hint("rekindle doctor tells how the log stands")
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
) -> io::Result<Option<Result<MessageTaken, ServiceError>>> {
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

/// Tells whether someone came before us: then everything is to be looked at again.
fn is_late(error: &ServiceError) -> bool {
    matches!(error.code, Code::NotNow | Code::Moved)
}

/// Gives a session a message. Into a wait it comes as a cancel of what is waited for.
pub(crate) fn message(
    workers: &Arc<Workers>,
    session: SessionId,
    new: NewMessage,
    key: Option<&Key>,
    wait: Option<WaitId>,
) -> Result<MessageTaken, ServiceError> {
    let content = content(&new.content)?;
    check(&new.env)?;
    for _ in 0..TRIES {
        let state = workers.records.store.open_session(session)?.state;
        let names = workers.agents.environment.bring(&state, &new.env, new.umask);
        let mut new = match plan(workers, &state, content.clone(), names, key, wait)? {
            Plan::Known(taken) => return Ok(taken),
            Plan::New(new) => new,
        };
        keep_large(&workers.records.store, &mut new.records)?;
        if new.instead {
            match say_instead(workers, session, new.records, state.last_seq) {
                Ok(seq) => {
                    return Ok(MessageTaken { message_id: new.message_id, run_id: None, seq, queued: true });
                }
                Err(error) if is_late(&error) => continue,
                Err(error) => return Err(error),
            }
        }
        crash_point("append.before");
        match workers.records.store.append(new.append(session)).map_err(ServiceError::from) {
            Ok(receipt) => {
                crash_point("append.after");
                let taken = taken(new.message_id, new.run_id(), &receipt);
                return tell(workers, session, new).map(|()| taken);
            }
            Err(error) if is_late(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Err(ServiceError::new(Code::Busy, "the session changes too quickly; try again"))
}

/// Gives a session a message without blocking, if it is at hand; an answer of nothing says that someone came before us.
pub(crate) fn message_soon(
    workers: &Arc<Workers>,
    session: SessionId,
    new: &NewMessage,
    key: Option<&Key>,
) -> Option<impl Future<Output = Result<Option<MessageTaken>, ServiceError>> + Send + 'static> {
    let state = workers.records.store.at_hand(session)?.state;
    // What was answered before is in the log, and reading it may block.
    if key.is_some_and(|key| candidates(&state, key).next().is_some()) {
        return None;
    }
    let planned =
        content(&new.content).and_then(|content| check(&new.env).map(|()| content)).and_then(|content| {
            plan(
                workers,
                &state,
                content,
                workers.agents.environment.bring(&state, &new.env, new.umask),
                key,
                None,
            )
        });
    if let Ok(Plan::New(new)) = &planned
        && (new.instead || new.records.iter().any(|draft| oversize(draft).is_some()))
    {
        return None;
    }
    let given = planned.map(|plan| match plan {
        Plan::Known(taken) => Err(taken),
        Plan::New(new) => {
            let (append, at) = (new.append(session), workers.clone());
            let (message_id, run_id) = (new.message_id, new.run_id());
            let told = move || {
                if let Err(error) = tell(&at, session, new) {
                    tracing::error!(%session, "nobody takes the message: {}", error.message);
                }
            };
            Ok((workers.records.append_soon(append, told), message_id, run_id))
        }
    });
    Some(async move {
        let (appended, message_id, run_id) = match given? {
            Ok(given) => given,
            Err(taken) => return Ok(Some(taken)),
        };
        match appended.await {
            Ok(receipt) => Ok(Some(taken(message_id, run_id, &receipt))),
            Err(error) if is_late(&error) => Ok(None),
            Err(error) => Err(error),
        }
    })
}

/// A message is on disk: its session's worker is told.
fn tell(workers: &Arc<Workers>, session: SessionId, new: New) -> Result<(), ServiceError> {
    let command = match new.begun {
        Some(unsent) => Command::Prompt(unsent, new.records),
        None => Command::Look,
    };
    workers.tell(session, command)
}

fn taken(message_id: MessageId, run_id: Option<RunId>, receipt: &Receipt) -> MessageTaken {
    MessageTaken { message_id, run_id, seq: receipt.first_seq, queued: run_id.is_none() }
}

/// Checks that a message is something an agent can be told: a text, or blocks.
pub(crate) fn content(content: &Content) -> Result<Raw<'static>, ServiceError> {
    let invalid = |why: &str| ServiceError::new(Code::InvalidContent, why);
    // Read whole: what only looks like JSON, as half a surrogate pair does, would reach an agent that cannot read it.
    let value = whole_json(&content.0).map_err(|error| ServiceError::new(Code::InvalidContent, error))?;
    let blocks = match &value {
        Value::String(text) if !text.is_empty() => &[][..],
        Value::Array(blocks) if !blocks.is_empty() => blocks.as_slice(),
        _ => return Err(invalid("a message is a text, or a list of blocks, and not empty")),
    };
    for block in blocks {
        if !block.is_object() || !block["type"].is_string() {
            return Err(invalid("a block is an object with a type"));
        }
        let (text, is_text) = (&block["text"], block["type"] == "text");
        if !text.is_string() && (is_text || !text.is_null()) {
            return Err(invalid(
                "a block of type text has a text, and no block has anything else by that name",
            ));
        }
    }
    Raw::from_value(&content.0).map_err(|error| ServiceError::new(Code::InvalidContent, error))
}
