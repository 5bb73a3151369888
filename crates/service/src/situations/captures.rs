//! Captures in situations: of a real directory, at once and on the worker's own thread, or when the test says so.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use rekindle_domain::session::SessionState;
use rekindle_store::Store;
use rekindle_store::disk::SharedDisk;
use rekindle_store::layout::Layout;

use crate::drive::checkpoints::{
    CaptureDone, CaptureRequest, Captures, CheckpointSettings, DirectoryCaptures, StopFlag,
};
use crate::lock::locked;
use crate::workspaces::Workspaces;

/// What a test says of captures; the same for every daemon of a home.
#[derive(Default)]
pub(super) struct CaptureScript {
    on: AtomicBool,
    hang: AtomicBool,
    begun: AtomicUsize,
    waiting: Mutex<Vec<Box<dyn FnOnce() + Send>>>,
    stops: Mutex<Vec<StopFlag>>,
}

impl CaptureScript {
    /// Has directories captured, or not.
    pub(super) fn set_on(&self, on: bool) {
        self.on.store(on, Ordering::Relaxed);
    }

    /// Has captures come to nothing before they are let go, or at once again.
    pub(super) fn set_hang(&self, hang: bool) {
        self.hang.store(hang, Ordering::Relaxed);
    }

    /// Lets the captures go that hang.
    pub(super) fn let_go(&self) {
        let waiting = std::mem::take(&mut *locked(&self.waiting));
        waiting.into_iter().for_each(|take| take());
    }

    /// Returns how many were begun.
    pub(super) fn begun(&self) -> usize {
        self.begun.load(Ordering::Relaxed)
    }

    /// Tells whether the latest was told to stop.
    pub(super) fn is_latest_stopped(&self) -> bool {
        locked(&self.stops).last().is_some_and(StopFlag::is_raised)
    }

    /// Returns the captures of a daemon.
    pub(super) fn of(self: &Arc<Self>, store: &Store, disk: SharedDisk) -> Arc<dyn Captures> {
        let workspaces = Workspaces::of_owner(disk, Layout::new("/home"), store.blobs());
        let others = Box::new(|_, _: &Path| Vec::new());
        let real = DirectoryCaptures::new(workspaces, CheckpointSettings::default(), None, others);
        Arc::new(ScriptedCaptures { script: self.clone(), real: Arc::new(real) })
    }
}

struct ScriptedCaptures {
    script: Arc<CaptureScript>,
    real: Arc<DirectoryCaptures>,
}

impl Captures for ScriptedCaptures {
    fn is_on(&self, state: &SessionState) -> bool {
        self.script.on.load(Ordering::Relaxed) && self.real.is_on(state)
    }

    fn begin(&self, asked: CaptureRequest, done: CaptureDone) {
        self.script.begun.fetch_add(1, Ordering::Relaxed);
        locked(&self.script.stops).push(asked.stop.clone());
        let real = self.real.clone();
        let take = move || done(real.take_now(&asked));
        if self.script.hang.load(Ordering::Relaxed) {
            locked(&self.script.waiting).push(Box::new(take));
        } else {
            take();
        }
    }
}
