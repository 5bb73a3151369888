//! The stream of tasks of an open home, and the cache of what has not ended: a start reads that, and what was recorded since.

use rekindle_domain::id::StreamId;
use rekindle_domain::task::TasksState;

use super::{OpenSessionError, Store, locked};
use crate::cache::{self, Cached};
use crate::commit::{Commits, Committed};
use crate::error::AtPath;
use crate::log::LogReader;

impl<C: Commits> Store<C> {
    /// Makes the stream of tasks ready to be appended to.
    pub fn open_tasks(&self) -> Result<Committed<TasksState>, OpenSessionError> {
        if let Some(committed) = self.stream(StreamId::tasks()) {
            return Ok(committed);
        }
        let cached = match cache::read::<TasksState>(&*self.home.disk, &self.home.tasks_state())? {
            Cached::Good(state) => Some(state),
            Cached::Missing | Cached::Unreadable => None,
        };
        self.open_stream_from(TasksState::default(), cached)
    }

    /// Writes the cache of the stream of tasks, if it is open and undamaged; returns how many records it stands for.
    pub fn cache_tasks(&self) -> Result<Option<u64>, OpenSessionError> {
        let Some(committed) = self.stream::<TasksState>(StreamId::tasks()) else { return Ok(None) };
        if committed.damage.is_some() {
            return Ok(None);
        }
        // A cache must not know of records that a power cut takes away.
        self.committer.sync()?;
        let path = self.home.tasks_state();
        let _one_at_a_time = locked(&self.writing);
        cache::write(&*self.home.disk, &path, &committed.fold).at_path("write", &path)?;
        Ok(Some(committed.fold.position().last_seq))
    }

    /// Opens the log of the stream of tasks for reading.
    pub fn tasks_reader(&self) -> std::io::Result<LogReader> {
        self.home.tasks_reader()
    }
}
