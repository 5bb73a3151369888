//! The rules of one directory: its ignore files and those above it, with the user's lists and what git tracks.
//! Contents of ignore files are asked for when a path has to be decided, not before: most captures decide nothing anew.

use std::sync::{Arc, OnceLock};

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use rekindle_domain::blob_id::BlobId;

use super::git_dir::Repository;
use super::git_index::Tracked;
use super::{IGNORE_FILES, Lists};
use crate::as_path;

/// Where contents of ignore files come from: a directory, or a tree.
pub trait IgnoreFiles {
    /// Returns the content of a regular file by its path from the root; nothing if there is none or it is too large.
    fn read(&self, path: &[u8]) -> Option<Vec<u8>>;
}

/// What becomes of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// It counts; what is in a directory is decided there.
    Include,
    /// It does not count, and nothing below it does.
    Ignore,
    /// The directory is ignored and something below it counts: a path that git tracks, or one that the user includes.
    OnlyListed,
}

/// The rules that hold in a directory.
#[derive(Debug)]
pub struct DirRules {
    lists: Arc<Lists>,
    repository: Option<Arc<Repository>>,
    /// Length of the path of the repository's root, slash included.
    repository_at: usize,
    /// Only paths that are tracked or included by name count here.
    only_listed: bool,
    files: Option<Arc<Layer>>,
    key: [u8; 32],
}

/// The ignore files of one directory.
#[derive(Debug)]
struct Layer {
    /// Path of the directory, with a slash at its end unless it is the root.
    path: Vec<u8>,
    /// Which of [`IGNORE_FILES`] there are.
    present: [bool; 2],
    compiled: [OnceLock<Gitignore>; 2],
    /// A repository's root: the `.gitignore` files above it are not its own.
    is_repository: bool,
    above: Option<Arc<Layer>>,
}

impl DirRules {
    /// Returns the rules above the root of a workspace: the user's lists, and the repository that the root lies in, if any.
    pub fn above_root(lists: Arc<Lists>, repository: Option<Arc<Repository>>) -> DirRules {
        let mut hasher = blake3::Hasher::new();
        hasher.update(lists.key());
        if let Some(repository) = &repository {
            hasher.update(repository.key());
        }
        let key = *hasher.finalize().as_bytes();
        DirRules { lists, repository, repository_at: 0, only_listed: false, files: None, key }
    }

    /// Returns a hash of everything that decides here. A decision under an equal key is the same.
    pub fn key(&self) -> &[u8; 32] {
        &self.key
    }

    /// Returns the rules of a directory from those above it.
    ///
    /// `path` is the directory's from the root, with a slash at its end unless it is the root; `ignore_files` are the names
    /// of the contents of [`IGNORE_FILES`] in it; `repository` is the one whose root it is, if it is one.
    pub fn enter(
        self: &Arc<DirRules>,
        path: &[u8],
        decision: Decision,
        ignore_files: [Option<BlobId>; 2],
        repository: Option<Arc<Repository>>,
    ) -> Arc<DirRules> {
        let only_listed = decision == Decision::OnlyListed;
        let present = ignore_files.map(|file| file.is_some());
        if only_listed == self.only_listed && present == [false, false] && repository.is_none() {
            return Arc::clone(self);
        }
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.key).update(&[u8::from(only_listed)]);
        for file in &ignore_files {
            hasher.update(&file.map_or([0; 32], |id| *id.as_bytes()));
        }
        hasher.update(&repository.as_ref().map_or([0; 32], |repository| *repository.key()));
        let is_repository = repository.is_some();
        let layer = Layer {
            path: path.to_vec(),
            present,
            compiled: Default::default(),
            is_repository,
            above: self.files.clone(),
        };
        Arc::new(DirRules {
            lists: Arc::clone(&self.lists),
            repository_at: if is_repository { path.len() } else { self.repository_at },
            repository: repository.or_else(|| self.repository.clone()),
            only_listed,
            files: Some(Arc::new(layer)),
            key: *hasher.finalize().as_bytes(),
        })
    }

    /// Decides about a path of this directory, given from the root.
    pub fn decide(&self, path: &[u8], is_dir: bool, contents: &dyn IgnoreFiles) -> Decision {
        if self.lists.includes(path, is_dir) {
            return Decision::Include;
        }
        let excluded =
            self.only_listed || self.lists.excludes(path, is_dir) || self.is_ignored(path, is_dir, contents);
        if !excluded {
            return Decision::Include;
        }
        match self.tracked(path, is_dir) {
            Tracked::Itself => Decision::Include,
            Tracked::Below if is_dir => Decision::OnlyListed,
            Tracked::Below | Tracked::No if is_dir && self.lists.may_include_below(path) => {
                Decision::OnlyListed
            }
            Tracked::Below | Tracked::No => Decision::Ignore,
        }
    }

    fn tracked(&self, path: &[u8], is_dir: bool) -> Tracked {
        let tracked = |repository: &Arc<Repository>| repository.tracked(&path[self.repository_at..], is_dir);
        self.repository.as_ref().map_or(Tracked::No, tracked)
    }

    /// Returns true if an ignore file says so. A `.rekindleignore` beats every `.gitignore`; of each kind the innermost decides.
    fn is_ignored(&self, path: &[u8], is_dir: bool, contents: &dyn IgnoreFiles) -> bool {
        let mut by_git = None;
        let mut is_inside_repository = true;
        let mut next = self.files.as_ref();
        while let Some(layer) = next {
            if let Some(ignored) = layer.matches(1, path, is_dir, contents) {
                return ignored;
            }
            if by_git.is_none() && is_inside_repository {
                by_git = layer.matches(0, path, is_dir, contents);
            }
            is_inside_repository &= !layer.is_repository;
            next = layer.above.as_ref();
        }
        by_git.unwrap_or(false)
    }
}

impl Layer {
    /// Returns what one of the directory's ignore files says about a path, if anything.
    fn matches(&self, which: usize, path: &[u8], is_dir: bool, contents: &dyn IgnoreFiles) -> Option<bool> {
        if !self.present[which] {
            return None;
        }
        let rules = self.compiled[which].get_or_init(|| {
            let file = [&self.path, IGNORE_FILES[which].as_bytes()].concat();
            contents.read(&file).map_or_else(Gitignore::empty, |content| compile(&content))
        });
        match rules.matched(as_path(&path[self.path.len()..]), is_dir) {
            Match::None => None,
            Match::Ignore(_) => Some(true),
            Match::Whitelist(_) => Some(false),
        }
    }
}

/// Compiles an ignore file. A line that is no pattern, or not UTF-8, is passed over, as git does.
fn compile(content: &[u8]) -> Gitignore {
    let mut builder = GitignoreBuilder::new("");
    let content = content.strip_prefix(b"\xef\xbb\xbf").unwrap_or(content);
    for line in content.split(|byte| *byte == b'\n') {
        if let Ok(line) = std::str::from_utf8(line.strip_suffix(b"\r").unwrap_or(line)) {
            _ = builder.add_line(None, line);
        }
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}
