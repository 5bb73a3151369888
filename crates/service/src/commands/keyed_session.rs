//! Sessions with a key, a lasting name: made if there is none, else found, resumed if something was interrupted there, and given
//! the prompt as a message. All in one call, so that a program that comes again need not know whether it was here before.

use std::sync::Arc;

use rekindle_domain::event::Provider;
use rekindle_domain::id::SessionId;
use rekindle_domain::session::SessionState;
use rekindle_wire::code::Code;
use rekindle_wire::hint::Hint;
use rekindle_wire::request::{NewMessage, NewSession, Resume};
use rekindle_wire::view::MessageTaken;

use super::{Locks, messages, resume_session, sessions};
use crate::drive::provider::provider;
use crate::error::{Result, ServiceError};
use crate::idempotency::Key;
use crate::show::Views;

/// Longest key: as long as an idempotency key.
const MAX_KEY: usize = 255;

/// What came of a request for a session.
#[derive(Debug)]
pub(crate) enum Made {
    /// It was made, now or by the same request before.
    New(SessionId),
    /// It was there; what became of the prompt.
    Known(SessionId, Option<MessageTaken>),
}

/// Returns what is locked while it is decided who has a key. No idempotency key has a space in it.
pub(super) fn lock_name(key: &str) -> String {
    format!("key {key}")
}

/// Makes a session, or goes on in the one that has its key.
pub(crate) fn create(views: &Views, locks: &Locks, new: NewSession, once: Option<&Key>) -> Result<Made> {
    let Some(key) = new.key.clone() else {
        return sessions::create(views, locks, new, once).map(Made::New);
    };
    if key.is_empty() || key.len() > MAX_KEY || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
        let message = format!("a session's key must be 1 to {MAX_KEY} visible ASCII characters");
        return Err(ServiceError::new(Code::InvalidKey, message));
    }
    // Two at the same time: the second finds what the first made.
    let name = lock_name(&key);
    let _one_at_a_time = locks.keyed.lock(&name);
    if let Some(once) = once
        && let Some(made) = views.directory.made_by(views.store(), once)?
    {
        return Ok(Made::New(made));
    }
    match views.directory.find_by_key(views.store(), &key) {
        None => sessions::create(views, locks, new, once).map(Made::New),
        Some(session) => go_on(views, locks, session, new, once),
    }
}

/// Goes on in a session that was found by its key.
fn go_on(
    views: &Views,
    locks: &Locks,
    session: SessionId,
    new: NewSession,
    once: Option<&Key>,
) -> Result<Made> {
    let workers = &views.workers;
    let current = workers.records.store.open_session(session)?;
    if let Some(damage) = &current.damage {
        return Err(ServiceError::damaged(damage));
    }
    check_same(&current.state, &new)?;
    if is_interrupted(&current.state) {
        let resume = Resume { env: new.env.clone(), umask: new.umask, ..Resume::default() };
        let resumed = resume_session::resume(workers, locks, session, &resume);
        // Somebody else may have been quicker, or it went on by itself.
        let is_late = |error: &ServiceError| matches!(error.code, Code::NothingToResume | Code::Moved);
        if let Err(error) = resumed
            && !is_late(&error)
        {
            return Err(error);
        }
    }
    let message = new.prompt.map(|content| NewMessage { content, env: new.env, umask: new.umask });
    let taken = message.map(|message| messages::message(workers, session, &message, once, None));
    Ok(Made::Known(session, taken.transpose()?))
}

/// Tells whether something was cut in a session that can be continued.
fn is_interrupted(state: &Arc<SessionState>) -> bool {
    let cancelled = state.run.as_ref().is_some_and(|run| run.cancel.is_some());
    state.recovery.interruption.is_some() && !cancelled
}

/// Refuses a session that works elsewhere, or with another agent, than what is asked for.
fn check_same(state: &SessionState, new: &NewSession) -> Result<()> {
    let asked = provider(new.agent.clone(), None)?;
    let (theirs, ours) = (&state.provider, &asked);
    let who = |one: &Provider| (one.profile.clone(), one.agent.clone(), one.command.clone());
    let place = state.origin();
    let differs = if place != new.working_dir {
        format!("its directory is {place}")
    } else if who(theirs) != who(ours) {
        let command = theirs.command.as_ref().map(|command| command.join(" "));
        format!("its agent is {}", theirs.agent.clone().or(command).unwrap_or_default())
    } else {
        return Ok(());
    };
    let key = state.key.as_deref().unwrap_or_default();
    let message = format!("{} has the key {key:?}, but {differs}", state.id);
    Err(ServiceError::new(Code::KeyConflict, message).hint(Hint::UseOtherKey))
}
