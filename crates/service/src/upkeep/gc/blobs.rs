//! Collecting blobs that nothing names. Right beside a daemon that keeps others at this moment: what is young stays, and
//! who keeps a blob and who removes one take turns.

use std::collections::{BTreeSet, HashSet};
use std::io;
use std::time::SystemTime;

use rekindle_store::aside;
use rekindle_store::blob_references::referenced_blobs;
use rekindle_store::blobs::{BlobId, Blobs};
use rekindle_store::check::{Code, Finding, Report, Severity};
use rekindle_store::disk::{Disk, SharedDisk, if_exists};
use rekindle_store::layout::Layout;

use super::super::expired_checkpoints;
use super::reachable::add_reachable;
use super::{Freed, GcOptions, checkpoints};
use crate::bundles::export::remove_dead_pins;
use crate::error::chain;
use crate::test_knobs::crash_point;
use crate::workspaces::BlobSource;

/// Removes the blobs that no file of the home names.
pub(super) fn collect(
    disk: &SharedDisk,
    layout: &Layout,
    blobs: &Blobs,
    report: &Report,
    options: GcOptions,
    freed: &mut Freed,
) -> io::Result<()> {
    let dry_run = options.dry_run;
    let doubtful = |finding: &&Finding| {
        let says_names = finding.session.is_some()
            || finding.code.as_str().starts_with("wal_")
            || finding.path.starts_with(layout.runs());
        finding.severity == Severity::Error && says_names || finding.code == Code::KeptSnapshotDamaged
    };
    let damaged = report.findings.iter().find(doubtful);
    if let Some(finding) = damaged {
        let why = format!("all are kept: {} is damaged and may refer to any of them", finding.path.display());
        freed.leave("blobs", &layout.blobs(), why);
        return Ok(());
    }
    if aside::any(&**disk, layout)? {
        let why = format!(
            "all are kept: the damaged logs in {} may refer to any of them; remove those you do not need",
            layout.damaged().display()
        );
        freed.leave("blobs", &layout.blobs(), why);
        return Ok(());
    }
    let now = SystemTime::now();
    let has_packs = blobs.has_packs().map_err(io::Error::other)?;
    // Begun before the names are read: whatever is kept or reused from here on is left alone. What is only told needs no lock, and
    // touches nothing.
    let collection = (!dry_run).then(|| blobs.begin_collection()).transpose().map_err(io::Error::other)?;
    if !dry_run {
        remove_dead_pins(disk, layout)?;
    }
    let candidates = blobs.unnamed(&HashSet::new(), now)?;
    if candidates.is_empty() && !has_packs {
        return Ok(());
    }
    let mut expired = BTreeSet::new();
    let references = match options.checkpoints {
        Some(retention) => {
            let kept = checkpoints::references(disk, layout, blobs, retention, now)?;
            (freed.0.expired_checkpoints, freed.0.space.checkpoints) = (kept.expired, Some(kept.bytes));
            expired = kept.expired_trees;
            kept.references
        }
        None => referenced_blobs(&**disk, layout)?,
    };
    if let Some(closed) = references.unreadable.first() {
        let why = format!("all are kept: {} may refer to some of them and cannot be read", closed.display());
        freed.leave("blobs", &layout.blobs(), why);
        return Ok(());
    }
    let mut named = references.referenced;
    named.extend(kept_trees(&**disk, layout)?);
    if let Err(error) = add_reachable(&BlobSource(blobs.clone()), &mut named) {
        let why = format!("all are kept, because this may refer to any of them: {}", chain(&error));
        freed.leave("blobs", &layout.blobs(), why);
        return Ok(());
    }
    crash_point("gc.blobs_named");
    if !dry_run {
        // Before anything goes: whoever misses it finds why.
        expired_checkpoints::note(&**disk, layout, &expired)?;
    }
    let unnamed: Vec<(BlobId, u64)> = candidates.into_iter().filter(|(id, _)| !named.contains(id)).collect();
    let gone: HashSet<BlobId> = match &collection {
        Some(collection) if !dry_run => collection.collect_blobs(&named, now)?.into_iter().collect(),
        _ => unnamed.iter().map(|(id, _)| *id).collect(),
    };
    crash_point("gc.blobs_gone");
    for (id, bytes) in unnamed.into_iter().filter(|(id, _)| gone.contains(id)) {
        freed.note_gone("blob", &layout.blob(&id), bytes, "no record refers to it");
    }
    let packs = match &collection {
        Some(collection) => collection.collect_packs(&named, now),
        None => blobs.plan_packs(&named, now),
    };
    let packs = packs.map_err(io::Error::other)?;
    for (path, bytes) in packs.removed {
        freed.note_gone("pack", &path, bytes, "no record, snapshot or tree refers to anything in it");
    }
    for (path, bytes) in packs.rewritten {
        let why = "most of it was unused: the rest was moved to a new one";
        freed.note_gone("pack", &path, bytes, why);
    }
    for path in packs.damaged {
        freed.leave("pack", &path, "it is damaged and is left as it is".into());
    }
    Ok(())
}

