//! What opening a home does before anything reads it: the write-ahead log's tail completes the streams' logs,
//! then a fresh segment takes over. Idempotent: a crash in the middle is followed by the same again (I14).

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use rekindle_domain::event::Kind;
use rekindle_domain::id::{SessionId, StreamId};
use rekindle_domain::line::Line;
use rekindle_domain::session::Position;
use serde_json::json;

use crate::disk::{OpenMode, is_shortage, refresh, replace};
use crate::error::PathError;
use crate::home_files::HomeFiles;
use crate::lagging::{Cause, Lag, LaggingLogs};
use crate::layout::DAMAGED_SUFFIX;
use crate::log::{Damage, LogForm};
use crate::log_directory;
use crate::redo::{self, Completion, Plan, carry_out, concat_appends, open, plan_for};
use crate::threads::map_on_threads;
use crate::wal::scan::{self, Scan, ScanError, Tail, WalDamage};
use crate::wal::writer::Wal;

/// The outcome of recovery: what it found and did.
#[derive(Debug, Default, Clone)]
pub struct Recovered {
    /// Streams the write-ahead log mentions, and what became of each.
    pub streams: Vec<(StreamId, Completion)>,
    /// Damaged stretches of the write-ahead log; its segments are kept beside it.
    pub wal_damage: Vec<WalDamage>,
}

impl Recovered {
    /// Returns the sessions the write-ahead log mentions, and what became of each.
    pub fn sessions(&self) -> impl Iterator<Item = (SessionId, &Completion)> {
        self.streams.iter().filter_map(|(stream, done)| stream.session().map(|session| (session, done)))
    }
}

