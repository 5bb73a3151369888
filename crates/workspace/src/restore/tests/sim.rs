//! A simulated file system: what calls see (*live*) is kept apart from what a power cut leaves (*durable*).
//! It is harsher than real ones where a restore has no right to the difference: a sync of a directory brings no contents along.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{self, Read, Write};

use rekindle_seeded::Rng;
use rustix::io::Errno;

use super::super::journal::{Journal, JournalFile};
use super::super::paths::split;
use super::super::root::{Root, Seen, SeenKind};
use crate::tree::FileMode;

const ROOT: u64 = 1;

/// A file system in memory, with the journal of its one restore.
#[derive(Clone)]
pub(super) struct SimRoot(RefCell<State>);

#[derive(Clone)]
struct State {
    nodes: BTreeMap<u64, Node>,
    clock: i64,
    journal: Option<Journal>,
    /// Operations so far that changed something.
    operations: usize,
    /// The operation that the crash comes at, and whether it still happens.
    crash: Option<(usize, bool)>,
    has_crashed: bool,
    folds_case: bool,
    /// An operation that fails, and how.
    fails: Option<(usize, Errno)>,
}

#[derive(Clone)]
struct Node {
    kind: Kind,
    permissions: u32,
    mtime: i64,
    ctime: i64,
}

#[derive(Clone)]
enum Kind {
    File { live: Vec<u8>, durable: Vec<u8>, durable_permissions: u32 },
    Link(Vec<u8>),
    Directory { live: Names, durable: Names, pending: Vec<Naming> },
    Special,
}

type Names = BTreeMap<Vec<u8>, u64>;

/// A change of the names of one directory. Of each directory a prefix of them survives a power cut.
#[derive(Clone)]
enum Naming {
    Add(Vec<u8>, u64),
    Remove(Vec<u8>),
    Rename(Vec<u8>, Vec<u8>),
}

impl Naming {
    fn apply(&self, names: &mut Names) {
        match self {
            Naming::Add(name, node) => _ = names.insert(name.clone(), *node),
            Naming::Remove(name) => _ = names.remove(name),
            Naming::Rename(from, to) => {
                if let Some(node) = names.remove(from) {
                    names.insert(to.clone(), node);
                }
            }
        }
    }
}

impl SimRoot {
    pub(super) fn new() -> SimRoot {
        let mut state = State {
            nodes: BTreeMap::new(),
            clock: 0,
            journal: None,
            operations: 0,
            crash: None,
            has_crashed: false,
            folds_case: false,
            fails: None,
        };
        state.add(Kind::directory());
        SimRoot(RefCell::new(state))
    }

    /// Names that differ in ASCII case alone are the same from now on.
    pub(super) fn fold_case(&self) {
        self.0.borrow_mut().folds_case = true;
    }

    /// Makes something that is neither file nor link nor directory.
    pub(super) fn make_special(&self, path: &[u8]) {
        self.change(|state| state.make(path, Kind::Special)).expect("made");
    }

    /// Makes everything durable, and counts operations from 0.
    pub(super) fn settle(&self) {
        let mut state = self.0.borrow_mut();
        state.sync_all();
        state.operations = 0;
    }

    /// Has a crash come at an operation, before or after it took effect.
    pub(super) fn crash_at(&self, operation: usize, takes_effect: bool) {
        self.0.borrow_mut().crash = Some((operation, takes_effect));
    }

    /// Has an operation fail.
    pub(super) fn fail_at(&self, operation: usize, error: Errno) {
        self.0.borrow_mut().fails = Some((operation, error));
    }

    pub(super) fn has_crashed(&self) -> bool {
        self.0.borrow().has_crashed
    }

    pub(super) fn operations(&self) -> usize {
        self.0.borrow().operations
    }

    /// Returns what a kill of the process leaves: everything, durable or not.
    pub(super) fn process_kill(&self) -> SimRoot {
        let mut state = self.0.borrow().clone();
        state.restart();
        SimRoot(RefCell::new(state))
    }

    /// Returns what a power cut may leave: of each directory a prefix of its changes, of each content all, nothing or a part.
    pub(super) fn power_cut(&self, rng: &mut Rng) -> SimRoot {
        let mut state = self.0.borrow().clone();
        for node in state.nodes.values_mut() {
            match &mut node.kind {
                Kind::Directory { live, durable, pending } => {
                    let survive = rng.index(pending.len() + 1);
                    pending.drain(..).take(survive).for_each(|naming| naming.apply(durable));
                    live.clone_from(durable);
                }
                Kind::File { live, durable, durable_permissions } => {
                    if live != durable {
                        match rng.index(3) {
                            0 => live.clone_from(durable),
                            1 => live.truncate(live.len() / 2),
                            _ => {}
                        }
                        durable.clone_from(live);
                    }
                    if rng.chance(1, 2) {
                        node.permissions = *durable_permissions;
                    }
                    *durable_permissions = node.permissions;
                }
                Kind::Link(_) | Kind::Special => {}
            }
        }
        state.restart();
        SimRoot(RefCell::new(state))
    }

