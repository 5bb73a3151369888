//! A staged run of a pipeline is prepared: its ledger is checked from the first record to the last, and told that it is here now. It
//! rests until somebody resumes it, and that asks for trust in its configuration.

use std::collections::{BTreeMap, BTreeSet};

use rekindle_domain::bundle::{BundledRun, BundledSession};
use rekindle_domain::event::{Event, PipelineImported};
use rekindle_domain::id::{SessionId, StepKey};
use rekindle_domain::line::Line;
use rekindle_store::StagedRun;
use rekindle_store::layout::Layout;
use rekindle_store::log::Cursor;
use rekindle_store::offline::Offline;

use super::super::BundleError;
use super::prepare_results::{SharedStep, shared_steps};
use super::{Import, ImportedRun, Staged};
use crate::log_search::for_each_line;
use crate::pipeline_config;

impl Staged {
    /// Checks each staged ledger, and has its run rest. Returns the steps of the runs whose results are shared.
    pub(super) fn prepare_runs(
        &mut self,
        asked: &Import,
    ) -> Result<BTreeMap<StepKey, SharedStep>, BundleError> {
        let mut steps = BTreeMap::new();
        if self.contents.runs.is_empty() {
            return Ok(steps);
        }
        let offline = Offline::open(self.disk.clone(), self.layout.home())?;
        for bundled in self.contents.runs.clone() {
            let (run, shared) = self.prepare_run(&offline, &bundled, asked)?;
            self.runs.push(run);
            steps.extend(shared);
        }
        Ok(steps)
    }

    fn prepare_run(
        &self,
        offline: &Offline,
        bundled: &BundledRun,
        asked: &Import,
    ) -> Result<(ImportedRun, Vec<(StepKey, SharedStep)>), BundleError> {
        let run = bundled.run_id;
        let unread = |source| BundleError::Io { path: self.layout.ledger(run.pipeline_id()), source };
        if offline.has_run(run.pipeline_id()).map_err(unread)? {
            return Err(BundleError::RunExists(run));
        }
        let mut staged = StagedRun::open(self.disk.clone(), &self.directory(), run)?;
        let state = staged.state();
        let position = state.position();
        let is_described = (position.last_seq, position.last_hash) == (bundled.seq, bundled.h)
            && bundled.tree.is_none_or(|tree| state.expected_tree() == Some(tree));
        let Some(started) = state.started.clone().filter(|_| is_described) else {
            return Err(BundleError::MisdescribedRun(run));
        };
        pipeline_config::check(&started.config, &started.pipeline)
            .map_err(|error| BundleError::RunConfig { run, why: error.text() })?;
        let lost_attempt = state.current_step().is_some_and(|step| step.open_attempt().is_some());
        let imported = PipelineImported {
            machine: self.contents.machine.clone().map(Into::into),
            made_at: Some(self.contents.made_at),
            working_dir: asked.working_dir.clone().map(Into::into),
        };
        staged.append(&imported.into(), asked.now)?;
        let state = staged.state();
        let working_dir = state.started.as_deref().map(|started| started.working_dir.clone());
        let imported = ImportedRun {
            run_id: run,
            goal: started.task.goal.clone(),
            status: state.status,
            working_dir: working_dir.unwrap_or_default(),
            records: position.last_seq,
            next: state.current_step().map(|step| step.id.to_string()),
            lost_attempt,
            tree: bundled.tree,
        };
        Ok((imported, shared_steps(state).collect()))
    }

    /// Tells whether a session of the bundle belongs to one of its runs and is here already: then it stays, as the ledger names it. One
    /// that only has its id is refused.
    pub(super) fn is_known_of_run(
        &self,
        offline: &Offline,
        bundled: &BundledSession,
    ) -> Result<bool, BundleError> {
        let session = bundled.session_id;
        let unread = |source| BundleError::Io { path: self.layout.log(session), source };
        if self.runs.is_empty() || !offline.has_any(session).map_err(unread)? {
            return Ok(false);
        }
        if !self.sessions_of_runs()?.contains(&session) {
            return Ok(false);
        }
        let reader = offline.reader(session).map_err(unread)?;
        let found = reader.find(bundled.seq).map_err(unread)?;
        let mut lines = reader.forward(found.unwrap_or(Cursor::START));
        let line = lines.next().map_err(unread)?.and_then(|raw| Line::parse(raw.bytes).ok());
        let same = line.is_some_and(|line| line.seq == bundled.seq && line.hash == bundled.h);
        if same { Ok(true) } else { Err(BundleError::OtherSession { session }) }
    }

    /// Returns the sessions that the staged ledgers name.
    fn sessions_of_runs(&self) -> Result<BTreeSet<SessionId>, BundleError> {
        let mut sessions = BTreeSet::new();
        for run in &self.runs {
            let id = run.run_id.pipeline_id();
            let unread = |source| BundleError::Io { path: Layout::new(self.directory()).ledger(id), source };
            let ledger =
                StagedRun::ledger_reader(&self.disk, &self.directory(), run.run_id).map_err(unread)?;
            let visit = |line: &Line<'_>| {
                if let Ok(Event::StepBegan(began)) = line.event() {
                    sessions.insert(began.session_id);
                }
            };
            for_each_line(&ledger, visit).map_err(unread)?;
        }
        Ok(sessions)
    }
}
