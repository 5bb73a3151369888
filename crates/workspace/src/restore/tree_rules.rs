//! The rules of a captured tree, from the ignore files that are in it: whether its capture would have ignored a path that it
//! does not have.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use rekindle_domain::blob_id::BlobId;

use super::lookup::Lookup;
use super::paths::{join, split};
use crate::objects::ObjectSource;
use crate::rules::{Decision, DirRules, IGNORE_FILES, IgnoreFiles, Lists, MAX_IGNORE_FILE_BYTES, Selection};
use crate::tree::OwnedNode;

/// The rules of a captured tree.
///
/// They are those of its capture as far as they can be known: its own ignore files, with the lists of the user's configuration
/// as they are now. Nobody knows what git tracked then, and it need not be known: a tracked path that was there is in the tree.
/// One that matches an ignore file and is not in the tree may have been there, ignored, whatever git tracks today. Repositories
/// inside the workspace are not told apart, and what cannot be read counts as ignored; all err on the side of leaving files alone.
pub struct TreeRules<'a> {
    source: &'a dyn ObjectSource,
    tree: Lookup<'a>,
    above: Arc<DirRules>,
    /// The rules in each directory that was asked about; none if it is ignored.
    directories: RefCell<HashMap<Vec<u8>, Option<Arc<DirRules>>>>,
}

impl<'a> TreeRules<'a> {
    /// Returns the rules of a tree.
    pub fn new(source: &'a dyn ObjectSource, tree: BlobId, selection: &Selection) -> TreeRules<'a> {
        // Patterns that are not understood were told by the capture.
        let (lists, _) = Lists::new(selection);
        TreeRules {
            source,
            tree: Lookup::new(source, tree),
            above: Arc::new(DirRules::above_root(Arc::new(lists), None)),
            directories: RefCell::default(),
        }
    }

    /// Returns true if a path is ignored, or a directory above it: what [`Side::ignores`](super::Side) asks for.
    pub fn ignores(&self, path: &[u8], is_dir: bool) -> bool {
        self.directory(split(path).0).is_none_or(|rules| rules.decide(path, is_dir, self) == Decision::Ignore)
    }

    fn directory(&self, path: &[u8]) -> Option<Arc<DirRules>> {
        if let Some(known) = self.directories.borrow().get(path) {
            return known.clone();
        }
        let rules = if path.is_empty() {
            self.enter(&self.above, path, Decision::Include)
        } else {
            // As deep as a path of a tree.
            self.directory(split(path).0).and_then(|above| match above.decide(path, true, self) {
                Decision::Ignore => None,
                decision => self.enter(&above, path, decision),
            })
        };
        self.directories.borrow_mut().insert(path.to_vec(), rules.clone());
        rules
    }

    fn enter(&self, above: &Arc<DirRules>, path: &[u8], decision: Decision) -> Option<Arc<DirRules>> {
        let mut files = [None; 2];
        for (file, name) in files.iter_mut().zip(IGNORE_FILES) {
            if let Some(OwnedNode::File { content, .. }) = self.tree.get(&join(path, name.as_bytes())).ok()? {
                *file = Some(content);
            }
        }
        let path = if path.is_empty() { Vec::new() } else { [path, b"/"].concat() };
        Some(above.enter(&path, decision, files, None))
    }
}

impl IgnoreFiles for TreeRules<'_> {
    fn read(&self, path: &[u8]) -> Option<Vec<u8>> {
        match self.tree.get(path).ok()? {
            Some(OwnedNode::File { content, .. }) => self.source.get(&content, MAX_IGNORE_FILE_BYTES).ok(),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::things::{all, directory, file, keep};
    use super::*;
    use crate::objects::MemoryObjects;

    #[test]
    fn ignore_files_of_a_tree_decide_about_paths_that_it_does_not_have() {
        let objects = MemoryObjects::new();
        let inner = directory([(".gitignore", file("!kept.log\n/here\n"))]);
        let tree = keep(
            &objects,
            &all([
                (".gitignore", file("*.log\nbuild/\n")),
                (".rekindleignore", file("secret")),
                ("d", inner),
            ]),
        );
        let selection = Selection { exclude: vec!["/out".into()], include: vec!["out.log".into()] };
        let rules = TreeRules::new(&objects, tree, &selection);
        let cases: &[(&str, bool, bool)] = &[
            ("a.log", false, true),
            ("d/a.log", false, true),
            ("d/kept.log", false, false),
            ("kept.log", false, true),
            ("d/here", false, true),
            ("here", false, false),
            ("build", true, true),
            ("build", false, false),
            ("x/build/y/z", false, true),
            ("x/y/secret", false, true),
            ("out", true, true),
            ("out/x", false, true),
            ("out.log", false, false),
            ("d/new/x", false, false),
        ];
        for (path, is_dir, ignored) in cases {
            assert_eq!(rules.ignores(path.as_bytes(), *is_dir), *ignored, "{path}");
        }
        let lost = TreeRules::new(&objects, BlobId::of(b"lost"), &selection);
        assert!(lost.ignores(b"anything", false), "what cannot be known is left alone");
    }
}