    /// Makes a change, unless the crash came or comes before it.
    fn change<T>(&self, make: impl FnOnce(&mut State) -> io::Result<T>) -> io::Result<T> {
        let mut state = self.0.borrow_mut();
        let gone = || Err(io::Error::other("the machine is gone"));
        if state.has_crashed {
            return gone();
        }
        let operation = state.operations;
        state.operations += 1;
        state.clock += 1;
        match (state.crash, state.fails) {
            (Some((at, takes_effect)), _) if at == operation => {
                if takes_effect {
                    _ = make(&mut state);
                }
                state.has_crashed = true;
                gone()
            }
            (_, Some((at, error))) if at == operation => Err(error.into()),
            _ => make(&mut state),
        }
    }

    fn look<T>(&self, look: impl FnOnce(&State) -> io::Result<T>) -> io::Result<T> {
        let state = self.0.borrow();
        if state.has_crashed { Err(io::Error::other("the machine is gone")) } else { look(&state) }
    }
}

impl Kind {
    fn directory() -> Kind {
        Kind::Directory { live: Names::new(), durable: Names::new(), pending: Vec::new() }
    }
}

impl State {
    fn restart(&mut self) {
        self.operations = 0;
        self.crash = None;
        self.has_crashed = false;
        self.fails = None;
    }

    fn sync_all(&mut self) {
        let all: Vec<u64> = self.nodes.keys().copied().collect();
        for node in all {
            self.sync(node);
        }
    }

    fn sync(&mut self, node: u64) {
        let Some(node) = self.nodes.get_mut(&node) else { return };
        match &mut node.kind {
            Kind::Directory { live, durable, pending } => {
                durable.clone_from(live);
                pending.clear();
            }
            Kind::File { live, durable, durable_permissions } => {
                durable.clone_from(live);
                *durable_permissions = node.permissions;
            }
            Kind::Link(_) | Kind::Special => {}
        }
    }

    fn add(&mut self, kind: Kind) -> u64 {
        let id = self.nodes.len() as u64 + 1;
        self.nodes.insert(id, Node { kind, permissions: 0o600, mtime: self.clock, ctime: self.clock });
        id
    }

    fn names(&self, directory: u64) -> io::Result<&Names> {
        match self.nodes.get(&directory).map(|node| &node.kind) {
            Some(Kind::Directory { live, .. }) => Ok(live),
            Some(Kind::Link(_)) => Err(Errno::LOOP.into()),
            _ => Err(Errno::NOTDIR.into()),
        }
    }

    /// Returns a name as the directory has it, and what it stands for.
    fn entry(&self, directory: u64, name: &[u8]) -> io::Result<Option<(Vec<u8>, u64)>> {
        let names = self.names(directory)?;
        let same = |other: &[u8]| self.folds_case && other.eq_ignore_ascii_case(name);
        let found = names.get_key_value(name).or_else(|| names.iter().find(|(other, _)| same(other)));
        Ok(found.map(|(name, node)| (name.clone(), *node)))
    }

    fn find(&self, path: &[u8]) -> io::Result<u64> {
        let mut node = ROOT;
        for name in path.split(|byte| *byte == b'/').filter(|name| !name.is_empty()) {
            node = self.entry(node, name)?.ok_or(Errno::NOENT)?.1;
        }
        Ok(node)
    }

    fn name(&mut self, directory: u64, naming: Naming) -> io::Result<()> {
        match self.nodes.get_mut(&directory).map(|node| &mut node.kind) {
            Some(Kind::Directory { live, pending, .. }) => {
                naming.apply(live);
                pending.push(naming);
                Ok(())
            }
            _ => Err(Errno::NOTDIR.into()),
        }
    }

    fn make(&mut self, path: &[u8], kind: Kind) -> io::Result<u64> {
        let (directory, name) = split(path);
        let directory = self.find(directory)?;
        if self.entry(directory, name)?.is_some() {
            return Err(Errno::EXIST.into());
        }
        let node = self.add(kind);
        self.name(directory, Naming::Add(name.to_vec(), node))?;
        Ok(node)
    }

    fn seen(&self, node: u64) -> io::Result<Seen> {
        let Node { kind, permissions, mtime, ctime } = self.nodes.get(&node).ok_or(Errno::NOENT)?;
        let (kind, size) = match kind {
            Kind::File { live, .. } => (SeenKind::File, live.len()),
            Kind::Link(target) => (SeenKind::Link, target.len()),
            Kind::Directory { .. } => (SeenKind::Directory, 0),
            Kind::Special => (SeenKind::Special, 0),
        };
        let (permissions, size, has_other_names) = (*permissions, size as u64, false);
        Ok(Seen { kind, permissions, size, inode: node, mtime_ns: *mtime, ctime_ns: *ctime, has_other_names })
    }
}

impl Root for SimRoot {
    fn stat(&self, path: &[u8]) -> io::Result<Option<Seen>> {
        self.look(|state| match state.find(path) {
            Ok(node) => state.seen(node).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        })
    }