/// Why a home cannot be recovered; everything is left as it was.
#[derive(Debug, thiserror::Error)]
pub enum RecoverError {
    /// The write-ahead log cannot be read.
    #[error(transparent)]
    Scan(#[from] ScanError),
    /// The new segment cannot be written.
    #[error(transparent)]
    Begin(#[from] PathError),
}

/// The rest of a recovery that could not be finished: the committer goes on with it, and everything is served meanwhile (I10).
#[derive(Default)]
pub(crate) struct Unfinished {
    /// Lagging logs: they lack what the write-ahead log has of them.
    pub(crate) lagging: Arc<LaggingLogs>,
    /// Deleted sessions whose files could not all be removed.
    pub(crate) removals: BTreeSet<SessionId>,
    /// The write-ahead log begins anew: nothing older is needed.
    pub(crate) checkpointed: bool,
    /// The reserve's room was needed.
    pub(crate) reserve_used: bool,
}

/// Completes the logs and begins a new segment; on a full disk in the room the reserve gives up. A log that cannot be
/// completed lags, and the write-ahead log goes on from where it is.
pub(crate) fn recover(
    home: &HomeFiles,
    segment_bytes: u64,
) -> Result<(Wal, Recovered, Unfinished), RecoverError> {
    let scan = scan::scan(home)?;
    sync_tail(home, &scan);
    let mut recovered = Recovered { streams: Vec::new(), wal_damage: scan.damage.clone() };
    let mut unfinished = Unfinished::default();
    let mut positions = Vec::new();
    let mut keep_segments = !scan.damage.is_empty();
    let tails: Vec<(StreamId, Tail<'_>)> = scan.by_stream().into_iter().collect();
    let recover_one = |(stream, tail): &(StreamId, Tail<'_>)| recover_one(home, *stream, tail);
    let outcomes = map_on_threads(home.disk.parallel_syncs(), &tails, recover_one);
    for ((stream, _), one) in tails.iter().zip(outcomes) {
        if let Completion::Damaged(damage) = &one.completion {
            keep_segments = true;
            write_damage_note(home, *stream, damage, &scan);
        }
        recovered.streams.push((*stream, one.completion));
        positions.extend(one.durable_to.map(|position| (*stream, position)));
        if let Some(lag) = one.lag {
            unfinished.lagging.add(*stream, lag);
        }
        unfinished.removals.extend(one.removal);
    }
    let needed = unfinished.lagging.len() > 0 || !unfinished.removals.is_empty();
    let begin = || {
        if needed {
            return Err(io::Error::other("what the write-ahead log has is still needed"));
        }
        for directory in home.log_directories(recovered.streams.iter().map(|(stream, _)| *stream)) {
            home.disk.sync_dir(&directory)?;
        }
        Wal::begin(home.clone(), segment_bytes, scan.last_number, &positions)
    };
    let mut begun = begin();
    if begun.as_ref().is_err_and(is_shortage) {
        unfinished.reserve_used = home.disk.remove_file(&home.reserve()).is_ok();
        begun = begin();
    }
    match begun {
        Ok(wal) => {
            unfinished.checkpointed = true;
            if keep_segments {
                keep_damaged_segments(home, &scan);
            }
            wal.drop_older();
            Ok((wal, recovered, unfinished))
        }
        Err(source) => {
            let error = PathError {
                doing: "begin a new segment of the write-ahead log in",
                path: home.wal(),
                source,
            };
            let wal = Wal::resume(home.clone(), segment_bytes, &scan, keep_segments);
            let mut wal = wal.ok_or(error)?;
            // In a segment of its own if there is room for one; else with the first append that finds some.
            if wal.sync().is_err() {
                unfinished.reserve_used |= home.disk.remove_file(&home.reserve()).is_ok();
                let _ = wal.sync();
            }
            Ok((wal, recovered, unfinished))
        }
    }
}

/// What recovery did to one stream.
struct OneRecovered {
    completion: Completion,
    /// How far its log is on disk.
    durable_to: Option<Position>,
    /// What its log lacks, and for now is served as if it were there.
    lag: Option<Lag>,
    /// Its files are still to be removed.
    removal: Option<SessionId>,
}

impl From<Completion> for OneRecovered {
    fn from(completion: Completion) -> OneRecovered {
        OneRecovered { completion, durable_to: None, lag: None, removal: None }
    }
}

/// Completes one stream's log, or has it served as it would be.
fn recover_one(home: &HomeFiles, stream: StreamId, tail: &Tail<'_>) -> OneRecovered {
    // One stream's trouble is not the others' (I10), nor is a panic over it the next daemon's for ever.
    let _at_work = home.at_work(stream, "redo");
    let damaged = |error: &io::Error| {
        let detail = format!("its records in the write-ahead log could not be added: {error}");
        Completion::Damaged(Damage { offset: 0, detail })
    };
    let lagging = |completion: Completion, keep: u64, lines: Vec<u8>, error: &io::Error| {
        let (path, lines, why) = (home.stream_log(stream), Arc::new(lines), error.to_string());
        let lag = Lag { path, keep, lines, file: None, cause: Cause::Recovery, why };
        OneRecovered { lag: Some(lag), ..completion.into() }
    };
    let planned = open(home, stream).and_then(|reader| {
        let plan = plan_for(home, reader.as_ref(), stream, tail)?;
        Ok((reader, plan))
    });
    let (reader, plan) = match planned {
        Ok(planned) => planned,
        // What runs out comes back; a log is not damaged for the lack of it.
        Err(error) if is_shortage(&error) => {
            let base = tail.base().unwrap_or(0);
            let Ok(lines) = concat_appends(tail, base) else { return damaged(&error).into() };
            return lagging(Completion::Whole, base, lines, &error);
        }
        Err(error) => return damaged(&error).into(),
    };
    if let (Plan::Leave(Completion::Whole), Some(position), Some(reader)) = (&plan, tail.checkpoint, &reader)
        && tail.appends.is_empty()
        && reader.len() == position.log_offset
    {
        // A checkpoint vouches for all there is of it.
        return OneRecovered { durable_to: Some(position), ..Completion::Whole.into() };
    }
    let done = carry_out(home, stream, tail, reader.as_ref(), &plan);
    let error = match done.and_then(|done| make_durable(home, stream, done)) {
        Ok((completion, durable_to)) => return OneRecovered { durable_to, ..completion.into() },
        Err(error) => error,
    };
    match plan {
        Plan::Rewrite { keep, lines, completion } => lagging(completion, keep, lines, &error),
        Plan::Leave(Completion::Whole) => {
            let keep = reader.map_or(0, |reader| reader.len());
            lagging(Completion::Whole, keep, Vec::new(), &error)
        }
        Plan::Leave(completion) => completion.into(),
        Plan::Remove(session) => OneRecovered { removal: Some(session), ..Completion::Removed.into() },
    }
}

/// Makes durable what recovery is about to act upon: after the death of a process the end of the write-ahead
/// log may be in the page cache alone, and a power cut in mid-recovery must not leave its effects without it. So may the name of
/// its last segment: without it an append that touches several logs would be in those that were completed by then, and in no other.
fn sync_tail(home: &HomeFiles, scan: &Scan) {
    // A failure changes nothing for one log: each is made durable by itself before this one goes.
    let _ = home.disk.sync_dir(&home.wal());
    let Some((number, from, to)) = scan.unsynced() else { return };
    let _ = home.disk.open(&home.segment(number), OpenMode::Write).and_then(|segment| {
        refresh(&*segment, from, to)?;
        segment.sync()
    });
}

/// Makes a completed log durable; returns where it ends, if anything may vouch for that.
fn make_durable(
    home: &HomeFiles,
    stream: StreamId,
    completion: Completion,
) -> io::Result<(Completion, Option<Position>)> {
    match completion {
        Completion::Removed | Completion::SetAside | Completion::Damaged(_) => return Ok((completion, None)),
        Completion::Whole | Completion::Refilled { .. } | Completion::Repaired { .. } => {}
    }
    if !is_compressed(home, stream)? {
        home.disk.open(&home.stream_log(stream), OpenMode::Create)?.sync()?;
    }
    // Nothing vouches for a log that nobody looks into: whoever does later reads all of it.
    if home.is_quarantined(stream) {
        return Ok((completion, None));
    }
    let reader = home.stream_reader(stream)?;
    let last = reader.last(reader.end(), 1)?;
    let last = last.first().and_then(|(_, line)| Line::parse(line).ok());
    // A deleted session's log may go at any time: nothing must vouch for it.
    let last = last.filter(|line| line.kind != Kind::SessionDeleted.as_str());
    let position =
        last.map(|last| Position { last_seq: last.seq, log_offset: reader.len(), last_hash: last.hash });
    Ok((completion, position))
}

/// Tells whether a log is only there compressed, which is on disk before the log itself goes.
fn is_compressed(home: &HomeFiles, stream: StreamId) -> io::Result<bool> {
    let reader = redo::open(home, stream)?;
    Ok(reader.is_some_and(|reader| reader.form() == LogForm::Compressed))
}

/// Leaves a note beside a log that lacks records: the log alone would look merely short.
fn write_damage_note(home: &HomeFiles, stream: StreamId, damage: &Damage, scan: &Scan) {
    let segments: Vec<String> =
        scan.numbers().map(|number| format!("{number:08}.wal{DAMAGED_SUFFIX}")).collect();
    let note = json!({
        "version": 1, "id": stream.as_str(), "offset": damage.offset, "detail": damage.detail, "wal": segments,
    });
    if stream.session().is_none() {
        // The log may be gone with its directory: the note says that it was there.
        let _ = log_directory::make(&*home.disk, home, stream);
    }
    // Without room for a note the stream is still served as damaged until the next start.
    let _ = replace(&*home.disk, &home.stream_damage_note(stream), note.to_string().as_bytes());
}

/// Keeps the segments that something may still be got from.
fn keep_damaged_segments(home: &HomeFiles, scan: &Scan) {
    for number in scan.numbers() {
        let path = home.segment(number);
        let mut name = path.clone().into_os_string();
        name.push(DAMAGED_SUFFIX);
        let _ = home.disk.rename(&path, &PathBuf::from(name));
    }
    let _ = home.disk.sync_dir(&home.wal());
}
