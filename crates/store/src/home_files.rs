//! The files of a home: where each is, the disk it is on, and which sessions are to be left alone. What works on a home is handed
//! all of it together.

use std::io;
use std::ops::Deref;

use rekindle_domain::id::{PipelineId, SessionId, StreamId};

use crate::crash_report::{AtWork, Quarantined, at_work};
use crate::disk::SharedDisk;
use crate::error::LoadError;
use crate::layout::Layout;
use crate::log::LogReader;

/// The files of a home.
#[derive(Clone)]
pub(crate) struct HomeFiles {
    pub(crate) disk: SharedDisk,
    pub(crate) layout: Layout,
    pub(crate) quarantined: Quarantined,
}

impl HomeFiles {
    /// Returns the files of a home, and reads which sessions are quarantined.
    pub(crate) fn new(disk: SharedDisk, layout: Layout) -> HomeFiles {
        let quarantined = Quarantined::read(&*disk, &layout);
        HomeFiles { disk, layout, quarantined }
    }

    /// Refuses a session that is quarantined.
    pub(crate) fn check_quarantine(&self, session: SessionId) -> Result<(), LoadError> {
        match self.quarantined.get(session) {
            Some(quarantine) => Err(LoadError::Quarantined { session, quarantine }),
            None => Ok(()),
        }
    }

    /// Tells whether a stream is a session that is quarantined.
    pub(crate) fn is_quarantined(&self, stream: StreamId) -> bool {
        stream.session().is_some_and(|session| self.quarantined.get(session).is_some())
    }

    /// Notes that this thread works on a stream, until the guard is dropped; nobody works on a session that is quarantined.
    pub(crate) fn at_work(&self, stream: impl Into<StreamId>, doing: &'static str) -> Option<AtWork> {
        let stream = stream.into();
        (!self.is_quarantined(stream)).then(|| at_work(stream, doing))
    }

    /// Opens a session's log for reading, unless it is quarantined.
    pub(crate) fn reader(&self, session: SessionId) -> io::Result<LogReader> {
        self.check_quarantine(session)
            .map_err(|error| io::Error::new(io::ErrorKind::PermissionDenied, error))?;
        LogReader::open(&*self.disk, &self.log(session), self.codec())
    }

    /// Opens the log of the stream of tasks for reading.
    pub(crate) fn tasks_reader(&self) -> io::Result<LogReader> {
        LogReader::open(&*self.disk, &self.stream_log(StreamId::tasks()), self.codec())
    }

    /// Opens the ledger of a pipeline run for reading.
    pub(crate) fn ledger_reader(&self, pipeline: PipelineId) -> io::Result<LogReader> {
        LogReader::open(&*self.disk, &self.ledger(pipeline), self.codec())
    }
}

/// Where each file is.
impl Deref for HomeFiles {
    type Target = Layout;

    fn deref(&self) -> &Layout {
        &self.layout
    }
}
