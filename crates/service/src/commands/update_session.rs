//! Changes of a session: its title, its options, the mode and the model that its agent is asked for.

use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use rekindle_agent::connection::Wanted;
use rekindle_domain::event::{Provider, SessionUpdated};
use rekindle_domain::id::SessionId;
use rekindle_domain::session::SessionState;
use rekindle_store::commit::Append;
use rekindle_wire::code::Code;
use rekindle_wire::hint::Hint;
use rekindle_wire::request::Change;

use super::Locks;
use crate::drive::worker::{Command, Workers};
use crate::error::{Result, ServiceError};
use crate::lock::locked;
use crate::records::Appending;
use crate::session_span::session_span;
use crate::test_knobs::crash_point;

/// How long whoever changes a session waits to hear what its agent offers: a worker that does not answer is busy with
/// its agent's start, and then nothing is known yet.
const OFFERED_WITHIN: Duration = Duration::from_secs(2);

/// Changes a session.
pub(crate) fn change(
    workers: &Arc<Workers>,
    locks: &Locks,
    session: SessionId,
    change: Change,
) -> Result<()> {
    // Options are recorded whole: two who changed some at once would each record those of the other as they were.
    let _one_at_a_time = change.names_options().then(|| locked(&locks.options));
    let state = workers.records.store.open_session(session)?.state;
    if change.names_settings() {
        check_offered(workers, &state, &change)?;
    }
    begin(workers, &state, change)?.wait().map(drop).map_err(|error| unless_removed(session, error))
}

/// Changes a session without blocking, if it is at hand and nobody else must be waited for.
pub(crate) fn try_change(
    workers: &Arc<Workers>,
    session: SessionId,
    change: Change,
) -> Option<impl Future<Output = Result<()>> + Send + 'static> {
    if change.names_options() || !workers.records.has_room() {
        return None;
    }
    let begun = begin(workers, &workers.records.store.at_hand(session)?.state, change);
    Some(async move { begun?.done().await.map(drop).map_err(|error| unless_removed(session, error)) })
}

/// Begins to record a change, and tells the session's worker of it then.
fn begin(workers: &Arc<Workers>, state: &SessionState, change: Change) -> Result<Appending> {
    let (session, settles) = (state.id, change.names_settings());
    let updated = updated(state, change)?;
    let decides_anew = updated.options.is_some() && state.recovery.interruption.is_some();
    crash_point("change.before_record");
    let at = workers.clone();
    let told = move || {
        crash_point("change.after_record");
        if settles {
            // Without a worker there is no agent; whoever meets one reads what it is asked for in the log.
            at.send_if_present(session, Command::Settle);
        }
        // What was cut may go on now, or not any more; its worker rests, or has left.
        if decides_anew && let Err(error) = at.send(session, Command::Look) {
            session_span(session)
                .in_scope(|| tracing::error!("the new settings cannot be applied yet: {}", error.text()));
        }
    };
    Ok(workers.records.begin_append(Append::durable(session, vec![updated.into()]), told))
}

/// Refuses a mode or a model that the agent does not offer, as far as that is known: it is, while one is met.
fn check_offered(workers: &Workers, state: &SessionState, change: &Change) -> Result<()> {
    if !state.provider.has_settings() {
        return Err(no_settings());
    }
    let Some(seat) = workers.pool.get(state.id) else { return Ok(()) };
    let (reply, answer) = sync_channel(1);
    let wanted = Wanted { mode: change.mode.clone(), model: change.model.clone() };
    seat.inbox.push(Command::Offers { wanted, reply });
    match answer.recv_timeout(OFFERED_WITHIN) {
        Ok(Some(unoffered)) => Err(ServiceError::new(Code::SettingUnknown, unoffered)),
        // Nobody has met it yet, or it is about to be: then it is found out before the next prompt.
        Ok(None) | Err(_) => Ok(()),
    }
}

/// Nothing keeps a session from being changed but its removal: whoever comes too late for it asks for none.
fn unless_removed(session: SessionId, error: ServiceError) -> ServiceError {
    if error.code == Code::NotNow { ServiceError::no_session(session) } else { error }
}

/// Says that a command that is no agent has nothing to choose from.
pub(super) fn no_settings() -> ServiceError {
    ServiceError::new(Code::SettingUnknown, "a plain command has no modes or models to choose from")
        .hint(Hint::PassArguments)
}

fn updated(state: &SessionState, change: Change) -> Result<SessionUpdated<'static>> {
    let mut updated = SessionUpdated::default();
    if change.names_options() {
        let mut options = state.options.clone();
        options.resume = change.resume.unwrap_or(options.resume);
        options.on_uncertain = change.on_uncertain.unwrap_or(options.on_uncertain);
        options.permissions = change.permissions.unwrap_or(options.permissions);
        if let Some(seconds) = change.wait_timeout_s {
            options.wait_timeout_s = Some(seconds).filter(|seconds| *seconds > 0);
        }
        options.checkpoints = change.checkpoints.or(options.checkpoints);
        if let Some(wanted) = change.persistence {
            options.persistence = Some(options.persistence.unwrap_or_default().with(wanted));
        }
        updated.options = Some(options);
    }
    if let Some(mode) = change.mode {
        updated.options.get_or_insert_with(|| state.options.clone()).set_mode(mode);
    }
    if change.model.is_some() {
        updated.provider = Some(Provider { model: change.model, ..state.provider.clone() });
    }
    updated.title = change.title.map(Into::into);
    if updated == SessionUpdated::default() {
        return Err(ServiceError::new(
            Code::NothingToChange,
            "title, resume, on_uncertain, permissions, wait_timeout_s, checkpoints, mode, model or persistence",
        ));
    }
    Ok(updated)
}
