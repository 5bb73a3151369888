//! Sessions made, changed, continued, closed and removed: what is asked becomes records, and a worker does the rest.

use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rekindle_agent::connection::Wanted;
use rekindle_agent::exec::plain_text;
use rekindle_domain::compose::begin::{continuation, with_message};
use rekindle_domain::event::{
    CancelReason, Options, Provider, Raw, SessionClosed, SessionCreated, SessionDeleted, SessionUpdated,
};
use rekindle_domain::id::{RunId, SessionId};
use rekindle_domain::line::Draft;
use rekindle_domain::session::SessionState;
use rekindle_store::AppendError;
use rekindle_store::commit::Append;

use crate::code::Code;
use crate::commands::cancel::cancel;
use crate::commands::messages::{content, named};
use crate::drive::agents::Obstacle;
use crate::drive::environment;
use crate::drive::live::{Unsent, keep_large};
use crate::drive::provider::provider;
use crate::drive::worker::{Command, GRACE, Workers};
use crate::error::ServiceError;
use crate::idempotency::Key;
use crate::ids::{millis, random};
use crate::lock::locked;
use crate::request::{Change, NewSession, Resume};
use crate::show::Directory;
use crate::show::view::Resumed;
use crate::test_knobs::crash_point;

/// Characters of a prompt that make a title.
const TITLE: usize = 72;

/// How long whoever removes a session waits for its agent's end: every step of it takes its grace at most, and one
/// more for a holder that is slow to answer.
const GONE_WITHIN: Duration = GRACE.saturating_mul(4);

/// How long whoever changes a session waits to hear what its agent offers: a worker that does not answer is busy with
/// its agent's start, and then nothing is known yet.
const OFFERED_WITHIN: Duration = Duration::from_secs(2);

/// Held by requests that must not be handled beside others of their kind.
#[derive(Default)]
pub(crate) struct Locks {
    /// By whoever makes a session with a key.
    keyed: Mutex<()>,
    /// By whoever changes options of a session.
    options: Mutex<()>,
}

/// Makes a session; a request that was made before finds what it made.
pub(crate) fn create(
    workers: &Arc<Workers>,
    directory: &Directory,
    locks: &Locks,
    new: NewSession,
    key: Option<&Key>,
) -> Result<SessionId, ServiceError> {
    // Two with the same key, at the same time: the second finds what the first made.
    let _one_at_a_time = key.map(|_| locked(&locks.keyed));
    if let Some(key) = key
        && let Some(found) = directory.made_by(key)?
    {
        return Ok(found);
    }
    let place = Path::new(&new.working_dir);
    if !place.is_absolute() || !place.is_dir() {
        let message = format!("the working directory {} is not there", new.working_dir);
        return Err(
            ServiceError::new(Code::InvalidWorkingDir, message).hint("give the absolute path of a directory")
        );
    }
    environment::check(&new.env)?;
    let prompt = new.prompt.as_ref().map(content).transpose()?;
    let provider = provider(new.agent.clone(), new.model.clone())?;
    if provider.is_command() && (new.model.is_some() || new.mode.is_some()) {
        return Err(no_settings());
    }
    let session = SessionId::mint(millis(workers.records.now()), random()?);
    let title = new.title.clone().unwrap_or_else(|| prompt.as_ref().map_or_else(String::new, title));
    let created = SessionCreated {
        title: title.into(),
        working_dir: new.working_dir.clone().into(),
        provider,
        options: options(&new),
        env_names: environment::names_to_keep(&new.env),
        idempotency_key: key.map(|key| key.as_stored().into()),
        created_at: None,
    };
    let mut records: Vec<Draft> = vec![created.into()];
    let unsent = match prompt {
        Some(prompt) => {
            let (message, run_id) = named(workers, prompt.clone(), None, None)?;
            records.extend(with_message(message, run_id, &workers.agents.supervisor.life()));
            Some(Unsent::message(run_id, prompt))
        }
        None => None,
    };
    workers.agents.environment.keep(session, new.env);
    crash_point("create.before_file");
    workers.records.store.create(session).map_err(|error| ServiceError::internal(&error))?;
    keep_large(&workers.records.store, &mut records)?;
    crash_point("create.before_record");
    workers.records.append(session, records)?;
    crash_point("create.after_record");
    if let Some(key) = key {
        directory.note_key(&key.as_stored(), session);
    }
    if let Some(unsent) = unsent {
        workers.tell(session, Command::Prompt(unsent, Vec::new()))?;
    }
    Ok(session)
}

fn options(new: &NewSession) -> Options {
    let mut options = Options {
        resume: new.resume,
        on_uncertain: new.on_uncertain,
        mode: new.mode.clone(),
        permissions: new.permissions,
        wait_timeout_s: new.wait_timeout_s,
        ..Options::default()
    };
    if let Some(umask) = new.umask {
        options.extra.insert(environment::UMASK.to_owned(), umask.to_string().into());
    }
    options
}

