//! Making sessions and giving them something to do: what is asked becomes records, and a worker does the rest.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;

use rekindle_domain::event::{
    CancelReason, MessageUser, Options, Raw, SessionClosed, SessionCreated, SessionDeleted, SessionUpdated,
};
use rekindle_domain::id::{MessageId, RunId, SessionId, WaitId};
use rekindle_domain::line::Draft;
use rekindle_domain::session::{End, MAX_QUEUED, SessionState};
use rekindle_store::AppendError;
use rekindle_store::commit::Append;

use crate::agents;
use crate::core::{Core, millis, random};
use crate::crash::crash_point;
use crate::daemon::Key;
use crate::error::ServiceError;
use crate::live::{MODE, Unsent, WAIT_TIMEOUT, keep_large, run_started};
use crate::request::{Change, Content, NewMessage, NewSession, Permissions, Resume};
use crate::tokens::Policy;
use crate::view::{MessageTaken, Resumed};
use crate::worker::{Cancelling, Command};

/// Characters of a prompt that make a title.
const TITLE: usize = 72;

/// Tries of an append that someone else came before.
const TRIES: usize = 16;

/// Makes a session; a request that was made before finds what it made.
pub(crate) fn create(
    core: &Arc<Core>,
    new: NewSession,
    key: Option<&Key>,
) -> Result<SessionId, ServiceError> {
    if let Some(found) = known_session(core, key)? {
        return Ok(found);
    }
    let directory = Path::new(&new.working_dir);
    if !directory.is_absolute() || !directory.is_dir() {
        let message = format!("the working directory {} is not there", new.working_dir);
        return Err(ServiceError::invalid("invalid_working_dir", message)
            .hint("give the absolute path of a directory"));
    }
    let prompt = new.prompt.as_ref().map(content).transpose()?;
    let session = SessionId::mint(millis(core.now()), random()?);
    let title = new.title.clone().unwrap_or_else(|| prompt.as_ref().map_or_else(String::new, title));
    let created = SessionCreated {
        title: title.into(),
        working_dir: new.working_dir.clone().into(),
        provider: agents::provider(new.agent.clone(), new.model.clone())?,
        options: options(&new),
        env_names: agents::names_to_keep(&new.env),
        idempotency_key: key.map(|key| stored(key).into()),
    };
    let mut records: Vec<Draft> = vec![created.into()];
    let begun = prompt.map(|prompt| begin(core, prompt, None, None)).transpose()?;
    let unsent = begun.map(|(begun, more)| {
        records.extend(more);
        begun
    });
    core.bring(session, new.env);
    core.store.create(session).map_err(|error| ServiceError::internal(&error))?;
    keep_large(&core.store, &mut records)?;
    crash_point("create.before_record");
    core.append(session, records)?;
    crash_point("create.after_record");
    if let Some(key) = key {
        core.directory.note_key(&stored(key), session);
    }
    if let Some(unsent) = unsent {
        core.workers.tell(core, session, Command::Prompt(unsent.unsent, Vec::new()))?;
    }
    Ok(session)
}

fn options(new: &NewSession) -> Options {
    let mut options = Options { resume: new.resume, on_uncertain: new.on_uncertain, ..Options::default() };
    let word = match new.permissions {
        Permissions::Ask => None,
        Permissions::Allow => Some("allow"),
        Permissions::Deny => Some("deny"),
    };
    let more = [
        (Policy::SETTING, word.map(Into::into)),
        (MODE, new.mode.clone().map(Into::into)),
        (WAIT_TIMEOUT, new.wait_timeout_s.map(Into::into)),
    ];
    for (name, value) in more {
        if let Some(value) = value {
            options.extra.insert(name.to_owned(), value);
        }
    }
    options
}

/// The key and what it was used for, as the log keeps them.
fn stored(key: &Key) -> String {
    format!("{} {}", key.key, rekindle_holder::journal::hex(&key.body))
}

/// Tells whether a stored key is the same one, used for something else.
fn is_reused(stored_key: &str, key: &Key) -> bool {
    stored_key.rsplit_once(' ').is_some_and(|(name, _)| name == key.key) && stored_key != stored(key)
}

fn reused(key: &Key) -> ServiceError {
    ServiceError::conflict("key_reused", format!("the key {:?} was used for another request", key.key))
        .hint("use a new Idempotency-Key for a new request")
}

fn known_session(core: &Core, key: Option<&Key>) -> Result<Option<SessionId>, ServiceError> {
    let Some(key) = key else { return Ok(None) };
    if let Some(session) = core.directory.by_key(&stored(key)) {
        return Ok(Some(session));
    }
    if core.directory.has_key(|known| is_reused(known, key)) {
        return Err(reused(key));
    }
    Ok(None)
}

/// A run that begins with a message.
struct Begun {
    message_id: MessageId,
    run_id: RunId,
    unsent: Unsent,
}

fn begin(
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
        idempotency_key: key.map(|key| stored(key).into()),
        queued: false,
        wait_id,
    };
    let started = run_started(run_id, core.supervisor, Some(message_id), None);
    let unsent = Unsent::message(run_id, content);
    Ok((Begun { message_id, run_id, unsent }, vec![message.into(), started.into()]))
}

