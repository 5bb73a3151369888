//! Trees in memory: a directory that agents and people change, captures of it, and restores that may be cut short.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use rekindle_domain::blob_id::BlobId;
use rekindle_domain::event::{ChangedFile, FileChange, FilesTouched};
use rekindle_domain::pipeline::artifact::ArtifactError;
use rekindle_domain::time::Timestamp;
use rekindle_domain::token::sha256_hex;
use rekindle_testkit::clock::SimClock;

use super::super::agent::Files;
use crate::drive::workspace_files::FilesError;
use crate::lock::locked;
use crate::pipelines::Trees;

type Tree = BTreeMap<String, String>;

/// A directory, and every tree that was captured of it.
#[derive(Default)]
pub(crate) struct MemoryTrees {
    pub(super) files: Files,
    /// When people changed files; what agents change is older than any of their deaths.
    changed: Mutex<BTreeMap<String, Timestamp>>,
    kept: Mutex<BTreeMap<BlobId, Tree>>,
    /// What a restore that was cut short was to make.
    pub(super) restoring: Mutex<Option<BlobId>>,
    /// What comes of the next restores.
    pub(super) errors: Mutex<Vec<FilesError>>,
    /// It is not there.
    pub(super) gone: Mutex<bool>,
    /// Restores that were done.
    pub(super) restored: Mutex<Vec<BlobId>>,
}

impl MemoryTrees {
    pub(crate) fn new(files: &[(&str, &str)]) -> Arc<MemoryTrees> {
        let trees = MemoryTrees::default();
        let files = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned()));
        locked(&trees.files).extend(files);
        Arc::new(trees)
    }

    /// A person changes a file, or removes it.
    pub(super) fn change(&self, path: &str, text: Option<&str>, at: Timestamp) {
        match text {
            Some(text) => drop(locked(&self.files).insert(path.to_owned(), text.to_owned())),
            None => drop(locked(&self.files).remove(path)),
        }
        locked(&self.changed).insert(path.to_owned(), at);
    }

    /// Forgets every tree that was captured.
    pub(super) fn forget(&self) {
        locked(&self.kept).clear();
    }

    pub(super) fn read(&self, path: &str) -> Option<String> {
        locked(&self.files).get(path).cloned()
    }

    fn tree(&self, id: BlobId) -> Option<Tree> {
        locked(&self.kept).get(&id).cloned()
    }
}

impl Trees for MemoryTrees {
    fn capture(&self, _: &Path) -> Result<BlobId, String> {
        if *locked(&self.gone) {
            return Err("it is not there".into());
        }
        let tree = locked(&self.files).clone();
        let id = BlobId::of(&serde_json::to_vec(&tree).expect("JSON"));
        locked(&self.kept).insert(id, tree);
        Ok(id)
    }

    fn restore(&self, tree: BlobId, _: &Path) -> Result<(), FilesError> {
        if let Some(error) = locked(&self.errors).pop() {
            return Err(error);
        }
        let wanted = self.tree(tree).ok_or_else(|| FilesError::Failed("it is not there".into()))?;
        *locked(&self.files) = wanted;
        *locked(&self.restoring) = None;
        locked(&self.restored).push(tree);
        Ok(())
    }

    fn restoring(&self, _: &Path) -> Option<BlobId> {
        *locked(&self.restoring)
    }

    fn has(&self, tree: BlobId) -> bool {
        self.tree(tree).is_some()
    }

    fn file(&self, tree: BlobId, path: &str) -> Option<BlobId> {
        self.tree(tree)?.get(path).map(|text| BlobId::of(text.as_bytes()))
    }

    fn text(&self, content: BlobId) -> Option<String> {
        let kept = locked(&self.kept);
        kept.values().flat_map(Tree::values).find(|text| BlobId::of(text.as_bytes()) == content).cloned()
    }

    fn changed(&self, from: BlobId, to: BlobId) -> Result<Vec<ChangedFile>, String> {
        let (from, to) = (self.tree(from).ok_or("it is gone")?, self.tree(to).ok_or("it is gone")?);
        let paths: std::collections::BTreeSet<&String> = from.keys().chain(to.keys()).collect();
        let changed = paths.into_iter().filter(|path| from.get(*path) != to.get(*path));
        Ok(changed
            .map(|path| ChangedFile {
                path: path.as_bytes().into(),
                change: match (from.contains_key(path), to.contains_key(path)) {
                    (true, true) => FileChange::Modified,
                    (true, false) => FileChange::Deleted,
                    _ => FileChange::Added,
                },
            })
            .collect())
    }

    fn changed_at(&self, _: &Path, file: &ChangedFile) -> Option<Timestamp> {
        let path = String::from_utf8(file.path.bytes()?).ok()?;
        let by_agent = SimClock::default_start().plus_millis(-1);
        Some(locked(&self.changed).get(&path).copied().unwrap_or(by_agent))
    }

    fn sha256(&self, _: &Path, path: &str) -> Result<String, ArtifactError> {
        let content = self.read(path).ok_or_else(|| ArtifactError::Missing(path.to_owned()))?;
        Ok(sha256_hex(content.as_bytes()))
    }

    fn touched(&self, from: BlobId, to: BlobId) -> Option<FilesTouched> {
        let total = self.changed(from, to).ok()?.len() as u64;
        Some(FilesTouched {
            total,
            lines_added: 0,
            lines_removed: 0,
            uncounted: total,
            rules_differ: false,
            first: Vec::new(),
            all: None,
        })
    }

    fn diff(&self, from: BlobId, to: BlobId) -> Option<String> {
        let changed = self.changed(from, to).ok()?;
        let named = changed.iter().filter_map(|file| String::from_utf8(file.path.bytes()?).ok());
        Some(named.map(|path| format!("changed {path}\n")).collect())
    }
}
