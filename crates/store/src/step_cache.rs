//! The cache of steps: results that runs of pipelines share, a file for each key in a directory for each agent. Whatever is wrong with
//! a file is told and passed over: it costs a step that is done once more.

use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rekindle_domain::id::StepKey;
use rekindle_domain::pipeline::cached_result::CachedResult;

use crate::disk::{EntryKind, SharedDisk, if_exists, read_all, replace};
use crate::layout::{Layout, TEMPORARY_SUFFIX};

/// Largest result that is read: its payload is as large as one in a ledger, or a blob.
const MOST: u64 = 1 << 20;

/// The cache of steps of a home. Files are written one after the other.
pub struct StepCache {
    disk: SharedDisk,
    layout: Layout,
}

/// What the cache has of a key.
#[derive(Debug)]
pub enum Lookup {
    /// Nothing.
    Missing,
    /// A result that is what was written.
    Found(CachedResult<'static>),
    /// A file that is not to be believed.
    Bad {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
}

/// A file of the cache, as it is found in its directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheFile {
    /// Where it is.
    pub path: PathBuf,
    /// The key that it is named by.
    pub name: CacheFileName,
    /// Its bytes.
    pub bytes: u64,
    /// When it was written.
    pub modified: SystemTime,
}

/// What a name in the cache says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheFileName {
    /// The result under this key.
    Result(StepKey),
    /// Something that was not written to its end.
    Temporary,
    /// None of ours.
    Foreign,
}

impl StepCache {
    /// Returns the cache of a home.
    pub fn new(disk: SharedDisk, layout: Layout) -> StepCache {
        StepCache { disk, layout }
    }

    /// Looks for the result under a key: where the agent has its results, then where others have theirs, since the same agent may have
    /// another name there.
    pub fn find(&self, agent: &str, key: StepKey) -> Lookup {
        let own = self.layout.cached_results_of(agent).map(|directory| directory.join(key.file_name()));
        if let Some(found) = own.and_then(|path| self.look(path, key)) {
            return found;
        }
        let others = self.agents().unwrap_or_default().into_iter().filter(|other| other != agent);
        let paths = others.map(|other| self.layout.cached_results().join(other).join(key.file_name()));
        paths.filter_map(|path| self.look(path, key)).next().unwrap_or(Lookup::Missing)
    }

    /// Looks at a file that is to be the result of a key, wherever it is.
    pub fn look_at(&self, path: PathBuf, key: StepKey) -> Lookup {
        self.look(path, key).unwrap_or(Lookup::Missing)
    }

    fn look(&self, path: PathBuf, key: StepKey) -> Option<Lookup> {
        let bytes = match if_exists(read_all(&*self.disk, &path, MOST)) {
            Ok(bytes) => bytes?,
            Err(error) => return Some(Lookup::Bad { path, why: error.to_string() }),
        };
        Some(match CachedResult::read(&bytes, key) {
            Ok(result) => Lookup::Found(result.into_owned()),
            Err(why) => Lookup::Bad { path, why: why.to_string() },
        })
    }

    /// Keeps a result for others: on disk when this returns. One that was there before is replaced.
    pub fn keep(&self, agent: &str, result: &CachedResult<'_>) -> io::Result<()> {
        let directory = self.make_directory(agent)?;
        replace(&*self.disk, &directory.join(result.key.file_name()), &result.write()?)
    }

    /// Gives a result its place that was written and synced elsewhere in the home: on disk when this returns. A whole one that is
    /// there already stays.
    pub fn take_in(&self, agent: &str, key: StepKey, staged: &Path) -> io::Result<()> {
        if matches!(self.find(agent, key), Lookup::Found(_)) {
            return Ok(());
        }
        let directory = self.make_directory(agent)?;
        self.disk.rename(staged, &directory.join(key.file_name()))?;
        self.disk.sync_dir(&directory)
    }

    fn make_directory(&self, agent: &str) -> io::Result<PathBuf> {
        let no_name =
            || io::Error::new(io::ErrorKind::InvalidInput, format!("{agent:?} is not the name of an agent"));
        let directory = self.layout.cached_results_of(agent).ok_or_else(no_name)?;
        for (made, above) in
            [(&self.layout.cached_results(), self.layout.home()), (&directory, &self.layout.cached_results())]
        {
            if if_exists(self.disk.stat(made))?.is_none() {
                self.disk.create_dir(made)?;
                self.disk.sync_dir(above)?;
            }
        }
        Ok(directory)
    }

    /// Lists the files of the cache; a home that never had one has none.
    pub fn files(&self) -> io::Result<Vec<CacheFile>> {
        let mut files = Vec::new();
        for agent in self.agents()? {
            let directory = self.layout.cached_results().join(agent);
            for entry in if_exists(self.disk.list(&directory))?.unwrap_or_default() {
                let path = directory.join(&entry.name);
                // One that is gone was removed since it was listed.
                let Some(stat) = if_exists(self.disk.stat(&path))? else { continue };
                let name = match StepKey::of_file_name(&entry.name) {
                    Some(key) if entry.kind == EntryKind::File => CacheFileName::Result(key),
                    _ if entry.name.ends_with(TEMPORARY_SUFFIX) => CacheFileName::Temporary,
                    _ => CacheFileName::Foreign,
                };
                files.push(CacheFile { path, name, bytes: stat.len, modified: stat.modified });
            }
        }
        Ok(files)
    }

    /// Reads a file of the cache; says why it is not to be believed.
    pub fn read(&self, file: &CacheFile) -> Option<Result<CachedResult<'static>, String>> {
        let CacheFileName::Result(key) = file.name else { return None };
        match self.look(file.path.clone(), key)? {
            Lookup::Missing => None,
            Lookup::Found(result) => Some(Ok(result)),
            Lookup::Bad { why, .. } => Some(Err(why)),
        }
    }

    /// Removes a file of the cache; durable once the directory is written, which nobody waits for.
    pub fn remove(&self, file: &CacheFile) -> io::Result<()> {
        if_exists(self.disk.remove_file(&file.path)).map(drop)
    }

    fn agents(&self) -> io::Result<Vec<String>> {
        let entries = if_exists(self.disk.list(&self.layout.cached_results()))?.unwrap_or_default();
        let mut agents: Vec<String> = entries
            .into_iter()
            .filter(|entry| {
                entry.kind == EntryKind::Dir && self.layout.cached_results_of(&entry.name).is_some()
            })
            .map(|entry| entry.name)
            .collect();
        agents.sort_unstable();
        Ok(agents)
    }
}
