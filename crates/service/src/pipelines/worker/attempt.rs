//! Attempts at a step: begun in a session of their own, continued in the same one, their agents reminded. The record in the ledger and
//! those of the session are one append, so that neither is ever there without the other.

use std::path::Path;
use std::sync::Arc;

use rekindle_domain::blob_id::BlobId;
use rekindle_domain::compose::begin;
use rekindle_domain::event::{
    CheckpointMode, Options, ParentStep, Raw, ResumePolicy, SessionCreated, StageConfig,
};
use rekindle_domain::id::{RunId, SessionId};
use rekindle_domain::line::Draft;
use rekindle_domain::pipeline::{PipelineState, Started, StepState, compose, outcome};
use rekindle_store::commit::{Append, Expect, Part};
use rekindle_wire::code::Code;

use super::super::{Pipelines, said};
use super::Worker;
use super::carry_out::Outcome;
use super::ndjson;
use super::observe::Seen;
use super::stage::{current, provider_of, speaks_ndjson};
use crate::commands::messages::new_message;
use crate::drive::live::{UnsentPrompt, keep_large};
use crate::drive::worker::Command as SessionCommand;
use crate::drive::workspace_files::FilesError;
use crate::error::{Result, ServiceError};
use crate::idempotency::Key;
use crate::ids::{millis, random};
use crate::lock::locked;
use crate::test_knobs::crash_point;

impl Worker {
    /// Begins an attempt in a new session, with the files as they are.
    pub(super) fn begin(&mut self, at: &Arc<Pipelines>, state: &PipelineState) -> Result<()> {
        let (started, step, stage) = current(state)?;
        self.take_directory(at, &started.working_dir)?;
        let workers = &at.views.workers;
        let content = Raw::text(&self.words(at, state, step, stage));
        let (message, run_id) = new_message(workers, content.clone(), None, None)?;
        let session = SessionId::mint(millis(workers.records.now()), random()?);
        let created = SessionCreated {
            parent: Some(Box::new(ParentStep { pipeline_id: self.id, step_id: step.id.clone() })),
            title: format!("{} {}", started.task.id, step.id).into(),
            working_dir: started.working_dir.clone().into(),
            provider: provider_of(started, stage)?,
            options: options(&started.options),
            env_names: env_names(started, stage),
            key: None,
            imported_from: None,
            idempotency_key: Some(session_key(step).as_stored().into()),
            created_at: None,
            forked_from: None,
            restoring: None,
            worktree: None,
        };
        let life = workers.agents.supervisor.life();
        let records = begin::session(created, Some((message, run_id)), &life);
        workers.agents.environment.keep(session, at.brought(self.id));
        // Known before anything can happen in it.
        locked(&at.sessions).insert(session, self.id);
        at.store.create(session).map_err(ServiceError::internal)?;
        let began = compose::begin(step, session, run_id);
        let recorded = self.record_begin(at, state, (session, Expect::Anything), records, began);
        recorded.inspect_err(|_| at.store.close_session(session))?;
        tracing::info!(step = %step.id, attempt = step.attempts + 1, %session, "begun");
        self.word = None;
        let unsent = UnsentPrompt::message(run_id, content);
        workers.send(session, SessionCommand::Prompt(unsent, Vec::new()))
    }

    /// Makes the directory what a tree says, and begins an attempt there.
    pub(super) fn restore_and_begin(
        &mut self,
        at: &Arc<Pipelines>,
        state: &PipelineState,
        tree: BlobId,
    ) -> Result<Outcome> {
        let (started, ..) = current(state)?;
        self.take_directory(at, &started.working_dir)?;
        let root = Path::new(&started.working_dir);
        crash_point("pipeline.before_restore");
        match at.trees.restore(tree, root) {
            Ok(()) => {}
            Err(FilesError::NotYet(why) | FilesError::Failed(why)) => {
                let message = format!("its files cannot be restored: {why}");
                return Err(ServiceError::new(Code::Storage, message));
            }
        }
        crash_point("pipeline.after_restore");
        let now = at.trees.capture(root).map_err(|why| ServiceError::new(Code::Storage, why))?;
        if now != tree {
            let message = "its files were restored but differ again: another program is changing them";
            return Err(ServiceError::new(Code::Storage, message));
        }
        self.begin(at, state)?;
        Ok(Outcome::Again)
    }

