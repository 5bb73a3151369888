//! Messages to a session: given to its agent at once if nothing goes on, else they wait for their turn.

use std::sync::Arc;

use rekindle_agent::blob::oversize;
use rekindle_domain::compose::begin::{self as composed, Given, Placement};
use rekindle_domain::event::Raw;
use rekindle_domain::id::{MessageId, RunId, SessionId, WaitId};
use rekindle_domain::line::Draft;
use rekindle_domain::projector::{HolderProof, WaitState, wait_state};
use rekindle_domain::session::SessionState;
use rekindle_store::commit::{Append, Expect};
use rekindle_wire::code::Code;
use rekindle_wire::hint::Hint;
use rekindle_wire::request::{Content, NewMessage, whole_json};
use rekindle_wire::view::MessageTaken;
use serde_json::Value;

use super::cancel_run::cancel_with_message;
use super::message_deduplication::{candidates, find_repeated};
use crate::drive::environment::check;
use crate::drive::live::{UnsentPrompt, keep_large};
use crate::drive::worker::{Command, Workers};
use crate::error::{Result, ServiceError};
use crate::idempotency::Key;
use crate::ids::{millis, random};
use crate::records::Appending;
use crate::session_span::session_span;

/// Tries of an append that someone else came before.
const TRIES: usize = 16;

/// Names a message, and the run that may begin with it.
pub(crate) fn new_message(
    workers: &Workers,
    content: Raw<'static>,
    key: Option<&Key>,
    wait_id: Option<WaitId>,
) -> Result<(composed::NewMessage, RunId)> {
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
    /// What is answered to it, but for the number of its record.
    taken: MessageTaken,
    records: Vec<Draft>,
    /// What is said in the run that begins with it; else it waits for its turn.
    begun: Option<UnsentPrompt>,
    /// Whoever is waited for need not answer any more.
    instead: bool,
    expect: Expect,
}

impl New {
    /// Begins to record the message; its session's worker is told then.
    fn begin(self, workers: &Arc<Workers>, session: SessionId) -> (Appending, MessageTaken) {
        let append = Append { expect: self.expect, ..Append::durable(session, self.records.clone()) };
        let at = workers.clone();
        let told = move || {
            let command = match self.begun {
                Some(unsent) => Command::Prompt(unsent, self.records),
                None => Command::Look,
            };
            if let Err(error) = at.send(session, command) {
                session_span(session)
                    .in_scope(|| tracing::error!("the message cannot be delivered: {}", error.text()));
            }
        };
        (workers.records.begin_append(append, told), self.taken)
    }

    /// Tells whether giving it needs a file, or the session's worker.
    fn blocks(&self) -> bool {
        self.instead || self.records.iter().any(|draft| oversize(draft).is_some())
    }
}

fn plan(
    workers: &Workers,
    state: &SessionState,
    content: Raw<'static>,
    names: Option<Draft>,
    key: Option<&Key>,
    wait_id: Option<WaitId>,
) -> Result<Plan> {
    if state.deleted {
        return Err(ServiceError::no_session(state.id));
    }
    if let Some(taken) = find_repeated(workers, state, key)? {
        return Ok(Plan::Known(taken));
    }
    if state.closed {
        return Err(closed(state));
    }
    if state.worktree.as_ref().is_some_and(|worktree| worktree.removed) {
        let message = format!("its worktree was removed: {}", state.working_dir);
        return Err(ServiceError::new(Code::WorktreeMissing, message).hint(Hint::StartSession));
    }
    if let Some(wait) = wait_id.filter(|wait| !is_void(state, *wait)) {
        return Err(ServiceError::wait_closed(wait));
    }
    // What waits for its turn behind another is looked at when that comes.
    if state.open_run().is_none() {
        workers.budgets.check(Some(state), &workers.records.time())?;
    }
    let now = Expect::LastSeq(state.last_seq);
    // A key and a wait were looked for in what there was, and names are added to it: nothing may have come since.
    let looked = key.is_some() || wait_id.is_some() || names.is_some();
    let expect = if looked { now } else { Expect::Anything };
    let (message, run_id) = new_message(workers, content.clone(), key, wait_id)?;
    let message_id = message.message_id;
    let given = composed::message(state, message, names, run_id, &workers.agents.supervisor.life());
    let Given { records, turn } =
        given.map_err(|full| ServiceError::new(Code::QueueFull, full).hint(Hint::EmptyQueue))?;
    let begun = (turn == Placement::Now).then(|| UnsentPrompt::message(run_id, content));
    // Whoever gives another message its turn must have seen the queue as it is.
    let expect = if turn == Placement::BehindOldest { now } else { expect };
    let instead = turn == Placement::InsteadOfAnswer;
    let run_id = begun.as_ref().map(|unsent| unsent.run_id);
    let taken = MessageTaken { message_id, run_id, seq: 0, queued: run_id.is_none() };
    Ok(Plan::New(New { taken, records, begun, instead, expect }))
}

