//! The lists of the user's configuration: `[workspace] exclude` and `include`, patterns as in a `.gitignore` at the root.

use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::as_path;

/// What the user's configuration says about which paths count.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// Paths that do not count.
    pub exclude: Vec<String>,
    /// Paths that count although something excludes them.
    pub include: Vec<String>,
}

/// The same, compiled.
#[derive(Debug)]
pub struct Lists {
    exclude: Gitignore,
    include: Gitignore,
    /// Literal beginnings of the patterns in `include` that are anchored at the root, one list of names each.
    include_below: Vec<Vec<Vec<u8>>>,
    key: [u8; 32],
}

impl Lists {
    /// Compiles the lists. Patterns that cannot be understood are left out and told.
    pub fn new(selection: &Selection) -> (Lists, Vec<String>) {
        let mut notes = Vec::new();
        let lists = Lists {
            exclude: compile("exclude", &selection.exclude, &mut notes),
            include: compile("include", &selection.include, &mut notes),
            include_below: selection
                .include
                .iter()
                .filter_map(|pattern| literal_beginning(pattern))
                .collect(),
            key: key(selection),
        };
        (lists, notes)
    }

    /// Returns a hash of the lists.
    pub fn key(&self) -> &[u8; 32] {
        &self.key
    }

    pub(super) fn excludes(&self, path: &[u8], is_dir: bool) -> bool {
        !self.exclude.is_empty() && self.exclude.matched(as_path(path), is_dir).is_ignore()
    }

    pub(super) fn includes(&self, path: &[u8], is_dir: bool) -> bool {
        !self.include.is_empty() && self.include.matched(as_path(path), is_dir).is_ignore()
    }

    /// Returns true if a pattern in `include` may name something below a directory that is otherwise left out.
    ///
    /// Only patterns with a slash do (`node_modules/mine/**`): they say where. One without (`*.env`) is for directories
    /// that count; it would otherwise have every directory of build products searched.
    pub(super) fn may_include_below(&self, directory: &[u8]) -> bool {
        self.include_below.iter().any(|names| {
            names.iter().zip(directory.split(|byte| *byte == b'/')).all(|(name, part)| name == part)
        })
    }
}

fn compile(list: &str, patterns: &[String], notes: &mut Vec<String>) -> Gitignore {
    let mut builder = GitignoreBuilder::new("");
    for pattern in patterns {
        if let Err(error) = builder.add_line(None, pattern) {
            notes.push(format!("`{pattern}` in [workspace] {list} is not valid and is ignored: {error}"));
        }
    }
    builder.build().unwrap_or_else(|error| {
        notes.push(format!("[workspace] {list} is not valid and is ignored: {error}"));
        Gitignore::empty()
    })
}

/// Returns the names that a pattern with a slash begins with, up to the first with a wildcard; none for other patterns.
fn literal_beginning(pattern: &str) -> Option<Vec<Vec<u8>>> {
    let pattern = pattern.trim_end().trim_end_matches('/');
    if pattern.starts_with('!') || !pattern.contains('/') {
        return None;
    }
    let names = pattern.trim_start_matches('/').split('/');
    Some(
        names
            .take_while(|name| !name.contains(['*', '?', '[', '\\']))
            .map(|name| name.as_bytes().to_vec())
            .collect(),
    )
}

fn key(selection: &Selection) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    for list in [&selection.exclude, &selection.include] {
        hasher.update(&(list.len() as u64).to_le_bytes());
        for pattern in list {
            hasher.update(&(pattern.len() as u64).to_le_bytes()).update(pattern.as_bytes());
        }
    }
    *hasher.finalize().as_bytes()
}
