//! Taking in a run of a pipeline that was staged: its ledger is moved to its place. Whoever dies before that has no such run.

use std::path::Path;

use rekindle_domain::id::{RunName, StreamId};

use super::{ImportStagedError, Store};
use crate::commit::Commits;
use crate::disk::if_exists;
use crate::error::AtPath;
use crate::layout::Layout;
use crate::log_directory;

impl<C: Commits> Store<C> {
    /// Takes in a run that was staged, durably. The sessions of its steps come before it.
    pub fn import_staged_run(&self, staging: &Path, run: RunName) -> Result<(), ImportStagedError> {
        let (disk, id) = (&*self.home.disk, run.pipeline_id());
        let (stream, place) = (StreamId::from(id), self.home.ledger(id));
        let _nobody_loads = self.loading.lock(stream);
        if self.has_run(run).at_path("look for", &place)? || self.pipeline(id).is_some() {
            return Err(ImportStagedError::RunExists(run));
        }
        let staged = Layout::new(staging).ledger(id);
        if if_exists(disk.stat(&staged)).at_path("look at", &staged)?.is_none() {
            return Err(ImportStagedError::RunNotStaged(run));
        }
        // It may still have records of a run of this name that was collected.
        self.committer.checkpoint().map_err(ImportStagedError::Checkpoint)?;
        let directory = self.home.run(id);
        log_directory::make(disk, &self.home, stream).at_path("make", &directory)?;
        disk.rename(&staged, &place).at_path("move", &staged)?;
        disk.sync_dir(&directory).at_path("sync", &directory)?;
        Ok(())
    }

    /// Tells whether anything here is of a run by this name: its ledger, however it is kept, or the note that it is damaged.
    fn has_run(&self, run: RunName) -> std::io::Result<bool> {
        self.home.has_run(run.pipeline_id())
    }
}
