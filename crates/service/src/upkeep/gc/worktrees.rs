//! Worktrees whose sessions were removed: those that have nothing which is nowhere else. With them what merges that were cut short have
//! left, and bundles whose time is over.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rekindle_store::disk::SharedDisk;
use rekindle_store::offline::Offline;

use super::super::worktree_users::WorktreeUsers;
use super::{Freed, GcOptions};
use crate::error::chain;
use crate::workspaces::Workspaces;
use crate::workspaces::git::GitRepository;
use crate::workspaces::session_worktree::leftover::{Leftover, leftovers};
use crate::workspaces::session_worktree::merge::remove_scratch;
use crate::workspaces::session_worktree::remove::Removal;

/// How long a bundle is kept with what a worktree had that was nowhere else.
const BUNDLES_KEPT: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// How old what a merge has left must be: no merge takes that long.
const SCRATCH_AGE: Duration = Duration::from_secs(24 * 60 * 60);

pub(super) fn collect(disk: &SharedDisk, offline: &Offline, options: GcOptions, freed: &mut Freed) {
    let layout = offline.layout();
    match leftovers(disk, layout) {
        Ok(leftovers) if !leftovers.is_empty() => {
            let users = WorktreeUsers::find(offline);
            let workspaces = Workspaces::new(disk.clone(), layout.clone());
            for leftover in leftovers {
                collect_one(&workspaces, &leftover, users.as_ref(), options, freed);
            }
        }
        Ok(_) => {}
        Err(error) => freed.note_failed("worktree", &layout.removed_worktrees(), error.to_string()),
    }
    let is_bundle = |path: &Path| path.extension().is_some_and(|kind| kind == "bundle" || kind == "partial");
    for bundle in
        older_than(&layout.removed_worktrees(), BUNDLES_KEPT).into_iter().filter(|path| is_bundle(path))
    {
        let why = "its 30 days are over".to_owned();
        freed.remove(("worktree", bundle, why), options, |path| {
            fs::remove_file(path).map_err(|error| error.to_string())
        });
    }
    for scratch in older_than(&layout.worktree_scratches(), SCRATCH_AGE) {
        let why = "a merge was interrupted".to_owned();
        freed.remove(("worktree", scratch, why), options, |path| {
            // Git knows of it, in the repository whose worktrees were merged.
            let repository = GitRepository::around(path).map(|found| found.common);
            let repository = repository.unwrap_or_else(|_| path.to_owned());
            remove_scratch(&repository, path).map_err(|error| error.to_string())
        });
    }
}

fn collect_one(
    workspaces: &Workspaces,
    leftover: &Leftover,
    users: Option<&WorktreeUsers>,
    options: GcOptions,
    freed: &mut Freed,
) {
    let directory = PathBuf::from(&leftover.worktree.directory);
    let Some(users) = users else {
        let why = "some sessions cannot be read and may use it".to_owned();
        return freed.leave("worktree", &directory, why);
    };
    if users.have_owner(&leftover.worktree.directory) {
        return;
    }
    if let Some(session) = users.works_in(&directory) {
        return freed.leave("worktree", &directory, format!("{session} is using it"));
    }
    if let Err(error) = workspaces.check_saved(&leftover.worktree) {
        return freed.leave("worktree", &directory, chain(&error));
    }
    let why = format!("{} was removed, and all work in it exists elsewhere too", leftover.session);
    freed.remove(("worktree", directory, why), options, |_| {
        let removal = Removal { worktree: &leftover.worktree, message: "", umask: 0o077, bundle: None };
        workspaces.remove_session_worktree(&removal).map_err(|error| chain(&error))?;
        fs::remove_file(&leftover.note).map_err(|error| error.to_string())
    });
}

/// Returns the entries of a directory that nobody touched for longer than some time.
fn older_than(directory: &Path, age: Duration) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let now = SystemTime::now();
    let is_old = |path: &PathBuf| {
        let changed = path.symlink_metadata().and_then(|found| found.modified());
        changed.is_ok_and(|changed| now.duration_since(changed).is_ok_and(|since| since > age))
    };
    entries.flatten().map(|entry| entry.path()).filter(is_old).collect()
}
