//! Messages: at once if nothing goes on, else they wait for their turn.

use std::sync::Arc;

use rekindle_agent::blob::oversize;
use rekindle_domain::event::{CancelReason, MessageUser, Raw};
use rekindle_domain::id::{MessageId, RunId, SessionId, WaitId};
use rekindle_domain::line::Draft;
use rekindle_domain::session::{MAX_QUEUED, SessionState};
use rekindle_store::commit::{Append, Expect, Receipt};

use crate::code::Code;
use crate::core::{Core, millis, random};
use crate::crash::crash_point;
use crate::error::ServiceError;
use crate::key::Key;
use crate::live::{Unsent, keep_large, run_started};
use crate::request::{Block, Content, NewMessage};
use crate::sessions::ask_to_cancel;
use crate::view::MessageTaken;
use crate::worker::Command;

/// Tries of an append that someone else came before.
const TRIES: usize = 16;

/// A run that begins with a message.
pub(crate) struct Begun {
    message_id: MessageId,
    run_id: RunId,
    pub(crate) unsent: Unsent,
}

/// Makes the records of a run that begins with a message.
pub(crate) fn begin(
    core: &Core,
    content: Raw<'static>,
    key: Option<&Key>,
    wait_id: Option<WaitId>,
) -> Result<(Begun, Vec<Draft>), ServiceError> {
    let now = millis(core.now());
    let (message_id, run_id) = (MessageId::mint(now, random()?), RunId::mint(now, random()?));
    let message = MessageUser {
        message_id,
        content: content.clone(),
        idempotency_key: key.map(|key| key.as_stored().into()),
        queued: false,
        wait_id,
    };
    let started = run_started(run_id, core.supervisor, Some(message_id), None);
    let unsent = Unsent::message(run_id, content);
    Ok((Begun { message_id, run_id, unsent }, vec![message.into(), started.into()]))
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
    /// What it begins; else it waits for its turn.
    begun: Option<Begun>,
    /// Whoever is waited for need not answer any more.
    instead: bool,
    expect: Expect,
}

impl New {
    fn append(&self, session: SessionId) -> Append {
        Append { expect: self.expect, ..Append::durable(session, self.records.clone()) }
    }

    fn run_id(&self) -> Option<RunId> {
        self.begun.as_ref().map(|begun| begun.run_id)
    }
}

fn plan(
    core: &Core,
    state: &SessionState,
    content: Raw<'static>,
    key: Option<&Key>,
    wait_id: Option<WaitId>,
) -> Result<Plan, ServiceError> {
    if let Some(taken) = known(state, key)? {
        return Ok(Plan::Known(taken));
    }
    if state.deleted || state.closed {
        return Err(ServiceError::new(Code::SessionClosed, "the session takes no more messages")
            .hint("begin another one with rekindle run"));
    }
    // A key was looked for in what there was: nothing may have come since.
    let expect = key.map_or(Expect::Anything, |_| Expect::LastSeq(state.last_seq));
    if state.open_run().is_none() && state.queue.is_empty() {
        let (begun, records) = begin(core, content, key, wait_id)?;
        let message_id = begun.message_id;
        return Ok(Plan::New(New { message_id, records, begun: Some(begun), instead: false, expect }));
    }
    if state.queue.len() >= MAX_QUEUED {
        let message = format!("{MAX_QUEUED} messages wait for their turn already");
        return Err(ServiceError::new(Code::QueueFull, message).hint("rekindle cancel empties the queue"));
    }
    let message_id = MessageId::mint(millis(core.now()), random()?);
    let idempotency_key = key.map(|key| key.as_stored().into());
    let queued = MessageUser { message_id, content, idempotency_key, queued: true, wait_id };
    let instead = state.open_run().is_some_and(|run| !run.waits.is_empty());
    Ok(Plan::New(New { message_id, records: vec![queued.into()], begun: None, instead, expect }))
}

fn known(state: &SessionState, key: Option<&Key>) -> Result<Option<MessageTaken>, ServiceError> {
    let Some(key) = key else { return Ok(None) };
    for known in &state.message_keys {
        if key.is(&known.key)? {
            let (message_id, run_id, seq) = (known.message_id, known.run_id, known.seq);
            return Ok(Some(MessageTaken { message_id, run_id, seq, queued: run_id.is_none() }));
        }
    }
    Ok(None)
}

