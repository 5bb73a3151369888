//! Ledgers of pipeline runs in an open home: made, opened, listed. They are read from their beginning: a ledger is small, since what
//! agents say is in the logs of their sessions.

use std::io;
use std::path::Path;

use rekindle_domain::id::{PipelineId, RunName, StreamId};
use rekindle_domain::pipeline::PipelineState;

use super::{OpenSessionError, Store};
use crate::commit::{Commits, Committed};
use crate::disk::{OpenMode, if_exists, temporary};
use crate::error::AtPath;
use crate::log::{Cursor, LogForm, LogReader, compress};
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
            let what = format!("pipeline run {pipeline} already exists");
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

    /// Lets go of a pipeline run that is not needed for a while. One that is just being made stays: whoever looks at all runs comes by
    /// between its directory and its first record, too.
    pub fn close_pipeline(&self, pipeline: PipelineId) {
        self.committer.post(Box::new(move |machine| machine.release_begun(pipeline.into())));
    }

    /// Lets go of a pipeline run that was made ready and did not begin.
    pub fn abandon_pipeline(&self, pipeline: PipelineId) {
        self.committer.release(pipeline.into());
    }

    /// Keeps the ledger of a run compressed to which nothing is to be added, as it was when it came to this state; tells whether it is
    /// now. Whoever dies on the way has it as it was written, and perhaps both: then that counts.
    pub fn compress_ledger(&self, state: &PipelineState) -> io::Result<bool> {
        let stream: StreamId = state.id.into();
        let Some(compressed) = self.home.compressed_log(stream) else { return Ok(false) };
        // Nobody opens it meanwhile, who would count on the log that goes.
        let _nobody_loads = self.loading.lock(stream);
        let log = self.home.ledger_reader(state.id)?;
        let end = state.position();
        if log.form() == LogForm::Compressed || log.end() != Cursor::at(end.log_offset) {
            return Ok(log.form() == LogForm::Compressed);
        }
        compress(&*self.home.disk, &log, &compressed)?;
        // A power cut may bring it back: then whole, although nobody has it in the write-ahead log any more.
        let plain = self.home.disk.open(&self.home.ledger(state.id), OpenMode::Write)?;
        if let Err(error) = plain.sync() {
            let why = io::Error::new(error.kind(), error.to_string());
            self.committer.ask(move |machine| machine.sync_failed(stream, &why));
            return Err(error);
        }
        let removed = self.committer.ask(move |machine| machine.remove_plain_log(stream, end));
        removed.unwrap_or(Ok(false))
    }

    /// Makes a pipeline run ready to be appended to, also one whose ledger is compressed.
    pub fn reopen_pipeline(
        &self,
        pipeline: PipelineId,
    ) -> Result<Option<Committed<PipelineState>>, OpenSessionError> {
        let stream: StreamId = pipeline.into();
        {
            let _nobody_loads = self.loading.lock(stream);
            let compressed = self.home.compressed_log(stream).unwrap_or_default();
            if if_exists(self.home.disk.stat(&compressed)).at_path("look at", &compressed)?.is_some() {
                let decompressed = self.home.decompress(stream).at_path("decompress", &compressed);
                // It was open for looking alone, and whoever asks next must not find that: also where something failed, since then the
                // compressed one may be gone already.
                self.committer.ask(move |machine| machine.release(stream));
                decompressed?;
            }
        }
        self.open_pipeline(pipeline)
    }

    /// Removes what was left beside the ledger of a run by whoever died while compressing or decompressing it. What a removal of the run
    /// has taken away is not touched.
    pub fn clear_leftovers(&self, pipeline: PipelineId) -> io::Result<()> {
        let stream: StreamId = pipeline.into();
        let Some(compressed) = self.home.compressed_log(stream) else { return Ok(()) };
        let ledger = self.home.ledger(pipeline);
        // Nobody does either of the two meanwhile.
        let _nobody_loads = self.loading.lock(stream);
        let is_there = |path: &Path| Ok::<_, io::Error>(if_exists(self.home.disk.stat(path))?.is_some());
        let mut left = Vec::new();
        for path in [temporary(&ledger), temporary(&compressed)] {
            if is_there(&path)? {
                left.push(path);
            }
        }
        if left.is_empty() || !is_there(&ledger)? && !is_there(&compressed)? {
            return Ok(());
        }
        let disk = self.home.disk.clone();
        let remove = move || left.iter().try_for_each(|path| if_exists(disk.remove_file(path)).map(drop));
        // A log that lags is written anew by the committer, under the same name.
        self.committer.ask(move |_| remove()).unwrap_or(Ok(()))
    }

    /// Tells whether the ledger of a run is compressed: such a run has ended.
    pub fn is_compressed(&self, pipeline: PipelineId) -> io::Result<bool> {
        let plain = if_exists(self.home.disk.stat(&self.home.ledger(pipeline)))?;
        let compressed = self.home.compressed_log(pipeline.into()).unwrap_or_default();
        Ok(plain.is_none() && if_exists(self.home.disk.stat(&compressed))?.is_some())
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
        if let Some(stat) = if_exists(self.home.disk.stat(&self.home.ledger(pipeline)))? {
            return Ok(Some(stat.len));
        }
        // One that is compressed says at its end how long it was.
        let ledger = if_exists(self.home.ledger_reader(pipeline))?;
        Ok(ledger.filter(|ledger| ledger.cut_short().is_none()).map(|ledger| ledger.len()))
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