/// Gives a session a message: at once if nothing goes on, else it waits for its turn. Into a wait it comes as a
/// cancel of what is waited for.
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
        if let Some(taken) = known_message(&state, key)? {
            return Ok(taken);
        }
        if state.deleted || state.closed {
            return Err(ServiceError::conflict("session_closed", "the session takes no more messages")
                .hint("begin another one with rekindle run"));
        }
        match attempt_message(core, &state, content.clone(), key, wait) {
            // Someone came before us: look again.
            Err(error) if error.code == "not_now" => {}
            outcome => return outcome,
        }
    }
    Err(ServiceError::conflict("busy", "the session changes too quickly; try again"))
}

fn attempt_message(
    core: &Arc<Core>,
    state: &SessionState,
    content: Raw<'static>,
    key: Option<&Key>,
    wait: Option<WaitId>,
) -> Result<MessageTaken, ServiceError> {
    let session = state.id;
    let goes_on = state.open_run().is_some() || !state.queue.is_empty();
    if !goes_on {
        let (begun, mut records) = begin(core, content, key, wait)?;
        keep_large(&core.store, &mut records)?;
        let appended = records.clone();
        let receipt = core.append(session, records)?;
        core.workers.tell(core, session, Command::Prompt(begun.unsent, appended))?;
        return Ok(MessageTaken {
            message_id: begun.message_id,
            run_id: Some(begun.run_id),
            seq: receipt.first_seq,
            queued: false,
        });
    }
    if state.queue.len() >= MAX_QUEUED {
        let message = format!("{MAX_QUEUED} messages wait for their turn already");
        return Err(ServiceError::conflict("queue_full", message).hint("rekindle cancel empties the queue"));
    }
    let message_id = MessageId::mint(millis(core.now()), random()?);
    let idempotency_key = key.map(|key| stored(key).into());
    let queued = MessageUser { message_id, content, idempotency_key, queued: true, wait_id: wait };
    let mut records: Vec<Draft> = vec![queued.into()];
    keep_large(&core.store, &mut records)?;
    let taken = |seq| MessageTaken { message_id, run_id: None, seq, queued: true };
    if state.open_run().is_some_and(|run| !run.waits.is_empty()) {
        // Whoever is waited for need not answer any more.
        let dropped = Vec::new();
        ask_to_cancel(core, session, CancelReason::NewMessage, "user", dropped, records)?;
        let state = core.store.open_session(session)?.state;
        return Ok(taken(state.last_seq));
    }
    let receipt = core.append(session, records)?;
    core.workers.tell(core, session, Command::Look)?;
    Ok(taken(receipt.first_seq))
}

fn known_message(state: &SessionState, key: Option<&Key>) -> Result<Option<MessageTaken>, ServiceError> {
    let Some(key) = key else { return Ok(None) };
    let stored = stored(key);
    if let Some(known) = state.message_keys.iter().find(|known| known.key == stored) {
        let (message_id, run_id, seq) = (known.message_id, known.run_id, known.seq);
        return Ok(Some(MessageTaken { message_id, run_id, seq, queued: run_id.is_none() }));
    }
    if state.message_keys.iter().any(|known| is_reused(&known.key, key)) {
        return Err(reused(key));
    }
    Ok(None)
}

/// Cancels what goes on, what is about to go on and what waits for its turn.
pub(crate) fn cancel(
    core: &Arc<Core>,
    session: SessionId,
    why: CancelReason,
    by: &str,
) -> Result<Option<RunId>, ServiceError> {
    let state = core.store.open_session(session)?.state;
    let pending = state.run.as_ref().is_some_and(|run| {
        run.end.is_none() || matches!(run.end, Some(End::Interrupted { .. })) && run.cancel.is_none()
    });
    if !pending && state.queue.is_empty() {
        return Err(ServiceError::conflict("nothing_running", "nothing goes on in this session"));
    }
    ask_to_cancel(core, session, why, by, state.queue.clone(), Vec::new())
}

fn ask_to_cancel(
    core: &Arc<Core>,
    session: SessionId,
    why: CancelReason,
    by: &str,
    dropped: Vec<MessageId>,
    behind: Vec<Draft>,
) -> Result<Option<RunId>, ServiceError> {
    let (reply, answer) = sync_channel(1);
    let cancelling = Cancelling { why, by: by.to_owned(), dropped, behind, reply };
    core.workers.tell(core, session, Command::Cancel(Box::new(cancelling)))?;
    answer.recv().unwrap_or_else(|_| Err(gone()))
}

/// Says that the daemon is leaving.
pub(crate) fn gone() -> ServiceError {
    ServiceError::new(crate::error::Refusal::Unavailable, "shutting_down", "the daemon is leaving")
}