/// Tells whether someone came before us: then everything is to be looked at again.
fn is_late(error: &ServiceError) -> bool {
    matches!(error.code, Code::NotNow | Code::Moved)
}

/// Gives a session a message. Into a wait it comes as a cancel of what is waited for.
pub(crate) fn message(
    core: &Arc<Core>,
    session: SessionId,
    new: NewMessage,
    key: Option<&Key>,
    wait: Option<WaitId>,
) -> Result<MessageTaken, ServiceError> {
    let content = content(&new.content)?;
    core.bring(session, new.env);
    for _ in 0..TRIES {
        let state = core.store.open_session(session)?.state;
        let mut new = match plan(core, &state, content.clone(), key, wait)? {
            Plan::Known(taken) => return Ok(taken),
            Plan::New(new) => new,
        };
        keep_large(&core.store, &mut new.records)?;
        if new.instead {
            ask_to_cancel(core, session, CancelReason::NewMessage, "user", Vec::new(), new.records)?;
            let seq = core.store.open_session(session)?.state.last_seq;
            return Ok(MessageTaken { message_id: new.message_id, run_id: None, seq, queued: true });
        }
        crash_point("append.before");
        match core.store.append(new.append(session)).map_err(ServiceError::from) {
            Ok(receipt) => {
                crash_point("append.after");
                let taken = taken(new.message_id, new.run_id(), &receipt);
                return tell(core, session, new).map(|()| taken);
            }
            Err(error) if is_late(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Err(ServiceError::new(Code::Busy, "the session changes too quickly; try again"))
}

/// Gives a session a message without blocking, if it is at hand; an answer of nothing says that someone came before us.
pub(crate) fn message_soon(
    core: &Arc<Core>,
    session: SessionId,
    new: &NewMessage,
    key: Option<&Key>,
) -> Option<impl Future<Output = Result<Option<MessageTaken>, ServiceError>> + Send + 'static> {
    let state = core.store.at_hand(session)?.state;
    let planned = content(&new.content).and_then(|content| plan(core, &state, content, key, None));
    if let Ok(Plan::New(new)) = &planned
        && (new.instead || new.records.iter().any(|draft| oversize(draft).is_some()))
    {
        return None;
    }
    core.bring(session, new.env.clone());
    let given = planned.map(|plan| match plan {
        Plan::Known(taken) => Err(taken),
        Plan::New(new) => {
            let (append, at) = (new.append(session), core.clone());
            let (message_id, run_id) = (new.message_id, new.run_id());
            let told = move || {
                if let Err(error) = tell(&at, session, new) {
                    tracing::error!(%session, "nobody takes the message: {}", error.message);
                }
            };
            Ok((core.append_soon(append, told), message_id, run_id))
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
fn tell(core: &Arc<Core>, session: SessionId, new: New) -> Result<(), ServiceError> {
    let command = match new.begun {
        Some(begun) => Command::Prompt(begun.unsent, new.records),
        None => Command::Look,
    };
    core.workers.tell(core, session, command)
}

fn taken(message_id: MessageId, run_id: Option<RunId>, receipt: &Receipt) -> MessageTaken {
    MessageTaken { message_id, run_id, seq: receipt.first_seq, queued: run_id.is_none() }
}

/// Checks that a message is something an agent can be told: a text, or blocks.
pub(crate) fn content(content: &Content) -> Result<Raw<'static>, ServiceError> {
    let raw = Raw::from_value(&content.0).map_err(|error| ServiceError::new(Code::InvalidContent, error))?;
    let text = raw.as_json().trim_start();
    let empty = text == "\"\"" || text == "[]";
    if empty || !(text.starts_with('"') || text.starts_with('[')) {
        return Err(ServiceError::new(
            Code::InvalidContent,
            "a message is a text, or a list of blocks, and not empty",
        ));
    }
    let blocks: Vec<Block> = match text.starts_with('[').then(|| serde_json::from_str(text)) {
        Some(blocks) => blocks.map_err(|error| ServiceError::new(Code::InvalidContent, error))?,
        None => Vec::new(),
    };
    if blocks.iter().any(|block| block.kind == "text" && block.text.is_none()) {
        return Err(ServiceError::new(Code::InvalidContent, "a block of type text has a text"));
    }
    Ok(raw)
}
