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
