//! Runs of pipelines, asked about through the daemon's door.

use rekindle_domain::id::PipelineId;
use rekindle_domain::task::compose::user;
use rekindle_wire::filter::PipelineFilter;
use rekindle_wire::request::{AbortPipeline, NewPipelines, ResumePipeline};
use rekindle_wire::view::{PipelineList, PipelineResumed, PipelineView};

use super::Daemon;
use crate::error::Result;
use crate::feed::Since;
use crate::idempotency::Key;
use crate::pipelines::{FollowPipeline, Pipelines};
use crate::show::log::LogPage;

impl Daemon {
    /// Finds the run that a name or the id of a ledger stands for.
    pub fn pipeline_named(text: &str) -> Result<PipelineId> {
        Pipelines::named(text)
    }

    /// Starts runs of a pipeline, all or none.
    pub fn start_pipelines(
        &self,
        new: NewPipelines,
        key: Option<&Key>,
        by: &str,
    ) -> Result<Vec<PipelineView>> {
        self.pipelines.start(new, key, &user(by))
    }

    /// Lists runs, the newest first.
    pub fn pipelines(&self, filter: &PipelineFilter) -> Result<PipelineList> {
        self.pipelines.list(filter)
    }

    /// Shows a run.
    pub fn pipeline(&self, id: PipelineId) -> Result<PipelineView> {
        self.pipelines.show(id)
    }

    /// Reads records of a run's ledger.
    pub fn ledger(&self, id: PipelineId, after: u64, limit: usize) -> Result<LogPage> {
        self.pipelines.ledger(id, after, limit)
    }

    /// Follows a run, behind a record or from its beginning.
    pub fn follow_pipeline(&self, id: PipelineId, since: Since) -> Result<FollowPipeline> {
        self.pipelines.follow(id, since)
    }

    /// Has a run go on.
    pub fn resume_pipeline(
        &self,
        id: PipelineId,
        asked: ResumePipeline,
        by: &str,
    ) -> Result<PipelineResumed> {
        self.pipelines.resume_as_asked(id, asked, &user(by))
    }

    /// Ends a run, with whatever goes on in it.
    pub fn abort_pipeline(&self, id: PipelineId, asked: &AbortPipeline, by: &str) -> Result<PipelineView> {
        self.pipelines.abort(id, asked.reason.as_deref(), &user(by))?;
        self.pipelines.show(id)
    }
}
