//! Ledgers of pipeline runs in an open home: made, opened, listed. They are read from their beginning: a ledger is small, since what
//! agents say is in the logs of their sessions.

use std::io;

use rekindle_domain::id::{PipelineId, RunName};
use rekindle_domain::pipeline::PipelineState;

use super::{OpenSessionError, Store};
use crate::commit::{Commits, Committed};
use crate::disk::if_exists;
use crate::error::AtPath;
use crate::log::LogReader;
use crate::log_directory;
use crate::pipeline_runs::{self, PipelineRuns};

impl<C: Commits> Store<C> {
    /// Makes a new pipeline run ready to be appended to; its first record must be `pipeline.started`. Where a run of this name is, or
    /// ever was begun, it fails as one that exists: another name is to be drawn.
    pub fn create_pipeline(&self, pipeline: PipelineId) -> io::Result<()> {
        if RunName::of(pipeline).is_none() {
            let what = format!("{pipeline} is not the id of a run that has a name");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        let _made_once = self.loading.lock(pipeline.into());
        if self.has_pipeline(pipeline)? {
            let what = format!("pipeline run {pipeline} exists");
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, what));
        }
        // Before its first record: a log in a directory that a power cut takes would go with it.
        log_directory::make(&*self.home.disk, &self.home, pipeline.into())?;
        self.committer.register(PipelineState::empty(pipeline), None);
        Ok(())
    }

    /// Makes a pipeline run ready to be appended to; none if there is no such run. One whose ledger is damaged is readable, and
    /// nothing can be added to it.
    pub fn open_pipeline(
        &self,
        pipeline: PipelineId,
    ) -> Result<Option<Committed<PipelineState>>, OpenSessionError> {
        if let Some(committed) = self.pipeline(pipeline) {
            return Ok(Some(committed));
        }
        let there = self.has_pipeline(pipeline).at_path("look at", &self.home.run(pipeline))?;
        if there { self.open_stream(PipelineState::empty(pipeline)).map(Some) } else { Ok(None) }
    }

    /// Returns a pipeline run as of everything answered before, if it is open.
    pub fn pipeline(&self, pipeline: PipelineId) -> Option<Committed<PipelineState>> {
        self.stream(pipeline.into())
    }

    /// Lets go of a pipeline run that is not needed for a while.
    pub fn close_pipeline(&self, pipeline: PipelineId) {
        self.committer.release(pipeline.into());
    }

    /// Lists the pipeline runs. Those are among them whose directory is gone while the write-ahead log has records of theirs.
    pub fn pipelines(&self) -> io::Result<PipelineRuns> {
        let recovered = self.recovered.streams.iter().filter_map(|(stream, _)| stream.pipeline());
        Ok(pipeline_runs::list(&*self.home.disk, &self.home)?.with(recovered))
    }

    /// Returns how long the ledger of a pipeline run is; none if there is none, or if the write-ahead log had records of it at the
    /// start: then only whoever opens it knows.
    pub fn ledger_size(&self, pipeline: PipelineId) -> io::Result<Option<u64>> {
        if self.recovered.streams.iter().any(|(stream, _)| stream.pipeline() == Some(pipeline)) {
            return Ok(None);
        }
        Ok(if_exists(self.home.disk.stat(&self.home.ledger(pipeline)))?.map(|stat| stat.len))
    }

    /// Opens the ledger of a pipeline run for reading.
    pub fn ledger_reader(&self, pipeline: PipelineId) -> io::Result<LogReader> {
        self.home.ledger_reader(pipeline)
    }

    /// Tells whether there is a run: a directory, or what the write-ahead log has of its ledger where that could not be written yet.
    pub fn has_pipeline(&self, pipeline: PipelineId) -> io::Result<bool> {
        let ledger = if_exists(self.home.disk.stat(&self.home.ledger(pipeline)))?;
        Ok(ledger.is_some() || if_exists(self.home.disk.stat(&self.home.run(pipeline)))?.is_some())
    }
}