/// Continues an interrupted session because someone said so: whatever held it is settled by that.
pub(crate) fn resume(core: &Arc<Core>, session: SessionId, resume: Resume) -> Result<Resumed, ServiceError> {
    core.bring(session, resume.env);
    let state = core.store.open_session(session)?.state;
    let cut = state.run.as_ref().filter(|_| state.recovery.interruption.is_some() && !state.closed);
    let Some(cut) = cut.filter(|run| run.cancel.is_none()) else {
        if let Some(run) = state.open_run().filter(|run| run.cancel.is_none()) {
            // It may wait for an environment that was just brought.
            core.workers.tell(core, session, Command::Look)?;
            return Ok(Resumed { run_id: run.run_id, method: "continue", attempt: run.attempt });
        }
        return Err(ServiceError::conflict("nothing_to_resume", "nothing was interrupted here")
            .hint("rekindle send gives the session a new message"));
    };
    if let Err(agents::Obstacle::Env(missing)) = agents::launching(core, &state) {
        let message = format!("the agent needs {}, which this daemon does not have", missing.join(", "));
        return Err(ServiceError::conflict("env_missing", message).hint("bring them in \"env\""));
    }
    let run_id = RunId::mint(millis(core.now()), random()?);
    let started = run_started(run_id, core.supervisor, None, Some(cut));
    let attempt = started.attempt;
    let expect = rekindle_store::commit::Expect::LastSeq(state.last_seq);
    let append = Append { expect, ..Append::durable(session, vec![started.into()]) };
    match core.store.append(append) {
        Ok(_) => {}
        Err(AppendError::Moved { .. }) => {
            return Err(ServiceError::conflict("moved", "something happened in the session meanwhile")
                .hint("look at its status and try again"));
        }
        Err(error) => return Err(error.into()),
    }
    let unsent = Unsent::continuation(run_id, attempt);
    core.workers.tell(core, session, Command::Prompt(unsent, Vec::new()))?;
    Ok(Resumed { run_id, method: "continue", attempt })
}

/// Changes a session.
pub(crate) fn change(core: &Core, session: SessionId, change: Change) -> Result<(), ServiceError> {
    let mut updated = SessionUpdated { title: change.title.map(Into::into), ..SessionUpdated::default() };
    if change.resume.is_some() || change.on_uncertain.is_some() {
        let mut options = core.store.open_session(session)?.state.options.clone();
        options.resume = change.resume.unwrap_or(options.resume);
        options.on_uncertain = change.on_uncertain.unwrap_or(options.on_uncertain);
        updated.options = Some(options);
    }
    if updated == SessionUpdated::default() {
        return Err(ServiceError::invalid("nothing_to_change", "title, resume or on_uncertain"));
    }
    match core.append(session, vec![updated.clone().into()]) {
        Err(error) if error.code == "storage" => {
            // It was not open for writing.
            core.store.open_session(session)?;
            core.append(session, vec![updated.into()])?;
        }
        outcome => drop(outcome?),
    }
    Ok(())
}

/// Ends a session: its agent goes, its log stays.
pub(crate) fn close(core: &Arc<Core>, session: SessionId, by: &str) -> Result<(), ServiceError> {
    let state = core.store.open_session(session)?.state;
    if state.open_run().is_some() {
        return Err(
            ServiceError::conflict("still_running", "its run has not ended").hint("rekindle cancel first")
        );
    }
    if !state.closed {
        core.append(session, vec![SessionClosed { by: Some(by.to_owned().into()) }.into()])?;
    }
    core.workers.tell(core, session, Command::Stop { why: "the session was closed", by: by.to_owned() })
}

/// Removes a session: recorded first, then its agent goes, then its files.
pub(crate) fn delete(
    core: &Arc<Core>,
    session: SessionId,
    force: bool,
    by: &str,
) -> Result<(), ServiceError> {
    let state = core.store.open_session(session)?.state;
    if state.open_run().is_some() {
        if !force {
            return Err(ServiceError::conflict("still_running", "its run has not ended")
                .hint("cancel it first, or force the removal"));
        }
        let _ = ask_to_cancel(core, session, CancelReason::User, by, state.queue.clone(), Vec::new())?;
    }
    crash_point("delete.before_record");
    core.append(session, vec![SessionDeleted { by: Some(by.to_owned().into()) }.into()])?;
    crash_point("delete.after_record");
    core.workers.tell(core, session, Command::Stop { why: "the session was removed", by: by.to_owned() })
}

/// Checks that a message is something an agent can be told: a text, or blocks.
fn content(content: &Content) -> Result<Raw<'static>, ServiceError> {
    let raw = Raw::from_value(&content.0).map_err(|error| ServiceError::invalid("invalid_content", error))?;
    let text = raw.as_json().trim_start();
    let empty = text == "\"\"" || text == "[]";
    if empty || !(text.starts_with('"') || text.starts_with('[')) {
        return Err(ServiceError::invalid(
            "invalid_content",
            "a message is a text, or a list of blocks, and not empty",
        ));
    }
    Ok(raw)
}

fn title(content: &Raw<'static>) -> String {
    let text = crate::shape::text(content);
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    match line.char_indices().nth(TITLE) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line.to_owned(),
    }
}
