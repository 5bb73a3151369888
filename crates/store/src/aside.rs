//! Setting a damaged session aside: its files leave `sessions/` whole, for `damaged/<session>.<n>/`, and none is
//! ever removed. What is left is a home without that session.

use std::io;
use std::path::{Path, PathBuf};

use rekindle_domain::chain::Link;
use rekindle_domain::event::LogRepaired;
use rekindle_domain::id::SessionId;
use rekindle_domain::line::{Draft, Envelope, Line};
use rekindle_domain::session::{Replay, SessionState};
use rekindle_domain::time::Timestamp;
use rekindle_domain::token::TokenIndex;
use serde_json::json;

use crate::crash_report::at_work;
use crate::disk::{Disk, EntryKind, OpenMode, copy, if_exists, replace, temporary, write_all_at};
use crate::layout::Layout;
use crate::line_codec::Codec;
use crate::log::{LogReader, walk};
use crate::session_files::every_file;

/// What the reports of its crashes are named beside a session that was set aside.
const CRASH_REPORTS: &str = "crashes.jsonl";

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
            let message =
                format!("nothing was set aside of session {session} in {}", layout.sessions().display());
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
    if_exists(disk.remove_dir(&layout.history(session)))?;
    disk.sync_dir(&layout.sessions())?;
    Ok(target)
}

/// What became of the good beginning of a log that was set aside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptPrefix {
    /// The directory the damaged log is in.
    pub aside: PathBuf,
    /// How many records were good.
    pub records: u64,
    /// How many bytes behind them are in the damaged log alone.
    pub left_bytes: u64,
}

/// Makes the good beginning of a log that was set aside the session's log again, atomically and durably, with a record
/// that says so and whatever else `last_words` adds for the state it leaves. Finishes what a crash cut short.
///
/// The write-ahead log must not name the session any more.
pub fn keep_prefix(
    disk: &dyn Disk,
    layout: &Layout,
    session: SessionId,
    now: Timestamp,
    last_words: impl FnOnce(&SessionState, &TokenIndex) -> Vec<Draft>,
) -> io::Result<KeptPrefix> {
    let invalid = |message: String| io::Error::new(io::ErrorKind::InvalidData, message);
    let log = layout.log(session);
    let name = log.file_name().unwrap_or_default();
    let Some((_, aside)) = newest(disk, layout, session)? else {
        return Err(io::Error::new(io::ErrorKind::NotFound, format!("session {session} was not set aside")));
    };
    if disk.stat(&log).is_ok() {
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, format!("session {session} has a log")));
    }
    let _at_work = at_work(session, "load");
    let reader = LogReader::open(disk, &aside.join(name), layout.codec())?;
    let mut replay = Replay::new(session);
    walk(&reader, &mut replay, u64::MAX)?;
    let whole = replay.whole;
    if whole != replay.position() {
        replay = Replay::new(session);
        walk(&reader, &mut replay, whole.log_offset)?;
    }
    if !replay.state.is_created() || replay.state.deleted {
        return Err(invalid(format!(
            "the log of session {session} has no undamaged beginning to continue from"
        )));
    }
    let (records, left_bytes) = (whole.last_seq, reader.len().saturating_sub(whole.log_offset));
    let empty = TokenIndex::empty(session);
    let mut drafts = vec![Draft::from(LogRepaired {
        what: "prefix_kept".into(),
        offset: whole.log_offset,
        cut_bytes: left_bytes,
        refilled: 0,
        kept: None,
    })];
    drafts.extend(last_words(&replay.state, replay.tokens.as_ref().unwrap_or(&empty)));
    let lines = lines(layout.codec(), &mut replay, &drafts, now).map_err(invalid)?;
    let note =
        json!({"version": 1, "id": session, "at": now, "offset": whole.log_offset, "records": records});
    replace(disk, &layout.kept_prefix(&aside), note.to_string().as_bytes())?;
    let temporary = temporary(&log);
    let file = disk.open(&temporary, OpenMode::Replace)?;
    let source = disk.open(&aside.join(name), OpenMode::Read)?;
    copy(&*source, &*file, 0, whole.log_offset)?;
    write_all_at(&*file, &lines, whole.log_offset)?;
    file.sync()?;
    disk.rename(&temporary, &log)?;
    disk.sync_dir(&layout.sessions())?;
    Ok(KeptPrefix { aside, records, left_bytes })
}

