//! The handle of a simulated disk, its settings, and the turn that every operation takes: count, tell the
//! observer, look for a fault. What the operations do is elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::errno;
use super::fault::{Fault, FaultKind, Faults};
use super::image::Image;
use super::op::Op;
use super::physics::Physics;

/// Is told of each mutating operation before it happens.
pub type Observer = Box<dyn FnMut(&Op) + Send>;

/// A disk in memory that can lose what a real one may lose. Clones are handles of the same disk.
#[derive(Clone)]
pub struct SimDisk {
    shared: Arc<Shared>,
}

struct Shared {
    /// Held throughout a mutating operation, so that operations happen in the order they are observed.
    observer: Mutex<Option<Observer>>,
    state: Mutex<State>,
}

/// A disk and those who use it.
pub(super) struct State {
    pub(super) image: Image,
    /// The inode of each open file, by the number of its handle.
    pub(super) open: BTreeMap<u64, u64>,
    /// The handle that holds the lock of an inode.
    pub(super) locks: BTreeMap<u64, u64>,
    pub(super) next_handle: u64,
    faults: Faults,
    struck: u64,
    /// How many mutating operations are left before the freeze.
    thawed: Option<u64>,
}

/// The right to carry out one mutating operation.
pub(super) struct Turn<'a> {
    pub(super) state: MutexGuard<'a, State>,
    /// What goes wrong with it.
    pub(super) fault: Option<FaultKind>,
    _order: MutexGuard<'a, Option<Observer>>,
}

impl SimDisk {
    /// Returns an empty disk; whatever it has to draw comes from the seed.
    pub fn new(seed: u64) -> SimDisk {
        SimDisk::from_image(Image::new(seed))
    }

    pub(super) fn from_image(image: Image) -> SimDisk {
        let state = State {
            image,
            open: BTreeMap::new(),
            locks: BTreeMap::new(),
            next_handle: 0,
            faults: Faults::none(),
            struck: 0,
            thawed: None,
        };
        SimDisk { shared: Arc::new(Shared { observer: Mutex::new(None), state: Mutex::new(state) }) }
    }

    /// Returns an independent copy: live, durable and pending state, counters, capacity and physics.
    ///
    /// Nothing is open or locked there; observer, faults and freeze are not copied.
    pub fn fork(&self) -> SimDisk {
        SimDisk::from_image(self.image())
    }

    pub(super) fn image(&self) -> Image {
        self.state().image.clone()
    }

    /// Sets who is told of each mutating operation before it happens, also of those that then fail.
    ///
    /// The observer may fork and read this disk through another handle, but not change it. A handle inside
    /// the observer keeps the disk in memory until [`SimDisk::clear_observer`].
    pub fn set_observer(&self, observer: Observer) {
        *self.observer() = Some(observer);
    }

    /// Removes the observer.
    pub fn clear_observer(&self) {
        *self.observer() = None;
    }

    /// Replaces all faults; their counting starts now.
    pub fn set_faults(&self, faults: impl Into<Faults>) {
        self.state().faults = faults.into();
    }

    /// Adds a fault; its counting starts now.
    pub fn inject(&self, fault: Fault) {
        let mut state = self.state();
        state.faults = std::mem::take(&mut state.faults).with(fault);
    }

    /// Removes all faults; what they have done stays done.
    pub fn clear_faults(&self) {
        self.set_faults(Faults::none());
    }

    /// Returns how many operations faults have struck, reads included.
    pub fn faults_struck(&self) -> u64 {
        self.state().struck
    }

    /// Limits the bytes of all files together; a file that is removed but open counts until it is closed.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.state().image.capacity = bytes;
    }

    /// Sets how likely the outcomes of crashes are.
    pub fn set_physics(&self, physics: Physics) {
        self.state().image.physics = physics;
    }

    /// Lets `n` more mutating operations through; after them every call fails as on a machine without power.
    ///
    /// Copies of the disk are not frozen.
    pub fn freeze_after(&self, n: u64) {
        self.state().thawed = Some(n);
    }

    /// Returns whether the freeze has come.
    pub fn is_frozen(&self) -> bool {
        self.state().is_frozen()
    }

    /// Returns the number of mutating operations so far, also of those that failed.
    pub fn ops(&self) -> u64 {
        self.state().image.ops
    }

    /// Returns how many bytes writes have taken so far.
    pub fn bytes_written(&self) -> u64 {
        self.state().image.bytes_written
    }

    /// Returns whether a power cut would lose nothing, because nothing is pending.
    pub fn is_settled(&self) -> bool {
        let image = &self.state().image;
        image.tree.pending() == 0 && image.files.values().all(|file| file.content.pending().is_empty())
    }

    /// Returns the state. A test that panicked elsewhere does not make it unusable.
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn observer(&self) -> MutexGuard<'_, Option<Observer>> {
        self.shared.observer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the turn of a mutating operation.
    pub(super) fn turn(&self, mut op: Op) -> io::Result<Turn<'_>> {
        let mut order = self.observer();
        let state = self.state();
        if state.is_frozen() {
            return Err(errno::frozen());
        }
        op.index = state.image.ops;
        drop(state);
        if let Some(observer) = order.as_mut() {
            observer(&op);
        }
        let mut state = self.state();
        state.image.ops += 1;
        state.image.last_write = None;
        state.thawed = state.thawed.map(|left| left.saturating_sub(1));
        let fault = state.strike(&op);
        Ok(Turn { state, fault, _order: order })
    }

    /// Returns the state to an operation that changes nothing.
    pub(super) fn look(&self, mut op: Op) -> io::Result<MutexGuard<'_, State>> {
        let mut state = self.state();
        if state.is_frozen() {
            return Err(errno::frozen());
        }
        op.index = state.image.ops;
        match state.strike(&op) {
            Some(fault) => Err(fault.error()),
            None => Ok(state),
        }
    }
}

impl State {
    fn is_frozen(&self) -> bool {
        self.thawed == Some(0)
    }

    fn strike(&mut self, op: &Op) -> Option<FaultKind> {
        let fault = self.faults.strike(op);
        self.struck += u64::from(fault.is_some());
        fault
    }

    /// Returns by how many bytes files may still grow.
    pub(super) fn room(&self) -> u64 {
        let Some(capacity) = self.image.capacity else { return u64::MAX };
        let counted: BTreeSet<u64> =
            self.image.tree.live_files().chain(self.open.values().copied()).collect();
        let used: u64 = counted
            .iter()
            .filter_map(|inode| self.image.files.get(inode))
            .map(|f| f.content.len() as u64)
            .sum();
        capacity.saturating_sub(used)
    }

    /// Forgets inodes that nobody can reach any more, now and then.
    pub(super) fn tidy(&mut self) {
        if self.image.is_littered() {
            let open: BTreeSet<u64> = self.open.values().copied().collect();
            self.image.collect(|inode| open.contains(&inode));
        }
    }
}

impl Turn<'_> {
    /// Fails if a fault struck an operation that then leaves no trace.
    pub(super) fn pass(&self) -> io::Result<()> {
        self.fault.map_or(Ok(()), |fault| Err(fault.error()))
    }
}

impl fmt::Debug for SimDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let paths: Vec<PathBuf> = self.paths();
        f.debug_struct("SimDisk").field("ops", &self.ops()).field("paths", &paths).finish()
    }
}
