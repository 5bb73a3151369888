//! Tasks attempted again because somebody wants it, and with them those that failed only because of them.

use std::collections::HashSet;

use rekindle_domain::event::{Dependency, EndedTask, TaskRetried, TaskStatus};
use rekindle_domain::id::{StreamId, TaskId};
use rekindle_domain::line::Draft;
use rekindle_domain::task::compose::{actor, user};
use rekindle_domain::task::dependencies::failed_with;
use rekindle_domain::task::{TasksState, is_met};
use rekindle_store::commit::{Append, Expect};
use rekindle_wire::code::Code;
use rekindle_wire::request::RetryTask;

use super::update::conflict;
use super::{Tasks, refused};
use crate::drive::environment;
use crate::error::{Result, ServiceError};
use crate::lock::locked;
use crate::task_history::{failed_by_dependency, read_histories};

impl Tasks {
    /// Has a task that failed or was cancelled attempted again.
    pub(crate) fn retry(&self, id: TaskId, retry: &RetryTask, by: &str) -> Result<()> {
        environment::check(&retry.env)?;
        let state = self.state()?;
        if let Some(task) = state.get(id) {
            return Err(conflict(id, task.status, "failed or cancelled"));
        }
        let ended = self.ended(id)?.ok_or_else(|| self.not_queued(id))?;
        if ended.status == TaskStatus::Completed {
            return Err(conflict(id, ended.status, "failed or cancelled"));
        }
        let unmet = match self.unmet(&ended, &state, &HashSet::new())? {
            Ok(unmet) => unmet,
            Err(failed) => {
                let message = format!("{id} depends on {failed}, which has failed: retry that first");
                return Err(ServiceError::new(Code::TaskStateConflict, message));
            }
        };
        if !retry.env.is_empty() {
            locked(&self.brought).insert(id, retry.env.clone());
        }
        let retried = TaskRetried {
            task_id: id,
            actor: user(by).into(),
            reason: "retried".into(),
            ended: Box::new(ended),
            fresh: retry.fresh,
            unmet,
        };
        let mut records = vec![retried.into()];
        records.extend(self.retried_with(id, &state)?);
        // It was looked for in what there was: nothing may have come since.
        let expect = Expect::LastSeq(state.position().last_seq);
        let append = Append { expect, ..Append::durable(StreamId::tasks(), records) };
        self.store.append(append).map(drop).map_err(refused)
    }

    /// Returns what a task still has to wait for if it is brought back beside others, or one that has not ended as it should and is
    /// not brought back.
    fn unmet(
        &self,
        ended: &EndedTask,
        state: &TasksState,
        back: &HashSet<TaskId>,
    ) -> Result<std::result::Result<Vec<Dependency>, TaskId>> {
        let mut unmet = Vec::new();
        for one in &ended.task.after {
            if back.contains(&one.task_id) || state.get(one.task_id).is_some() {
                unmet.push(*one);
            } else if !self.ended_status(one.task_id)?.is_some_and(|now| is_met(one.condition, now)) {
                return Ok(Err(one.task_id));
            }
        }
        Ok(Ok(unmet))
    }

    /// Composes the return of those that failed because a task did, as far as nothing else keeps them.
    fn retried_with(&self, id: TaskId, state: &TasksState) -> Result<Vec<Draft>> {
        let storage = |error| ServiceError::caused_by(Code::Storage, error);
        let mut left = failed_with(id, &failed_by_dependency(&self.store).map_err(storage)?);
        let mut histories = read_histories(&self.store, &left.iter().copied().collect()).map_err(storage)?;
        let (mut back, mut records) = (HashSet::from([id]), Vec::new());
        // One that waits for several is brought back when all of them are.
        loop {
            let before = left.len();
            let mut kept = Vec::new();
            for dependent in left {
                let Some(history) = histories.remove(&dependent) else { continue };
                let Some(ended) = history.task_ended() else { continue };
                match self.unmet(&ended, state, &back)? {
                    Ok(unmet) => {
                        back.insert(dependent);
                        let retried = TaskRetried {
                            task_id: dependent,
                            actor: actor::DEPENDENCY.into(),
                            reason: format!("{id} is retried").into(),
                            ended: Box::new(ended),
                            fresh: false,
                            unmet,
                        };
                        records.push(retried.into());
                    }
                    Err(_) => {
                        histories.insert(dependent, history);
                        kept.push(dependent);
                    }
                }
            }
            left = kept;
            if left.is_empty() || left.len() == before {
                return Ok(records);
            }
        }
    }
}
