//! Looking at a home without owning it: the write-ahead log is laid over the logs in memory, and
//! nothing is written. What is seen is what the next owner would make of the files.
//!
//! The `LogOverlay` is a `Disk` itself, so that everything that reads a home reads an overlaid one too.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use rekindle_domain::id::{PipelineId, SessionId, StreamId};
use rekindle_domain::pipeline::PipelineState;

use crate::aside::is_taken;
use crate::blobs::Blobs;
use crate::disk::{RetryDisk, SharedDisk, if_exists};
use crate::error::AtPath;
use crate::history::{self, History};
use crate::home::{self, HomeError};
use crate::home_files::HomeFiles;
use crate::index::Index;
use crate::lagging::{Cause, Lag, LaggingLogs, LogOverlay};
use crate::layout::Layout;
use crate::load::{LoadError, Loaded, Want, load, stand_in};
use crate::load_stream::load_stream;
use crate::log::{Cursor, Damage, LogReader, broken_before};
use crate::pipeline_runs::{self, PipelineRuns};
use crate::redo::{Completion, Plan, open, plan_for};
use crate::survey::{Listing, list, survey};
use crate::wal::scan::{self, ScanError, WalDamage};

/// How often something is looked at again that its owner may just be writing.
const TRIES: u32 = 5;