/// Says that a session takes no more messages, and which one does in its place.
fn closed(state: &SessionState) -> ServiceError {
    match state.replaced_by {
        Some(successor) => {
            let message =
                format!("the session was rewound and accepts no more messages: {successor} replaced it");
            ServiceError::new(Code::SessionClosed, message)
        }
        None => ServiceError::new(Code::SessionClosed, "the session accepts no more messages")
            .hint(Hint::StartSession),
    }
}

/// Tells whether a wait is void by what is recorded: only then its answer can begin a run. What is only seen of an agent is
/// recorded in a moment.
pub(crate) fn is_void(state: &SessionState, wait: WaitId) -> bool {
    let found = state.run.as_ref().and_then(|run| Some((run, run.wait(wait)?)));
    found.is_some_and(|(run, wait)| wait_state(run, wait, HolderProof::Pending) == WaitState::Void)
}

/// Tells whether someone came before us: then everything is to be looked at again.
fn is_late(error: &ServiceError) -> bool {
    matches!(error.code, Code::NotNow | Code::Moved)
}

/// Gives a session a message, and waits until it is on disk. Into a wait it comes as a cancel of what is waited for.
pub(crate) fn message(
    workers: &Arc<Workers>,
    session: SessionId,
    new: &NewMessage,
    key: Option<&Key>,
    wait: Option<WaitId>,
) -> Result<MessageTaken> {
    let content = checked_content(new)?;
    for _ in 0..TRIES {
        let state = workers.records.store.open_session(session)?.state;
        let names = workers.agents.environment.remember(&state, &new.env, new.umask);
        let mut given = match plan(workers, &state, content.clone(), names, key, wait)? {
            Plan::Known(taken) => return Ok(taken),
            Plan::New(given) => given,
        };
        keep_large(&*workers.records.store, &mut given.records)?;
        let outcome = if given.instead {
            let recorded = cancel_with_message(workers, session, given.records, state.last_seq);
            recorded.map(|seq| MessageTaken { seq, ..given.taken })
        } else {
            let (appending, taken) = given.begin(workers, session);
            appending.wait().map(|receipt| MessageTaken { seq: receipt.first_seq, ..taken })
        };
        match outcome {
            Err(error) if is_late(&error) => {}
            outcome => return outcome,
        }
    }
    Err(ServiceError::new(Code::Busy, "the session is changing too quickly; try again"))
}

/// Gives a session a message without blocking, if it is at hand; an answer of nothing says that someone came before us.
pub(crate) fn try_message(
    workers: &Arc<Workers>,
    session: SessionId,
    new: &NewMessage,
    key: Option<&Key>,
) -> Option<impl Future<Output = Result<Option<MessageTaken>>> + Send + 'static> {
    if !workers.records.has_room() {
        return None;
    }
    let state = workers.records.store.at_hand(session)?.state;
    // Whether a person goes on with a task is in the log of tasks, and reading that may block.
    if state.run.as_ref().is_some_and(|run| run.task_id.is_some() && run.end.is_some()) {
        return None;
    }
    // What was answered before is in the log, and reading it may block.
    if key.is_some_and(|key| candidates(&state, key).next().is_some()) {
        return None;
    }
    let names = workers.agents.environment.remember(&state, &new.env, new.umask);
    let begun =
        match checked_content(new).and_then(|content| plan(workers, &state, content, names, key, None)) {
            Ok(Plan::New(given)) if given.blocks() => return None,
            Ok(Plan::New(given)) => Ok(given.begin(workers, session)),
            Ok(Plan::Known(taken)) => Err(Ok(Some(taken))),
            Err(error) => Err(Err(error)),
        };
    Some(async move {
        let (appending, taken) = match begun {
            Ok(begun) => begun,
            Err(answer) => return answer,
        };
        match appending.done().await {
            Ok(receipt) => Ok(Some(MessageTaken { seq: receipt.first_seq, ..taken })),
            Err(error) if is_late(&error) => Ok(None),
            Err(error) => Err(error),
        }
    })
}

fn checked_content(new: &NewMessage) -> Result<Raw<'static>> {
    let content = content(&new.content)?;
    check(&new.env)?;
    Ok(content)
}

/// Checks that a message is something an agent can be told: a text, or blocks.
pub(crate) fn content(content: &Content) -> Result<Raw<'static>> {
    let invalid = |why: &str| ServiceError::new(Code::InvalidContent, why);
    // Read whole: what only looks like JSON, as half a surrogate pair does, would reach an agent that cannot read it.
    let value = whole_json(&content.0).map_err(|error| ServiceError::new(Code::InvalidContent, error))?;
    let blocks = match &value {
        Value::String(text) if !text.is_empty() => &[][..],
        Value::Array(blocks) if !blocks.is_empty() => blocks.as_slice(),
        _ => {
            return Err(invalid("a message must be text or a list of content blocks, and must not be empty"));
        }
    };
    for block in blocks {
        if !block.is_object() || !block["type"].is_string() {
            return Err(invalid("a content block must be an object with a type"));
        }
        let (text, is_text) = (&block["text"], block["type"] == "text");
        if !text.is_string() && (is_text || !text.is_null()) {
            return Err(invalid(
                "a content block of type text needs a text, and text must be a string in every block",
            ));
        }
    }
    Raw::from_value(&content.0).map_err(|error| ServiceError::new(Code::InvalidContent, error))
}
