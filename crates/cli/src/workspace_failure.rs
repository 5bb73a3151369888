//! Errors of workspaces as failures of commands, each with what to do next.

use rekindle_client::failure::Failure;
use rekindle_service::workspaces::WorkspaceError;
use rekindle_workspace::CaptureError;
use rekindle_workspace::restore::RestoreError;

/// Returns the failure that an error of a workspace is.
pub(crate) fn failure(error: WorkspaceError) -> Failure {
    let hint = match &error {
        WorkspaceError::BadName(_) | WorkspaceError::NotResolved(_) => "rekindle workspace ls lists them",
        WorkspaceError::Capture(CaptureError::Root { .. }) => "name another directory",
        WorkspaceError::Capture(_) => "make room or raise the limit, and try again",
        WorkspaceError::Tree(_) | WorkspaceError::Blobs(_) => "rekindle doctor checks the home",
        WorkspaceError::Restore(RestoreError::Unfinished { .. }) => "run the same command again",
        WorkspaceError::Restoring { .. } => "wait until that is done, and run the same command again",
        WorkspaceError::Git(_) | WorkspaceError::Restore(_) => "fix what is named, and run it again",
        WorkspaceError::NewerManifest { .. } => "nothing was touched",
        WorkspaceError::Io { .. } => "rekindle doctor checks the home",
    };
    Failure::failed(error.code(), error).hint(hint)
}
