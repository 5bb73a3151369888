//! The garbage collector of a home that is open: what nobody needs goes when somebody asks for it, and by itself once in an interval, counted
//! through restarts. One collection at a time, and none beside what captures rely on: the blobs of the home's owner know that.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use rekindle_domain::id::RunName;
use rekindle_domain::interval::{Interval, check_interval};
use rekindle_domain::time::Timestamp;
use rekindle_store::Store;
use rekindle_store::blobs::Blobs;
use rekindle_store::commit::Commits;
use rekindle_store::disk::{SharedDisk, if_exists, read_all, replace};
use rekindle_store::layout::Layout;
use rekindle_wire::code::Code;
use rekindle_wire::view::Collected;
use serde::{Deserialize, Serialize};

use super::gc::{CacheRetention, CheckpointRetention, GcOptions, gc_of_owner};
use crate::error::{Result, ServiceError, chain};
use crate::lock::locked;
use crate::test_knobs::crash_point;

/// Largest note that is read: it has one time.
const MAX_NOTE: u64 = 1 << 12;

/// How a home is collected by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CollectionPolicy {
    /// From one collection to the next.
    pub interval: Duration,
    /// How long checkpoints of runs are kept, and how much of them.
    pub checkpoints: CheckpointRetention,
    /// How long results of steps are kept for other runs, and how much of them.
    pub cached_results: CacheRetention,
    /// How long runs of pipelines are kept that have ended.
    pub runs: Duration,
}

/// When a home was last collected by itself, or first counted.
#[derive(Serialize, Deserialize)]
struct Note {
    at: Timestamp,
}

/// The garbage collector of a home.
pub(crate) struct GarbageCollector {
    disk: SharedDisk,
    home: PathBuf,
    blobs: Blobs,
    /// The store of the home, as long as that is open.
    store: Weak<Store>,
    /// None: only if somebody asks.
    policy: Option<CollectionPolicy>,
    /// Held by whoever collects.
    at_work: Mutex<()>,
    /// The last time, as far as it is known without reading.
    last: Mutex<Option<Timestamp>>,
}

impl GarbageCollector {
    /// Makes the garbage collector of a home.
    pub(crate) fn new(
        disk: SharedDisk,
        home: PathBuf,
        blobs: Blobs,
        policy: Option<CollectionPolicy>,
    ) -> GarbageCollector {
        let (store, at_work, last) = (Weak::new(), Mutex::default(), Mutex::default());
        GarbageCollector { disk, home, blobs, store, policy, at_work, last }
    }

    /// Says which store the home is open in: it lets go of what is to be collected.
    pub(crate) fn with_store(self, store: &Arc<Store>) -> GarbageCollector {
        GarbageCollector { store: Arc::downgrade(store), ..self }
    }

    /// Removes what is there for nothing, one after the other: whoever comes second is told so.
    pub(crate) fn collect(&self, asked: GcOptions) -> Result<Collected> {
        let Ok(_only_one) = self.at_work.try_lock() else {
            let message = "another garbage collection of this home is running";
            return Err(ServiceError::new(Code::Collecting, message));
        };
        let store = self.store.upgrade().filter(|_| asked.runs_older_than.is_some());
        if let Some(store) = &store {
            // What the write-ahead log still has of a run would be missed if its files went. It removes nothing: also where that is all
            // that is asked, so that what would go is told.
            if let Err(error) = store.committer().checkpoint() {
                tracing::debug!("runs that the write-ahead log knows of stay: {error}");
            }
        }
        let collected = gc_of_owner(&self.disk, &self.home, &self.blobs, asked);
        let collected = collected.map_err(|error| ServiceError::caused_by(Code::Storage, error))?;
        if let Some(store) = store.filter(|_| !asked.dry_run) {
            let gone = collected.gone.iter().filter(|gone| gone.kind == "run");
            let names = gone.filter_map(|gone| Path::new(&gone.path).file_name()?.to_str()?.parse().ok());
            // Somebody may have looked at it since it was opened.
            names.for_each(|run: RunName| store.close_pipeline(run.pipeline_id()));
        }
        Ok(collected)
    }

    /// Begins a collection by itself if it is time for one, on a thread of its own; returns at once.
    pub(crate) fn collect_if_due(self: &Arc<GarbageCollector>, now: Timestamp) {
        let Some(options) = self.due(now) else { return };
        let collector = self.clone();
        let work = move || collector.collect_by_itself(options);
        if let Err(error) = std::thread::Builder::new().name("collector".into()).spawn(work) {
            tracing::warn!("the garbage collection is skipped this time: {error}");
        }
    }

