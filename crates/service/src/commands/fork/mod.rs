//! Forks: a session that goes on from the end of a run of another, with the same agent or with another one. Nothing of the other
//! is copied or changed; its history is read through. The agent of a fork has a session of its own: made from that of the agent before
//! it where that can be done, else it is told the story with its first prompt, which the log records as `reprimed`.

mod directory;
mod files;
mod fork_point;
mod worktree;

use std::sync::Arc;

use rekindle_agent::acp::Acp;
use rekindle_agent::profile::Profile;
use rekindle_domain::blob_id::BlobId;
use rekindle_domain::event::{ForkedFrom, Options, Provider, Restoring, SnapshotRestored};
use rekindle_domain::fork::{Wishes, can_keep_agent_session, fork as compose_fork};
use rekindle_domain::id::SessionId;
use rekindle_domain::kept_snapshot::SnapshotName;
use rekindle_domain::line::Draft;
use rekindle_domain::session::SessionState;
use rekindle_store::commit::Append;
use rekindle_store::{OpenSessionError, Want};
use rekindle_wire::code::Code;
use rekindle_wire::request::NewFork;
use rekindle_wire::view::{ForkVerdict, Forked, SessionView};

use self::directory::make_ready;
use self::files::files_outcome;
pub(super) use self::files::{checkpoint_behind, kept_tree};
pub(super) use self::fork_point::{before_run, cut_behind, latest_run, still_running};
use self::fork_point::{find_cut, snapshot_at, tells_of_turns};
use super::Locks;
use super::update_session::no_settings;
use super::working_directory::check_directory;
use crate::drive::environment;
use crate::drive::provider::provider;
use crate::drive::worker::Command;
use crate::error::{Result, ServiceError};
use crate::idempotency::Key;
use crate::ids::{millis, random};
use crate::show::Views;
use crate::storage::{Catalog, Sessions};
use crate::test_knobs::crash_point;

/// A kept snapshot that a session goes on from.
#[derive(Debug, Clone, Copy)]
pub(super) struct SnapshotSource {
    /// Its name.
    pub(super) name: SnapshotName,
    /// How old it is.
    pub(super) age_ms: u64,
}

impl SnapshotSource {
    /// Returns what is recorded of it, behind the first record of the session.
    pub(super) fn record(&self) -> SnapshotRestored<'static> {
        SnapshotRestored { snapshot: self.name.to_string().into(), age_ms: Some(self.age_ms) }
    }
}

/// Makes a fork; a request that was made before finds what it made.
pub(crate) fn fork(
    views: &Views,
    locks: &Locks,
    parent: SessionId,
    new: NewFork,
    key: Option<&Key>,
) -> Result<SessionId> {
    make(views, locks, parent, new, key, None)
}

/// Makes a fork at a kept snapshot, with the files that it names if there are any.
pub(super) fn fork_from_snapshot(
    views: &Views,
    locks: &Locks,
    parent: SessionId,
    new: NewFork,
    key: Option<&Key>,
    from: (SnapshotSource, Option<BlobId>),
) -> Result<SessionId> {
    make(views, locks, parent, new, key, Some(from))
}

fn make(
    views: &Views,
    locks: &Locks,
    parent: SessionId,
    new: NewFork,
    key: Option<&Key>,
    from: Option<(SnapshotSource, Option<BlobId>)>,
) -> Result<SessionId> {
    let (workers, directory) = (&views.workers, &views.directory);
    // Two with the same key, at the same time: the second finds what the first made.
    let _one_at_a_time = key.map(|key| locks.keyed.lock(&key.key));
    if let Some(key) = key
        && let Some(found) = directory.made_by(views.store(), key)?
    {
        return Ok(found);
    }
    environment::check(&new.env)?;
    let with_files = new.files || new.worktree;
    if !with_files {
        new.working_dir.as_deref().map_or(Ok(()), check_directory)?;
    }
    let store = &*workers.records.store;
    let state = cached_state(views.store(), parent)?;
    if state.deleted {
        return Err(ServiceError::no_session(parent));
    }
    let mut wishes = wishes(&state, &new, key)?;
    let cut = find_cut(store, &state, new.at.as_ref())?;
    let point = point_at(store, parent, cut)?;
    let session = SessionId::mint(millis(workers.records.now()), random()?);
    if with_files {
        let (tree, git) = match from {
            Some((_, tree)) => (tree, None),
            None => {
                let taken = checkpoint_behind(store, parent, cut)?;
                taken.map_or((None, None), |taken| (taken.tree, taken.git))
            }
        };
        let tree = kept_tree(store, tree, || format!("no checkpoint was taken after record {cut}"))?;
        let restoring = Restoring::new(tree);
        wishes.restoring = Some(if new.worktree {
            let planned = worktree::plan(views, &state, &new, git.as_deref(), session)?;
            wishes.working_dir = Some(planned.working_dir);
            restoring.in_worktree(planned.worktree)
        } else {
            make_ready(views, &state, &new)?;
            restoring
        });
    }
    let (same_agent, has_files) = (wishes.provider.is_none(), wishes.restoring.is_some());
    let created = Draft::from(compose_fork(&state, point, wishes));
    let records = [created].into_iter().chain(from.map(|(source, _)| source.record().into())).collect();
    crash_point("fork.before_record");
    store.fork(Append::durable(session, records))?;
    crash_point("fork.after_record");
    if same_agent {
        workers.agents.environment.share(parent, session);
    }
    workers.agents.environment.keep(session, new.env);
    if let Some(key) = key {
        directory.add_key(&key.as_stored(), session);
    }
    if has_files {
        workers.send(session, Command::Look)?;
    }
    Ok(session)
}

