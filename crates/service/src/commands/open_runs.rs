//! Open runs in a directory: files are not put back under the hands of an agent that is at work.

use std::path::{Path, PathBuf};

use rekindle_wire::code::Code;
use rekindle_wire::hint::Hint;

use crate::error::{Result, ServiceError};
use crate::show::{SessionEntry, Views};

/// Refuses to restore a directory in which a run goes on, or above or below which one does.
pub(super) fn refuse_open_runs(views: &Views, root: &Path) -> Result<()> {
    let root = canonical(root);
    let overlaps = |entry: &&SessionEntry| {
        let at = canonical(Path::new(&entry.state.working_dir));
        at.starts_with(&root) || root.starts_with(&at)
    };
    let at_work = views.directory.find_all(views.store(), |entry| entry.state.open_run().is_some());
    match at_work.iter().find(overlaps) {
        None => Ok(()),
        Some(entry) => {
            let (id, place) = (entry.state.id, root.display());
            let message = format!("the run of session {id} has not ended, in, above or below {place}");
            Err(ServiceError::new(Code::StillRunning, message).hint(Hint::CancelOrForceRestore))
        }
    }
}

/// Returns a directory by the name that it is known by whatever way led to it.
fn canonical(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}
