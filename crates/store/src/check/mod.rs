//! Looking for everything that may be wrong with a home: the library behind `rekindle doctor`.
//!
//! Reads only, logs record by record, and one bad file never stops the rest (I10). `code` is the table of
//! what can be found; `home`, `wal`, `sessions` (many), `session` (one), `caches`, `kept`, `tasks`, `pipelines`, `cached_results`, `crashes`, `blobs` and `packs`
//! look, each at its part of the home.

mod blobs;
mod cached_results;
mod caches;
mod code;
mod crashes;
mod finding;
mod histories;
mod home;
mod kept_snapshots;
mod packs;
mod pipelines;
mod session;
mod sessions;
mod tasks;
mod wal;

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use rekindle_domain::id::{PipelineId, SessionId};
use serde::{Serialize, Serializer};

pub use code::{Code, Severity};
pub use finding::{Finding, MAX_OF_A_KIND, Place};

use crate::disk::{RetryDisk, SharedDisk};
use crate::home_files::HomeFiles;
use crate::layout::Layout;
use crate::offline::{Offline, OfflineError};
use crate::redo::Completion;
use crate::wal::scan::ScanError;
use finding::Findings;

/// What a check found.
#[derive(Debug, Serialize)]
pub struct Report {
    /// The findings, worst first; at most [`MAX_OF_A_KIND`] of each kind.
    pub findings: Vec<Finding>,
    /// How many findings there were of each kind.
    #[serde(serialize_with = "by_name")]
    pub kinds: BTreeMap<Code, u64>,
    /// How much was looked at.
    pub counts: Counts,
}

fn by_name<S: Serializer>(kinds: &BTreeMap<Code, u64>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(kinds.iter().map(|(code, count)| (code.as_str(), count)))
}

impl Report {
    /// Returns how many findings there were of a severity.
    pub fn count(&self, severity: Severity) -> u64 {
        self.kinds.iter().filter(|(code, _)| code.severity() == severity).map(|(_, count)| count).sum()
    }

    /// Adds what others found, who know parts of a home that the store does not.
    pub fn with(self, more: impl IntoIterator<Item = Finding>) -> Report {
        let mut findings = Findings::again(self.findings, self.kinds);
        findings.add_all(more);
        let (findings, kinds) = findings.finish();
        Report { findings, kinds, counts: self.counts }
    }

    /// Tells whether nothing is lost and nothing is unusable.
    pub fn is_healthy(&self) -> bool {
        self.count(Severity::Error) == 0
    }
}

/// How much was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Counts {
    /// Sessions with a log.
    pub sessions: u64,
    /// Good records in all logs.
    pub records: u64,
    /// Bytes of all logs.
    pub bytes: u64,
    /// Blobs, in packs and in files of their own.
    pub blobs: u64,
}

/// How far a check has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// What is being looked at: `sessions`, `blobs` or `packs`.
    pub what: &'static str,
    /// How many are done.
    pub done: u64,
    /// Of how many.
    pub total: u64,
}

/// Told of progress, from any thread.
pub type Watcher<'a> = &'a mut (dyn FnMut(Progress) + Send);

/// The home as the check sees it.
struct HomeView {
    /// The files as they are.
    raw: SharedDisk,
    /// The files with the write-ahead log laid over them.
    home: HomeFiles,
    /// What the next start would do to each session the write-ahead log mentions.
    pending: HashMap<SessionId, Completion>,
    /// The same for the ledgers of pipeline runs.
    pending_ledgers: HashMap<PipelineId, Completion>,
    /// A process is writing here at this moment.
    owned: bool,
}

impl HomeView {
    fn new(raw: &SharedDisk, layout: &Layout, owned: bool) -> Result<(HomeView, Offline), ScanError> {
        let offline = Offline::regardless(raw.clone(), layout.clone())?;
        let pending = offline.pending.iter().cloned();
        let pending = pending.filter_map(|(stream, done)| stream.session().map(|id| (id, done))).collect();
        let ledgers = offline.pending.iter().cloned();
        let pending_ledgers = ledgers.filter_map(|(stream, done)| Some((stream.pipeline()?, done))).collect();
        let home = offline.home().clone();
        Ok((HomeView { raw: raw.clone(), home, pending, pending_ledgers, owned }, offline))
    }
}

/// Whether whoever checks a home has its lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holding {
    /// It has: nobody writes to the home meanwhile.
    Lock,
    /// It has not, and someone else may.
    Nothing,
}

/// Checks a home. Fails only where there is nothing to check: no home, or one that a newer version made.
pub fn check(
    disk: SharedDisk,
    home: impl Into<PathBuf>,
    holding: Holding,
    watcher: Watcher<'_>,
) -> Result<Report, OfflineError> {
    let (raw, layout) = (Arc::new(RetryDisk(disk)) as SharedDisk, Layout::new(home));
    let mut findings = Findings::default();
    let owned = home::check(&*raw, &layout, holding, &mut findings)?;
    let view = match HomeView::new(&raw, &layout, owned) {
        Ok((view, offline)) => {
            wal::check(&view, &offline, &mut findings);
            view
        }
        Err(newer @ (ScanError::Newer { .. } | ScanError::Unknown { .. })) => return Err(newer.into()),
        Err(error) => {
            findings.add(wal::unreadable(&layout, &error));
            let (pending, pending_ledgers) = (HashMap::new(), HashMap::new());
            HomeView { home: HomeFiles::new(raw.clone(), layout), raw, pending, pending_ledgers, owned }
        }
    };
    let blob_usage = blobs::BlobUsage::new(&view, &mut findings);
    let mut counts = sessions::check(&view, &blob_usage, &mut findings, watcher);
    tasks::check(&view, &mut findings);
    pipelines::check(&view, &mut findings);
    cached_results::check(&view, &mut findings);
    crashes::check(&view, &mut findings);
    counts.blobs = blobs::check(&view, &blob_usage, &mut findings, watcher);
    let (findings, kinds) = findings.finish();
    Ok(Report { findings, kinds, counts })
}
