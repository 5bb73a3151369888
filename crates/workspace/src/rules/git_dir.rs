//! A git repository as far as a capture looks into it: where it is, what it tracks, what its HEAD is.
//! Files are read by path and within limits; whatever is not as expected is a note and means that nothing is known.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rustix::fs::{Mode, OFlags};

use super::git_index::{Tracked, TrackedPaths};
use crate::stamp::{FileStamp, now_ns};

/// Largest index that is read: five million paths of usual length.
const MAX_INDEX_BYTES: u64 = 512 << 20;

/// Largest of the small files: `HEAD`, references, `.git` files.
const MAX_SMALL_BYTES: u64 = 64 << 10;

/// Largest `packed-refs`.
const MAX_PACKED_REFS_BYTES: u64 = 64 << 20;

/// References that refer to references end somewhere.
const MAX_REFERENCES: usize = 5;

/// Where a branch and its commit are.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct GitHead {
    /// The reference that HEAD points to (`refs/heads/main`); none if it is detached.
    pub reference: Option<String>,
    /// The commit, in hex; none before the first one.
    pub commit: Option<String>,
}

/// A repository whose files are, or contain, those of a workspace.
#[derive(Debug)]
pub struct Repository {
    git_dir: PathBuf,
    /// Path of the workspace's root below the repository's, with a slash at its end; empty if they are the same.
    prefix: Vec<u8>,
    /// The state of the index, if it cannot change any more without this changing too.
    stamp: Option<FileStamp>,
    tracked: OnceLock<(TrackedPaths, Option<String>)>,
    key: OnceLock<[u8; 32]>,
}

impl Repository {
    /// Returns the repository whose root a directory is, if it is one.
    pub fn at(directory: &Path) -> Option<Repository> {
        Some(Repository::new(git_dir(directory)?, Vec::new()))
    }

    /// Returns the repository that a directory lies in, however far below its root.
    pub fn around(directory: &Path) -> Option<Repository> {
        let root = directory.ancestors().find(|ancestor| git_dir(ancestor).is_some())?;
        let below = directory.strip_prefix(root).ok()?.as_os_str().as_bytes();
        let prefix = if below.is_empty() { Vec::new() } else { [below, b"/"].concat() };
        Some(Repository::new(git_dir(root)?, prefix))
    }

    fn new(git_dir: PathBuf, prefix: Vec<u8>) -> Repository {
        let now = now_ns();
        let stat = rustix::fs::stat(git_dir.join("index")).ok();
        let stamp = stat.map(|stat| FileStamp::of(&stat)).filter(|stamp| stamp.is_settled(now));
        Repository { git_dir, prefix, stamp, tracked: OnceLock::new(), key: OnceLock::new() }
    }

    /// Returns true if a directory with a `.git` is a linked worktree (`git worktree add`) of a repository elsewhere.
    ///
    /// Its git directory knows the common one; a submodule's, which lies elsewhere too, has no other.
    pub fn is_linked_worktree(directory: &Path) -> bool {
        let is_file = directory.join(".git").symlink_metadata().is_ok_and(|file| file.is_file());
        let Some(git_dir) = git_dir(directory).filter(|_| is_file) else { return false };
        let parent = || git_dir.parent().and_then(Path::file_name);
        // The repository may be gone, or not be mounted here: then the path tells.
        git_dir.join("commondir").exists() || (!git_dir.exists() && parent() == Some(OsStr::new("worktrees")))
    }

    /// Returns a hash of the paths that are tracked.
    pub(super) fn key(&self) -> &[u8; 32] {
        self.key.get_or_init(|| self.index().0.key())
    }

    /// Takes over the hash of the tracked paths from a capture that saw the index in the same state, so that it need not be read.
    pub(crate) fn remember(&self, known: &[(Vec<u8>, [u8; 32])]) {
        let state = self.state();
        if let Some((_, key)) = state.and_then(|state| known.iter().find(|(known, _)| *known == state)) {
            _ = self.key.set(*key);
        }
    }

    /// Returns the state of the index and the hash of its paths, for the next capture; nothing if it cannot be told apart.
    pub(crate) fn memory(&self) -> Option<(Vec<u8>, [u8; 32])> {
        self.state().map(|state| (state, *self.key()))
    }

    fn state(&self) -> Option<Vec<u8>> {
        let FileStamp { size, mtime_ns, ctime_ns, inode, .. } = self.stamp?;
        let mut state = Vec::new();
        for field in [size, mtime_ns as u64, ctime_ns as u64, inode] {
            state.extend_from_slice(&field.to_le_bytes());
        }
        state.extend_from_slice(self.git_dir.as_os_str().as_bytes());
        state.push(0);
        state.extend_from_slice(&self.prefix);
        Some(state)
    }

