//! Import: a bundle becomes sessions and runs of this home. It is read through before anything is written; then its logs are staged below
//! `imports/`, checked from the first record to the last and made safe; contents go into the blob store, which nothing names yet; and
//! in the end the files get their place, the log of a session last, results that runs share before the ledgers of these. Whoever dies on the way has that session whole or not at all;
//! what is left of it then is removed (`leftovers`).

mod leftovers;
mod prepare;
mod prepare_results;
mod prepare_run;

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use rekindle_agent::known::AgentDirectories;
use rekindle_domain::blob_id::BlobId;
use rekindle_domain::bundle::{Contents, Member, MemberName};
use rekindle_domain::id::{RunName, SessionId};
use rekindle_domain::pipeline::RunStatus;
use rekindle_domain::time::Timestamp;
use rekindle_store::blobs::{Blobs, Pins};
use rekindle_store::commit::Commits;
use rekindle_store::disk::{
    Disk, DiskFile, OpenMode, SharedDisk, if_exists, read_all, replace, write_all_at,
};
use rekindle_store::layout::Layout;
use rekindle_store::staging;
use rekindle_store::step_cache::StepCache;
use rekindle_store::{ImportStagedError, Store};
use serde::{Deserialize, Serialize};

pub(crate) use self::leftovers::collect_leftovers;
use self::leftovers::{remove_leftovers, remove_staged};
pub use self::prepare_results::{ImportedResult, ImportedResults, LeftOut};
use super::read::{self, BundleFile};
use super::{BundleError, Watcher, transcripts};
use crate::ids::random;
use crate::workspaces::Workspaces;

/// Largest plan of an import that is read: it has ids.
const MAX_PLAN: u64 = 16 << 20;

/// How much is written at a time.
const CHUNK: usize = 1 << 16;

/// How a bundle is to be imported.
#[derive(Debug, Clone)]
pub struct Import {
    /// Where agents work from now on, if that is another directory: an absolute path.
    pub working_dir: Option<String>,
    /// Commands that are no known agents are taken.
    pub trust_command: bool,
    /// Where agents keep their own files here.
    pub agent_directories: AgentDirectories,
    /// The time.
    pub now: Timestamp,
}

/// A session as it is imported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ImportedSession {
    /// Its id here.
    pub id: SessionId,
    /// Its id in the bundle.
    pub was: SessionId,
    /// Its title.
    pub title: String,
    /// Where its agent works from now on.
    pub working_dir: String,
    /// Its agent, or the command that is one.
    pub agent: String,
    /// The command is no known agent's.
    pub is_command: bool,
    /// Records of its log in the bundle.
    pub records: u64,
    /// A run was going on, which is lost.
    pub lost_run: bool,
    /// Prompts that waited, and are dropped.
    pub dropped_prompts: usize,
    /// Its files, if they are in the bundle.
    pub tree: Option<BlobId>,
    /// How many other states of its files are in the bundle: of checkpoints and kept snapshots.
    pub checkpoints: usize,
    /// Where what its agent wrote down itself goes.
    pub transcript: Option<PathBuf>,
    /// What somebody should know.
    pub notes: Vec<String>,
}

/// A run of a pipeline as it is imported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ImportedRun {
    /// Its name.
    pub run_id: RunName,
    /// The goal of its task.
    pub goal: String,
    /// Where it stands.
    pub status: RunStatus,
    /// Where its steps work from now on.
    pub working_dir: String,
    /// Records of its ledger in the bundle.
    pub records: u64,
    /// The step that it goes on with; none if it has ended.
    pub next: Option<String>,
    /// An attempt at that was going on, and begins again.
    pub lost_attempt: bool,
    /// The files that it goes on with, if they are in the bundle.
    pub tree: Option<BlobId>,
}

/// The plan of an import, written when everything is ready.
#[derive(Debug, Serialize, Deserialize)]
struct Plan {
    version: u32,
    sessions: Vec<SessionId>,
    #[serde(default)]
    runs: Vec<RunName>,
    #[serde(default)]
    results: Vec<ImportedResult>,
}

impl Plan {
    /// Reads the plan of a staging directory; none if nothing is ready there.
    fn read(disk: &dyn Disk, staging: &Path) -> io::Result<Option<Plan>> {
        let bytes = if_exists(read_all(disk, &plan_path(staging), MAX_PLAN))?;
        Ok(bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()))
    }
}

/// A bundle that is staged: checked, made safe, and not taken in yet. Dropped, it leaves nothing behind.
pub struct Staged {
    disk: SharedDisk,
    layout: Layout,
    name: String,
    /// The sessions.
    pub sessions: Vec<ImportedSession>,
    /// The runs of pipelines.
    pub runs: Vec<ImportedRun>,
    /// Sessions of runs that are here already, and stay as they are.
    pub known: Vec<SessionId>,
    /// The results of steps that runs share.
    pub results: ImportedResults,
    /// Where the bundle comes from.
    pub contents: Contents,
    // Dropped after the staging directory is removed.
    pins: Option<Pins>,
    _lock: Box<dyn DiskFile>,
}

