//! Export: sessions and runs of pipelines become a bundle, while they go on. Each log is read up to the record that was its last when the export looked at
//! it, and nobody is stopped for that: what `gather` found goes into the table of contents, and `write` writes it.
//!
//! The table of contents comes first and has the hash and the size of everything: logs, snapshots and transcripts are read twice, once
//! for that and once to be written; contents of files are named by their hash, and their trees (`trees`) know their sizes.

mod gather;
mod gather_results;
mod gather_runs;
mod pins;
mod trees;
mod write;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use rekindle_agent::known::AgentDirectories;
use rekindle_domain::blob_id::BlobId;
use rekindle_domain::bundle::Contents;
use rekindle_domain::id::{PipelineId, SessionId};
use rekindle_domain::time::Timestamp;
use rekindle_store::Want;
use rekindle_store::disk::SharedDisk;
use rekindle_store::layout::Layout;
use rekindle_store::offline::Offline;
use rekindle_workspace::CaptureOptions;

use self::gather::Gathered;
pub(crate) use self::pins::remove_dead_pins;
use super::{BundleError, Watcher};
use crate::workspaces::Workspaces;

/// What is to be exported, and what the bundle says of itself.
pub struct Export<'a> {
    /// The sessions.
    pub sessions: Vec<SessionId>,
    /// The runs of pipelines: the sessions of their steps go along, and the trees that their ledgers name.
    pub runs: Vec<PipelineId>,
    /// How their working directories are captured, if their files are to go along: those of now, and those of every checkpoint and
    /// kept snapshot that are still here.
    pub files: Option<&'a dyn Fn(&Path) -> CaptureOptions<'static>>,
    /// Where agents keep their own files, if their transcripts are to go along.
    pub transcripts: Option<AgentDirectories>,
    /// The version that makes it.
    pub made_by: String,
    /// When.
    pub made_at: Timestamp,
    /// The machine, as people call it.
    pub machine: Option<String>,
}

/// What was exported.
#[derive(Debug)]
pub struct Exported {
    /// The table of contents.
    pub contents: Contents,
    /// What somebody should know who reads it elsewhere.
    pub notes: Vec<String>,
    /// Bytes of the bundle.
    pub bytes: u64,
}

/// The tree of each working directory whose files are asked for; none of one that is not there.
type Trees = BTreeMap<String, Option<BlobId>>;

/// Writes a bundle.
pub fn export(
    disk: &SharedDisk,
    layout: &Layout,
    asked: &Export<'_>,
    sink: &mut (dyn Write + Send),
    watcher: Watcher<'_>,
) -> Result<Exported, BundleError> {
    // Before the logs are looked at: a log tells of whatever an agent has done to the files by then.
    let trees = capture(disk, layout, asked)?;
    let offline = Offline::open(disk.clone(), layout.home())?;
    let mut gathered = Gathered::new(&offline, asked);
    for session in &asked.sessions {
        gathered.add_session(*session, &trees)?;
    }
    for run in &asked.runs {
        gathered.add_run(*run, &trees)?;
    }
    // From here on nobody collects what is named, however long its reader takes.
    let pins = gathered.pin(disk);
    gathered.add_objects()?;
    let contents = Contents {
        format: Contents::format_with(gathered.runs.len(), gathered.results.len()),
        made_by: asked.made_by.clone(),
        made_at: asked.made_at,
        machine: asked.machine.clone(),
        sessions: std::mem::take(&mut gathered.sessions),
        runs: std::mem::take(&mut gathered.runs),
        members: gathered.members.iter().map(|(member, _)| member.clone()).collect(),
    };
    contents.check()?;
    let bytes = gathered.write(&contents, sink, watcher)?;
    drop(pins);
    Ok(Exported { contents, notes: gathered.notes, bytes })
}

/// Captures the working directories, if their files are asked for.
///
/// What is captured is young, and nobody collects that before it is pinned.
fn capture(disk: &SharedDisk, layout: &Layout, asked: &Export<'_>) -> Result<Trees, BundleError> {
    let (mut trees, Some(options)) = (Trees::new(), asked.files) else { return Ok(Trees::new()) };
    let workspaces = Workspaces::new(disk.clone(), layout.clone());
    let offline = Offline::open(disk.clone(), layout.home())?;
    for session in &asked.sessions {
        let directory = offline.load(*session, Want::Status)?.state.working_dir;
        if trees.contains_key(&directory) {
            continue;
        }
        // One that is not there is told as a note: the session can go on elsewhere without its files.
        let is_there = Path::new(&directory).is_dir();
        let captured = is_there.then(|| workspaces.capture_for_now(options(Path::new(&directory))));
        trees.insert(directory, captured.transpose()?.map(|captured| captured.tree));
    }
    Ok(trees)
}
