//! Runs that were going on when the last daemon ended: each gets a worker, which finds out what became of its step and goes on. Those
//! whose step is at work come first, so that they have their directories again.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rekindle_domain::id::PipelineId;
use rekindle_domain::pipeline::PipelineState;

use super::Pipelines;
use super::run_json::OverRun;
use super::worker::Command;
use crate::error::{Result, ServiceError, chain};
use crate::idempotency::Key;
use crate::lock::locked;
use crate::run_summary::is_over;

/// How long is waited at a time for the list of sessions: whoever works in a directory is in it.
const LISTED_WITHIN: Duration = Duration::from_secs(1);

/// From one look at those for whom no worker could be had to the next.
const MISSED_EVERY: Duration = Duration::from_secs(10);

impl Pipelines {
    /// Begins to go on with the runs; returns at once.
    pub(crate) fn begin_thread(self: &Arc<Pipelines>) -> io::Result<()> {
        let weak = Arc::downgrade(self);
        let run = move || {
            loop {
                let Some(pipelines) = weak.upgrade() else { return };
                if pipelines.views.workers.is_stopping() {
                    return;
                }
                pipelines.views.directory.await_survey(LISTED_WITHIN);
                if pipelines.views.directory.is_surveyed() {
                    pipelines.recover();
                    pipelines.compress_ended();
                    break;
                }
            }
            // Threads and descriptors come back.
            while let Some(pipelines) =
                weak.upgrade().filter(|pipelines| !pipelines.views.workers.is_stopping())
            {
                for run in std::mem::take(&mut *locked(&pipelines.missed)) {
                    let _ = pipelines.send(run, Command::Look);
                }
                drop(pipelines);
                std::thread::park_timeout(MISSED_EVERY);
            }
        };
        std::thread::Builder::new().name("pipelines".into()).spawn(run).map(drop)
    }

    /// Goes on with every run that has not ended.
    pub(crate) fn recover(self: &Arc<Pipelines>) {
        let mut unfinished: Vec<Unfinished> = Vec::new();
        let each = self.each_run(|found| {
            let Found::Read(state) = found else { return };
            let Some(started) = state.started.as_deref() else { return };
            self.restore_file(state);
            if !is_over(state) {
                let is_at_work = state.current_step().is_some_and(|step| step.open_attempt().is_some());
                let directory = started.working_dir.clone();
                unfinished.push(Unfinished { id: state.id, is_at_work, directory });
            }
        });
        if let Err(error) = each {
            tracing::error!("pipeline runs cannot be listed: {}", error.text());
        }
        locked(&self.left).extend(unfinished.iter().map(|run| run.id));
        unfinished.sort_by_key(|run| !run.is_at_work);
        for run in unfinished.iter().filter(|run| run.is_at_work) {
            let _ = self.claims.take(run.id, Path::new(&run.directory));
        }
        for run in unfinished {
            if let Err(error) = self.send(run.id, Command::Look) {
                tracing::error!(run = %run.id, "the daemon cannot continue it: {}", error.text());
            }
        }
    }

    /// Looks at every run, oldest first, and reads the ledgers of those that are not over. One that cannot be read hides no other.
    pub(super) fn each_run(&self, mut visit: impl FnMut(Found<'_>)) -> Result<()> {
        let runs = self.store.pipelines().map_err(ServiceError::internal)?;
        for name in runs.runs {
            let id = name.pipeline_id();
            if let Some(over) = self.over(id) {
                visit(Found::Over(id, &over));
                continue;
            }
            let is_open = self.store.pipeline(id).is_some();
            match self.store.open_pipeline(id) {
                Ok(Some(opened)) => visit(Found::Read(&opened.fold)),
                Ok(None) => {}
                Err(error) => tracing::error!(run = %name, "cannot be read: {}", chain(&error)),
            }
            if !is_open && self.pool.get(id).is_none() {
                self.store.close_pipeline(id);
            }
        }
        Ok(())
    }

    /// Finds the run that a key made; one that was used for something else is an error.
    pub(super) fn made_by(&self, key: &Key) -> Result<Option<PipelineId>> {
        let mut keys = locked(&self.keys);
        if keys.is_none() {
            let mut found = HashMap::new();
            self.each_run(|run| {
                let (stored, id) = match run {
                    Found::Over(id, over) => (over.note.idempotency_key.clone(), id),
                    Found::Read(state) => {
                        let started = state.started.as_deref();
                        (started.and_then(|started| started.idempotency_key.clone()), state.id)
                    }
                };
                found.extend(stored.map(|stored| (stored, id)));
            })?;
            *keys = Some(found);
        }
        let known = keys.iter().flatten();
        for (stored, id) in known {
            if key.is(stored)? {
                return Ok(Some(*id));
            }
        }
        Ok(None)
    }

    /// Notes what a key made.
    pub(super) fn note_key(&self, stored: &str, id: PipelineId) {
        if let Some(keys) = locked(&self.keys).as_mut() {
            keys.insert(stored.to_owned(), id);
        }
    }
}

/// A run, as it is found.
pub(super) enum Found<'a> {
    /// It is over, and its ledger was not read.
    Over(PipelineId, &'a OverRun),
    /// Its ledger was read, if that was not so already.
    Read(&'a PipelineState),
}

/// A run that is not over.
struct Unfinished {
    id: PipelineId,
    is_at_work: bool,
    directory: String,
}
