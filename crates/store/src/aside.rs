//! Setting a damaged session aside: its files leave `sessions/` whole, for `damaged/<session>.<n>/`, and none is
//! ever removed. What is left is a home without that session.

use std::io;
use std::path::{Path, PathBuf};

use rekindle_domain::id::SessionId;

use crate::disk::{Disk, EntryKind};
use crate::layout::Layout;
use crate::session_files::every_file;

/// Moves everything of a session to a directory of its own below `damaged/`, durably, and returns that directory. Doing
/// it again finishes what a crash cut short, and changes nothing once it is finished.
///
/// The log goes first and the note of missing records last: a session that is half set aside has no log, so nobody takes
/// it for a whole one, and nothing that speaks of damage is gone while there is a log. Whoever owns the home lets go of the session before; the
/// write-ahead log may go on naming it (see [`is_aside`]).
pub fn set_aside(disk: &dyn Disk, layout: &Layout, session: SessionId) -> io::Result<PathBuf> {
    let files = present(disk, layout, session)?;
    let newest = newest(disk, layout, session)?;
    let target = match newest {
        Some((_, directory)) if files.is_empty() => return Ok(directory),
        None if files.is_empty() => {
            let message = format!("there is nothing of session {session} in {}", layout.sessions().display());
            return Err(io::Error::new(io::ErrorKind::NotFound, message));
        }
        // An earlier try that a crash cut short has room for the rest; an earlier life of the session has not.
        Some((_, directory)) if files.iter().all(|(_, name)| disk.stat(&directory.join(name)).is_err()) => {
            directory
        }
        Some((number, _)) => layout.aside(session, number + 1),
        None => layout.aside(session, 1),
    };
    make(disk, layout.home(), &layout.damaged())?;
    make(disk, &layout.damaged(), &target)?;
    for (from, name) in files {
        let to = target.join(name);
        let within = to.parent().unwrap_or(&target);
        if within != target {
            make(disk, &target, within)?;
        }
        disk.rename(&from, &to)?;
        disk.sync_dir(within)?;
        // The log is durably away before anything else follows it.
        disk.sync_dir(from.parent().unwrap_or(layout.home()))?;
    }
    match disk.remove_dir(&layout.history(session)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => disk.sync_dir(&layout.sessions())?,
    }
    Ok(target)
}

/// Tells whether a session has no log because it was set aside: what the write-ahead log still says of it is then about
/// the files that are there, and nothing is missing.
pub fn is_aside(disk: &dyn Disk, layout: &Layout, session: SessionId) -> bool {
    let gone = |path: &Path| disk.stat(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
    let Ok(Some((_, directory))) = newest(disk, layout, session) else { return false };
    let log = layout.log(session);
    let moved = log.file_name().is_some_and(|name| disk.stat(&directory.join(name)).is_ok());
    gone(&log) && moved && gone(&layout.kept_prefix(&directory))
}

/// Returns the newest directory a session was set aside in.
pub(crate) fn newest(
    disk: &dyn Disk,
    layout: &Layout,
    session: SessionId,
) -> io::Result<Option<(u64, PathBuf)>> {
    let entries = match disk.list(&layout.damaged()) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let number = |name: &str| {
        let number = name.strip_prefix(session.to_string().as_str())?.strip_prefix('.')?.parse().ok()?;
        (layout.damaged().join(name) == layout.aside(session, number)).then_some(number)
    };
    let dirs = entries.iter().filter(|entry| entry.kind == EntryKind::Dir);
    let newest = dirs.filter_map(|entry| number(&entry.name)).max();
    Ok(newest.map(|number| (number, layout.aside(session, number))))
}

/// Returns what there is of a session, in the order in which it goes, each with its name in the directory it goes to.
fn present(disk: &dyn Disk, layout: &Layout, session: SessionId) -> io::Result<Vec<(PathBuf, PathBuf)>> {
    let mut found = Vec::new();
    for path in every_file(disk, layout, session)?.into_iter().rev() {
        match disk.stat(&path) {
            Ok(_) => {
                let name = path.strip_prefix(layout.sessions()).unwrap_or(&path).to_owned();
                found.push((path, name));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    let note = layout.damage_note(session);
    found.sort_by_key(|(path, _)| *path == note);
    Ok(found)
}

fn make(disk: &dyn Disk, parent: &Path, directory: &Path) -> io::Result<()> {
    disk.create_dir(directory)?;
    disk.sync_dir(parent)
}
