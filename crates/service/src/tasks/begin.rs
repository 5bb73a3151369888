//! Attempts begun: a task's claim, its session and its run are one append, so that no task is begun twice and none is begun without
//! its run.

use rekindle_domain::compose::begin::{Attempt, NewMessage, task_run, task_session};
use rekindle_domain::event::{Raw, SessionCreated};
use rekindle_domain::id::{RunId, SessionId, StreamId};
use rekindle_domain::line::Draft;
use rekindle_domain::session::SessionState;
use rekindle_domain::task::{Task, compose};
use rekindle_store::commit::{Append, Expect};
use rekindle_wire::code::Code;

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
        let content = task.spec.prompt.clone();
        let (message, run) = new_message(&self.views.workers, content.clone(), None, None)?;
        match self.session_of(task)? {
            Some(state) => self.begin_in(task, &state, (message, run), content),
            None => self.begin_anew(task, (message, run), content),
        }
    }

    /// Returns the session of a task's last attempt, if its next one is to go on there and can.
    fn session_of(&self, task: &Task) -> Result<Option<std::sync::Arc<SessionState>>> {
        let Some(session) = task.session_id.filter(|_| !task.fresh) else { return Ok(None) };
        match self.store.open_session(session) {
            Ok(current) if current.state.closed || current.state.deleted || current.damage.is_some() => {
                Ok(None)
            }
            Ok(current) => Ok(Some(current.state)),
            Err(error) => match ServiceError::from(error) {
                gone if gone.code == Code::SessionUnknown => Ok(None),
                error => Err(error),
            },
        }
    }

    fn begin_anew(&self, task: &Task, first: (NewMessage, RunId), content: Raw<'static>) -> Result<()> {
        let workers = &self.views.workers;
        let session = SessionId::mint(millis(workers.records.now()), random()?);
        let spec = &task.spec;
        let created = SessionCreated {
            title: spec.title.clone().into(),
            working_dir: spec.working_dir.clone().into(),
            provider: spec.provider.clone(),
            options: spec.options.clone(),
            env_names: spec.env_names.clone(),
            key: None,
            imported_from: None,
            idempotency_key: None,
            created_at: None,
            forked_from: None,
            restoring: None,
        };
        let run_id = first.1;
        let records = task_session(created, first, attempt(task), &workers.agents.supervisor.life());
        workers.agents.environment.keep(session, self.brought(task.id));
        self.store.create(session).map_err(ServiceError::internal)?;
        let begun = self.record_begin(task, session, run_id, records, Expect::Anything);
        if begun.is_err() {
            self.store.close_session(session);
        }
        begun?;
        self.tell_worker(session, run_id, content)
    }

    fn begin_in(
        &self,
        task: &Task,
        state: &SessionState,
        next: (NewMessage, RunId),
        content: Raw<'static>,
    ) -> Result<()> {
        let workers = &self.views.workers;
        let run_id = next.1;
        let records = task_run(state.run.as_ref(), next, attempt(task), &workers.agents.supervisor.life());
        workers.agents.environment.keep(state.id, self.brought(task.id));
        // Somebody may have begun something there meanwhile: then it is looked at again.
        self.record_begin(task, state.id, run_id, records, Expect::LastSeq(state.last_seq))?;
        self.tell_worker(state.id, run_id, content)
    }

    /// Records an attempt: the run and the claim, both or neither.
    fn record_begin(
        &self,
        task: &Task,
        session: SessionId,
        run_id: RunId,
        mut records: Vec<Draft>,
        expect: Expect,
    ) -> Result<()> {
        keep_large(&*self.store, &mut records)?;
        let claimed = vec![compose::claim(task, session, run_id, None)];
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

fn attempt(task: &Task) -> Attempt {
    Attempt { task_id: task.id, number: task.attempt + 1 }
}
