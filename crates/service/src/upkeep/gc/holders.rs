//! Directories of dead holders, once everything that they say is in a log and on disk.

use std::io;
use std::time::Duration;

use rekindle_holder::client::{DirLock, remove_leftovers, remove_under};
use rekindle_store::disk::{OpenMode, SharedDisk};
use rekindle_store::offline::Offline;

use super::{Freed, GcOptions, age_of};
use crate::error::chain;
use crate::test_knobs::crash_point;
use crate::upkeep::holders::{Holder, Standing, inspect_holders};

/// How old a directory must be that was begun for a holder and never used: whoever makes one needs milliseconds.
const HALF_MADE_FOR: Duration = Duration::from_secs(24 * 60 * 60);

/// Removes directories of dead holders.
pub(super) fn collect(disk: &SharedDisk, offline: &Offline, options: GcOptions, freed: &mut Freed) {
    let directory = offline.layout().home().join("holders");
    if !options.dry_run
        && let Err(error) = remove_leftovers(&directory)
    {
        freed.note_failed("holder", &directory, chain(&error));
    }
    let all = match inspect_holders(offline) {
        Ok(all) => all,
        Err(error) => return freed.note_failed("holder", &directory, chain(&error)),
    };
    let going: Vec<(Holder, String)> = all
        .into_iter()
        .filter_map(|holder| match may_go(&holder, options) {
            Ok(why) => Some((holder, why)),
            Err(Some(why)) => {
                freed.leave("holder", holder.seen.dir.path(), why);
                None
            }
            Err(None) => None,
        })
        .collect();
    if going.is_empty() {
        return;
    }
    // What proves that a journal is not needed may be in the page cache alone: it is on disk before the journal goes.
    if !options.dry_run
        && let Err(error) = secure(disk, offline, &going)
    {
        return freed.note_failed("holder", &directory, chain(&error));
    }
    for (holder, why) in going {
        let path = holder.seen.dir.path().to_owned();
        freed.remove(("holder", path, why), options, |_| remove_holder(&holder));
    }
}

/// Says why a holder's directory may go; else why not, where that is worth saying.
fn may_go(holder: &Holder, options: GcOptions) -> Result<String, Option<String>> {
    let age = age_of(holder.seen.dir.path());
    match &holder.standing {
        Standing::Ingested => Ok("the holder is dead and its journal is in the log".into()),
        Standing::HalfMade if age >= HALF_MADE_FOR => Ok("it was started and never used".into()),
        Standing::Unclaimed(why) => match options.orphans_older_than {
            Some(least) if age >= least => {
                Ok(format!("the holder is dead and its session {why}; you asked for it"))
            }
            Some(_) => Err(Some("it is not old enough".into())),
            None => Err(Some(format!(
                "its session {why}: its journal may be the only copy of the agent's output; --orphans-older-than removes it"
            ))),
        },
        Standing::JournalDamaged(_) => Err(Some("its journal is damaged and not completely in a log".into())),
        Standing::Unharvested => {
            Err(Some("its journal is not in the log yet: the next daemon copies it there".into()))
        }
        Standing::Withheld => {
            Err(Some("its session is quarantined: its journal may be needed when that is released".into()))
        }
        Standing::Newer(_) | Standing::Unreadable(_) => Err(Some("it cannot be read".into())),
        Standing::HalfMade
        | Standing::Lives
        | Standing::Orphan
        | Standing::Quarantined(_)
        | Standing::Copied
        | Standing::Busy => Err(None),
    }
}

/// Makes durable what the logs of these holders' sessions say.
fn secure(disk: &SharedDisk, offline: &Offline, going: &[(Holder, String)]) -> io::Result<()> {
    let layout = offline.layout();
    let wal = disk.list(&layout.wal())?.into_iter().map(|entry| layout.wal().join(entry.name));
    let logs = going.iter().filter_map(|(holder, _)| holder.session).map(|session| layout.log(session));
    for path in wal.chain(logs) {
        match disk.open(&path, OpenMode::Read).and_then(|file| file.sync()) {
            // A segment that a checkpoint dropped meanwhile: its logs were synced before.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            outcome => outcome?,
        }
    }
    Ok(())
}

/// Removes a directory under its lock; a tree that is not gone keeps it.
fn remove_holder(holder: &Holder) -> Result<(), String> {
    let lock = DirLock::take(&holder.seen.dir).map_err(|error| chain(&error))?;
    crash_point("gc.holder_locked");
    let removed = remove_under(lock).map_err(|error| chain(&error));
    crash_point("gc.holder_gone");
    removed
}