/// Why a home cannot be looked at.
#[derive(Debug, thiserror::Error)]
pub enum OfflineError {
    /// The home itself.
    #[error(transparent)]
    Home(#[from] HomeError),
    /// Its write-ahead log.
    #[error(transparent)]
    Scan(#[from] ScanError),
}

/// A run of a pipeline as its ledger has it.
#[derive(Debug)]
pub struct LoadedRun {
    /// What its records amount to, as far as its ledger is good.
    pub state: PipelineState,
    /// Where its ledger is damaged.
    pub damage: Option<Damage>,
    /// Where the good part of its ledger ends.
    pub end: Cursor,
}

/// A home as its next owner would find it.
pub struct Offline {
    /// The disk as it is.
    raw: SharedDisk,
    /// The files as the next owner would make them.
    home: HomeFiles,
    /// What the next owner would do to the log of each stream the write-ahead log mentions.
    pub pending: Vec<(StreamId, Completion)>,
    /// Damaged stretches of the write-ahead log.
    pub wal_damage: Vec<WalDamage>,
    /// What a crash left at the end of the write-ahead log; it never counted.
    pub wal_torn: Option<WalDamage>,
}

impl Offline {
    /// Looks at a home.
    pub fn open(disk: SharedDisk, home: impl Into<PathBuf>) -> Result<Offline, OfflineError> {
        let (disk, layout) = (Arc::new(RetryDisk(disk)) as SharedDisk, Layout::new(home));
        home::check(&*disk, &layout)?;
        Ok(Offline::regardless(disk, layout)?)
    }

    /// Looks at a home whatever its description says.
    pub(crate) fn regardless(disk: SharedDisk, layout: Layout) -> Result<Offline, ScanError> {
        let raw = HomeFiles::new(disk, layout);
        let scan = settled_scan(&raw)?;
        let mut pending = Vec::new();
        let completed = LaggingLogs::default();
        for (stream, tail) in scan.by_stream() {
            let _at_work = raw.at_work(stream, "redo");
            let planned = open(&raw, stream).and_then(|log| plan_for(&raw, log.as_ref(), stream, &tail));
            match planned {
                Ok(Plan::Leave(completion)) => pending.push((stream, completion)),
                Ok(Plan::Rewrite { keep, lines, completion }) => {
                    let (path, lines, why) = (raw.stream_log(stream), Arc::new(lines), String::new());
                    let cause = Cause::Recovery;
                    completed.add(stream, Lag { path, keep, lines, file: None, cause, why });
                    pending.push((stream, completion));
                }
                Ok(Plan::Remove(_)) => pending.push((stream, Completion::Removed)),
                Err(_) => {} // Reading the log will say what is wrong with it.
            }
        }
        let lagging = Arc::new(completed);
        let (disk, layout, unwritten) = (raw.disk.clone(), raw.layout.clone(), Arc::default());
        let disk = Arc::new(LogOverlay { disk, layout, lagging, unwritten, read_only: true });
        let home = HomeFiles { disk, ..raw.clone() };
        let wal_torn = scan.torn();
        Ok(Offline { raw: raw.disk, home, pending, wal_damage: scan.damage, wal_torn })
    }

    /// Returns where everything lives.
    pub fn layout(&self) -> &Layout {
        &self.home.layout
    }

    pub(crate) fn home(&self) -> &HomeFiles {
        &self.home
    }

    /// Returns the overlaid disk, on which nothing can be written.
    pub fn disk(&self) -> &SharedDisk {
        &self.home.disk
    }

    /// Loads a session. One that seems damaged is looked at again from the beginning: its owner may have written
    /// a snapshot since the write-ahead log was read, which then reaches further than what was seen of the log.
    pub fn load(&self, session: SessionId, want: Want) -> Result<Loaded, LoadError> {
        let mut loaded = self.load_once(session, want);
        for _ in 1..TRIES {
            if !loaded.as_ref().is_ok_and(|loaded| loaded.damage.is_some()) {
                break;
            }
            let Ok(again) = Offline::regardless(self.raw.clone(), self.home.layout.clone()) else { break };
            loaded = again.load_once(session, want);
        }
        loaded
    }

    /// Reads what can be shown of a session that cannot be loaded.
    pub fn stand_in(&self, session: SessionId) -> Loaded {
        stand_in(&self.home, session)
    }

    /// Loads a session, and takes for damaged what the next owner would: the write-ahead log may know of records that
    /// neither it nor the log has any more, where the log by itself seems to have a torn end.
    fn load_once(&self, session: SessionId, want: Want) -> Result<Loaded, LoadError> {
        let mut loaded = load(&self.home, session, want)?;
        if loaded.damage.is_none() {
            let known = self.lost().find(|(id, _)| *id == session);
            loaded.damage = known.map(|(_, damage)| damage.clone());
        }
        Ok(loaded)
    }

    /// Returns the sessions that lack records by what the write-ahead log knows of them.
    fn lost(&self) -> impl Iterator<Item = (SessionId, &Damage)> {
        self.pending.iter().filter_map(|(stream, completion)| match completion {
            Completion::Damaged(damage) => stream.session().map(|session| (session, damage)),
            _ => None,
        })
    }

    /// Loads a session, and reads what a snapshot has passed too: only so a byte that rotted there is seen.
    pub fn examine(&self, session: SessionId, want: Want) -> Result<Loaded, LoadError> {
        let mut loaded = self.load(session, want)?;
        self.verify_cached_part(&mut loaded)?;
        Ok(loaded)
    }

    /// Reads what the caches of a loaded session have passed, unless it is known to be damaged already.
    pub fn verify_cached_part(&self, loaded: &mut Loaded) -> Result<(), LoadError> {
        if loaded.damage.is_none() && loaded.read_from > 0 {
            let session = loaded.state.id;
            let found = self.reader(session);
            let found = found.and_then(|reader| broken_before(&reader, session, loaded.read_from));
            loaded.damage = found.at_path("read", &self.home.log(session))?;
        }
        Ok(())
    }

    /// Returns the blobs, which can be read and not written.
    pub fn blobs(&self) -> Blobs {
        Blobs::new(self.home.disk.clone(), self.home.layout.clone(), Arc::default())
    }

    /// Opens a session's log for reading, unless it is quarantined.
    pub fn reader(&self, session: SessionId) -> io::Result<LogReader> {
        self.home.reader(session)
    }

    /// Opens the log of the stream of tasks for reading.
    pub fn tasks_reader(&self) -> io::Result<LogReader> {
        self.home.tasks_reader()
    }

    /// Opens the ledger of a pipeline run for reading.
    pub fn ledger_reader(&self, pipeline: PipelineId) -> io::Result<LogReader> {
        self.home.ledger_reader(pipeline)
    }

    /// Reads a run of a pipeline as its ledger has it, and where that is damaged: also where the write-ahead log knows of records that
    /// neither has any more.
    pub fn pipeline(&self, id: PipelineId) -> Result<LoadedRun, LoadError> {
        let loaded = load_stream(&self.home, PipelineState::empty(id), None)?;
        let lost = self.pending.iter().find_map(|(stream, completion)| match completion {
            Completion::Damaged(damage) if stream.pipeline() == Some(id) => Some(damage.clone()),
            _ => None,
        });
        let end = Cursor::at(loaded.fold.position().log_offset);
        Ok(LoadedRun { state: loaded.fold, damage: loaded.damage.or(lost), end })
    }

    /// Tells whether anything here is of a run by this name.
    pub fn has_run(&self, id: PipelineId) -> io::Result<bool> {
        let is_pending = self.pending.iter().any(|(stream, _)| stream.pipeline() == Some(id));
        Ok(is_pending || self.home.has_run(id)?)
    }

    /// Lists the pipeline runs.
    pub fn pipelines(&self) -> io::Result<PipelineRuns> {
        let mentioned = self.pending.iter().filter_map(|(stream, _)| stream.pipeline());
        Ok(pipeline_runs::list(&*self.home.disk, &self.home)?.with(mentioned))
    }

    /// Opens the history of a session: its log, and before it what it was forked from.
    pub fn history(&self, session: SessionId) -> io::Result<History> {
        history::open(&self.home, session)
    }

    /// Opens the base file of a fork for reading, if it has one: its lines are those before the fork's own.
    pub fn base_reader(&self, session: SessionId) -> io::Result<Option<LogReader>> {
        if_exists(LogReader::open(&*self.home.disk, &self.home.base(session), self.home.codec()))
    }

    /// Tells whether anything here is called by a session's id, be it lost, set aside or quarantined.
    pub fn has_any(&self, session: SessionId) -> io::Result<bool> {
        is_taken(&*self.home.disk, &self.home, session)
    }

    /// Lists the sessions.
    pub fn sessions(&self) -> io::Result<Vec<SessionId>> {
        self.listing().map(|listing| listing.sessions)
    }

    pub(crate) fn listing(&self) -> io::Result<Listing> {
        list(&self.home)
    }

    /// Loads every session, concurrently.
    pub fn survey(
        &self,
        mut visit: impl FnMut(SessionId, Result<Loaded, LoadError>) + Send,
    ) -> io::Result<()> {
        let lost: HashMap<SessionId, &Damage> = self.lost().collect();
        let mut visit = |session: SessionId, mut loaded: Result<Loaded, LoadError>| {
            if let (Ok(loaded), Some(damage)) = (&mut loaded, lost.get(&session)) {
                loaded.damage.get_or_insert_with(|| (*damage).clone());
            }
            visit(session, loaded);
        };
        survey(&self.home, &self.listing()?, &Index::read(&self.home), &mut visit);
        Ok(())
    }
}

/// Reads the write-ahead log, again if it seems damaged: its owner may just have dropped a segment.
fn settled_scan(home: &HomeFiles) -> Result<scan::Scan, ScanError> {
    for _ in 1..TRIES {
        let scan = scan::scan(home)?;
        if scan.damage.is_empty() {
            return Ok(scan);
        }
    }
    scan::scan(home)
}
