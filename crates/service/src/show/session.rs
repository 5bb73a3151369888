//! A session as it is shown: its log's state, and what its worker sees.

use std::path::Path;
use std::time::Duration;

use rekindle_domain::event::ResumePolicy;
use rekindle_domain::id::SessionId;
use rekindle_domain::projector::{Derived, HolderProof, Observed, project};
use rekindle_domain::recovery::{AgentPresence, Circumstances, Held, Step, next_step};
use rekindle_domain::session::SessionState;
use rekindle_domain::token::TokenIndex;
use rekindle_wire::view::{
    Connection, ForkView, Health, HealthState, RunState, RunView, SessionParentView, SessionView, WaitState,
    WaitView, WorktreeView,
};

use super::Views;
use super::directory::SessionEntry;
use super::log_details::Details;
use super::run_view::run_view;
use crate::drive::live::wanted;
use crate::drive::provider::known_agent;
use crate::drive::worker::AgentSighting;
use crate::error::damaged_log;

impl Views {
    /// Shows a session.
    pub(crate) fn session(&self, entry: &SessionEntry) -> SessionView {
        // Nothing more than its beginning is read of one that is still to be read.
        let details = match entry.is_unread() {
            true => Details::default(),
            false => self.log_details.of(self.store(), &entry.state),
        };
        self.session_with(entry, details)
    }

    /// Shows a session if nothing has to be read for that, and nobody waited for.
    pub(crate) fn session_at_hand(&self, session: SessionId) -> Option<SessionView> {
        let current = self.store().at_hand(session)?;
        let asks = current.state.run.as_ref().is_some_and(|run| !run.waits.is_empty());
        if asks || current.state.deleted || current.damage.is_some() {
            return None;
        }
        let details = self.log_details.at_hand(&current.state)?;
        Some(self.session_with(&SessionEntry::current(current), details))
    }

    fn session_with(&self, entry: &SessionEntry, details: Details) -> SessionView {
        let state = &*entry.state;
        let seen = self.workers.pool.get(state.id).map(|seat| seat.sighting());
        let derived = self.derived(state, &entry.tokens, seen.as_ref());
        let waits: Vec<WaitView> = self.waits(entry);
        let mut run = run_view(state, details.run_end);
        // Only who takes it knows that a checkpoint is being taken.
        let checkpoints = seen.as_ref().is_some_and(|seen| seen.checkpointing);
        if let Some(run) = run.as_mut().filter(|run| checkpoints && run.state == RunState::Running) {
            run.state = RunState::Checkpointing;
        }
        let spoken = seen.as_ref().and_then(|seen| seen.spoken.last_line());
        SessionView {
            missing_env: self.workers.agents.environment.missing(state),
            connection: seen.as_ref().map_or(Connection::Idle, |seen| seen.link),
            held: self.held(entry, seen),
            last_words: spoken.or(details.last_words),
            health: match (&entry.damage, &entry.trouble) {
                (Some(damage), _) => Health { state: HealthState::Damaged, detail: Some(damage.to_string()) },
                (None, Some(trouble)) => Health::clone(trouble),
                (None, None) => match self.store().lagging(state.id) {
                    Some(why) => {
                        let detail = format!(
                            "its log cannot be written: {why}; everything recorded is safe in the write-ahead log and will be written as soon as that works"
                        );
                        Health { state: HealthState::Degraded, detail: Some(detail) }
                    }
                    None => Health { state: HealthState::Ok, detail: None },
                },
            },
            ..session_view(state, derived, run, waits)
        }
    }

    /// Derives the status of a session from what is known of it here.
    pub(crate) fn status(&self, state: &SessionState, tokens: &TokenIndex) -> Derived {
        let seen = self.workers.pool.get(state.id).map(|seat| seat.sighting());
        self.derived(state, tokens, seen.as_ref())
    }

    fn derived(&self, state: &SessionState, tokens: &TokenIndex, seen: Option<&AgentSighting>) -> Derived {
        let observed = Observed {
            boot: Some(self.workers.agents.supervisor.boot_id),
            holder: seen.and_then(|seen| seen.holder).unwrap_or(HolderProof::Pending),
            now: self.workers.records.time(),
        };
        let mut derived = project(state, tokens, &observed);
        // Words that are in no record yet are words too.
        let heard = seen.and_then(|seen| seen.heard_at);
        derived.evidence.last_output_at = derived.evidence.last_output_at.max(heard);
        derived
    }