/// Continues an interrupted session because someone said so: whatever held it is settled by that.
pub(crate) fn resume(
    workers: &Arc<Workers>,
    locks: &Locks,
    session: SessionId,
    resume: Resume,
) -> Result<Resumed, ServiceError> {
    let state = workers.records.store.open_session(session)?.state;
    let waited = lacks_an_agent(&state) && workers.agents.environment.lacks(&state).is_some();
    let cut = state.run.as_ref().filter(|_| state.recovery.interruption.is_some() && !state.closed);
    let Some(cut) = cut.filter(|run| run.cancel.is_none()) else {
        // Nothing was cut: but its agent may wait for what is brought here.
        if let Some(run) = state.open_run().filter(|run| waited && run.cancel.is_none()) {
            // Options are recorded whole, and a umask is one of them.
            let _one_at_a_time = locked(&locks.options);
            let state = workers.records.store.open_session(session)?.state;
            let names = bring_what_it_lacks(workers, &state, &resume)?;
            if let Some(names) = names {
                workers.records.append(session, vec![names])?;
            }
            workers.tell(session, Command::Look)?;
            return Ok(Resumed { run_id: run.run_id, method: "continue", attempt: run.attempt });
        }
        return Err(ServiceError::new(Code::NothingToResume, "nothing was interrupted here")
            .hint("rekindle send gives the session a new message"));
    };
    let names = bring_what_it_lacks(workers, &state, &resume)?;
    let run_id = RunId::mint(millis(workers.records.now()), random()?);
    let started = continuation(cut, run_id, &workers.agents.supervisor.life());
    let attempt = started.attempt;
    let expect = rekindle_store::commit::Expect::LastSeq(state.last_seq);
    let records = names.into_iter().chain([started.into()]).collect();
    let append = Append { expect, ..Append::durable(session, records) };
    crash_point("resume.before_record");
    match workers.records.store.append(append) {
        Ok(_) => {}
        Err(AppendError::Moved { .. }) => {
            return Err(ServiceError::moved().hint("look at its status and try again"));
        }
        Err(error) => return Err(error.into()),
    }
    crash_point("resume.after_record");
    let unsent = Unsent::continuation(run_id, attempt);
    workers.tell(session, Command::Prompt(unsent, Vec::new()))?;
    Ok(Resumed { run_id, method: "continue", attempt })
}

/// Tells whether nobody works in a session: its agent is gone, or has not begun.
fn lacks_an_agent(state: &SessionState) -> bool {
    state.agent.as_ref().is_none_or(|agent| agent.exited || agent.process.is_none())
}

/// Keeps what a caller brings, if an agent can be launched with it; returns the record of names that are new.
fn bring_what_it_lacks(
    workers: &Workers,
    state: &SessionState,
    resume: &Resume,
) -> Result<Option<Draft>, ServiceError> {
    let names = workers.agents.environment.bring(state, &resume.env, resume.umask);
    if let Err(Obstacle::Env(missing)) = workers.agents.launching(state) {
        let message = format!("the agent needs {}, which this daemon does not have", missing.join(", "));
        return Err(ServiceError::new(Code::EnvMissing, message).hint("bring them in \"env\""));
    }
    Ok(names)
}

/// Changes a session.
pub(crate) fn change(
    workers: &Arc<Workers>,
    locks: &Locks,
    session: SessionId,
    change: Change,
) -> Result<(), ServiceError> {
    // Options are recorded whole: two who changed some at once would each record those of the other as they were.
    let _one_at_a_time = change.names_options().then(|| locked(&locks.options));
    let state = workers.records.store.open_session(session)?.state;
    let settles = change.names_settings();
    if settles {
        check_offered(workers, &state, &change)?;
    }
    let updated = updated(&state, change)?;
    let decides_anew = updated.options.is_some() && state.recovery.interruption.is_some();
    crash_point("change.before_record");
    workers.records.append(session, vec![updated.into()]).map_err(|error| unless_removed(session, error))?;
    crash_point("change.after_record");
    if settles {
        // Without a worker there is no agent; whoever meets one reads what it is asked for in the log.
        workers.mention(session, Command::Settle);
    }
    // What was cut may go on now, or not any more; its worker rests, or has left.
    if decides_anew { workers.tell(session, Command::Look) } else { Ok(()) }
}

/// Refuses a mode or a model that the agent does not offer, as far as that is known: it is, while one is met.
fn check_offered(workers: &Workers, state: &SessionState, change: &Change) -> Result<(), ServiceError> {
    if state.provider.is_command() {
        return Err(no_settings());
    }
    let Some(seat) = workers.seat(state.id) else { return Ok(()) };
    let (reply, answer) = sync_channel(1);
    let wanted = Wanted { mode: change.mode.clone(), model: change.model.clone() };
    seat.inbox.push(Command::Offers { wanted, reply });
    match answer.recv_timeout(OFFERED_WITHIN) {
        Ok(Some(unoffered)) => Err(ServiceError::new(Code::SettingUnknown, unoffered)),
        // Nobody has met it yet, or it is about to be: then it is found out before the next prompt.
        Ok(None) | Err(_) => Ok(()),
    }
}