    fn list(&self, directory: &[u8]) -> io::Result<Vec<Vec<u8>>> {
        self.look(|state| Ok(state.names(state.find(directory)?)?.keys().cloned().collect()))
    }

    fn open(&self, path: &[u8]) -> io::Result<(Box<dyn Read + '_>, Seen)> {
        self.look(|state| {
            let node = state.find(path)?;
            match &state.nodes[&node].kind {
                Kind::File { live, .. } => {
                    let reader: Box<dyn Read> = Box::new(io::Cursor::new(live.clone()));
                    Ok((reader, state.seen(node)?))
                }
                _ => Err(Errno::INVAL.into()),
            }
        })
    }

    fn read_link(&self, path: &[u8]) -> io::Result<Vec<u8>> {
        self.look(|state| match &state.nodes[&state.find(path)?].kind {
            Kind::Link(target) => Ok(target.clone()),
            _ => Err(Errno::INVAL.into()),
        })
    }

    fn write_file(
        &self,
        path: &[u8],
        mode: FileMode,
        fill: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<()> {
        let empty = Kind::File { live: Vec::new(), durable: Vec::new(), durable_permissions: 0o600 };
        let node = self.change(|state| state.make(path, empty))?;
        let mut bytes = Vec::new();
        let filled = fill(&mut bytes);
        self.change(|state| {
            if let Some(Node { kind: Kind::File { live, .. }, permissions, .. }) = state.nodes.get_mut(&node)
            {
                *live = bytes;
                *permissions = mode.permissions();
            }
            Ok(())
        })?;
        filled
    }

    fn make_link(&self, path: &[u8], target: &[u8]) -> io::Result<()> {
        self.change(|state| state.make(path, Kind::Link(target.to_vec())).map(drop))
    }

    fn make_dir(&self, path: &[u8]) -> io::Result<()> {
        self.change(|state| state.make(path, Kind::directory()).map(drop))
    }

    fn set_mode(&self, path: &[u8], mode: FileMode) -> io::Result<()> {
        self.change(|state| {
            let node = state.find(path)?;
            let clock = state.clock;
            if let Some(node) = state.nodes.get_mut(&node) {
                node.permissions = mode.permissions();
                node.ctime = clock;
            }
            Ok(())
        })
    }

    fn rename(&self, directory: &[u8], from: &[u8], to: &[u8]) -> io::Result<()> {
        self.change(|state| {
            let directory = state.find(directory)?;
            let node = state.entry(directory, from)?.ok_or(Errno::NOENT)?.1;
            let to = match state.entry(directory, to)? {
                Some((name, other)) => {
                    let is_directory = |node: u64| matches!(state.nodes[&node].kind, Kind::Directory { .. });
                    match (is_directory(node), is_directory(other)) {
                        (false, true) => return Err(Errno::ISDIR.into()),
                        (true, false) => return Err(Errno::NOTDIR.into()),
                        _ => name,
                    }
                }
                None => to.to_vec(),
            };
            state.name(directory, Naming::Rename(from.to_vec(), to))
        })
    }

    fn remove_file(&self, path: &[u8]) -> io::Result<()> {
        self.change(|state| {
            let (directory, name) = split(path);
            let directory = state.find(directory)?;
            let (name, node) = state.entry(directory, name)?.ok_or(Errno::NOENT)?;
            match state.nodes[&node].kind {
                Kind::Directory { .. } => Err(Errno::ISDIR.into()),
                _ => state.name(directory, Naming::Remove(name)),
            }
        })
    }

    fn remove_dir(&self, path: &[u8]) -> io::Result<()> {
        self.change(|state| {
            let (directory, name) = split(path);
            let directory = state.find(directory)?;
            let (name, node) = state.entry(directory, name)?.ok_or(Errno::NOENT)?;
            match state.names(node)?.is_empty() {
                true => state.name(directory, Naming::Remove(name)),
                false => Err(Errno::NOTEMPTY.into()),
            }
        })
    }

    fn sync_dir(&self, directory: &[u8]) -> io::Result<()> {
        self.change(|state| {
            let node = state.find(directory)?;
            state.sync(node);
            Ok(())
        })
    }

    fn sync_file_systems(&self, _directories: &mut dyn Iterator<Item = &[u8]>) -> io::Result<()> {
        self.change(|state| {
            state.sync_all();
            Ok(())
        })
    }
}

/// The journal is synced by whoever keeps it: a crash finds the old one or the new one.
impl JournalFile for SimRoot {
    fn read(&self) -> io::Result<Option<Journal>> {
        self.look(|state| Ok(state.journal.clone()))
    }

    fn write(&self, journal: &Journal) -> io::Result<()> {
        self.change(|state| {
            state.journal = Some(journal.clone());
            Ok(())
        })
    }

    fn remove(&self) -> io::Result<()> {
        self.change(|state| {
            state.journal = None;
            Ok(())
        })
    }
}
