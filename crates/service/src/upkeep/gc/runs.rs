//! Collecting runs of pipelines that ended long ago: their ledgers and summaries go, and the snapshots that were kept for them alone. The
//! sessions of their steps stay, and so does every run that has not ended, or that somebody is about to reopen.

use std::collections::{BTreeSet, HashSet};
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

use rekindle_domain::id::{PipelineId, RunName, StreamId};
use rekindle_domain::pipeline::RunStatus;
use rekindle_store::blob_references::references_in;
use rekindle_store::blobs::BlobId;
use rekindle_store::disk::{SharedDisk, if_exists};
use rekindle_store::log::Cursor;
use rekindle_store::offline::Offline;
use rekindle_store::run_files::{self, RunRemoval};

use super::{Freed, GcOptions, age_of};
use crate::error::chain;
use crate::test_knobs::crash_point;
use crate::workspaces::Workspaces;

/// What is younger than this may be somebody's who has not said so yet.
const YOUNG: Duration = Duration::from_secs(24 * 60 * 60);

/// Removes runs that ended longer ago than is wanted, and what was kept for runs that are gone.
pub(super) fn collect(disk: &SharedDisk, offline: &Offline, options: GcOptions, freed: &mut Freed) {
    let Some(least) = options.runs_older_than else { return };
    let now = SystemTime::now();
    let runs = match offline.pipelines() {
        Ok(listed) => listed.runs,
        Err(error) => return freed.note_failed("run", &offline.layout().runs(), error.to_string()),
    };
    let pending: BTreeSet<StreamId> = offline.pending.iter().map(|(stream, _)| *stream).collect();
    let mut gone = BTreeSet::new();
    for name in &runs {
        let id = name.pipeline_id();
        let path = offline.layout().run(id);
        let is_pending = pending.contains(&id.into());
        if !is_pending && run_files::is_leftover(&**disk, offline.layout(), id).unwrap_or(false) {
            if age_of(&path) >= YOUNG {
                let why = "its removal was interrupted, or its start failed".into();
                freed.remove(("run", path, why), options, |_| remove(disk, offline, id));
            }
            continue;
        }
        let Some(ended_ago) = ended_ago(offline, id, now).filter(|ago| *ago >= least) else { continue };
        if let Err(why) = is_removable(disk, offline, id, is_pending) {
            freed.leave("run", &path, why);
            continue;
        }
        crash_point("gc.before_run");
        let why = format!("it ended {} days ago", ended_ago.as_secs() / (24 * 60 * 60));
        let failed = freed.0.failed.len();
        freed.remove(("run", path, why), options, |_| remove(disk, offline, id));
        if freed.0.failed.len() == failed {
            gone.insert(*name);
        }
    }
    if let Err(error) = snapshots(disk, offline, &gone, now, options, freed) {
        freed.note_failed("snapshot", &offline.layout().workspaces(), chain(&error));
    }
}

/// Returns how long ago a run ended; none of one that has not, or that cannot be read.
fn ended_ago(offline: &Offline, id: PipelineId, now: SystemTime) -> Option<Duration> {
    let loaded = offline.pipeline(id).ok().filter(|loaded| loaded.damage.is_none())?;
    if loaded.state.status == RunStatus::Running {
        return None;
    }
    let at = u64::try_from(loaded.state.ended.as_deref()?.at.as_millis()).ok()?;
    now.duration_since(SystemTime::UNIX_EPOCH + Duration::from_millis(at)).ok()
}

/// Says why a run that is old enough stays all the same.
fn is_removable(
    disk: &SharedDisk,
    offline: &Offline,
    id: PipelineId,
    is_pending: bool,
) -> Result<(), String> {
    if is_pending {
        return Err("the write-ahead log still has records of it: collect while a daemon is running".into());
    }
    match if_exists(disk.stat(&offline.layout().ledger(id))) {
        Ok(None) => Ok(()),
        Ok(Some(_)) => Err(
            "its ledger is not compressed, or it is being reopened: the next start of a daemon compresses it"
                .into(),
        ),
        Err(error) => Err(error.to_string()),
    }
}

fn remove(disk: &SharedDisk, offline: &Offline, id: PipelineId) -> Result<(), String> {
    match run_files::remove(&**disk, offline.layout(), id).map_err(|error| error.to_string())? {
        RunRemoval::Gone => Ok(()),
        RunRemoval::InUse => Err("it is being reopened".into()),
        RunRemoval::Foreign(name) => {
            Err(format!("it contains {name}, which is not one of Rekindle's files: move it elsewhere"))
        }
    }
}

/// Lets go of the snapshots that were kept for runs, and that no run names any more. What others name stays in the blob store.
fn snapshots(
    disk: &SharedDisk,
    offline: &Offline,
    gone: &BTreeSet<RunName>,
    now: SystemTime,
    options: GcOptions,
    freed: &mut Freed,
) -> io::Result<()> {
    let workspaces = Workspaces::new(disk.clone(), offline.layout().clone());
    let kept = workspaces.kept_for_runs(YOUNG, now).map_err(io::Error::other)?;
    if kept.is_empty() {
        return Ok(());
    }
    let named = named_by_runs(offline, gone)?;
    for tree in kept.into_iter().filter(|tree| !named.contains(tree)) {
        let path = offline.layout().manifest(&tree);
        let why = "it was kept for a run that is gone".into();
        freed.remove(("snapshot", path, why), options, |_: &Path| {
            workspaces.let_go(tree).map_err(|error| chain(&error))
        });
    }
    Ok(())
}

/// Returns what the ledgers of the runs that stay name. One that cannot be read may name anything: then nothing goes.
fn named_by_runs(offline: &Offline, gone: &BTreeSet<RunName>) -> io::Result<HashSet<BlobId>> {
    let mut named = HashSet::new();
    for name in offline.pipelines()?.runs.iter().filter(|name| !gone.contains(name)) {
        if let Some(ledger) = if_exists(offline.ledger_reader(name.pipeline_id()))? {
            references_in(&mut ledger.stored(Cursor::START, ledger.end()), &mut named)?;
        }
    }
    Ok(named)
}