/// Says that a command that is no agent has nothing to choose from.
fn no_settings() -> ServiceError {
    ServiceError::new(Code::SettingUnknown, "a command has no modes and models that could be asked for")
        .hint("give it what it needs among its arguments")
}

/// Changes a session without blocking, if it is at hand and nobody else must be waited for.
pub(crate) fn change_soon(
    workers: &Arc<Workers>,
    session: SessionId,
    change: Change,
) -> Option<impl Future<Output = Result<(), ServiceError>> + Send + 'static> {
    if change.names_options() {
        return None;
    }
    let updated = updated(&workers.records.store.at_hand(session)?.state, change);
    let appended = updated
        .map(|updated| workers.records.append_soon(Append::durable(session, vec![updated.into()]), || {}));
    Some(async move { appended?.await.map(drop).map_err(|error| unless_removed(session, error)) })
}

/// Nothing keeps a session from being changed but its removal: whoever comes too late for it asks for none.
fn unless_removed(session: SessionId, error: ServiceError) -> ServiceError {
    if error.code == Code::NotNow { ServiceError::no_session(session) } else { error }
}

/// Says to whoever repeats a request that what it made is gone, or about to be.
pub(crate) fn made_and_removed(session: SessionId) -> ServiceError {
    let message = format!("{session}, which this request made before, is being removed");
    ServiceError::new(Code::NotNow, message).hint("use a new Idempotency-Key for a new session")
}

fn updated(state: &SessionState, change: Change) -> Result<SessionUpdated<'static>, ServiceError> {
    let mut updated = SessionUpdated::default();
    if change.names_options() {
        let mut options = state.options.clone();
        options.resume = change.resume.unwrap_or(options.resume);
        options.on_uncertain = change.on_uncertain.unwrap_or(options.on_uncertain);
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
        return Err(ServiceError::new(Code::NothingToChange, "title, resume, on_uncertain, mode or model"));
    }
    Ok(updated)
}

/// Ends a session: its agent goes, its log stays.
pub(crate) fn close(workers: &Arc<Workers>, session: SessionId, by: &str) -> Result<(), ServiceError> {
    let state = workers.records.store.open_session(session)?.state;
    if state.open_run().is_some() {
        return Err(
            ServiceError::new(Code::StillRunning, "its run has not ended").hint("rekindle cancel first")
        );
    }
    if !state.closed {
        workers.records.append(session, vec![SessionClosed { by: Some(by.to_owned().into()) }.into()])?;
    }
    workers.tell(session, Command::Stop { why: "the session was closed", by: by.to_owned() })
}

/// Removes a session: recorded first, then its agent goes, then its files. Returns when nothing is left of it.
pub(crate) fn delete(
    workers: &Arc<Workers>,
    session: SessionId,
    force: bool,
    by: &str,
) -> Result<(), ServiceError> {
    let current = workers.records.store.open_session(session)?;
    if let Some(damage) = &current.damage {
        return if force { set_aside(workers, session, by) } else { Err(ServiceError::damaged(damage)) };
    }
    let state = current.state;
    if state.open_run().is_some() {
        if !force {
            return Err(ServiceError::new(Code::StillRunning, "its run has not ended")
                .hint("cancel it first, or force the removal"));
        }
        match cancel(workers, session, CancelReason::User, by) {
            // It may just have ended by itself.
            Err(error) if error.code == Code::NothingRunning => {}
            cancelled => drop(cancelled?),
        }
    }
    crash_point("delete.before_record");
    workers.records.append(session, vec![SessionDeleted { by: Some(by.to_owned().into()) }.into()])?;
    crash_point("delete.after_record");
    let (gone, awaited) = sync_channel(1);
    workers.tell(session, Command::Remove { by: by.to_owned(), gone })?;
    // One that leaves before does not say so; whoever comes next finishes it.
    if awaited.recv_timeout(GONE_WITHIN) == Err(RecvTimeoutError::Timeout) {
        tracing::warn!(%session, "it is removed, but its agent has not ended within {GONE_WITHIN:?}");
    }
    Ok(())
}

/// Sets aside what there is of a damaged session: its removal cannot be recorded, and what is left may be wanted.
fn set_aside(workers: &Arc<Workers>, session: SessionId, by: &str) -> Result<(), ServiceError> {
    let (reply, answer) = sync_channel(1);
    workers.tell(session, Command::SetAside { by: by.to_owned(), reply })?;
    answer.recv().unwrap_or_else(|_| Err(ServiceError::leaving())).map(drop)
}

fn title(content: &Raw<'static>) -> String {
    let text = plain_text(content);
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    match line.char_indices().nth(TITLE) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line.to_owned(),
    }
}