/// Writes records as the continuation of a log; what cannot follow there is an error.
pub(crate) fn lines(
    codec: Codec,
    replay: &mut Replay,
    drafts: &[Draft],
    now: Timestamp,
) -> Result<Vec<u8>, String> {
    let (mut out, mut room) = (Vec::new(), Vec::new());
    let (ts, odd) = (now.to_string(), replay.oddities.len());
    for (index, draft) in drafts.iter().enumerate() {
        let (start, position) = (out.len(), replay.position());
        let place =
            Envelope { seq: position.last_seq + 1, ts: &ts, at: None, more: index + 1 < drafts.len() };
        let link = Link::new(replay.state.id, position.last_hash);
        codec.write(draft, place, link, &mut out).map_err(|error| error.to_string())?;
        let stored = codec.decode(&out[start..out.len() - 1], &mut room);
        let line = Line::parse(stored).map_err(|error| error.to_string())?;
        let end = position.log_offset + (out.len() - start) as u64;
        replay.push(&line, end).map_err(|problem| problem.to_string())?;
    }
    match replay.oddities.get(odd) {
        Some((_, why)) => Err(why.clone()),
        None => Ok(out),
    }
}

/// Tells whether a session has no log because it was set aside: what the write-ahead log still says of it is then about
/// the files that are there, and nothing is missing.
pub fn is_aside(disk: &dyn Disk, layout: &Layout, session: SessionId) -> bool {
    is_elsewhere(disk, layout, session) && !was_kept(disk, layout, session)
}

/// Tells whether a session's log is in `damaged/` and none is in its place: it was set aside, or is about to go on from its
/// good beginning.
pub fn is_elsewhere(disk: &dyn Disk, layout: &Layout, session: SessionId) -> bool {
    let Ok(Some((_, directory))) = newest(disk, layout, session) else { return false };
    let log = layout.log(session);
    let moved = log.file_name().is_some_and(|name| disk.stat(&directory.join(name)).is_ok());
    moved && matches!(if_exists(disk.stat(&log)), Ok(None))
}

/// Tells whether a session's log goes on from the good beginning of one that was set aside.
pub fn was_kept(disk: &dyn Disk, layout: &Layout, session: SessionId) -> bool {
    let newest = newest(disk, layout, session).ok().flatten();
    newest.is_some_and(|(_, aside)| disk.stat(&layout.kept_prefix(&aside)).is_ok())
}

/// Tells whether anything was set aside in a home.
pub fn any(disk: &dyn Disk, layout: &Layout) -> io::Result<bool> {
    Ok(if_exists(disk.list(&layout.damaged()))?.is_some_and(|entries| !entries.is_empty()))
}

/// Returns the newest directory a session was set aside in.
pub(crate) fn newest(
    disk: &dyn Disk,
    layout: &Layout,
    session: SessionId,
) -> io::Result<Option<(u64, PathBuf)>> {
    let entries = if_exists(disk.list(&layout.damaged()))?.unwrap_or_default();
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
    // The reports of its crashes go last: as long as there is a log, they say to leave it alone.
    let reports = layout.crash_report(session);
    if if_exists(disk.stat(&reports))?.is_some() {
        found.push((reports, CRASH_REPORTS.into()));
    }
    Ok(found)
}

fn make(disk: &dyn Disk, parent: &Path, directory: &Path) -> io::Result<()> {
    disk.create_dir(directory)?;
    disk.sync_dir(parent)
}
/// Tells whether a home has anything that is called by a session's id and is more than a cache.
pub(crate) fn is_taken(disk: &dyn Disk, layout: &Layout, session: SessionId) -> io::Result<bool> {
    for path in [layout.log(session), layout.damage_note(session), layout.crash_report(session)] {
        if if_exists(disk.stat(&path))?.is_some() {
            return Ok(true);
        }
    }
    Ok(newest(disk, layout, session)?.is_some())
}