    /// Returns what is to be collected if it is time for it. That is noted before it begins: whatever becomes of it, the next one is
    /// an interval away, and a home that makes collections fail does not spend its life with them.
    fn due(&self, now: Timestamp) -> Option<GcOptions> {
        let policy = self.policy?;
        let mut last = locked(&self.last);
        let interval = check_interval(last.or_else(|| self.noted()), now, policy.interval);
        if interval == Interval::NotYet {
            return None;
        }
        *last = Some(now);
        crash_point("gc.before_note");
        let path = Layout::new(&self.home).collected();
        let written = serde_json::to_vec(&Note { at: now }).map_err(Into::into);
        if let Err(error) = written.and_then(|bytes| replace(&*self.disk, &path, &bytes)) {
            // Where the disk is full a collection is all the more welcome.
            tracing::warn!("{} cannot be written: {error}", path.display());
        }
        crash_point("gc.after_note");
        let options = GcOptions {
            checkpoints: Some(policy.checkpoints),
            cached_results: Some(policy.cached_results),
            runs_older_than: Some(policy.runs),
            ..GcOptions::default()
        };
        (interval == Interval::Due).then_some(options)
    }

    fn noted(&self) -> Option<Timestamp> {
        let path = Layout::new(&self.home).collected();
        let bytes = if_exists(read_all(&*self.disk, &path, MAX_NOTE)).ok()??;
        serde_json::from_slice::<Note>(&bytes).ok().map(|note| note.at)
    }

    fn collect_by_itself(&self, options: GcOptions) {
        tracing::info!("starting the scheduled garbage collection");
        match self.collect(options) {
            Ok(done) => {
                let (things, bytes, expired) = (done.gone.len(), done.bytes(), done.expired_checkpoints);
                tracing::info!(
                    "garbage collection removed {things} items, {bytes} bytes; {expired} checkpoints have expired"
                );
                for left in done.failed.iter().chain(&done.left) {
                    tracing::debug!("{} stays: {}", left.path, left.why);
                }
            }
            Err(error) => tracing::warn!("the garbage collection failed: {}", chain(&error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use rekindle_testkit::sim::SimDisk;

    use super::*;

    const HOUR: i64 = 3_600_000;

    fn collector(disk: &SimDisk, hours: Option<u64>) -> GarbageCollector {
        let retention = CheckpointRetention { keep: Duration::from_secs(60), max_bytes: 7 };
        let policy = hours.map(|hours| CollectionPolicy {
            interval: Duration::from_secs(hours * 3600),
            checkpoints: retention,
            cached_results: CacheRetention { keep: Duration::from_secs(60), max_bytes: 8 },
            runs: Duration::from_secs(90),
        });
        let shared: SharedDisk = Arc::new(disk.clone());
        let blobs = Blobs::reading(shared.clone(), Layout::new("/home"));
        GarbageCollector::new(shared, "/home".into(), blobs, policy)
    }

    fn home() -> SimDisk {
        let disk = SimDisk::new(7);
        rekindle_store::home::prepare(&disk, &Layout::new("/home")).expect("a home");
        disk
    }

    #[test]
    fn a_home_is_collected_once_in_an_interval_whoever_is_its_daemon() {
        let disk = home();
        let at = |hours: i64| Timestamp::from_millis(1_800_000_000_000 + hours * HOUR);
        // One that was never collected is not surprised by it: the first interval counts from now.
        let first = collector(&disk, Some(24));
        assert!(first.due(at(0)).is_none() && first.due(at(23)).is_none());
        // Daemons come and go more often than it is time; none of them begins to count anew.
        for hour in [1, 12, 23] {
            assert!(collector(&disk, Some(24)).due(at(hour)).is_none(), "{hour}");
        }
        let later = collector(&disk, Some(24));
        let options = later.due(at(24)).expect("it is time");
        assert_eq!(options.checkpoints.map(|kept| kept.max_bytes), Some(7));
        assert_eq!(options.cached_results.map(|kept| kept.max_bytes), Some(8));
        assert_eq!(options.runs_older_than, Some(Duration::from_secs(90)));
        assert!(
            !options.dry_run && options.repairs_older_than.is_none() && options.orphans_older_than.is_none()
        );
        // Begun, and so it is not begun again; also by one that comes after a crash in the middle of it.
        assert!(later.due(at(24)).is_none());
        assert!(collector(&disk.fork(), Some(24)).due(at(25)).is_none());
        assert!(collector(&disk, Some(24)).due(at(48)).is_some());
        // A clock that was set back, and a note that nobody can read, count from now.
        assert!(collector(&disk, Some(24)).due(at(0)).is_none());
        assert!(collector(&disk, Some(24)).due(at(24)).is_some());
        replace(&disk, &Layout::new("/home").collected(), b"{").expect("written");
        assert!(collector(&disk, Some(24)).due(at(100)).is_none());
        assert!(collector(&disk, Some(24)).due(at(124)).is_some());
        assert!(collector(&disk, None).due(at(1000)).is_none(), "nobody wants it");
    }

    #[test]
    fn one_collection_at_a_time() {
        let disk = home();
        let collector = collector(&disk, Some(1));
        let held = locked(&collector.at_work);
        let refused = collector.collect(GcOptions::default()).expect_err("somebody else is at it");
        assert_eq!(refused.code, Code::Collecting);
        drop(held);
    }
}
