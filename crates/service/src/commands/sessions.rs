//! Sessions made, closed and removed: what is asked becomes records, and a worker does the rest.

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use rekindle_domain::compose::begin;
use rekindle_domain::event::{
    CancelReason, Options, Raw, SessionClosed, SessionCreated, SessionDeleted, Worktree,
};
use rekindle_domain::id::SessionId;
use rekindle_wire::code::Code;
use rekindle_wire::hint::Hint;
use rekindle_wire::request::NewSession;

use super::Locks;
use super::cancel_run::cancel;
use super::messages::{content, new_message};
use super::update_session::no_settings;
use super::working_directory::check_directory;
use super::worktree_plan::WorktreePlanner;
use crate::drive::environment;
use crate::drive::live::{UnsentPrompt, keep_large};
use crate::drive::provider::provider;
use crate::drive::worker::{Command, GRACE, Workers};
use crate::error::{Result, ServiceError};
use crate::idempotency::Key;
use crate::ids::{millis, random};
use crate::session_span::session_span;
use crate::show::Views;
use crate::test_knobs::crash_point;

/// Characters of a prompt that make a title.
const TITLE: usize = 72;

/// How long whoever removes a session waits for its agent's end: every step of it takes its grace at most, and one
/// more for a holder that is slow to answer.
const GONE_WITHIN: Duration = GRACE.saturating_mul(4);

/// Makes a session; a request that was made before finds what it made.
pub(crate) fn create(views: &Views, locks: &Locks, new: NewSession, key: Option<&Key>) -> Result<SessionId> {
    let (workers, directory) = (&views.workers, &views.directory);
    // Two with the same key, at the same time: the second finds what the first made. Others are recorded together.
    let _one_at_a_time = key.map(|key| locks.keyed.lock(&key.key));
    if let Some(key) = key
        && let Some(found) = directory.made_by(views.store(), key)?
    {
        return Ok(found);
    }
    let Prepared { mut created, prompt } = prepare(&new, key)?;
    if prompt.is_some() {
        workers.budgets.check(None, &workers.records.time())?;
    }
    let session = SessionId::mint(millis(workers.records.now()), random()?);
    if let Some(worktree) = &new.worktree {
        let planned = WorktreePlanner::new(views).plan(
            &new.working_dir,
            worktree,
            (&created.title, session.as_str()),
        )?;
        created.working_dir = planned.working_dir.into();
        created.worktree = Some(Box::new(Worktree::wanted(planned.worktree)));
    }
    let first = prompt.map(|prompt| new_message(workers, prompt, None, None)).transpose()?;
    let unsent = first.as_ref().map(|(first, run)| UnsentPrompt::message(*run, first.content.clone()));
    let mut records = begin::session(created, first, &workers.agents.supervisor.life());
    workers.agents.environment.keep(session, new.env);
    crash_point("create.before_file");
    workers.records.store.create(session).map_err(ServiceError::internal)?;
    keep_large(&*workers.records.store, &mut records)?;
    crash_point("create.before_record");
    workers.records.append(session, records)?;
    crash_point("create.after_record");
    if let Some(key) = key {
        directory.add_key(&key.as_stored(), session);
    }
    if let Some(name) = &new.key {
        directory.add_name(name, session);
    }
    if let Some(unsent) = unsent {
        workers.send(session, Command::Prompt(unsent, Vec::new()))?;
    }
    Ok(session)
}

/// A session that a request asks for, checked: its first record, and its first prompt.
pub(crate) struct Prepared {
    pub(crate) created: SessionCreated<'static>,
    pub(crate) prompt: Option<Raw<'static>>,
}

/// Checks what a request for a session says.
pub(crate) fn prepare(new: &NewSession, key: Option<&Key>) -> Result<Prepared> {
    check_directory(&new.working_dir)?;
    environment::check(&new.env)?;
    let prompt = new.prompt.as_ref().map(content).transpose()?;
    let provider = provider(new.agent.clone(), new.model.clone())?;
    if !provider.has_settings() && (new.model.is_some() || new.mode.is_some()) {
        return Err(no_settings());
    }
    let title = new.title.clone().unwrap_or_else(|| prompt.as_ref().map_or_else(String::new, title));
    let created = SessionCreated {
        parent: None,
        title: title.into(),
        working_dir: new.working_dir.clone().into(),
        provider,
        options: options(new),
        env_names: environment::names_to_keep(&new.env),
        key: new.key.clone().map(Into::into),
        imported_from: None,
        idempotency_key: key.map(|key| key.as_stored().into()),
        created_at: None,
        forked_from: None,
        restoring: None,
        worktree: None,
    };
    Ok(Prepared { created, prompt })
}

fn options(new: &NewSession) -> Options {
    let mut options = Options {
        resume: new.resume,
        on_uncertain: new.on_uncertain,
        mode: new.mode.clone(),
        permissions: new.permissions,
        wait_timeout_s: new.wait_timeout_s,
        checkpoints: new.checkpoints,
        persistence: new.persistence,
        ..Options::default()
    };
    if let Some(umask) = new.umask {
        options.set_umask(umask.0);
    }
    options
}

/// Says to whoever repeats a request that what it made is gone, or about to be.
pub(crate) fn made_and_removed(session: SessionId) -> ServiceError {
    let message = format!("{session}, which this request created before, is being removed");
    ServiceError::new(Code::NotNow, message).hint(Hint::UseNewKey)
}

/// Ends a session: its agent goes, its log stays.
pub(crate) fn close(workers: &Arc<Workers>, session: SessionId, by: &str) -> Result<()> {
    let state = workers.records.store.open_session(session)?.state;
    if state.open_run().is_some() {
        return Err(ServiceError::new(Code::StillRunning, "its run has not ended").hint(Hint::CancelFirst));
    }
    if !state.closed {
        workers.records.append(
            session,
            vec![SessionClosed { by: Some(by.to_owned().into()), replaced_by: None }.into()],
        )?;
    }
    workers.send(session, Command::Stop { why: "the session was closed", by: by.to_owned() })
}

/// Removes a session: recorded first, then its agent goes, then its files. Returns when nothing is left of it.
pub(crate) fn delete(workers: &Arc<Workers>, session: SessionId, force: bool, by: &str) -> Result<()> {
    let current = workers.records.store.open_session(session)?;
    if let Some(damage) = &current.damage {
        return if force { set_aside(workers, session, by) } else { Err(ServiceError::damaged(damage)) };
    }
    let state = current.state;
    if state.open_run().is_some() {
        if !force {
            return Err(
                ServiceError::new(Code::StillRunning, "its run has not ended").hint(Hint::CancelOrForce)
            );
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
    workers.send(session, Command::Remove { by: by.to_owned(), gone })?;
    // One that leaves before does not say so; whoever comes next finishes it.
    if awaited.recv_timeout(GONE_WITHIN) == Err(RecvTimeoutError::Timeout) {
        session_span(session).in_scope(|| {
            tracing::warn!("it is removed, but its agent did not end within {GONE_WITHIN:?}");
        });
    }
    Ok(())
}

/// Sets aside what there is of a damaged session: its removal cannot be recorded, and what is left may be wanted.
fn set_aside(workers: &Arc<Workers>, session: SessionId, by: &str) -> Result<()> {
    workers.ask(session, |reply| Command::SetAside { by: by.to_owned(), reply }).map(drop)
}

fn title(content: &Raw<'static>) -> String {
    let text = content.plain_text();
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    match line.char_indices().nth(TITLE) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line.to_owned(),
    }
}