/// Returns the state of a session as its caches have it: nothing is added to its log, and so nobody waits until that is read from
/// its beginning.
fn cached_state(store: &dyn Catalog, session: SessionId) -> Result<Arc<SessionState>> {
    match store.at_hand(session) {
        Some(current) => Ok(current.state),
        None => Ok(Arc::new(store.load(session, Want::Status).map_err(OpenSessionError::from)?.state)),
    }
}

/// Returns the point behind a record of a session's history.
pub(super) fn point_at(store: &dyn Sessions, session: SessionId, seq: u64) -> Result<ForkedFrom> {
    let point = store.fork_point(session, seq).map_err(ServiceError::internal)?;
    point.ok_or_else(|| {
        let message = format!("record {seq} of the session's history cannot be read");
        ServiceError::new(Code::HistoryMissing, message)
    })
}

/// Says what becomes of the history and the files in a fork that was made.
pub(crate) fn forked(store: &dyn Catalog, session: SessionView) -> Result<Forked> {
    let cut = session.forked_from.map_or(0, |from| from.seq);
    let tells = session.profile != "exec" && tells_of_turns(store, session.id, cut)?;
    let (verdict, notice) = match tells {
        true if keeps_agent_session(store, &session, cut)? => (
            ForkVerdict::Continued,
            "its agent forks its own session; if it refuses, its first prompt begins with what happened",
        ),
        true => (
            ForkVerdict::Reprimed,
            "its first prompt begins with what happened up to there: the agent's own memory is not carried over",
        ),
        false if session.profile == "exec" => {
            (ForkVerdict::Fresh, "a command gets only its prompt: it knows nothing of what happened before")
        }
        false => (ForkVerdict::Fresh, "there is no prompt up to there: its agent starts afresh"),
    };
    let files = files_outcome(store, session.id)?;
    Ok(Forked { session, files, verdict, notice: notice.to_owned() })
}

/// Tells whether the agent of a fork goes on from the own session of the agent before it: it can, and nothing was asked since.
fn keeps_agent_session(store: &dyn Catalog, session: &SessionView, cut: u64) -> Result<bool> {
    let Some(from) = session.forked_from else { return Ok(false) };
    let fork = cached_state(store, session.id)?;
    // One that is gone, or cannot be read, is no reason to refuse the fork.
    let Ok(parent) = cached_state(store, from.session_id) else { return Ok(false) };
    let offers = parent.agent.as_ref().and_then(|agent| agent.capabilities.as_deref());
    let offers = offers.is_some_and(|raw| Acp::default().capabilities(Some(raw.get())).fork);
    Ok(offers
        && can_keep_agent_session(&parent, &fork.provider)
        && find_cut(store, &parent, None).is_ok_and(|end| end == cut))
}

/// Returns what is to be other than in the session that is forked.
fn wishes(parent: &SessionState, new: &NewFork, key: Option<&Key>) -> Result<Wishes> {
    let chosen = match &new.agent {
        Some(agent) => Some(provider(agent.clone(), new.model.clone())?),
        None => new.model.clone().map(|model| Provider { model: Some(model), ..parent.provider.clone() }),
    };
    if !chosen.as_ref().unwrap_or(&parent.provider).has_settings()
        && (new.model.is_some() || new.mode.is_some())
    {
        return Err(no_settings());
    }
    let env_names = match new.agent {
        // What another agent needs in its environment is another question.
        Some(_) => Some(environment::names_to_keep(&new.env)),
        None if new.env.is_empty() => None,
        None => {
            let mut names = parent.env_names.clone();
            names.extend(environment::names_to_keep(&new.env));
            names.sort_unstable();
            names.dedup();
            Some(names)
        }
    };
    Ok(Wishes {
        key: None,
        title: new.title.clone(),
        working_dir: new.working_dir.clone(),
        provider: chosen,
        options: Some(options(parent, new)),
        env_names,
        idempotency_key: key.map(Key::as_stored),
        restoring: None,
        takes_place: false,
        snapshot: new.at.as_ref().and_then(snapshot_at),
    })
}

fn options(parent: &SessionState, new: &NewFork) -> Options {
    let mut options = parent.options.clone();
    if new.agent.is_some() {
        // A mode is an agent's own word.
        options.mode = None;
    }
    if let Some(mode) = &new.mode {
        options.set_mode(mode.clone());
    }
    options.resume = new.resume.unwrap_or(options.resume);
    options.on_uncertain = new.on_uncertain.unwrap_or(options.on_uncertain);
    options.permissions = new.permissions.unwrap_or(options.permissions);
    if let Some(umask) = new.umask {
        options.set_umask(umask.0);
    }
    options
}
