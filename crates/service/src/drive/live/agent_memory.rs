//! An agent's memory, as far as the log tells: what it was told last, and whether its own session is worth coming back to.

use std::collections::HashSet;

use rekindle_agent::connection::Ask;
use rekindle_agent::replay::Spoken;
use rekindle_domain::drift::DriftWatch;
use rekindle_domain::event::{Event, InputKind};
use rekindle_domain::fork::can_keep_agent_session;
use rekindle_domain::id::{HolderId, RunId, SessionId};
use rekindle_domain::resume_context::ConversationHistory;
use rekindle_domain::session::SessionState;

use super::LOAD_TIMED_OUT;
use super::error::Result;
use crate::log_search::for_each_line;
use crate::storage::Sessions;

/// How the log says that an agent's session was made from that of the agent before it.
pub(super) const FORKED: &str = "fork";

/// The history of a session, from its first record on: what an agent that was not there is told, and what one that brings its
/// session back should remember. Nobody else needs it, and reading it takes the longer the longer the log is.
#[derive(Debug, Default)]
pub(super) struct History {
    /// What the agent should remember.
    pub(super) spoken: Spoken,
    /// What happened, in brief.
    pub(super) story: ConversationHistory,
    /// What its turns were given under.
    pub(super) drift: DriftWatch,
    /// What is known of its own session.
    pub(super) own_session: OwnSession,
    /// What a fork goes on from, as the agent of before knew it.
    pub(super) origin: Option<ForkOrigin>,
    /// The run that began last.
    latest_run: Option<RunId>,
}

impl History {
    /// Reads it, of a fork together with what it goes on from.
    pub(super) fn read(store: &dyn Sessions, session: SessionId) -> Result<History> {
        let mut history = History::default();
        for_each_line(&store.history(session)?.reader, |line| {
            if let Ok(event) = line.event() {
                history.note(&event);
                history.own_session.note(&event);
            }
        })?;
        Ok(history)
    }

    fn forget_agent(&mut self) -> (Spoken, OwnSession) {
        (std::mem::take(&mut self.spoken), std::mem::take(&mut self.own_session))
    }

    /// Takes in a record.
    pub(super) fn note(&mut self, event: &Event<'_>) {
        // The story goes on; whoever was spoken with before it was another, or is out of reach.
        match event {
            Event::SessionCreated(created) if created.forked_from.is_some() => {
                let (spoken, own_session) = self.forget_agent();
                self.origin = Some(ForkOrigin { spoken, own_session, run: self.latest_run });
            }
            Event::SessionUpdated(updated)
                if updated.imported.as_ref().is_some_and(|imported| !imported.transcript) =>
            {
                self.forget_agent();
                self.origin = None;
            }
            Event::RunStarted(started) => self.latest_run = Some(started.run_id),
            Event::SessionRestored(restored) if restored.method == FORKED => {
                if let Some(origin) = self.origin.take() {
                    self.spoken.inherit(origin.spoken);
                }
            }
            // From here on it has a story of its own.
            Event::InputQueued(queued) if queued.what == InputKind::Prompt => self.origin = None,
            _ => {}
        }
        self.spoken.note(event);
        self.story.note(event);
        self.drift.note(event);
    }
}

/// What a fork goes on from: what the agent of the other session should remember, and its own session there.
#[derive(Debug)]
pub(super) struct ForkOrigin {
    pub(super) spoken: Spoken,
    own_session: OwnSession,
    /// The latest run up to there.
    run: Option<RunId>,
}

impl ForkOrigin {
    /// Returns the agent's own session that a fork can be made of: the agent is the same, it was asked something there, and nothing
    /// was asked since behind the place that the fork goes on from. Else it would remember what it must not, or lack what it should
    /// have.
    pub(super) fn session_to_fork(&self, store: &dyn Sessions, fork: &SessionState) -> Option<String> {
        let cursor = self.own_session.cursor.as_ref().filter(|_| self.own_session.is_worth_loading())?;
        let parent = store.open_session(fork.forked_from?.session_id).ok()?.state;
        let is_latest = parent.run.as_ref().is_some_and(|run| Some(run.run_id) == self.run);
        (is_latest && can_keep_agent_session(&parent, &fork.provider)).then(|| cursor.clone())
    }
}

/// What is known of the latest of the agent's own sessions.
#[derive(Debug, Default)]
pub(super) struct OwnSession {
    cursor: Option<String>,
    /// Something was asked in it.
    prompted: bool,
    /// A load of it did not return, or the fork that it would have come from: it is not tried again.
    pub(super) abandoned: bool,
    /// A turn was cut in it during a tool call, and nothing has ended since.
    pub(super) cut_in_tool: bool,
}

impl OwnSession {
    pub(super) fn note(&mut self, event: &Event<'_>) {
        match event {
            Event::AgentReady(ready) if ready.cursor.as_deref() != self.cursor.as_deref() => {
                let cursor = ready.cursor.as_deref().map(str::to_owned);
                *self = OwnSession { cursor, ..OwnSession::default() };
            }
            Event::AgentReady(_) => self.abandoned = false,
            Event::InputQueued(queued) => self.prompted |= queued.what == InputKind::Prompt,
            Event::RunInterrupted(cut) => self.cut_in_tool |= !cut.uncertain.is_empty(),
            Event::RunCompleted(_) => self.cut_in_tool = false,
            Event::AgentNotice(notice) if notice.what == LOAD_TIMED_OUT => self.abandoned = true,
            _ => {}
        }
    }

    /// Tells whether it is worth coming back to. Where nothing was ever asked there is nothing to come back to, and many agents
    /// refuse to.
    pub(super) fn is_worth_loading(&self) -> bool {
        self.prompted && !self.abandoned
    }
}

/// What an agent was told.
#[derive(Debug, Default)]
pub(super) struct Own {
    /// The run that it was launched for, and those that began since.
    pub(super) runs: HashSet<RunId>,
    /// The run of which it was given a prompt last.
    pub(super) prompted: Option<RunId>,
    /// The run of which it was told last that it is cancelled.
    pub(super) cancelled: Option<RunId>,
    /// What it asked, was cancelled and not told so.
    pub(super) unanswered: Vec<Ask>,
}

impl Own {
    /// Takes in what the agent is told.
    pub(super) fn note(&mut self, event: &Event<'_>, holder: HolderId) {
        match event {
            Event::AgentLaunching(launching) => {
                *self = Own { runs: launching.run_id.into_iter().collect(), ..Own::default() };
            }
            Event::RunStarted(started) => drop(self.runs.insert(started.run_id)),
            Event::InputQueued(queued) if queued.holder_id == holder => match queued.what {
                InputKind::Prompt => self.prompted = queued.run_id,
                InputKind::Cancel => {
                    self.cancelled = queued.run_id;
                    self.unanswered.clear();
                }
                InputKind::Answer => self.unanswered.retain(|ask| ask.wait_id != queued.wait_id),
                _ => {}
            },
            _ => {}
        }
    }
}
