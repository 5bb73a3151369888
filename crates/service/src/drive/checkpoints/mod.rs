//! Checkpoints of sessions' directories: whether they are taken, and the threads that take them. A worker asks for one and goes on;
//! neither it nor whoever serves or commits ever waits for a directory.

mod capture;
mod capture_threads;
mod files_touched;
mod metrics;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use rekindle_domain::compose::checkpoint::{Capture, MissedCapture};
use rekindle_domain::event::{CheckpointMode, NotTaken, NotTakenReason, RunCheckpoint};
use rekindle_domain::id::SessionId;
use rekindle_domain::session::SessionState;
use rekindle_store::blobs::Pins;
use rekindle_workspace::rules::Selection;

use self::capture::{CaptureLimits, take};
use self::capture_threads::CaptureThreads;
pub(crate) use self::metrics::CheckpointCounts;
use crate::workspaces::Workspaces;

/// How checkpoints are taken where a session does not say otherwise.
#[derive(Debug, Clone, Default)]
pub struct CheckpointSettings {
    /// Whether they are.
    pub mode: CheckpointMode,
    /// Files that are left out, as in a `.gitignore`.
    pub exclude: Vec<String>,
    /// Files that count although something leaves them out.
    pub include: Vec<String>,
}

/// Who captures directories.
pub(crate) trait Captures: Send + Sync {
    /// Tells whether checkpoints of a session's directory are taken.
    fn is_on(&self, state: &SessionState) -> bool;

    /// Begins to capture a directory. `done` is called when it is captured, or when that failed: on another thread, so that whoever
    /// asks does not wait.
    fn begin(&self, asked: CaptureRequest, done: CaptureDone);
}

/// Who is told what came of a capture.
pub(crate) type CaptureDone = Box<dyn FnOnce(CaptureOutcome) + Send>;

/// What came of a capture.
pub(crate) type CaptureOutcome = Result<TakenCapture, MissedCapture>;

/// A directory that is to be captured.
pub(crate) struct CaptureRequest {
    /// Whose it is.
    pub(crate) session: SessionId,
    /// The directory.
    pub(crate) root: PathBuf,
    /// What its session says of checkpoints.
    pub(crate) mode: Option<CheckpointMode>,
    /// The checkpoint at the start of the run that has ended, to compare with.
    pub(crate) start: Option<Box<RunCheckpoint>>,
    /// The checkpoint at the end of the turn before, to compare with, if an agent begins that was not there.
    pub(crate) before: Option<Box<RunCheckpoint>>,
    /// Whether it is wanted any more.
    pub(crate) stop: StopFlag,
}

/// A directory that was captured: what was captured is collected by nobody before this is dropped.
pub(crate) struct TakenCapture {
    pub(crate) capture: Capture,
    /// Dropped when the record that names the capture is durable.
    pins: Vec<Pins>,
}

impl TakenCapture {
    /// Returns how many bytes it has added to the store.
    fn bytes(&self) -> u64 {
        self.pins.iter().map(Pins::written).sum()
    }
}

/// A flag that ends a capture soon after it was raised.
#[derive(Debug, Clone, Default)]
pub(crate) struct StopFlag(Arc<AtomicBool>);

impl StopFlag {
    /// Raises it.
    pub(crate) fn raise(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Tells whether it was raised.
    pub(crate) fn is_raised(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Finds the directories of sessions other than this one, below a root, in which something goes on.
pub(crate) type OtherDirectories = Box<dyn Fn(SessionId, &Path) -> Vec<PathBuf> + Send + Sync>;

/// The captures of a daemon.
pub(crate) struct DirectoryCaptures {
    shared: Arc<Shared>,
    threads: Arc<CaptureThreads>,
}

/// What all captures share.
pub(crate) struct Shared {
    workspaces: Workspaces,
    mode: CheckpointMode,
    selection: Selection,
    /// The home directory of whoever runs the daemon, by every name we know.
    user_homes: Vec<PathBuf>,
    others: OtherDirectories,
    /// Most that is captured unasked.
    limits: CaptureLimits,
    /// Directories that were found to be too large: they are not walked again at each turn.
    too_large: Mutex<HashSet<PathBuf>>,
}

impl DirectoryCaptures {
    /// Returns the captures of a daemon whose user has this home directory.
    pub(crate) fn new(
        workspaces: Workspaces,
        settings: CheckpointSettings,
        user_home: Option<&str>,
        others: OtherDirectories,
    ) -> DirectoryCaptures {
        let CheckpointSettings { mode, exclude, include } = settings;
        let named = user_home.filter(|home| !home.is_empty()).map(PathBuf::from);
        let found = named.as_ref().and_then(|home| home.canonicalize().ok());
        let shared = Shared {
            workspaces,
            mode,
            selection: Selection { exclude, include },
            user_homes: named.into_iter().chain(found).collect(),
            others,
            limits: CaptureLimits::default(),
            too_large: Mutex::default(),
        };
        DirectoryCaptures { shared: Arc::new(shared), threads: Arc::default() }
    }
}

#[cfg(test)]
impl DirectoryCaptures {
    /// Captures a directory at once, on this thread.
    pub(crate) fn take_now(&self, asked: &CaptureRequest) -> CaptureOutcome {
        take(&self.shared, asked)
    }
}

impl Shared {
    /// Tells whether a directory is one that is only captured if someone says so: the root, and a home directory.
    fn is_apart(&self, directory: &Path) -> bool {
        directory.parent().is_none() || self.user_homes.iter().any(|home| home == directory)
    }
}

impl Captures for DirectoryCaptures {
    fn is_on(&self, state: &SessionState) -> bool {
        match state.options.checkpoints.unwrap_or(self.shared.mode) {
            CheckpointMode::Off => false,
            CheckpointMode::On => true,
            CheckpointMode::Auto => !self.shared.is_apart(Path::new(&state.working_dir)),
        }
    }

    fn begin(&self, asked: CaptureRequest, done: CaptureDone) {
        let shared = self.shared.clone();
        let job = Box::new(move |can_run: bool| {
            done(if can_run { take(&shared, &asked) } else { Err(no_thread().into()) });
        });
        self.threads.submit(job);
    }
}

fn no_thread() -> NotTaken {
    let detail = "the system cannot start a thread for it".to_owned();
    NotTaken { reason: NotTakenReason::Failed, detail }
}

#[cfg(test)]
mod tests;