    /// Why nothing happens by itself: what the worker says, or what would be decided if there were no agent.
    fn held(&self, entry: &SessionEntry, seen: Option<AgentSighting>) -> Option<String> {
        let state = &*entry.state;
        if let Some(held) = seen.and_then(|seen| seen.held).or_else(|| self.workers.missed.reason(state.id)) {
            return Some(held);
        }
        if let Some(damage) = entry.damage.as_ref().filter(|_| state.is_unfinished()) {
            return Some(damaged_log(damage));
        }
        // A run that no agent has waits for one; its worker has long gone.
        let alone = state.agent.as_ref().is_none_or(|agent| agent.exited);
        if alone && state.open_run().is_some_and(|run| run.cancel.is_none()) {
            return self.workers.agents.environment.missing_env_text(state);
        }
        self.would_be_held(state).map(|held| self.workers.agents.environment.held_text(state, held))
    }

    /// Returns why a session that was cut does not go on by itself: what its worker says, or, where that has gone, what it decided.
    pub(crate) fn held_for(&self, state: &SessionState) -> Option<Held> {
        match self.workers.pool.get(state.id) {
            Some(seat) => seat.sighting().held_for,
            None => self.would_be_held(state),
        }
    }

    /// Decides why a session that was cut does not go on by itself, as its worker would if there were no agent.
    fn would_be_held(&self, state: &SessionState) -> Option<Held> {
        state.recovery.interruption.as_ref()?;
        // What holds it does so before and after its directory is captured.
        let about = self.workers.agents.circumstances(state, AgentPresence::Nobody);
        let about = Circumstances { takes_checkpoints: false, ..about };
        match next_step(state, &about) {
            Step::Rest(held) => held,
            _ => None,
        }
    }
}

/// Decides why a session that was cut would not go on by itself, where there is no daemon that could say so: one whose cut nobody has
/// recorded yet does as it was told to.
pub fn held_without_daemon(state: &SessionState) -> Option<Held> {
    if state.recovery.interruption.is_none() {
        state.open_run()?;
        return match state.options.resume {
            ResumePolicy::Auto => None,
            ResumePolicy::Ask => Some(Held::Asks),
            ResumePolicy::Never => Some(Held::Never),
        };
    }
    let about = Circumstances {
        found: AgentPresence::Nobody,
        has_directory: Path::new(&state.working_dir).is_dir(),
        // Only a daemon knows what it has.
        has_environment: true,
        failed_launches: 0,
        shortage: None,
        interrupted_for: Duration::MAX,
        load_in: Duration::ZERO,
        takes_checkpoints: false,
    };
    match next_step(state, &about) {
        Step::Rest(held) => held,
        _ => None,
    }
}

/// Shows what a session's log alone tells, with or without a daemon: whole and at rest, unless whoever looks knows better.
pub fn session_view(
    state: &SessionState,
    derived: Derived,
    run: Option<RunView>,
    waits: Vec<WaitView>,
) -> SessionView {
    SessionView {
        id: state.id,
        title: state.title.clone(),
        working_dir: state.working_dir.clone(),
        key: state.key.clone(),
        agent: state.provider.name(),
        model: state.provider.model.clone(),
        mode: wanted(state).mode,
        known_agent: known_agent(&state.provider).map(|known| known.id.to_owned()),
        missing_env: Vec::new(),
        profile: state.provider.profile.clone(),
        status: derived.status,
        since: derived.since,
        evidence: derived.evidence,
        connection: Connection::Idle,
        last_seq: state.last_seq,
        run,
        wait: waits.iter().find(|wait| wait.state == WaitState::Open).cloned(),
        waits,
        queued: state.queue.len(),
        held: None,
        usage: state.usage.shown(),
        cursor: state.agent.as_ref().and_then(|agent| agent.cursor.clone()),
        closed: state.closed,
        created_at: state.created_at,
        updated_at: state.updated_at,
        last_words: None,
        health: Health { state: HealthState::Ok, detail: None },
        forked_from: state.forked_from.map(|from| ForkView { session_id: from.session_id, seq: from.seq }),
        replaced_by: state.replaced_by,
        worktree: state.worktree.as_ref().map(|worktree| WorktreeView {
            origin: worktree.wanted.origin.clone(),
            directory: worktree.wanted.directory.clone(),
            branch: worktree.wanted.branch.clone(),
            commit: worktree.commit.clone(),
            owned: !worktree.shared && state.replaced_by.is_none(),
            merged_into: worktree.merged_into.clone(),
            removed: worktree.removed,
        }),
        parent: state.parent.as_deref().map(SessionParentView::of),
    }
}
