//! The directories: live names, durable names, and the ordered changes of names between them.
//!
//! Of each directory a prefix of its changes survives. A change that touches two directories (a rename
//! across) belongs to both and survives in both or in neither.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use super::errno::{EINVAL, ENOENT, ENOTDIR, os};
use super::physics::{Fate, Physics};
use crate::rng::Rng;

/// The number of the root directory.
pub(super) const ROOT: u64 = 1;

/// What a name stands for, by inode number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Node {
    File(u64),
    Dir(u64),
}

/// A name in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) dir: u64,
    pub(super) name: String,
}

/// A change of names.
#[derive(Debug, Clone)]
pub(super) enum Naming {
    Add(Place, Node),
    Remove(Place),
    Rename(Place, Place, Node),
}

impl Naming {
    fn dirs(&self) -> [u64; 2] {
        match self {
            Naming::Add(place, _) | Naming::Remove(place) => [place.dir; 2],
            Naming::Rename(from, to, _) => [from.dir, to.dir],
        }
    }
}

type Names = BTreeMap<String, Node>;

#[derive(Debug, Clone, Default)]
struct Dir {
    live: Arc<Names>,
    durable: Arc<Names>,
}

/// All directories.
#[derive(Debug, Clone)]
pub(super) struct Tree {
    dirs: BTreeMap<u64, Dir>,
    pending: Arc<Vec<Naming>>,
}

impl Tree {
    pub(super) fn new() -> Tree {
        Tree { dirs: BTreeMap::from([(ROOT, Dir::default())]), pending: Arc::default() }
    }

    /// Returns what a path names.
    pub(super) fn find(&self, path: &Path) -> io::Result<Node> {
        let mut node = Node::Dir(ROOT);
        for name in parts(path)? {
            node = self.entry(node, name)?.ok_or_else(|| os(ENOENT))?;
        }
        Ok(node)
    }

    /// Returns the place of a path, whose directory must exist, and what is there.
    pub(super) fn locate(&self, path: &Path) -> io::Result<(Place, Option<Node>)> {
        let parts = parts(path)?;
        let (name, parents) = parts.split_last().ok_or_else(|| os(EINVAL))?;
        let mut node = Node::Dir(ROOT);
        for parent in parents {
            node = self.entry(node, parent)?.ok_or_else(|| os(ENOENT))?;
        }
        let there = self.entry(node, name)?;
        let Node::Dir(dir) = node else { return Err(os(ENOTDIR)) };
        Ok((Place { dir, name: (*name).to_owned() }, there))
    }

    fn entry(&self, of: Node, name: &str) -> io::Result<Option<Node>> {
        match of {
            Node::Dir(dir) => Ok(self.live(dir).get(name).copied()),
            Node::File(_) => Err(os(ENOTDIR)),
        }
    }

    /// Returns the live names of a directory.
    pub(super) fn live(&self, dir: u64) -> &Names {
        static NONE: Names = Names::new();
        self.dirs.get(&dir).map_or(&NONE, |dir| &dir.live)
    }

    /// Returns the numbers of all files that have a live name.
    pub(super) fn live_files(&self) -> impl Iterator<Item = u64> {
        self.dirs.values().flat_map(|dir| dir.live.values()).filter_map(|node| match node {
            Node::File(file) => Some(*file),
            Node::Dir(_) => None,
        })
    }

    /// Returns the live path of every file, sorted.
    pub(super) fn paths(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut todo = vec![(PathBuf::from("/"), ROOT)];
        while let Some((path, dir)) = todo.pop() {
            for (name, node) in self.live(dir) {
                match node {
                    Node::File(_) => found.push(path.join(name)),
                    Node::Dir(dir) => todo.push((path.join(name), *dir)),
                }
            }
        }
        found.sort();
        found
    }

    /// Makes a change that reads see at once and a power cut may take back.
    pub(super) fn change(&mut self, naming: Naming) {
        if let Naming::Add(_, Node::Dir(new)) = naming {
            self.dirs.insert(new, Dir::default());
        }
        self.apply(&naming, |dir| &mut dir.live);
        Arc::make_mut(&mut self.pending).push(naming);
    }

    fn apply(&mut self, naming: &Naming, side: fn(&mut Dir) -> &mut Arc<Names>) {
        let mut put = |place: &Place, node: Option<Node>| {
            if let Some(dir) = self.dirs.get_mut(&place.dir) {
                let names = Arc::make_mut(side(dir));
                match node {
                    Some(node) => names.insert(place.name.clone(), node),
                    None => names.remove(&place.name),
                };
            }
        };
        match naming {
            Naming::Add(place, node) => put(place, Some(*node)),
            Naming::Remove(place) => put(place, None),
            Naming::Rename(from, to, node) => {
                put(from, None);
                put(to, Some(*node));
            }
        }
    }

