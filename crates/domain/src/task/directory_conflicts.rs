//! Conflicts of directories: two are in each other's way when they are the same, or one contains the other.

use std::collections::HashMap;
use std::path::Path;

/// The conflicts with directories in which somebody works. All paths are absolute and without links, so that what contains what can
/// be read off their bytes, which is much quicker than by their components.
#[derive(Debug)]
pub(super) struct DirectoryConflicts<'a, By> {
    /// Who works in a directory.
    busy: HashMap<&'a [u8], By>,
    /// Who works somewhere below it.
    below: HashMap<&'a [u8], By>,
}

impl<'a, By: Copy> DirectoryConflicts<'a, By> {
    pub(super) fn new() -> DirectoryConflicts<'a, By> {
        DirectoryConflicts { busy: HashMap::new(), below: HashMap::new() }
    }

    /// Adds a directory; who works there first is who is named.
    pub(super) fn add(&mut self, directory: &'a Path, by: By) {
        let path = bytes(directory);
        self.busy.entry(path).or_insert(by);
        for above in above(path) {
            self.below.entry(above).or_insert(by);
        }
    }

    /// Returns who works in a directory, above it or below it.
    pub(super) fn find(&self, directory: &Path) -> Option<By> {
        let path = bytes(directory);
        let here_or_above = [path].into_iter().chain(above(path)).find_map(|path| self.busy.get(path));
        here_or_above.or_else(|| self.below.get(path)).copied()
    }
}

/// Returns a path without a slash at its end; that of the root is empty.
fn bytes(path: &Path) -> &[u8] {
    let bytes = path.as_os_str().as_encoded_bytes();
    let end = bytes.iter().rposition(|byte| *byte != b'/').map_or(0, |last| last + 1);
    &bytes[..end]
}

/// Returns the paths above one, the nearest first.
fn above(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    (0..path.len()).rev().filter(|at| path[*at] == b'/').map(|at| &path[..at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_directory_and_those_above_and_below_are_busy() {
        let mut busy = DirectoryConflicts::new();
        for (directory, by) in [("/work/a", 1), ("/work/a", 2), ("/work/b/deep/inside", 3)] {
            busy.add(Path::new(directory), by);
        }
        for (directory, expected) in [
            ("/work/a", Some(1)),
            ("/work/a/", Some(1)),
            ("/work/a/src", Some(1)),
            ("/work/a-b", None),
            ("/work/a.b", None),
            ("/work/b", Some(3)),
            ("/work/b/deep", Some(3)),
            ("/work/b/deep/inside/more", Some(3)),
            ("/work/b/deep/insid", None),
            ("/work/c", None),
            ("/work", Some(1)),
            ("/", Some(1)),
        ] {
            assert_eq!(busy.find(Path::new(directory)), expected, "{directory}");
        }
        assert_eq!(DirectoryConflicts::<u8>::new().find(Path::new("/")), None);
    }
}
