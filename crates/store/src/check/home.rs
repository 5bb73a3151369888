//! The home itself: its description, its lock, its directories, and the permissions of everything in it.

use std::path::Path;

use super::Holding;
use super::code::Code;
use super::finding::{Finding, Findings};
use crate::disk::{Disk, Entry, EntryKind, if_exists};
use crate::home::{self, HomeError};
use crate::layout::{Layout, TEMPORARY_SUFFIX};
use crate::{access_list, staging, trusted_configs};

const DIR_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

/// How deep below the home permissions are looked at: our own trees are not deeper.
const DEPTH: usize = 4;

/// What a home may hold besides its four first directories; parts that other versions or programs of ours
/// keep there.
const KNOWN: &[&str] = &[
    "home.json",
    "daemon.lock",
    "daemon.json",
    "access.json",
    "access.lock",
    "access-used.json",
    "clock",
    "collected.json",
    "epoch",
    "exports",
    "logs",
    "tasks",
    "tasks.db",
    "tasks.db-shm",
    "tasks.db-wal",
    "wal",
    "sessions",
    "holders",
    "blobs",
    "workspaces",
    "runs",
    "cache",
    "bin",
    "crashes",
    "damaged",
    "imports",
    "notify",
    "removed-worktrees",
    "repairs",
    "tasks.db-journal",
    "trusted.json",
    "trusted.lock",
];

/// Checks the home and tells whether someone owns it at this moment.
pub(super) fn check(
    disk: &dyn Disk,
    layout: &Layout,
    holding: Holding,
    findings: &mut Findings,
) -> Result<bool, HomeError> {
    description(disk, layout, findings)?;
    let owned = lock(disk, layout, holding, findings);
    access(disk, layout, findings);
    trusted_configs(disk, layout, findings);
    check_names(disk, layout, findings);
    check_imports(disk, layout, findings);
    modes(disk, layout.home(), DEPTH, findings);
    Ok(owned)
}

fn description(disk: &dyn Disk, layout: &Layout, findings: &mut Findings) -> Result<(), HomeError> {
    let path = layout.home_file();
    let remedy = format!(
        r#"If this directory is a Rekindle home, write {{"format":{}}} into {}."#,
        home::HOME_FORMAT,
        path.display()
    );
    match home::check(disk, layout) {
        Ok(()) => {}
        Err(HomeError::Missing(_)) if disk.stat(&layout.sessions()).is_ok() => {
            let what =
                "home.json is missing, and without it no other command accepts the directory as a home.";
            findings.add(Finding::new(Code::HomeFileMissing, path, what, remedy));
        }
        Err(HomeError::NotAHome { detail, .. }) => {
            let what = format!("home.json is not a home's description: {detail}.");
            findings.add(Finding::new(Code::HomeFileUnreadable, path, what, remedy));
        }
        Err(HomeError::Io(error)) if disk.list(layout.home()).is_ok() => {
            let what = format!("home.json cannot be read: {}.", error.source);
            let remedy = format!("Make it readable: chmod 600 {}", path.display());
            findings.add(Finding::new(Code::HomeFileUnreadable, path, what, remedy));
        }
        Err(unusable) => return Err(unusable),
    }
    Ok(())
}

/// Looks whether the list of access tokens can be read: without it nobody is let in from elsewhere.
fn access(disk: &dyn Disk, layout: &Layout, findings: &mut Findings) {
    if let Err(error) = access_list::read(disk, layout) {
        let path = layout.access();
        let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
        let what = format!("No client is let in over TCP: {error}{cause}.");
        let remedy = format!("Set it aside (mv {0} {0}.bad) and create new tokens.", path.display());
        findings.add(Finding::new(Code::AccessUnreadable, path, what, remedy));
    }
}

/// Looks whether the list of trusted project files can be read: without it none of them is used.
fn trusted_configs(disk: &dyn Disk, layout: &Layout, findings: &mut Findings) {
    if let Err(error) = trusted_configs::read(disk, layout) {
        let path = layout.trusted_configs();
        let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
        let what = format!("No rekindle.toml is trusted: {error}{cause}.");
        let remedy =
            format!("Set it aside (mv {0} {0}.bad); you are asked about each file again.", path.display());
        findings.add(Finding::new(Code::TrustUnreadable, path, what, remedy));
    }
}

