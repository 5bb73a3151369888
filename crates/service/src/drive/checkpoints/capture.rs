//! One checkpoint taken: the directory captured within its limits, and compared with what it was.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rekindle_domain::compose::checkpoint::{Capture, MissedCapture};
use rekindle_domain::event::{
    ChangedFiles, CheckpointMode, DirectoryIdentity, GitState, NotTaken, NotTakenReason,
};
use rekindle_store::blobs::BlobError;
use rekindle_store::crash_report::at_work;
use rekindle_store::disk::is_shortage;
use rekindle_workspace::rules::{GitHead, Repository};
use rekindle_workspace::{CaptureError, CaptureOptions, Captured};

use super::files_touched::{Before, files_changed, files_touched};
use super::{CaptureOutcome, CaptureRequest, Shared, TakenCapture};
use crate::error::chain;
use crate::lock::locked;
use crate::session_span::session_span;
use crate::workspaces::WorkspaceError;
use crate::workspaces::checkpoint_record::as_recorded;

/// Most of a directory that is captured unasked.
#[derive(Debug, Clone, Copy)]
pub(super) struct CaptureLimits {
    pub(super) files: u64,
    pub(super) bytes: u64,
}

impl Default for CaptureLimits {
    /// What some seconds are enough for, even for the first time.
    fn default() -> CaptureLimits {
        CaptureLimits { files: 50_000, bytes: 2 << 30 }
    }
}

/// Captures a directory, and compares it with what it was if that is asked for.
pub(super) fn take(shared: &Shared, asked: &CaptureRequest) -> CaptureOutcome {
    // A panic is of this session's making.
    let _at_work = at_work(asked.session, "checkpoint");
    let _in_session = session_span(asked.session).entered();
    if asked.stop.is_raised() {
        return Err(not_taken(NotTakenReason::TimedOut, "other directories were captured first").into());
    }
    capture(shared, asked).map_err(|not_taken| {
        if !asked.stop.is_raised() {
            tracing::warn!("no checkpoint: {}", not_taken.detail);
        }
        // Costs next to nothing, however large the directory is.
        let git = Repository::around(&asked.root).map(|repository| git_state(&repository.head()));
        MissedCapture { not_taken, git, directory: identity(&asked.root) }
    })
}

fn capture(shared: &Shared, asked: &CaptureRequest) -> Result<TakenCapture, NotTaken> {
    let root = &asked.root;
    if shared.workspaces.is_restoring(root) {
        let detail = "a restore of the directory was interrupted: run it again to finish it";
        return Err(not_taken(NotTakenReason::Restoring, detail));
    }
    let is_limited = asked.mode.unwrap_or(shared.mode) != CheckpointMode::On;
    if is_limited && locked(&shared.too_large).contains(root) {
        return Err(too_large(root, shared.limits));
    }
    let no_limits = CaptureLimits { files: u64::MAX, bytes: u64::MAX };
    let limits = if is_limited { shared.limits } else { no_limits };
    let stop = || asked.stop.is_raised();
    let options = CaptureOptions {
        selection: shared.selection.clone(),
        others: (shared.others)(asked.session, root),
        max_files: limits.files,
        max_bytes: limits.bytes,
        stop: &stop,
        ..CaptureOptions::new(root)
    };
    let (captured, pins) = match shared.workspaces.capture_pinned(options) {
        Err(WorkspaceError::Capture(CaptureError::OverLimit { .. })) => {
            locked(&shared.too_large).insert(root.clone());
            return Err(too_large(root, limits));
        }
        captured => captured.map_err(|error| why_not(&error))?,
    };
    for note in &captured.notes {
        tracing::debug!("checkpoint: {note}");
    }
    let mut pins = vec![pins];
    let start = asked.start.as_deref().and_then(Before::of);
    let touched =
        start.map(|start| files_touched(&shared.workspaces, &start, (&captured, root), &asked.stop));
    let files_touched = match touched {
        Some(Ok((touched, more))) => {
            pins.extend(more);
            Some(touched)
        }
        // The trees are what counts: they can be compared later.
        Some(Err(error)) => {
            tracing::warn!("the checkpoints of a run cannot be compared: {}", chain(&error));
            None
        }
        None => None,
    };
    let capture = Capture {
        tree: captured.tree,
        git: captured.git.as_ref().map(git_state),
        rules: captured.rules,
        skipped: as_recorded(&captured.skipped),
        files_touched,
        directory: identity(root),
        files_changed: since_last_turn(shared, asked, (&captured, root)),
    };
    Ok(TakenCapture { capture, pins })
}

/// Tells which files were changed since the turn before, if that is asked for. The trees are what counts: what cannot be compared
/// is told as such when an agent is given its prompt.
fn since_last_turn(shared: &Shared, asked: &CaptureRequest, now: (&Captured, &Path)) -> Option<ChangedFiles> {
    let before = Before::of(asked.before.as_deref()?)?;
    files_changed(&shared.workspaces, &before, now, &asked.stop).unwrap_or_else(|error| {
        tracing::warn!("it cannot be determined what was changed since the last turn: {}", chain(&error));
        None
    })
}

/// Returns what a record says of a HEAD.
fn git_state(head: &GitHead) -> GitState {
    GitState { reference: head.reference.clone(), commit: head.commit.clone() }
}

/// Tells a directory from another of the same name.
fn identity(root: &Path) -> Option<DirectoryIdentity> {
    let (inode, file_system) = (std::fs::metadata(root).ok()?.ino(), rustix::fs::statvfs(root).ok()?.f_fsid);
    Some(DirectoryIdentity { file_system, inode })
}

fn not_taken(reason: NotTakenReason, detail: impl Into<String>) -> NotTaken {
    NotTaken { reason, detail: detail.into() }
}

fn too_large(root: &Path, limits: CaptureLimits) -> NotTaken {
    let CaptureLimits { files, bytes } = limits;
    let detail = format!(
        "{} has more than {files} files or {} MiB, and gets no checkpoints until the daemon is restarted; exclude what does \
         not count in .gitignore or .rekindleignore, or turn checkpoints on for the session",
        root.display(),
        bytes >> 20
    );
    not_taken(NotTakenReason::TooLarge, detail)
}

/// Returns why a directory could not be captured.
fn why_not(error: &WorkspaceError) -> NotTaken {
    let reason = match error {
        WorkspaceError::Capture(CaptureError::Root { .. }) => NotTakenReason::Unreadable,
        WorkspaceError::Capture(CaptureError::Stopped { .. }) => NotTakenReason::TimedOut,
        WorkspaceError::Capture(
            CaptureError::Sink { source, .. } | CaptureError::Exhausted { source, .. },
        ) if is_shortage(source) => NotTakenReason::NoRoom,
        WorkspaceError::Blobs(BlobError::Io(error)) if is_shortage(&error.source) => NotTakenReason::NoRoom,
        WorkspaceError::Io { source, .. } if is_shortage(source) => NotTakenReason::NoRoom,
        _ => NotTakenReason::Failed,
    };
    not_taken(reason, chain(error))
}
