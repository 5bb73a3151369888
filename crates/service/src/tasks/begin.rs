//! Attempts begun: a task's claim, its session and its run are one append, so that no task is begun twice and none is begun without
//! its run.

use rekindle_domain::compose::begin::{Attempt, NewMessage, task_run, task_session};
use rekindle_domain::event::Raw;
use rekindle_domain::id::{RunId, SessionId, StreamId};
use rekindle_domain::line::Draft;
use rekindle_domain::session::SessionState;
use rekindle_domain::task::{Task, compose};
use rekindle_store::commit::{Append, Expect};
use rekindle_wire::code::Code;
use serde_json::{Value, json};

use super::{Tasks, refused};
use crate::commands::messages::new_message;
use crate::drive::live::{UnsentPrompt, keep_large};
use crate::drive::worker::Command;
use crate::error::{Result, ServiceError};
use crate::ids::{millis, random};
use crate::lock::locked;
use crate::test_knobs::crash_point;

impl Tasks {
    /// Begins the next attempt of a task: in the session of the last one, or in a new one.
    pub(super) fn begin(&self, task: &Task) -> Result<()> {
        let told = self.resume_text(task);
        let content =
            told.as_deref().map_or_else(|| task.spec.prompt.clone(), |told| with_text_before(told, task));
        let (message, run) = new_message(&self.views.workers, content.clone(), None, None)?;
        let attempt = Begun { message, run, content, told };
        match self.session_of(task)? {
            Some(state) => self.begin_in(task, &state, attempt),
            None => self.begin_anew(task, attempt),
        }
    }

    /// Returns the session of a task's last attempt, or the one that took its place, if its next one is to go on there and can.
    fn session_of(&self, task: &Task) -> Result<Option<std::sync::Arc<SessionState>>> {
        let mut next = task.session_id.filter(|_| !task.fresh);
        while let Some(session) = next {
            let current = match self.store.open_session(session).map_err(ServiceError::from) {
                Ok(current) => current,
                Err(gone) if gone.code == Code::SessionUnknown => return Ok(None),
                Err(error) => return Err(error),
            };
            let state = current.state;
            if state.replaced_by.is_none() {
                let goes_on = !state.closed && !state.deleted && current.damage.is_none();
                return Ok(goes_on.then_some(state));
            }
            next = state.replaced_by;
        }
        Ok(None)
    }

    fn begin_anew(&self, task: &Task, begun: Begun) -> Result<()> {
        let workers = &self.views.workers;
        let session = SessionId::mint(millis(workers.records.now()), random()?);
        let first = (begun.message, begun.run);
        let records = task_session(&task.spec, first, attempt(task), &workers.agents.supervisor.life());
        workers.agents.environment.keep(session, self.brought(task.id));
        self.store.create(session).map_err(ServiceError::internal)?;
        let recorded = self.record_begin(task, session, (begun.run, begun.told), records, Expect::Anything);
        recorded.inspect_err(|_| self.store.close_session(session))?;
        self.tell_worker(session, begun.run, begun.content)
    }

    fn begin_in(&self, task: &Task, state: &SessionState, begun: Begun) -> Result<()> {
        let workers = &self.views.workers;
        let (next, life) = ((begun.message, begun.run), workers.agents.supervisor.life());
        let records = task_run(state.run.as_ref(), next, attempt(task), &life);
        workers.agents.environment.keep(state.id, self.brought(task.id));
        // Somebody may have begun something there meanwhile: then it is looked at again.
        let expect = Expect::LastSeq(state.last_seq);
        self.record_begin(task, state.id, (begun.run, begun.told), records, expect)?;
        self.tell_worker(state.id, begun.run, begun.content)
    }

    /// Records an attempt: the run and the claim, both or neither.
    fn record_begin(
        &self,
        task: &Task,
        session: SessionId,
        (run_id, told): (RunId, Option<String>),
        mut records: Vec<Draft>,
        expect: Expect,
    ) -> Result<()> {
        keep_large(&*self.store, &mut records)?;
        let claimed = vec![compose::claim(task, session, run_id, told)];
        let append = Append { expect, ..Append::durable(session, records) }.and(StreamId::tasks(), claimed);
        crash_point("task.before_claim");
        self.store.append(append).map_err(refused)?;
        crash_point("task.after_claim");
        locked(&self.brought).remove(&task.id);
        Ok(())
    }

    fn tell_worker(&self, session: SessionId, run_id: RunId, content: Raw<'static>) -> Result<()> {
        let unsent = UnsentPrompt::message(run_id, content);
        self.views.workers.send(session, Command::Prompt(unsent, Vec::new()))
    }
}

/// An attempt on its way.
struct Begun {
    message: NewMessage,
    run: RunId,
    /// What the agent is told.
    content: Raw<'static>,
    /// What stands in that before the task's own prompt.
    told: Option<String>,
}

/// Returns a task's prompt with a text before it.
fn with_text_before(text: &str, task: &Task) -> Raw<'static> {
    let prompt: Value = serde_json::from_str(task.spec.prompt.as_json()).unwrap_or_default();
    let whole = match prompt {
        Value::Array(blocks) => {
            let first = json!({"type": "text", "text": text});
            Value::Array([first].into_iter().chain(blocks).collect())
        }
        Value::String(prompt) => Value::String(format!("{text}{prompt}")),
        other => other,
    };
    Raw::from_value(&whole).unwrap_or_else(|_| task.spec.prompt.clone())
}

fn attempt(task: &Task) -> Attempt {
    Attempt { task_id: task.id, number: task.attempt + 1 }
}