impl Drop for Staged {
    fn drop(&mut self) {
        // What cannot be removed now is removed by the next import, or the next start.
        let _ = remove_staged(&*self.disk, &self.layout, &self.layout.staging(&self.name));
        drop(self.pins.take());
    }
}

/// Reads a bundle and stages it. Nothing is written before all of it was read and found good.
pub fn stage(
    disk: &SharedDisk,
    layout: &Layout,
    file: &mut dyn BundleFile,
    asked: &Import,
    watcher: Watcher<'_>,
) -> Result<Staged, BundleError> {
    let (contents, mut trees) = read::verify(file, watcher)?;
    rekindle_store::home::prepare(&**disk, layout)?;
    let lock = staging::lock_imports(&**disk, layout)?.ok_or(BundleError::Busy)?;
    remove_leftovers(&**disk, layout)?;
    let name = format!(
        "{:032x}",
        random().map_err(|error| BundleError::File { doing: "read", source: io::Error::other(error) })?
    );
    let mut staged = Staged {
        disk: disk.clone(),
        layout: layout.clone(),
        name,
        sessions: Vec::new(),
        runs: Vec::new(),
        known: Vec::new(),
        results: ImportedResults::default(),
        contents,
        pins: None,
        _lock: lock,
    };
    staged.write_files(file, watcher)?;
    let steps = staged.prepare_runs(asked)?;
    staged.prepare_results(&steps, &mut trees);
    staged.prepare_sessions(asked)?;
    Ok(staged)
}

impl Staged {
    /// Returns what it is staged as.
    pub fn name(&self) -> &str {
        &self.name
    }

    fn directory(&self) -> PathBuf {
        self.layout.staging(&self.name)
    }

    /// Writes everything but contents into the staging directory.
    fn write_files(&self, file: &mut dyn BundleFile, watcher: Watcher<'_>) -> Result<(), BundleError> {
        let staging = Layout::new(self.directory());
        let below =
            [staging.sessions(), transcripts_path(staging.home()), staging.runs(), staging.cached_results()];
        let runs = self.contents.runs.iter().map(|run| staging.run(run.run_id.pipeline_id()));
        for directory in [staging.home().to_owned()].into_iter().chain(below).chain(runs) {
            let made = self.disk.create_dir(&directory);
            made.map_err(|source| BundleError::Io { path: directory, source })?;
        }
        let mut visit = |member: &Member, bytes: &mut dyn Read| {
            let path = match &member.name {
                MemberName::Base(session) => staging.base(*session),
                MemberName::Log(session) => staging.log(*session),
                MemberName::Snapshot(session, ..) => {
                    let directory = staging.history(*session);
                    if self.disk.stat(&directory).is_err() {
                        let made = self.disk.create_dir(&directory);
                        made.map_err(|source| BundleError::Io { path: directory.clone(), source })?;
                    }
                    let name = member.name.to_string();
                    // Names of our own grammar: what is behind the last slash is a plain name.
                    directory.join(name.rsplit('/').next().unwrap_or_default())
                }
                MemberName::Transcript(session) => transcript_path(&self.directory(), *session),
                MemberName::Ledger(run) => staging.ledger(run.pipeline_id()),
                MemberName::CachedResult(key) => staging.cached_results().join(key.file_name()),
                MemberName::Blob(_) => return Ok(()),
            };
            let written = write_file(&self.disk, &path, bytes);
            written.map_err(|source| BundleError::Io { path, source })
        };
        let again = read::read(file, &mut visit, "reading", watcher)?;
        if again != self.contents {
            return Err(BundleError::Damaged("it was changed while it was imported".into()));
        }
        Ok(())
    }

    /// Puts transcripts where agents look for them. A crash behind this leaves one that no session of ours names: the next import of
    /// the bundle finds it there.
    fn put_transcripts(&self) -> Result<(), BundleError> {
        for (session, place) in
            self.sessions.iter().filter_map(|session| Some((session, session.transcript.as_ref()?)))
        {
            let staged = transcript_path(&self.directory(), session.was);
            let open = || Ok(Box::new(StagedFile::open(&self.disk, &staged)?) as Box<dyn Read>);
            let put = transcripts::put(place, &open);
            put.map_err(|source| BundleError::Io { path: place.clone(), source })?;
        }
        Ok(())
    }