    /// Makes the names of a directory durable; `limit` says to how many of the changes that concerns.
    pub(super) fn sync(&mut self, dir: u64, limit: impl FnOnce(usize) -> usize) {
        // A rename across takes along all that came before it in the other directory.
        let mut dirs = BTreeSet::from([dir]);
        let mut chosen = BTreeSet::new();
        for (at, naming) in self.pending.iter().enumerate().rev() {
            if naming.dirs().iter().any(|dir| dirs.contains(dir)) {
                dirs.extend(naming.dirs());
                chosen.insert(at);
            }
        }
        let limit = limit(chosen.len());
        let chosen: BTreeSet<usize> = chosen.into_iter().take(limit).collect();
        self.make_durable(|at, _| chosen.contains(&at));
    }

    fn make_durable(&mut self, mut chosen: impl FnMut(usize, &Naming) -> bool) {
        let pending = std::mem::take(&mut self.pending);
        let mut rest = Vec::new();
        for (at, naming) in pending.iter().enumerate() {
            if chosen(at, naming) {
                self.apply(naming, |dir| &mut dir.durable);
            } else {
                rest.push(naming.clone());
            }
        }
        self.pending = Arc::new(rest);
    }

    /// Keeps what a power cut leaves, and makes it live.
    pub(super) fn lose_power(&mut self, disk: Fate, physics: &Physics, rng: &mut Rng) {
        let mut left: BTreeMap<u64, usize> = BTreeMap::new();
        for naming in self.pending.iter() {
            let [from, to] = naming.dirs();
            *left.entry(from).or_default() += 1;
            if to != from {
                *left.entry(to).or_default() += 1;
            }
        }
        for count in left.values_mut() {
            *count = match physics.fate_within(disk, rng) {
                Fate::Nothing => 0,
                Fate::Everything => *count,
                Fate::Mixed => rng.index(*count + 1),
            };
        }
        self.make_durable(|_, naming| {
            let dirs = BTreeSet::from(naming.dirs());
            let survives = dirs.iter().all(|dir| left.get(dir).is_some_and(|count| *count > 0));
            for dir in dirs {
                // One directory that lost the change ends the prefix of the other too.
                left.entry(dir).and_modify(|count| *count = if survives { *count - 1 } else { 0 });
            }
            survives
        });
        self.pending = Arc::default();
        self.dirs.values_mut().for_each(|dir| dir.live = dir.durable.clone());
    }

    /// Forgets directories no path leads to; returns the files one does, now or after a power cut.
    pub(super) fn collect(&mut self) -> BTreeSet<u64> {
        let mut files = BTreeSet::new();
        let mut dirs = BTreeSet::new();
        let mut todo = vec![Node::Dir(ROOT)];
        todo.extend(self.pending.iter().filter_map(|naming| match naming {
            Naming::Add(_, node) | Naming::Rename(_, _, node) => Some(*node),
            Naming::Remove(_) => None,
        }));
        while let Some(node) = todo.pop() {
            match node {
                Node::File(file) => _ = files.insert(file),
                Node::Dir(dir) if dirs.insert(dir) => {
                    let dir = self.dirs.get(&dir);
                    todo.extend(dir.iter().flat_map(|dir| dir.live.values().chain(dir.durable.values())));
                }
                Node::Dir(_) => {}
            }
        }
        self.dirs.retain(|dir, _| dirs.contains(dir));
        files
    }

    pub(super) fn has_dir(&self, dir: u64) -> bool {
        self.dirs.contains_key(&dir)
    }

    /// Returns whether `inner` is `outer` or lies below it.
    pub(super) fn is_within(&self, inner: u64, outer: u64) -> bool {
        let below = |node: &Node| matches!(node, Node::Dir(dir) if self.is_within(inner, *dir));
        inner == outer || self.live(outer).values().any(below)
    }

    /// Returns how many changes of names no sync has covered.
    pub(super) fn pending(&self) -> usize {
        self.pending.len()
    }
}

fn parts(path: &Path) -> io::Result<Vec<&str>> {
    path.components()
        .filter(|part| !matches!(part, Component::RootDir | Component::CurDir))
        .map(|part| match part {
            Component::Normal(name) => name.to_str().ok_or_else(|| os(EINVAL)),
            _ => Err(os(EINVAL)),
        })
        .collect()
}
