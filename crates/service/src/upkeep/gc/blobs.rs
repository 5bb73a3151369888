//! Collecting blobs that nothing names. Right beside a daemon that keeps others at this moment: what is young stays, and
//! who keeps a blob and who removes one take turns.

use std::collections::HashSet;
use std::io;
use std::time::SystemTime;

use rekindle_store::aside;
use rekindle_store::blob_references::referenced_blobs;
use rekindle_store::blobs::{BlobId, Blobs};
use rekindle_store::check::{Finding, Report, Severity};
use rekindle_store::disk::SharedDisk;
use rekindle_store::layout::Layout;

use super::{Freed, Gone};
use crate::test_knobs::crash_point;

/// Removes the blobs that no file of the home names.
pub(super) fn collect(
    disk: &SharedDisk,
    layout: &Layout,
    report: &Report,
    dry_run: bool,
    freed: &mut Freed,
) -> io::Result<()> {
    let doubtful = |finding: &&Finding| {
        let says_names = finding.session.is_some() || finding.code.as_str().starts_with("wal_");
        finding.severity == Severity::Error && says_names
    };
    let damaged = report.findings.iter().find(doubtful);
    if let Some(finding) = damaged {
        let why =
            format!("all are kept: {} is damaged, and may have named any of them", finding.path.display());
        freed.leave("blobs", layout.blobs(), why);
        return Ok(());
    }
    if aside::any(&**disk, layout)? {
        let why = format!(
            "all are kept: the damaged logs in {} may have named any of them; remove those you have no use for",
            layout.damaged().display()
        );
        freed.leave("blobs", layout.blobs(), why);
        return Ok(());
    }
    let blobs = Blobs::reading(disk.clone(), layout.clone());
    if blobs.has_packs().map_err(io::Error::other)? {
        // A tree in a pack names files and other trees, and records name the first tree alone.
        let why = "all are kept: there are checkpoints of workspaces, which may need any of them".to_owned();
        freed.leave("blobs", layout.blobs(), why);
        return Ok(());
    }
    let now = SystemTime::now();
    // Begun before the names are read: whatever is kept or reused from here on is left alone.
    let collection = (!dry_run).then(|| blobs.begin_collection()).transpose().map_err(io::Error::other)?;
    let candidates = blobs.unnamed(&HashSet::new(), now)?;
    if candidates.is_empty() {
        return Ok(());
    }
    let references = referenced_blobs(&**disk, layout)?;
    if let Some(closed) = references.unreadable.first() {
        let why = format!("all are kept: {} may name some, and cannot be looked into", closed.display());
        freed.leave("blobs", layout.blobs(), why);
        return Ok(());
    }
    crash_point("gc.blobs_named");
    let unnamed: Vec<(BlobId, u64)> =
        candidates.into_iter().filter(|(id, _)| !references.referenced.contains(id)).collect();
    let gone: HashSet<BlobId> = match collection {
        None => unnamed.iter().map(|(id, _)| *id).collect(),
        Some(collection) => collection.collect_blobs(&references.referenced, now)?.into_iter().collect(),
    };
    crash_point("gc.blobs_gone");
    for (id, bytes) in unnamed.into_iter().filter(|(id, _)| gone.contains(id)) {
        let why = "no record names it".into();
        freed.gone.push(Gone { kind: "blob", path: layout.blob(&id), bytes, why });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rekindle_domain::id::BootId;
    use rekindle_store::check::{Holding, check};
    use rekindle_store::{Opener, Store};
    use rekindle_testkit::clock::SimClock;
    use rekindle_testkit::sim::SimDisk;

    use super::*;

    /// A content is named by a tree, and that by another: only the first is named where names are looked for.
    #[test]
    fn blobs_stay_where_trees_in_packs_may_name_them() {
        let (disk, layout) = (Arc::new(SimDisk::new(1)) as SharedDisk, Layout::new("/home"));
        let opener = Opener { pid: 1, boot_id: BootId::mint(0, 1) };
        let store =
            Store::open(disk.clone(), "/home", opener, Arc::new(SimClock::default())).expect("a home");
        let blobs = store.blobs();
        let unnamed = blobs.put(b"unnamed, and old: a simulated disk counts from 1970").expect("kept");
        let batch = blobs.batch().expect("a batch");
        let packed = batch.put(b"in a pack").expect("put");
        drop(batch.commit().expect("committed"));
        let run = || {
            let report = check(disk.clone(), "/home", Holding::Nothing, &mut |_| {}).expect("checked");
            let mut freed = Freed::default();
            collect(&disk, &layout, &report, false, &mut freed).expect("collected");
            freed
        };
        let freed = run();
        assert_eq!((freed.gone.len(), freed.left.len()), (0, 1));
        assert!(blobs.get(&unnamed.blob).is_ok() && blobs.get(&packed).is_ok());
        let named = HashSet::from([unnamed.blob]);
        let collection = blobs.begin_collection().expect("begun");
        let gone = collection.collect_packs(&named, SystemTime::now(), false).expect("collected");
        assert_eq!(gone.removed.len(), 1);
        drop(collection);
        assert_eq!(run().gone.len(), 1, "without packs everything that may name a blob was looked at");
    }
}
