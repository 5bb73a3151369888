//! Import: a bundle becomes sessions of this home. It is read through before anything is written; then its logs are staged below
//! `imports/`, checked from the first record to the last and made safe; contents go into the blob store, which nothing names yet; and
//! in the end the files get their place, the log of a session last. Whoever dies on the way has that session whole or not at all.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use rekindle_agent::known::by_id;
use rekindle_domain::blob_id::BlobId;
use rekindle_domain::bundle::{BundledSession, Contents, Member, MemberName};
use rekindle_domain::compose::import as compose;
use rekindle_domain::event::Provider;
use rekindle_domain::fork::{Wishes, fork};
use rekindle_domain::id::SessionId;
use rekindle_domain::time::Timestamp;
use rekindle_store::blobs::{Blobs, Pins};
use rekindle_store::commit::Commits;
use rekindle_store::disk::{DiskFile, OpenMode, SharedDisk, if_exists, read_all, replace, write_all_at};
use rekindle_store::layout::Layout;
use rekindle_store::offline::Offline;
use rekindle_store::staging::{self, StagedSession};
use rekindle_store::{ImportStagedError, Store};
use serde::{Deserialize, Serialize};

use super::read::{self, BundleFile};
use super::{BundleError, Watcher};
use crate::ids::{millis, random};
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
    /// What somebody should know.
    pub notes: Vec<String>,
}

/// The plan of an import, written when everything is ready.
#[derive(Debug, Serialize, Deserialize)]
struct Plan {
    version: u32,
    sessions: Vec<SessionId>,
}

/// A bundle that is staged: checked, made safe, and not taken in yet. Dropped, it leaves nothing behind.
pub struct Staged {
    disk: SharedDisk,
    layout: Layout,
    name: String,
    /// The sessions.
    pub sessions: Vec<ImportedSession>,
    /// Where the bundle comes from.
    pub contents: Contents,
    // Dropped after the staging directory is removed.
    pins: Option<Pins>,
    _lock: Box<dyn DiskFile>,
}

impl Drop for Staged {
    fn drop(&mut self) {
        // What cannot be removed now is removed by the next import.
        let _ = staging::remove(&*self.disk, &self.layout.staging(&self.name));
        drop(self.pins.take());
    }
}

/// Reads a bundle and stages it. Nothing is written before all of it was read and found good.
pub fn stage(
    disk: &SharedDisk,
    layout: &Layout,
    file: &mut (impl Read + io::Seek),
    asked: &Import,
    watcher: Watcher<'_>,
) -> Result<Staged, BundleError> {
    let contents = read::verify(file, watcher)?;
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
        contents,
        pins: None,
        _lock: lock,
    };
    staged.write_files(file, watcher)?;
    staged.prepare_sessions(asked)?;
    Ok(staged)
}

/// Removes what imports have left that were cut short; the caller has their lock.
fn remove_leftovers(disk: &dyn rekindle_store::disk::Disk, layout: &Layout) -> Result<(), BundleError> {
    let unusable = |source| BundleError::Io { path: layout.imports(), source };
    for left in staging::leftovers(disk, layout).map_err(unusable)? {
        staging::remove(disk, &left).map_err(unusable)?;
    }
    Ok(())
}

