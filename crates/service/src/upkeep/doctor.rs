//! The examination of a home, everything that can be said of it: what the store finds, its holders, and what a dead daemon
//! left.

use std::path::{Path, PathBuf};

use rekindle_store::check::{self, Code, Finding, Holding, Report, Watcher};
use rekindle_store::disk::SharedDisk;
use rekindle_store::home;
use rekindle_store::layout::Layout;
use rekindle_store::offline::{Offline, OfflineError};

use super::checkpoint_findings::inspect_checkpoints;
use super::holders::inspect_holders;
use super::run_findings::inspect_runs;
use super::task_row_findings::{TaskRows, inspect_task_rows};
use super::worktree_users::WorktreeUsers;
use crate::error::chain;
use crate::workspaces::Workspaces;
use crate::workspaces::session_worktree::leftover::leftovers;

/// The file in which a daemon says where it listens.
pub(super) const PLACE: &str = "daemon.json";

/// Looks at a home, as [`check::check`] does, at its holders, and at the rows of its tasks if it is said where they are. Writes
/// nothing and signals nobody.
pub fn examine(
    disk: &SharedDisk,
    home: &Path,
    holding: Holding,
    task_rows: Option<TaskRows<'_>>,
    watcher: Watcher<'_>,
) -> Result<Report, OfflineError> {
    let report = check::check(disk.clone(), home, holding, watcher)?;
    // A home whose description is damaged has been told of, and its holders with it would be guesses.
    let Ok(offline) = Offline::open(disk.clone(), home) else { return Ok(report) };
    let mut more = Vec::new();
    match inspect_holders(&offline) {
        Ok(holders) => more.extend(holders.iter().map(super::Holder::finding)),
        Err(error) => {
            let what = format!("The holders cannot be listed: {error}.");
            let path = home.join("holders");
            let remedy = format!("Make it a readable directory: chmod 700 {}", path.display());
            more.push(Finding::new(Code::DirectoryUnreadable, path, what, remedy));
        }
    }
    match inspect_checkpoints(disk, &offline) {
        Ok(found) => more.extend(found),
        Err(error) => {
            let what = format!("The checkpoints of runs cannot be listed: {error}.");
            let path = Layout::new(home).workspaces();
            let remedy = "Check again when the directory can be read.";
            more.push(Finding::new(Code::DirectoryUnreadable, path, what, remedy));
        }
    }
    let is_owned = holding == Holding::Nothing && home::owner(&**disk, &Layout::new(home)).is_some();
    match inspect_runs(disk, &offline, is_owned) {
        Ok(found) => more.extend(found),
        Err(error) => {
            let what = format!("The pipeline runs cannot be read: {error}.");
            let path = Layout::new(home).runs();
            let remedy = "Check again when the directory can be read.";
            more.push(Finding::new(Code::DirectoryUnreadable, path, what, remedy));
        }
    }
    let workspaces = Workspaces::new(disk.clone(), Layout::new(home));
    let mut leftovers = leftovers(disk, &Layout::new(home)).unwrap_or_default();
    // That of somebody who works there is not left. What cannot be told of all keeps nothing from being named.
    if let Some(users) = (!leftovers.is_empty()).then(|| WorktreeUsers::find(&offline)).flatten() {
        leftovers.retain(|leftover| {
            let directory = &leftover.worktree.directory;
            !users.have_owner(directory) && users.works_in(Path::new(directory)).is_none()
        });
    }
    for leftover in leftovers {
        let directory = PathBuf::from(&leftover.worktree.directory);
        let saved = workspaces.check_saved(&leftover.worktree);
        let whose = format!("The worktree of {}, which was removed,", leftover.session);
        more.push(match saved {
            Ok(()) => {
                let what = format!("{whose} is no longer needed.");
                Finding::new(Code::WorktreeLeft, directory, what, "Run a garbage collection to remove it.")
            }
            Err(error) => {
                let (what, branch) =
                    (format!("{whose} is left: {}.", chain(&error)), &leftover.worktree.branch);
                let remedy = format!(
                    "Merge its branch {branch}, or discard it: git -C {} worktree remove -f -f {}.",
                    leftover.worktree.origin,
                    directory.display()
                );
                Finding::new(Code::WorktreeUnsaved, directory, what, remedy)
            }
        });
    }
    let place = home.join(PLACE);
    let nobody = || holding == Holding::Lock || home::owner(&**disk, &Layout::new(home)).is_none();
    // A daemon has the file for itself, and looks after its rows.
    if let Some(rows) = task_rows.filter(|_| nobody()) {
        more.extend(inspect_task_rows(&offline, rows, watcher));
    }
    if place.exists() && nobody() {
        let what = "A daemon died and left the file that says where it listened; nothing listens there.";
        let remedy = "Nothing to do: the next daemon writes its own.";
        more.push(Finding::new(Code::DaemonLeft, place, what, remedy));
    }
    Ok(report.with(more))
}
