//! Conflicts of directories: two are in each other's way when they are the same, or one contains the other.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::Path;

/// The conflicts with directories in which somebody works. All paths are absolute and without links, so that what contains what can be read off them.
#[derive(Debug)]
pub(super) struct DirectoryConflicts<'a, By>(BTreeMap<&'a Path, By>);

impl<'a, By: Copy> DirectoryConflicts<'a, By> {
    pub(super) fn new() -> DirectoryConflicts<'a, By> {
        DirectoryConflicts(BTreeMap::new())
    }

    /// Adds a directory; who works there first is who is named.
    pub(super) fn add(&mut self, directory: &'a Path, by: By) {
        self.0.entry(directory).or_insert(by);
    }

    /// Returns who works in a directory, above it or below it.
    pub(super) fn find(&self, directory: &Path) -> Option<By> {
        let above = || directory.ancestors().find_map(|above| self.0.get(above));
        // Paths are ordered by their components: what is below a directory comes right behind it.
        let next = || self.0.range::<Path, _>((Bound::Excluded(directory), Bound::Unbounded)).next();
        let below = || next().filter(|(path, _)| path.starts_with(directory)).map(|(_, by)| by);
        above().or_else(below).copied()
    }
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