/// Removes what imports have left that were cut short, unless one goes on; returns what was removed, or would be, and the room that
/// it took.
pub(crate) fn collect_leftovers(
    disk: &SharedDisk,
    layout: &Layout,
    dry_run: bool,
) -> Result<Vec<(PathBuf, u64)>, BundleError> {
    let unusable = |source| BundleError::Io { path: layout.imports(), source };
    let left = staging::leftovers(&**disk, layout).map_err(unusable)?;
    if left.is_empty() || staging::is_importing(&**disk, layout) {
        return Ok(Vec::new());
    }
    let sized = left.into_iter().map(|path| (staging::size(&**disk, &path).unwrap_or(0), path));
    let left = sized.map(|(bytes, path)| (path, bytes)).collect();
    if !dry_run {
        let Some(_lock) = staging::lock_imports(&**disk, layout)? else { return Ok(Vec::new()) };
        remove_leftovers(&**disk, layout)?;
    }
    Ok(left)
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
        for directory in [staging.home().to_owned(), staging.sessions()] {
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

    /// Checks each staged log, and makes its session safe.
    fn prepare_sessions(&mut self, asked: &Import) -> Result<(), BundleError> {
        let offline = Offline::open(self.disk.clone(), self.layout.home())?;
        for bundled in self.contents.sessions.clone() {
            let session = self.prepare_session(&offline, &bundled, asked)?;
            self.sessions.push(session);
        }
        Ok(())
    }

    fn prepare_session(
        &self,
        offline: &Offline,
        bundled: &BundledSession,
        asked: &Import,
    ) -> Result<ImportedSession, BundleError> {
        let was = bundled.session_id;
        let mut staged = StagedSession::open(self.disk.clone(), &self.directory(), was)?;
        let state = staged.state();
        if (state.last_seq, state.last_hash) != (bundled.seq, bundled.h) {
            return Err(BundleError::Misdescribed(was));
        }
        let (agent, is_command) = agent_of(&state.provider);
        if is_command && !asked.trust_command {
            return Err(BundleError::UnknownCommand { session: was, command: agent });
        }
        let mut notes: Vec<String> = Vec::new();
        notes.extend(
            staged.missing().map(|why| format!("what it was forked from is not in the bundle: {why}")),
        );
        let (lost_run, dropped_prompts) = (state.open_run().is_some(), state.queue.len());
        let (title, records) = (state.title.clone(), state.last_seq);
        let working_dir = asked.working_dir.clone().unwrap_or_else(|| state.working_dir.clone());
        let from = compose::Import {
            machine: self.contents.machine.as_deref(),
            made_at: Some(self.contents.made_at),
            working_dir: asked.working_dir.as_deref(),
        };
        let records_of_import = compose::import(state, &staged.tokens(), from);
        staged.append(&records_of_import, asked.now)?;
        let taken = offline.has_any(was);
        let taken = taken.map_err(|source| BundleError::Io { path: self.layout.log(was), source })?;
        let mut id = was;
        if taken {
            let random = random().map_err(|error| BundleError::unread(io::Error::other(error)))?;
            id = SessionId::mint(millis(asked.now), random);
            notes.push(format!(
                "{was} is here already: this is a new session that goes on from what was imported"
            ));
            // They are of the session that is here already, by their name and by what they say.
            let kept = Layout::new(self.directory()).history(was);
            if if_exists(self.disk.list(&kept)).is_ok_and(|found| found.is_some()) {
                notes.push("its kept snapshots are of another id, and left out".into());
                let removed = staging::remove(&*self.disk, &kept);
                removed.map_err(|source| BundleError::Io { path: kept, source })?;
            }
            staged.into_base_of(id, |state, from| fork(state, from, Wishes::default()), asked.now)?;
        }
        let tree = bundled.tree;
        Ok(ImportedSession {
            id,
            was,
            title,
            working_dir,
            agent,
            is_command,
            records,
            lost_run,
            dropped_prompts,
            tree,
            notes,
        })
    }

    /// Puts contents and trees into the blob store, names the trees, and writes down that everything is ready to be taken in.
    pub fn keep_contents(
        &mut self,
        file: &mut (impl Read + io::Seek),
        watcher: Watcher<'_>,
    ) -> Result<(), BundleError> {
        if read::blobs(&self.contents).next().is_some() {
            let blobs = Blobs::reading(self.disk.clone(), self.layout.clone());
            let batch = blobs.batch()?;
            let mut visit = |member: &Member, bytes: &mut dyn Read| {
                let MemberName::Blob(id) = member.name else { return Ok(()) };
                if !batch.reuse(&id)? && batch.put_reader(bytes)?.0 != id {
                    let why = "its bytes do not have the hash in its name".to_owned();
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
        for tree in self.sessions.iter().filter_map(|session| session.tree) {
            workspaces.keep_tree(tree)?;
        }
        let path = plan_path(&self.directory());
        let plan = Plan { version: 1, sessions: self.sessions.iter().map(|session| session.id).collect() };
        let write = || {
            let sessions = Layout::new(self.directory()).sessions();
            self.disk.sync_dir(&sessions)?;
            replace(&*self.disk, &path, &serde_json::to_vec(&plan)?)
        };
        write().map_err(|source| BundleError::Io { path: path.clone(), source })
    }
}

fn plan_path(staging: &Path) -> PathBuf {
    staging.join("import.json")
}

/// Takes in what is staged: each session gets its place in the home of this store. Returns the sessions.
pub fn import_staged<C: Commits>(
    disk: &SharedDisk,
    store: &Store<C>,
    name: &str,
) -> Result<Vec<SessionId>, BundleError> {
    let not_staged = || BundleError::NotStaged(name.chars().take(80).collect());
    if name.len() != 32 || !name.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(not_staged());
    }
    let staging = store.layout().staging(name);
    let path = plan_path(&staging);
    let bytes = if_exists(read_all(&**disk, &path, MAX_PLAN));
    let bytes = bytes.map_err(|source| BundleError::Io { path: path.clone(), source })?;
    let plan: Plan = serde_json::from_slice(&bytes.ok_or_else(not_staged)?).map_err(|_| not_staged())?;
    for session in &plan.sessions {
        match store.import_staged(&staging, *session) {
            // Taken in by a call before this one, of which nothing was heard.
            Err(ImportStagedError::Exists(_)) if !is_staged(disk, &staging, *session) => {}
            outcome => outcome?,
        }
    }
    Ok(plan.sessions)
}

fn is_staged(disk: &SharedDisk, staging: &Path, session: SessionId) -> bool {
    disk.stat(&Layout::new(staging).log(session)).is_ok()
}

/// Returns who answers in a session, and whether that is a command that is not known here.
fn agent_of(provider: &Provider) -> (String, bool) {
    match (&provider.command, &provider.agent) {
        (None, Some(agent)) if by_id(agent).is_some() => (agent.clone(), false),
        (None, Some(agent)) => (agent.clone(), true),
        (Some(command), _) => (command.join(" "), true),
        (None, None) => ("nobody".into(), false),
    }
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
