//! What an agent knows of its session, as the log tells it: whether it was there, what it was told last, whether its own
//! session is worth coming back to.

use rekindle_agent::connection::Ask;
use rekindle_domain::event::{Event, InputKind};
use rekindle_domain::id::{HolderId, RunId};

use super::CONTEXT;

/// Whether anything was ever asked in the latest of the agent's own sessions.
#[derive(Debug, Default)]
pub(super) struct Asked {
    cursor: Option<String>,
    pub(super) prompted: bool,
}

impl Asked {
    pub(super) fn note(&mut self, event: &Event<'_>) {
        match event {
            Event::AgentReady(ready) if ready.cursor.as_deref() != self.cursor.as_deref() => {
                self.cursor = ready.cursor.as_deref().map(str::to_owned);
                self.prompted = false;
            }
            Event::InputQueued(queued) => self.prompted |= queued.what == InputKind::Prompt,
            _ => {}
        }
    }
}

/// What an agent knows of its session.
#[derive(Debug, Default)]
pub(super) struct Own {
    /// Another agent was there before it.
    pub(super) follows: bool,
    /// It brought its own session back, and so was there.
    pub(super) native: bool,
    /// The run of which it was given a prompt last.
    pub(super) prompted: Option<RunId>,
    /// The run of which it was told last that it is cancelled.
    pub(super) cancelled: Option<RunId>,
    /// What it asked, was cancelled and not told so.
    pub(super) unanswered: Vec<Ask>,
}

impl Own {
    /// Takes in what tells how well the agent knows the session.
    pub(super) fn note(&mut self, event: &Event<'_>, holder: HolderId) {
        match event {
            Event::SessionRestored(restored) => self.native = restored.method != CONTEXT,
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