/// Returns the trees that are kept by name: also one whose manifest cannot be read any more.
fn kept_trees(disk: &dyn Disk, layout: &Layout) -> io::Result<Vec<BlobId>> {
    let entries = if_exists(disk.list(&layout.workspaces()))?.unwrap_or_default();
    Ok(entries.iter().filter_map(|entry| Layout::manifest_tree(&entry.name)).collect())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use std::path::PathBuf;

    use rekindle_domain::event::{Compression, Options, Provider, SessionCreated};
    use rekindle_domain::id::{BootId, SessionId};
    use rekindle_domain::kept_snapshot::{KeptSnapshot, SnapshotReason};
    use rekindle_store::check::{Holding, check};
    use rekindle_store::commit::Append;
    use rekindle_store::disk::replace;
    use rekindle_store::{Opener, Store};
    use rekindle_testkit::clock::SimClock;
    use rekindle_testkit::sim::SimDisk;
    use rekindle_wire::view::Collected;
    use rekindle_workspace::tree::{Entry, FileMode, MAGIC, Node, TreeBuilder};

    use super::*;

    /// A home with a store, and how it is collected.
    struct HomeToCollect {
        disk: SharedDisk,
        layout: Layout,
        blobs: Blobs,
        store: Store,
    }

    impl HomeToCollect {
        fn new() -> HomeToCollect {
            let (disk, layout) = (Arc::new(SimDisk::new(1)) as SharedDisk, Layout::new("/home"));
            let opener = Opener { pid: 1, boot_id: BootId::mint(0, 1) };
            let store = Store::open(disk.clone(), "/home", opener, Arc::new(SimClock::default()));
            let store = store.expect("a home");
            HomeToCollect { disk, layout, blobs: store.blobs(), store }
        }

        fn run(&self, dry_run: bool) -> Collected {
            let report = check(self.disk.clone(), "/home", Holding::Nothing, &mut |_| {}).expect("checked");
            let mut freed = Freed::default();
            let options = GcOptions { dry_run, ..GcOptions::default() };
            let blobs = Blobs::reading(self.disk.clone(), self.layout.clone());
            collect(&self.disk, &self.layout, &blobs, &report, options, &mut freed).expect("collected");
            freed.0
        }

        /// Puts a tree with one file into a directory below it, and returns the tree, the tree below it and the content.
        fn tree(&self, content: &[u8]) -> [BlobId; 3] {
            let batch = self.blobs.batch().expect("a batch");
            let id = batch.put(content).expect("put");
            let file = Node::File { mode: FileMode::Plain, size: content.len() as u64, content: id };
            let directory = |name: &[u8], node: Node<'_>| {
                let mut tree = TreeBuilder::new();
                tree.push(&Entry { name, node }).expect("an entry");
                batch.put(tree.finish().bytes()).expect("put")
            };
            let below = directory(b"file", file);
            let above = directory(b"directory", Node::Directory { tree: below });
            drop(batch.commit().expect("committed"));
            [above, below, id]
        }

        fn keep(&self, tree: BlobId, manifest: &[u8]) {
            self.disk.create_dir(&self.layout.workspaces()).expect("a directory");
            replace(&*self.disk, &self.layout.manifest(&tree), manifest).expect("written");
        }

        /// Keeps a snapshot of a session that names a tree, and returns where its file is.
        fn keep_snapshot(&self, tree: BlobId, compression: Compression) -> PathBuf {
            let session = SessionId::mint(1, compression as u128);
            self.store.create(session).expect("a session");
            let created = SessionCreated {
                parent: None,
                title: "t".into(),
                working_dir: "/w".into(),
                provider: Provider { profile: "acp".into(), ..Provider::default() },
                options: Options::default(),
                env_names: Vec::new(),
                key: None,
                imported_from: None,
                idempotency_key: None,
                created_at: None,
                forked_from: None,
                restoring: None,
                worktree: None,
            };
            self.store.append(Append::durable(session, vec![created.into()])).expect("recorded");
            let state = (*self.store.open_session(session).expect("open").state).clone();
            let snapshot =
                KeptSnapshot::new(state, SnapshotReason::Request, SimClock::default_start(), Some(tree));
            let kept = self.store.keep_snapshots(&[(snapshot, compression)]).pop().expect("one");
            kept.expect("kept").file.path
        }

        fn has(&self, ids: &[BlobId]) -> bool {
            // As somebody who comes later finds them: whoever had a pack open can read it for a while.
            let blobs = Blobs::reading(self.disk.clone(), self.layout.clone());
            ids.iter().all(|id| blobs.get(id).is_ok())
        }
    }

    // Everything is old here: a simulated disk counts from 1970.
    #[test]
    fn what_a_kept_tree_names_stays_and_everything_else_goes() {
        let home = HomeToCollect::new();
        let unnamed = home.blobs.put(b"unnamed").expect("kept").blob;
        let kept = home.tree(b"in a kept tree");
        // Its manifest is damaged: the name of the file says enough.
        home.keep(kept[0], b"{");
        let told = home.run(true);
        assert!(told.gone.iter().any(|gone| gone.kind == "blob") && home.has(&[unnamed]), "only told");
        let freed = home.run(false);
        assert!(freed.left.is_empty() && freed.gone.len() == 1, "{freed:?}");
        assert!(home.has(&kept) && !home.has(&[unnamed]));
        home.disk.remove_file(&home.layout.manifest(&kept[0])).expect("removed");
        let freed = home.run(false);
        assert_eq!(
            freed.gone.iter().map(|gone| gone.kind.as_str()).collect::<Vec<_>>(),
            ["pack"],
            "{freed:?}"
        );
        assert!(!kept.iter().any(|id| home.has(&[*id])));
    }

    #[test]
    fn what_a_kept_snapshot_names_stays_however_it_is_compressed() {
        for compression in Compression::ALL {
            let home = HomeToCollect::new();
            let unnamed = home.blobs.put(b"unnamed").expect("kept").blob;
            let kept = home.tree(b"in a snapshot's tree");
            let file = home.keep_snapshot(kept[0], compression);
            let freed = home.run(false);
            assert!(freed.left.is_empty() && freed.gone.len() == 1, "{compression:?}: {freed:?}");
            assert!(home.has(&kept) && !home.has(&[unnamed]));
            // Nobody knows what a damaged one names.
            replace(&*home.disk, &file, b"{").expect("written");
            let unnamed = home.blobs.put(b"unnamed").expect("kept").blob;
            let freed = home.run(false);
            assert!(freed.gone.is_empty() && freed.left.len() == 1, "{compression:?}: {freed:?}");
            assert!(freed.left[0].why.contains(&file.display().to_string()), "{freed:?}");
            assert!(home.has(&[unnamed]) && home.has(&kept), "{compression:?}");
        }
    }

    #[test]
    fn a_tree_that_cannot_be_read_keeps_everything() {
        let home = HomeToCollect::new();
        let batch = home.blobs.batch().expect("a batch");
        // The magic of a tree, and then none.
        let broken = batch.put(&[MAGIC, b"?????"].concat()).expect("put");
        drop(batch.commit().expect("committed"));
        home.keep(broken, b"{}");
        let unnamed = home.blobs.put(b"unnamed").expect("kept").blob;
        let freed = home.run(false);
        assert!(freed.gone.is_empty() && freed.left.len() == 1, "{freed:?}");
        assert!(freed.left[0].why.contains(&broken.to_string()), "{freed:?}");
        assert!(home.has(&[unnamed]));
    }
}