    /// Puts contents and trees into the blob store, names the trees, puts transcripts to their places, and writes down that everything
    /// is ready to be taken in.
    pub fn keep_contents(
        &mut self,
        file: &mut dyn BundleFile,
        watcher: Watcher<'_>,
    ) -> Result<(), BundleError> {
        if read::blobs(&self.contents).next().is_some() {
            let blobs = Blobs::reading(self.disk.clone(), self.layout.clone());
            let batch = blobs.batch()?;
            let mut visit = |member: &Member, bytes: &mut dyn Read| {
                let MemberName::Blob(id) = member.name else { return Ok(()) };
                if !batch.reuse(&id)? && batch.put_reader(bytes)?.0 != id {
                    let why = "its bytes do not match the hash in its name".to_owned();
                    return Err(BundleError::Member { name: member.name.clone(), why });
                }
                Ok(())
            };
            let again = read::read(file, &mut visit, "importing", watcher)?;
            if again != self.contents {
                return Err(BundleError::Damaged("it was changed while it was imported".into()));
            }
            self.pins = Some(batch.commit()?);
        }
        let workspaces = Workspaces::new(self.disk.clone(), self.layout.clone());
        let trees = self.sessions.iter().filter_map(|session| session.tree);
        for tree in trees.chain(self.runs.iter().filter_map(|run| run.tree)) {
            workspaces.keep_tree(tree)?;
        }
        self.put_transcripts()?;
        let path = plan_path(&self.directory());
        let plan = Plan {
            version: 1,
            sessions: self.sessions.iter().map(|session| session.id).collect(),
            runs: self.runs.iter().map(|run| run.run_id).collect(),
            results: self.results.imported.clone(),
        };
        let write = || {
            let sessions = Layout::new(self.directory()).sessions();
            self.disk.sync_dir(&sessions)?;
            self.disk.sync_dir(&Layout::new(self.directory()).cached_results())?;
            for run in &plan.runs {
                self.disk.sync_dir(&Layout::new(self.directory()).run(run.pipeline_id()))?;
            }
            // Its own name too: whoever comes after a crash knows from the plan what was moved.
            self.disk.sync_dir(&self.layout.imports())?;
            replace(&*self.disk, &path, &serde_json::to_vec(&plan)?)
        };
        write().map_err(|source| BundleError::Io { path: path.clone(), source })
    }
}

fn plan_path(staging: &Path) -> PathBuf {
    staging.join("import.json")
}

fn transcripts_path(staging: &Path) -> PathBuf {
    staging.join("transcripts")
}

fn transcript_path(staging: &Path, session: SessionId) -> PathBuf {
    transcripts_path(staging).join(format!("{session}.jsonl"))
}

/// A staged file, read from its beginning.
struct StagedFile {
    file: Box<dyn DiskFile>,
    at: u64,
}

impl StagedFile {
    fn open(disk: &SharedDisk, path: &Path) -> io::Result<StagedFile> {
        Ok(StagedFile { file: disk.open(path, OpenMode::Read)?, at: 0 })
    }
}

impl Read for StagedFile {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(buf, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

/// What was taken in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakenIn {
    /// The sessions.
    pub sessions: Vec<SessionId>,
    /// The runs of pipelines.
    pub runs: Vec<RunName>,
}

/// Takes in what is staged: each session gets its place in the home of this store, then each shared result, then each run.
pub fn import_staged<C: Commits>(
    disk: &SharedDisk,
    store: &Store<C>,
    name: &str,
) -> Result<TakenIn, BundleError> {
    let not_staged = || BundleError::NotStaged(name.chars().take(80).collect());
    if name.len() != 32 || !name.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(not_staged());
    }
    let staging = store.layout().staging(name);
    let plan = Plan::read(&**disk, &staging);
    let plan = plan.map_err(|source| BundleError::Io { path: plan_path(&staging), source })?;
    let plan = plan.ok_or_else(not_staged)?;
    for session in &plan.sessions {
        match store.import_staged(&staging, *session) {
            // Taken in by a call before this one, of which nothing was heard.
            Err(ImportStagedError::Exists(_)) if !is_staged(disk, &staging, *session) => {}
            outcome => outcome?,
        }
    }
    take_in_results(disk, store.layout(), &staging, &plan.results)?;
    for run in &plan.runs {
        match store.import_staged_run(&staging, *run) {
            Err(ImportStagedError::RunExists(_)) if !is_run_staged(disk, &staging, *run) => {}
            outcome => outcome?,
        }
    }
    Ok(TakenIn { sessions: plan.sessions, runs: plan.runs })
}

/// Gives staged results their place. Before the ledgers: of a run that is here the bundle is not taken in a second time.
fn take_in_results(
    disk: &SharedDisk,
    layout: &Layout,
    staging: &Path,
    results: &[ImportedResult],
) -> Result<(), BundleError> {
    let cache = StepCache::new(disk.clone(), layout.clone());
    for ImportedResult { key, agent } in results {
        let staged = Layout::new(staging).cached_results().join(key.file_name());
        let taken = cache.take_in(agent, *key, &staged);
        taken.map_err(|source| BundleError::Io { path: staged, source })?;
    }
    Ok(())
}

fn is_run_staged(disk: &SharedDisk, staging: &Path, run: RunName) -> bool {
    disk.stat(&Layout::new(staging).ledger(run.pipeline_id())).is_ok()
}

fn is_staged(disk: &SharedDisk, staging: &Path, session: SessionId) -> bool {
    disk.stat(&Layout::new(staging).log(session)).is_ok()
}

fn write_file(disk: &SharedDisk, path: &Path, bytes: &mut dyn Read) -> io::Result<()> {
    let file = disk.open(path, OpenMode::Replace)?;
    let (mut buffer, mut at) = (vec![0; CHUNK], 0);
    loop {
        match bytes.read(&mut buffer)? {
            0 => break,
            read => {
                write_all_at(&*file, &buffer[..read], at)?;
                at += read as u64;
            }
        }
    }
    file.sync()
}