/// Looks who has the home, and whether it is where it was made.
fn lock(disk: &dyn Disk, layout: &Layout, holding: Holding, findings: &mut Findings) -> bool {
    if home::is_copied(disk, layout) {
        let what = "This home is a copy of another: its lock was made elsewhere.";
        let remedy = "Nothing to do: what the files say about running processes is not applied to this copy.";
        findings.add(Finding::new(Code::HomeCopied, layout.lock(), what, remedy));
    }
    let owner = match holding {
        Holding::Lock => None,
        Holding::Nothing => home::owner(disk, layout),
    };
    if let Some(owner) = &owner {
        let what = format!("The home is in use by {owner} at this moment.");
        let remedy = "Nothing to do; what is being written during the check may not be part of it.";
        findings.add(Finding::new(Code::HomeInUse, layout.lock(), what, remedy));
    }
    owner.is_some()
}

fn check_names(disk: &dyn Disk, layout: &Layout, findings: &mut Findings) {
    // One of an earlier version has no tasks yet.
    let needed = layout.directories().into_iter().skip(1).filter(|directory| *directory != layout.tasks());
    for directory in needed {
        if matches!(if_exists(disk.stat(&directory)), Ok(None)) {
            let what = "One of the home's directories is missing.";
            let remedy = "If you did not remove it yourself, restore it from a backup; the next start creates an empty one.";
            findings.add(Finding::new(Code::DirectoryMissing, directory, what, remedy));
        }
    }
    for entry in list(disk, layout.home(), findings) {
        if !KNOWN.contains(&entry.name.as_str()) {
            findings.add(unknown(layout.home(), &entry));
        }
    }
}

/// Looks whether an import was cut short: what it had brought so far belongs to no session.
fn check_imports(disk: &dyn Disk, layout: &Layout, findings: &mut Findings) {
    if staging::is_importing(disk, layout) {
        return;
    }
    for path in staging::leftovers(disk, layout).unwrap_or_default() {
        let what = "The import of a bundle was interrupted, and this is a leftover; no session needs it.";
        let remedy = "Nothing to do: the next import or garbage collection removes it.";
        findings.add(Finding::new(Code::ImportLeft, path, what, remedy));
    }
}

/// Lists a directory; one that cannot be listed is a finding, one that is missing is empty.
pub(super) fn list(disk: &dyn Disk, path: &Path, findings: &mut Findings) -> Vec<Entry> {
    match if_exists(disk.list(path)) {
        Ok(entries) => entries.unwrap_or_default(),
        Err(error) => {
            let what = format!("The directory cannot be listed: {error}.");
            let remedy = format!("Make it a readable directory: chmod 700 {}", path.display());
            findings.add(Finding::new(Code::DirectoryUnreadable, path, what, remedy));
            Vec::new()
        }
    }
}

/// Says of a name that is none of ours what it seems to be.
pub(super) fn unknown(directory: &Path, entry: &Entry) -> Finding {
    let path = directory.join(&entry.name);
    if entry.name.ends_with(TEMPORARY_SUFFIX) {
        let what = "A crash left this file half-written; nothing reads it.";
        let remedy = format!("It may be removed while no Rekindle runs: rm {}", path.display());
        return Finding::new(Code::TemporaryFile, path, what, remedy);
    }
    let what = "This is not one of Rekindle's files; it is left alone.";
    Finding::new(Code::ForeignName, path, what, "Move it elsewhere if you know it.")
}

/// The mode of a program that nobody is to change.
const PROGRAM_MODE: u32 = 0o500;

/// Looks at the permissions of everything below a directory: what agents say is nobody else's business.
fn modes(disk: &dyn Disk, path: &Path, depth: usize, findings: &mut Findings) {
    wrong_mode(disk, path, DIR_MODE, findings);
    // Whoever cannot list it says so elsewhere.
    for entry in disk.list(path).unwrap_or_default() {
        let inner = path.join(&entry.name);
        match entry.kind {
            EntryKind::Dir if depth > 0 => modes(disk, &inner, depth - 1, findings),
            EntryKind::File => wrong_mode(disk, &inner, FILE_MODE, findings),
            EntryKind::Dir | EntryKind::Other => {}
        }
    }
}

fn wrong_mode(disk: &dyn Disk, path: &Path, expected: u32, findings: &mut Findings) {
    let Ok(stat) = disk.stat(path) else { return };
    // A program of ours may be executable and need not be writable; what matters is that nobody else gets in.
    let harmless = expected == FILE_MODE && (stat.mode == DIR_MODE || stat.mode == PROGRAM_MODE);
    if stat.mode != expected && !harmless {
        let what = format!("The permissions are {:04o}, not {expected:04o}.", stat.mode);
        let remedy = format!("Correct them: chmod {expected:o} {}", path.display());
        findings.add(Finding::new(Code::WrongMode, path, what, remedy));
    }
}
