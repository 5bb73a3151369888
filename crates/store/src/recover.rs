//! What opening a home does before anything reads it: the write-ahead log's tail completes the session logs,
//! then a fresh segment takes over. Idempotent: a crash in the middle is followed by the same again (I14).

use std::io;
use std::path::PathBuf;

use rekindle_domain::event::Kind;
use rekindle_domain::id::SessionId;
use rekindle_domain::line::Line;
use rekindle_domain::session::Position;
use serde_json::json;

use crate::complete::{Completion, complete};
use crate::disk::{Disk, OpenMode, SharedDisk, refresh, replace};
use crate::layout::{DAMAGED_SUFFIX, Layout};
use crate::log::{Damage, LogReader};
use crate::wal::scan::{self, Scan, ScanError, WalDamage};
use crate::wal::writer::Wal;

/// What recovery found and did.
#[derive(Debug, Default, Clone)]
pub struct Recovered {
    /// Sessions the write-ahead log mentions, and what became of each.
    pub sessions: Vec<(SessionId, Completion)>,
    /// Damaged stretches of the write-ahead log; its segments are kept beside it.
    pub wal_damage: Vec<WalDamage>,
}

/// Why a home cannot be recovered; everything is left as it was.
#[derive(Debug, thiserror::Error)]
pub enum RecoverError {
    /// The write-ahead log cannot be read.
    #[error(transparent)]
    Scan(#[from] ScanError),
    /// There is no room to complete a session's log.
    #[error("the disk is too full to complete the log of session {session}; free some room and start again")]
    Full {
        /// The session.
        session: SessionId,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The new segment cannot be written.
    #[error("cannot begin a new segment of the write-ahead log in {path}")]
    Begin {
        /// The write-ahead log's directory.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// Completes the session logs and begins a new segment; on a full disk in the room the reserve gives up.
pub(crate) fn recover(
    disk: &SharedDisk,
    layout: &Layout,
    segment_bytes: u64,
) -> Result<(Wal, Recovered), RecoverError> {
    match try_recover(disk, layout, segment_bytes) {
        Err(RecoverError::Full { .. } | RecoverError::Begin { .. }) => {
            let _ = disk.remove_file(&layout.reserve());
            try_recover(disk, layout, segment_bytes)
        }
        outcome => outcome,
    }
}

fn try_recover(
    disk: &SharedDisk,
    layout: &Layout,
    segment_bytes: u64,
) -> Result<(Wal, Recovered), RecoverError> {
    let scan = scan::scan(&**disk, layout)?;
    secure(&**disk, layout, &scan);
    let mut recovered = Recovered { sessions: Vec::new(), wal_damage: scan.damage.clone() };
    let mut positions = Vec::new();
    let mut keep_segments = !scan.damage.is_empty();
    for (session, tail) in scan.by_session() {
        let completed = complete(&**disk, layout, session, &tail);
        let completion =
            match completed.and_then(|done| settle(&**disk, layout, session, done, &mut positions)) {
                Ok(completion) => completion,
                // Room comes back; a session is not damaged for the lack of it.
                Err(source) if source.kind() == io::ErrorKind::StorageFull => {
                    return Err(RecoverError::Full { session, source });
                }
                // One session's trouble is not the others' (I10).
                Err(error) => Completion::Damaged(Damage { offset: 0, detail: error.to_string() }),
            };
        if let Completion::Damaged(damage) = &completion {
            keep_segments = true;
            note_damage(&**disk, layout, session, damage, &scan);
        }
        recovered.sessions.push((session, completion));
    }
    let begin = |source| RecoverError::Begin { path: layout.wal(), source };
    disk.sync_dir(&layout.sessions()).map_err(begin)?;
    let wal = Wal::begin(disk.clone(), layout.clone(), segment_bytes, scan.last_number, &positions)
        .map_err(begin)?;
    if keep_segments {
        put_aside(&**disk, layout, &scan);
    }
    wal.drop_older();
    Ok((wal, recovered))
}

/// Makes durable what recovery is about to act upon: after the death of a process the end of the write-ahead
/// log may be in the page cache alone, and a power cut in mid-recovery must not leave its effects without it.
fn secure(disk: &dyn Disk, layout: &Layout, scan: &Scan) {
    let Some((number, from, to)) = scan.unsynced() else { return };
    // A failure changes nothing: each completed log is made durable by itself before this one goes.
    let _ = disk.open(&layout.segment(number), OpenMode::Write).and_then(|segment| {
        refresh(&*segment, from, to)?;
        segment.sync()
    });
}

/// Makes a completed log durable and remembers where it ends.
fn settle(
    disk: &dyn Disk,
    layout: &Layout,
    session: SessionId,
    completion: Completion,
    positions: &mut Vec<(SessionId, Position)>,
) -> io::Result<Completion> {
    match completion {
        Completion::Removed | Completion::SetAside | Completion::Damaged(_) => return Ok(completion),
        Completion::Whole | Completion::Refilled { .. } | Completion::Repaired { .. } => {}
    }
    let path = layout.log(session);
    disk.open(&path, OpenMode::Create)?.sync()?;
    let reader = LogReader::open(disk, &path)?;
    let last = reader.last(reader.len(), 1)?;
    let last = last.first().and_then(|(_, line)| Line::parse(line).ok());
    // A deleted session's log may go at any time: nothing must vouch for it.
    if let Some(last) = last.filter(|line| line.kind != Kind::SessionDeleted.as_str()) {
        let position = Position { last_seq: last.seq, log_offset: reader.len(), last_hash: last.hash };
        positions.push((session, position));
    }
    Ok(completion)
}

/// Leaves a note beside a log that lacks records: the log alone would look merely short.
fn note_damage(disk: &dyn Disk, layout: &Layout, session: SessionId, damage: &Damage, scan: &Scan) {
    let segments: Vec<String> =
        scan.summary().map(|(number, _)| format!("{number:08}.wal{DAMAGED_SUFFIX}")).collect();
    let note = json!({
        "version": 1, "id": session, "offset": damage.offset, "detail": damage.detail, "wal": segments,
    });
    // Without room for a note the session is still served as damaged until the next start.
    let _ = replace(disk, &layout.damage_note(session), note.to_string().as_bytes());
}

/// Keeps the segments that something may still be got from.
fn put_aside(disk: &dyn Disk, layout: &Layout, scan: &Scan) {
    for (number, _) in scan.summary() {
        let path = layout.segment(number);
        let mut name = path.clone().into_os_string();
        name.push(DAMAGED_SUFFIX);
        let _ = disk.rename(&path, &PathBuf::from(name));
    }
    let _ = disk.sync_dir(&layout.wal());
}
