//! The logs that become rows: those of a home that is open, or of one that nobody has open.

use std::io;

use rekindle_domain::id::{PipelineId, SessionId};
use rekindle_store::Store;
use rekindle_store::log::LogReader;
use rekindle_store::offline::Offline;

/// The logs of a home.
pub trait Logs {
    /// Opens the log of the stream of tasks.
    fn tasks(&self) -> io::Result<LogReader>;
    /// Opens the log of a session.
    fn session(&self, session: SessionId) -> io::Result<LogReader>;
    /// Opens the ledger of a pipeline run.
    fn ledger(&self, run: PipelineId) -> io::Result<LogReader>;
}

impl Logs for Store {
    fn tasks(&self) -> io::Result<LogReader> {
        self.tasks_reader()
    }

    fn session(&self, session: SessionId) -> io::Result<LogReader> {
        self.reader(session)
    }

    fn ledger(&self, run: PipelineId) -> io::Result<LogReader> {
        self.ledger_reader(run)
    }
}

impl Logs for Offline {
    fn tasks(&self) -> io::Result<LogReader> {
        self.tasks_reader()
    }

    fn session(&self, session: SessionId) -> io::Result<LogReader> {
        self.reader(session)
    }

    fn ledger(&self, run: PipelineId) -> io::Result<LogReader> {
        self.ledger_reader(run)
    }
}
