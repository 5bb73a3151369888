//! The files of a home: where each is, the disk it is on, and which sessions are to be left alone. What works on a home is handed
//! all of it together.

use std::io;
use std::ops::Deref;
use std::path::{Path, PathBuf};

use rekindle_domain::id::{PipelineId, SessionId, StreamId};

use crate::crash_report::{AtWork, Quarantined, at_work};
use crate::disk::{SharedDisk, if_exists};
use crate::error::LoadError;
use crate::layout::Layout;
use crate::log::{LogReader, decompress};

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

    /// Opens the log of a stream for reading, however it is kept. Where it is there as it was written, that counts: whoever was to
    /// remove one of the two has died.
    pub(crate) fn stream_reader(&self, stream: StreamId) -> io::Result<LogReader> {
        let log = self.stream_log(stream);
        if let Some(compressed) = self.compressed_log(stream) {
            if let Some(reader) = if_exists(LogReader::open(&*self.disk, &log, self.codec()))? {
                return Ok(reader);
            }
            let opened = LogReader::open_compressed(&*self.disk, &compressed, self.codec());
            if let Some(reader) = if_exists(opened)? {
                return Ok(reader);
            }
        }
        // Also what was decompressed between the two looks.
        LogReader::open(&*self.disk, &log, self.codec())
    }

    /// Opens the log of the stream of tasks for reading.
    pub(crate) fn tasks_reader(&self) -> io::Result<LogReader> {
        self.stream_reader(StreamId::tasks())
    }

    /// Opens the ledger of a pipeline run for reading.
    pub(crate) fn ledger_reader(&self, pipeline: PipelineId) -> io::Result<LogReader> {
        self.stream_reader(pipeline.into())
    }

    /// Makes the log of a stream that is about to be added to what it was before it was compressed.
    pub(crate) fn decompress(&self, stream: StreamId) -> io::Result<()> {
        let (log, Some(compressed)) = (self.stream_log(stream), self.compressed_log(stream)) else {
            return Ok(());
        };
        if if_exists(self.disk.stat(&log))?.is_none() {
            if if_exists(self.disk.stat(&compressed))?.is_none() {
                return Ok(());
            }
            decompress(&*self.disk, &compressed, &log)?;
        }
        // One that stays behind would be what is left if the other was lost.
        if if_exists(self.disk.remove_file(&compressed))?.is_some() {
            self.disk.sync_dir(&self.directory_of(stream))?;
        }
        Ok(())
    }

    /// Tells whether anything is of a run: its ledger, however it is kept, what is left of it, or the note that it is damaged.
    pub(crate) fn has_run(&self, pipeline: PipelineId) -> io::Result<bool> {
        let stream: StreamId = pipeline.into();
        let places = [self.ledger(pipeline), self.stream_damage_note(stream), self.run_summary(pipeline)];
        for path in places.into_iter().chain(self.compressed_log(stream)) {
            if if_exists(self.disk.stat(&path))?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn directory_of(&self, stream: StreamId) -> PathBuf {
        self.stream_log(stream).parent().map(Path::to_owned).unwrap_or_default()
    }
}

/// Where each file is.
impl Deref for HomeFiles {
    type Target = Layout;

    fn deref(&self) -> &Layout {
        &self.layout
    }
}