    /// Returns why the index could not be read, if it was tried and failed.
    pub fn note(&self) -> Option<&str> {
        self.tracked.get()?.1.as_deref()
    }

    pub(super) fn tracked(&self, path: &[u8], is_dir: bool) -> Tracked {
        self.index().0.look_up(path, is_dir)
    }

    fn index(&self) -> &(TrackedPaths, Option<String>) {
        self.tracked.get_or_init(|| match self.read_index("index") {
            Ok(paths) if self.prefix.is_empty() => (paths, None),
            Ok(paths) => (paths.below(&self.prefix), None),
            Err(reason) => {
                let index = self.git_dir.join("index");
                let note = format!("cannot tell what git tracks: cannot read {}: {reason}", index.display());
                (TrackedPaths::default(), Some(note))
            }
        })
    }

    fn read_index(&self, name: &str) -> Result<TrackedPaths, String> {
        let bytes = match read_limited(&self.git_dir.join(name), MAX_INDEX_BYTES) {
            // Nothing has been added yet.
            Err(error) if error.kind() == io::ErrorKind::NotFound && name == "index" => {
                return Ok(TrackedPaths::default());
            }
            result => result.map_err(|error| error.to_string())?,
        };
        let paths = TrackedPaths::parse(&bytes).map_err(|error| error.to_string())?;
        let Some(shared) = &paths.shared else { return Ok(paths) };
        if name != "index" {
            return Err("its shared index is itself a split one".to_owned());
        }
        // Paths that were removed since are still in the shared one: tracking too much leaves out too little.
        Ok(paths.merged(&self.read_index(&format!("sharedindex.{shared}"))?))
    }

    /// Reads HEAD: the branch and its commit.
    pub fn head(&self) -> GitHead {
        let mut head = GitHead::default();
        let mut name = "HEAD".to_owned();
        for _ in 0..MAX_REFERENCES {
            let Some(value) = self.reference(&name) else { break };
            match value.strip_prefix("ref:").map(str::trim) {
                // Where references are kept in another way, HEAD names this one.
                Some("refs/heads/.invalid") => break,
                Some(next) if is_reference(next) => {
                    head.reference.get_or_insert_with(|| next.to_owned());
                    next.clone_into(&mut name);
                }
                Some(_) => break,
                None => {
                    head.commit = is_commit(&value).then_some(value);
                    break;
                }
            }
        }
        head
    }

    /// Returns what a reference says, from its file or the packed ones.
    fn reference(&self, name: &str) -> Option<String> {
        let common = read_text(&self.git_dir.join("commondir"))
            .map_or_else(|| self.git_dir.clone(), |common| self.git_dir.join(common.trim_end()));
        let loose = [&self.git_dir, &common].into_iter().find_map(|base| read_text(&base.join(name)));
        let value = loose.map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
        value.or_else(|| {
            let packed = read_limited(&common.join("packed-refs"), MAX_PACKED_REFS_BYTES).ok()?;
            packed.split(|byte| *byte == b'\n').find_map(|line| {
                let (commit, reference) = std::str::from_utf8(line).ok()?.split_once(' ')?;
                (reference == name).then(|| commit.to_owned())
            })
        })
    }
}

fn is_commit(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn is_reference(name: &str) -> bool {
    name.starts_with("refs/") && name.split('/').all(|part| !part.is_empty() && part != "." && part != "..")
}

/// Returns the git directory of a repository whose root is `directory`: `.git` itself, or where a `.git` file points.
fn git_dir(directory: &Path) -> Option<PathBuf> {
    let path = directory.join(".git");
    let kind = path.symlink_metadata().ok()?;
    if kind.is_file() {
        let text = read_limited(&path, MAX_SMALL_BYTES).ok()?;
        let target = text.strip_prefix(b"gitdir:")?.trim_ascii();
        return (!target.is_empty()).then(|| directory.join(OsStr::from_bytes(target)));
    }
    // A directory with nothing of git in it is none of git's.
    path.join("HEAD").symlink_metadata().is_ok().then_some(path)
}

fn read_text(path: &Path) -> Option<String> {
    String::from_utf8(read_limited(path, MAX_SMALL_BYTES).ok()?).ok()
}

fn read_limited(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    // A pipe in place of the file is opened without waiting for anybody.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let length = file.metadata()?;
    if !length.is_file() || length.len() > limit {
        return Err(io::Error::other("it is not a regular file, or is too large"));
    }
    let mut bytes = Vec::with_capacity(length.len() as usize);
    file.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}
