//! Copies of the holder's executable that nobody runs.

use std::path::{Path, PathBuf};

use rekindle_holder::client::{FileContents, LockState};
use rekindle_store::disk::SharedDisk;
use rekindle_store::home::{self, HomeError};
use rekindle_store::offline::Offline;

use super::{Freed, GcOptions, remove_tree};
use crate::error::chain;
use crate::test_knobs::crash_point;
use crate::upkeep::holders::inspect_holders;

/// Removes copies of the holder's executable. A daemon starts holders from one of them: beside it none is touched.
pub(super) fn collect(disk: &SharedDisk, offline: &Offline, options: GcOptions, freed: &mut Freed) {
    let layout = offline.layout();
    let bin = layout.home().join("bin");
    let Ok(entries) = std::fs::read_dir(&bin) else { return };
    let mut copies: Vec<PathBuf> =
        entries.flatten().map(|entry| entry.path()).filter(|path| is_copy(path)).collect();
    copies.sort();
    if copies.is_empty() {
        return;
    }
    // Held while this looks and removes, so that none starts meanwhile.
    let held = if options.dry_run {
        home::owner(&**disk, layout).map_or(Ok(None), |_| Err(None))
    } else {
        home::lock_for_upkeep(&**disk, layout, std::process::id()).map(Some).map_err(|error| match error {
            HomeError::Locked { .. } => None,
            other => Some(chain(&other)),
        })
    };
    let _held = match held {
        Ok(held) => held,
        Err(why) => {
            let why = why.unwrap_or_else(|| {
                "a daemon is running and starts holders from them; stop it first, agents keep working".into()
            });
            return freed.leave("executable", &bin, why);
        }
    };
    let Ok(all) = inspect_holders(offline) else { return };
    let mut used = Vec::new();
    for holder in
        all.iter().filter(|one| !matches!(one.seen.lock, LockState::Free { .. } | LockState::Missing))
    {
        match &holder.seen.launch {
            FileContents::There(launch) => used.push(launch.executable.clone()),
            FileContents::Missing | FileContents::Unreadable(_) => {
                let why = format!("{} may run any of them", holder.seen.holder_id);
                return freed.leave("executable", &bin, why);
            }
        }
    }
    for path in copies {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if used.contains(&name) {
            continue;
        }
        crash_point("gc.before_executable");
        let why = "no living holder runs it, and a daemon creates it again".into();
        freed.remove(("executable", path, why), options, remove_tree);
    }
}

/// Tells whether a directory is one of our copies, by its name.
fn is_copy(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.len() == 64 && name.bytes().all(|byte| byte.is_ascii_hexdigit()) && path.is_dir()
}
