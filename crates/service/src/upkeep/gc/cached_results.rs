//! Results of steps that are kept for other runs, and those that are let go: whoever comes to such a step does it once more.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::io;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rekindle_store::blobs::{BlobId, Blobs};
use rekindle_store::disk::SharedDisk;
use rekindle_store::layout::Layout;
use rekindle_store::step_cache::{CacheFile, CacheFileName, StepCache};

use super::checkpoints::weigh;
use super::{Freed, GcOptions};
use crate::test_knobs::crash_point;
use crate::workspaces::BlobSource;

/// What was not written to its end may be written at this moment, unless it is older than this.
const BEING_WRITTEN: Duration = Duration::from_secs(60 * 60);

/// A result that is kept.
struct Kept {
    file: CacheFile,
    made: SystemTime,
    tree: BlobId,
    others: Vec<BlobId>,
}

/// Removes results that are too old or too much, and files that nobody can use.
pub(super) fn collect(
    disk: &SharedDisk,
    layout: &Layout,
    blobs: &Blobs,
    options: GcOptions,
    freed: &mut Freed,
) -> io::Result<()> {
    let Some(retention) = options.cached_results else { return Ok(()) };
    let (cache, now) = (StepCache::new(disk.clone(), layout.clone()), SystemTime::now());
    let mut results: Vec<Kept> = Vec::new();
    let mut remove = |file: &CacheFile, why: &str| {
        crash_point("gc.before_cached_result");
        match if options.dry_run { Ok(()) } else { cache.remove(file) } {
            Ok(()) => freed.note_gone("cached result", &file.path, file.bytes, why),
            Err(error) => freed.note_failed("cached result", &file.path, error.to_string()),
        }
    };
    for file in cache.files()? {
        let age = now.duration_since(file.modified).unwrap_or_default();
        match (file.name, cache.read(&file)) {
            (_, Some(Ok(result))) => {
                let made = UNIX_EPOCH + Duration::from_millis(result.at.as_millis().try_into().unwrap_or(0));
                let others = result.payload_blob.iter().map(|kept| kept.blob).collect();
                results.push(Kept { file, made, tree: result.to, others });
            }
            (_, Some(Err(why))) => remove(&file, &format!("it cannot be used: {why}")),
            (CacheFileName::Temporary, _) if age > BEING_WRITTEN => {
                remove(&file, "it was not written completely");
            }
            (CacheFileName::Temporary | CacheFileName::Foreign | CacheFileName::Result(_), None) => {}
        }
    }
    results.sort_by_key(|kept| Reverse(kept.made));
    let (source, mut seen, mut bytes) = (BlobSource(blobs.clone()), HashSet::new(), 0_u64);
    for Kept { file, made, tree, others } in results {
        if now.duration_since(made).unwrap_or_default() > retention.keep {
            remove(&file, "it is old: [cache] says how long results are kept");
            continue;
        }
        // Once there is no room, older ones go too.
        if bytes <= retention.max_bytes {
            bytes += file.bytes + weigh((Some(tree), &others), &source, blobs, &mut seen)?;
        }
        if bytes > retention.max_bytes {
            remove(&file, "newer ones use all the space that [cache] allows");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rekindle_domain::event::BlobRef;
    use rekindle_domain::id::{BootId, RunName, StepKey};
    use rekindle_domain::pipeline::cached_result::CachedResult;
    use rekindle_domain::time::Timestamp;
    use rekindle_store::disk::replace;
    use rekindle_store::{Opener, Store};
    use rekindle_testkit::clock::SimClock;
    use rekindle_testkit::sim::SimDisk;

    use super::super::CacheRetention;
    use super::*;

    const DAY: Duration = Duration::from_secs(86_400);

    struct Home {
        disk: SharedDisk,
        layout: Layout,
        blobs: Blobs,
        cache: StepCache,
        _store: Store,
    }

    impl Home {
        fn new() -> Home {
            let (disk, layout) = (Arc::new(SimDisk::new(1)) as SharedDisk, Layout::new("/home"));
            let opener = Opener { pid: 1, boot_id: BootId::mint(0, 1) };
            let store =
                Store::open(disk.clone(), "/home", opener, Arc::new(SimClock::default())).expect("a home");
            let (blobs, cache) = (store.blobs(), StepCache::new(disk.clone(), layout.clone()));
            Home { disk, layout, blobs, cache, _store: store }
        }

        /// Keeps a result that is so old, with something of this size that only it names.
        fn keep(&self, n: u8, age: Duration, bytes: usize) -> (StepKey, BlobId) {
            // No two bytes of it are alike for long, so that it stays as large as it is.
            let text: Vec<u8> = (0..bytes)
                .map(|at| BlobId::of(&[n, (at / 32) as u8, (at / 8192) as u8]).as_bytes()[at % 32])
                .collect();
            let kept = self.blobs.put(&text).expect("kept").blob;
            let key = StepKey::from_bytes([n; 32]);
            let at = SystemTime::now()
                .checked_sub(age)
                .expect("not so old")
                .duration_since(UNIX_EPOCH)
                .expect("later");
            let result = CachedResult {
                key,
                outcome: "completed".into(),
                payload: None,
                payload_blob: Some(BlobRef { blob: kept, size: bytes as u64 }),
                to: BlobId::of(b"tree"),
                made_by: RunName::mint(1, 1),
                at: Timestamp::from_millis(i64::try_from(at.as_millis()).expect("a time")),
            };
            self.cache.keep("builder", &result).expect("kept");
            (key, kept)
        }

        fn run(&self, keep: Duration, max_bytes: u64, dry_run: bool) -> Vec<String> {
            let mut freed = Freed::default();
            let cached_results = Some(CacheRetention { keep, max_bytes });
            let options = GcOptions { cached_results, dry_run, ..GcOptions::default() };
            collect(&self.disk, &self.layout, &self.blobs, options, &mut freed).expect("collected");
            assert!(freed.0.failed.is_empty());
            freed.0.gone.into_iter().map(|gone| gone.why).collect()
        }

        fn left(&self) -> usize {
            self.cache.files().expect("listed").len()
        }
    }

    #[test]
    fn results_are_kept_by_age_and_by_the_room_that_they_take() {
        let home = Home::new();
        for (n, days) in [(1, 1), (2, 3), (3, 10), (4, 40)] {
            home.keep(n, DAY * days, 10_000);
        }
        assert_eq!(home.run(DAY * 30, u64::MAX, true).len(), 1);
        assert_eq!(home.left(), 4, "only told");
        let gone = home.run(DAY * 30, u64::MAX, false);
        assert!(gone.len() == 1 && gone[0].contains("old"), "{gone:?}");
        // Room for two of them.
        let gone = home.run(DAY * 30, 25_000, false);
        assert!(gone.len() == 1 && gone[0].contains("space"), "{gone:?}");
        assert_eq!(home.left(), 2);
        let newest = StepKey::from_bytes([1; 32]);
        assert!(
            home.cache.files().expect("listed").iter().any(|file| file.name == CacheFileName::Result(newest))
        );
        assert_eq!(home.run(DAY * 30, 0, false).len(), 2);
        assert_eq!(home.left(), 0);
    }

    #[test]
    fn what_nobody_can_use_goes_and_what_is_none_of_ours_stays() {
        let home = Home::new();
        let (key, _) = home.keep(1, DAY, 10);
        let beside = |name: &str| home.layout.cached_results_of("builder").expect("a name").join(name);
        for (name, text) in [("notes.txt", "mine"), ("ik-1.json.tmp", "half"), (&key.file_name(), "{")] {
            replace(&*home.disk, &beside(name), text.as_bytes()).expect("written");
        }
        let gone = home.run(DAY * 30, u64::MAX, false);
        // A simulated disk counts from 1970: the half-written file is old.
        assert!(gone.len() == 2 && gone.iter().any(|why| why.contains("it cannot be used")), "{gone:?}");
        assert_eq!(home.left(), 1);
        assert_eq!(Home::new().run(DAY, 0, false), Vec::<String>::new(), "a home that never had one");
    }
}