    /// Begins an attempt in the session of the one that was cut, with the files as they are.
    pub(super) fn continue_attempt(
        &mut self,
        at: &Arc<Pipelines>,
        state: &PipelineState,
        seen: &Seen,
    ) -> Result<()> {
        let (started, step, stage) = current(state)?;
        let session = seen.session.as_deref().ok_or_else(ServiceError::moved)?;
        self.take_directory(at, &started.working_dir)?;
        let workers = &at.views.workers;
        let life = workers.agents.supervisor.life();
        workers.agents.environment.keep(session.id, at.brought(self.id));
        let cut = session.run.as_ref().filter(|run| run.prompted && session.recovery.interruption.is_some());
        // A command is sent again as it is, with the same key: whoever did the work knows it by that.
        let cut = cut.filter(|_| !session.provider.speaks_ndjson());
        let (run_id, records, unsent) = match cut {
            // It goes on where it was, and is told what was done.
            Some(cut) => {
                let run_id = RunId::mint(millis(workers.records.now()), random()?);
                let record = begin::continuation(cut, run_id, &life);
                let unsent = UnsentPrompt::continuation(run_id, record.attempt);
                (run_id, vec![record.into()], unsent)
            }
            // It has not heard of it, or its turn had ended: it is told again, in the same conversation.
            None => {
                let content = Raw::text(&self.words(at, state, step, stage));
                let (message, run_id) = new_message(workers, content.clone(), None, None)?;
                let records = begin::with_message(message, run_id, &life);
                (run_id, records, UnsentPrompt::message(run_id, content))
            }
        };
        let began = compose::begin(step, session.id, run_id);
        let to = (session.id, Expect::LastSeq(session.last_seq));
        self.record_begin(at, state, to, records, began)?;
        tracing::info!(step = %step.id, attempt = step.attempts + 1, session = %session.id, "continued");
        self.word = None;
        workers.send(session.id, SessionCommand::Prompt(unsent, Vec::new()))
    }

    /// Asks an agent for the outcome that it has not named.
    pub(super) fn remind(&mut self, at: &Arc<Pipelines>, state: &PipelineState, seen: &Seen) -> Result<()> {
        let (_, step, stage) = current(state)?;
        let session = seen.session.as_deref().ok_or_else(ServiceError::moved)?;
        let run = session.run.as_ref().ok_or_else(ServiceError::moved)?;
        let workers = &at.views.workers;
        let message = said::last_message(&*workers.records.store, session.id, run.run_id);
        let Err(why) = said::verdict(stage, message.as_deref()) else { return Err(ServiceError::moved()) };
        let content = Raw::text(&outcome::reminder(stage, &why));
        let (message, run_id) = new_message(workers, content.clone(), None, None)?;
        let records = begin::with_message(message, run_id, &workers.agents.supervisor.life());
        let began = compose::remind(step, run_id).ok_or_else(ServiceError::moved)?;
        let to = (session.id, Expect::LastSeq(session.last_seq));
        self.record_begin(at, state, to, records, began)?;
        let unsent = UnsentPrompt::message(run_id, content);
        workers.send(session.id, SessionCommand::Prompt(unsent, Vec::new()))
    }

    /// Records an attempt: the run and its place in the ledger, both or neither.
    fn record_begin(
        &self,
        at: &Pipelines,
        state: &PipelineState,
        (session, expect): (SessionId, Expect),
        mut records: Vec<Draft>,
        began: Draft,
    ) -> Result<()> {
        self.take_step(at, state)?;
        keep_large(&*at.views.workers.records.store, &mut records)?;
        let ledger = Expect::LastSeq(state.position().last_seq);
        let mut append = Append { expect, ..Append::durable(session, records) };
        append.more.push(Part { stream: self.id.into(), records: vec![began], expect: ledger });
        self.record(at, append)?;
        // The session itself counts from here on.
        at.leave_place(self.id);
        Ok(())
    }

    /// Returns what the agent of a step is told: its prompt, and how it is to say what came of its work.
    fn words(&self, at: &Pipelines, state: &PipelineState, step: &StepState, stage: &StageConfig) -> String {
        let blobs = at.store.blobs();
        let prompt = at.sources(&blobs).prompt(state, &step.id, stage, step.from).unwrap_or_default();
        if let Some(started) = state.started.as_deref().filter(|started| speaks_ndjson(started, stage)) {
            return ndjson::command(started, step, stage, prompt, at.views.workers.records.now());
        }
        match outcome::request(stage).filter(|_| stage.agent.is_some()) {
            Some(request) => format!("{}\n\n{request}", prompt.trim_end()),
            None => prompt,
        }
    }
}

/// Returns the settings of a step's session: its run says what becomes of it when it is cut, and has the trees of its directory.
fn options(wanted: &Options) -> Options {
    Options { resume: ResumePolicy::Never, checkpoints: Some(CheckpointMode::Off), ..wanted.clone() }
}

fn env_names(started: &Started, stage: &StageConfig) -> Vec<String> {
    let agent = stage.agent.as_ref().and_then(|name| started.config.agents.get(name));
    agent.map(|agent| agent.env.clone()).unwrap_or_default()
}

/// Returns the key by which the session of an attempt is known: that of its step, which every attempt but the first adds its number to.
fn session_key(step: &StepState) -> Key {
    let key = match step.attempts {
        0 => step.key.to_string(),
        before => format!("{}/{}", step.key, before + 1),
    };
    Key { key, body: *step.inputs_hash.as_bytes() }
}
