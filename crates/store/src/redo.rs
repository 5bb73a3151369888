//! Redo of one stream's log: what the write-ahead log has of it is put into it, at boot, before anything reads it.
//!
//! Above the place where the write-ahead log takes over, the log is only a copy: it must agree byte
//! for byte, and where it does not it is put right. Below that place nothing is touched.

use std::io;

use rekindle_domain::chain::ChainHash;
use rekindle_domain::id::{SessionId, StreamId};
use rekindle_domain::line::Line;

use crate::aside::is_aside;
use crate::disk::{OpenMode, if_exists, refresh, write_all_at};
use crate::home_files::HomeFiles;
use crate::line_codec::Codec;
use crate::log::{Cursor, Damage, LogForm, LogReader};
use crate::log_directory;
use crate::session_files;
use crate::wal::scan::Tail;

/// The outcome of redo for one log: what was found and done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Completion {
    /// The log had everything.
    Whole,
    /// Records were put into the log that it did not have yet; nothing was lost or cut.
    Refilled {
        /// How many bytes of records.
        bytes: u64,
    },
    /// The log did not agree and was put right.
    Repaired {
        /// Where it began to differ.
        offset: u64,
        /// Bytes that were cut or overwritten.
        cut_bytes: u64,
        /// Records put back.
        refilled: u64,
        /// The differing bytes had good ones behind them: damage, not a torn end.
        healed: bool,
    },
    /// The session was being deleted, and now is.
    Removed,
    /// The session's files were set aside, and nothing is to be done here.
    SetAside,
    /// What is missing cannot be had from here.
    Damaged(Damage),
}

/// A plan for a stream's log: from what it ought to be, next to what it is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Plan {
    /// Nothing is to be done to the log.
    Leave(Completion),
    /// Keep the log up to a byte and put these lines behind it.
    Rewrite {
        /// Where the log stops being right.
        keep: u64,
        /// What belongs behind that; may be nothing.
        lines: Vec<u8>,
        /// What that amounts to.
        completion: Completion,
    },
    /// Finish the deletion of a session.
    Remove(SessionId),
}

/// Brings a stream's log to what the write-ahead log knows of it. Running it again changes nothing.
pub(crate) fn redo(home: &HomeFiles, stream: StreamId, tail: &Tail<'_>) -> io::Result<Completion> {
    let _at_work = home.at_work(stream, "redo");
    let reader = open(home, stream)?;
    let plan = plan_for(home, reader.as_ref(), stream, tail)?;
    carry_out(home, stream, tail, reader.as_ref(), &plan)
}

/// Does to a log what was planned; after an error the same can be done again.
pub(crate) fn carry_out(
    home: &HomeFiles,
    stream: StreamId,
    tail: &Tail<'_>,
    reader: Option<&LogReader>,
    plan: &Plan,
) -> io::Result<Completion> {
    let base = tail.base();
    match plan {
        Plan::Leave(Completion::Whole) => {
            // What is compressed is on disk.
            let plain = reader.filter(|reader| reader.form() == LogForm::Plain);
            if let (Some(reader), Some(base)) = (plain, base) {
                let file = home.disk.open(&home.stream_log(stream), OpenMode::Write)?;
                refresh(&*file, base, reader.len())?;
            }
            Ok(Completion::Whole)
        }
        Plan::Leave(completion) => Ok(completion.clone()),
        Plan::Remove(session) => {
            session_files::remove(&*home.disk, home, *session)?;
            Ok(Completion::Removed)
        }
        Plan::Rewrite { keep, lines, completion } => {
            if stream.session().is_none() {
                // Somebody may have removed it, which makes nothing undone that was recorded.
                log_directory::make(&*home.disk, home, stream)?;
                home.decompress(stream)?;
            }
            let file = home.disk.open(&home.stream_log(stream), OpenMode::Create)?;
            refresh(&*file, base.unwrap_or(*keep), *keep)?;
            write_all_at(&*file, lines, *keep)?;
            file.set_len(keep + lines.len() as u64)?;
            Ok(completion.clone())
        }
    }
}

/// Opens a log that may not be there.
pub(crate) fn open(home: &HomeFiles, stream: StreamId) -> io::Result<Option<LogReader>> {
    if_exists(home.stream_reader(stream))
}

/// Compares a log with what the write-ahead log knows of it, unless it was set aside. Reads only.
pub(crate) fn plan_for(
    home: &HomeFiles,
    reader: Option<&LogReader>,
    stream: StreamId,
    tail: &Tail<'_>,
) -> io::Result<Plan> {
    if reader.is_none() && stream.session().is_some_and(|session| is_aside(&*home.disk, home, session)) {
        return Ok(Plan::Leave(Completion::SetAside));
    }
    if home.is_quarantined(stream) {
        return plan_bytes(reader, tail);
    }
    if let (None, Some(session)) = (reader, stream.session())
        && tail.is_deleted(home.codec())
        && !is_needed(home, tail)
    {
        return Ok(Plan::Remove(session));
    }
    plan(home.codec(), reader, stream, tail)
}

/// Tells whether a fork reads its history through a log. Whoever removes the session writes the base files before, so without one
/// the log was not removed but never on disk: it is made again, and goes in order.
fn is_needed(home: &HomeFiles, tail: &Tail<'_>) -> bool {
    let without_base = |fork: &SessionId| home.disk.stat(&home.base(*fork)).is_err();
    // Of one that a checkpoint knows the beginning is not here.
    tail.base() == Some(0) && tail.forks.iter().any(without_base)
}

/// Compares the bytes of a log with those that the write-ahead log has of it, and looks into no record: one of them made daemons
/// crash. Whatever stands behind them stays; whoever loads the session after its release judges it.
fn plan_bytes(reader: Option<&LogReader>, tail: &Tail<'_>) -> io::Result<Plan> {
    let Some(base) = tail.base() else { return Ok(Plan::Leave(Completion::Whole)) };
    if let Some(damage) = too_short(reader, base) {
        return Ok(Plan::Leave(Completion::Damaged(damage)));
    }
    let wanted = match concat_appends(tail, base) {
        Ok(wanted) => wanted,
        Err(offset) => return plan_gap(reader, tail, offset),
    };
    let extra = reader.map_or(0, LogReader::len).saturating_sub(base + wanted.len() as u64);
    plan_rewrite(reader, Ends { base, wanted, extra }, |_| false)
}

/// Compares a log with what the write-ahead log knows of it. Reads only.
fn plan(codec: Codec, reader: Option<&LogReader>, stream: StreamId, tail: &Tail<'_>) -> io::Result<Plan> {
    let Some(base) = tail.base() else { return Ok(Plan::Leave(Completion::Whole)) };
    if let Some(damage) =
        check_base(reader, stream, base, tail.checkpoint.map(|position| position.last_hash))?
    {
        return Ok(Plan::Leave(Completion::Damaged(damage)));
    }
    let wanted = match concat_appends(tail, base) {
        Ok(wanted) => wanted,
        Err(offset) => return plan_gap(reader, tail, offset),
    };
    let extra = match reader {
        Some(reader) => whole_lists_behind(codec, reader, stream, tail, base, &wanted)?,
        None => 0,
    };
    plan_rewrite(reader, Ends { base, wanted, extra }, |bytes| codec.ends_record(bytes))
}

/// Plans for a log of which the write-ahead log lacks something, because it is itself damaged: fine, if the log has what is
/// missing there.
fn plan_gap(reader: Option<&LogReader>, tail: &Tail<'_>, offset: u64) -> io::Result<Plan> {
    if reader.map_or(Ok(false), |reader| covers(reader, tail))? {
        return Ok(Plan::Leave(Completion::Whole));
    }
    let detail = "records are missing from both the log and the write-ahead log".into();
    Ok(Plan::Leave(Completion::Damaged(Damage { offset, detail })))
}

/// Tells that a log does not reach the place where the write-ahead log takes over.
fn too_short(reader: Option<&LogReader>, base: u64) -> Option<Damage> {
    let len = reader.map_or(0, LogReader::len);
    let detail = || format!("the log ends at byte {len}, but was on disk up to byte {base}");
    (len < base).then(|| Damage { offset: len, detail: detail() })
}

/// Checks that the log reaches the base and that the record there is the right one, whole.
fn check_base(
    reader: Option<&LogReader>,
    stream: StreamId,
    base: u64,
    hash: Option<Option<ChainHash>>,
) -> io::Result<Option<Damage>> {
    if let Some(damage) = too_short(reader, base) {
        return Ok(Some(damage));
    }
    let last = reader.map_or(Ok(Vec::new()), |reader| reader.last(Cursor::at(base), 2))?;
    let mut lines = last.iter().rev().map(|(start, bytes)| (*start, Line::parse(bytes).ok()));
    let Some((start, found)) = lines.next() else { return Ok(None) };
    let before = lines.next().and_then(|(_, line)| line);
    // A flipped byte leaves the hash's own digits as they were: the record must fit it.
    let whole = found.is_some_and(|line| match (line.hash, before.map(|line| line.hash)) {
        (Some(_), before) => line.follows(stream, before.flatten()),
        (None, _) => true,
    });
    if !whole {
        return Ok(Some(Damage {
            offset: start.offset(),
            detail: format!("the record that ends at byte {base} is incomplete"),
        }));
    }
    if hash.is_some_and(|expected| expected != found.and_then(|line| line.hash)) {
        let detail = format!("a different record than before ends at byte {base}");
        return Ok(Some(Damage { offset: start.offset(), detail }));
    }
    Ok(None)
}

/// Puts the appended lines together; fails with the byte where some are missing.
pub(crate) fn concat_appends(tail: &Tail<'_>, base: u64) -> Result<Vec<u8>, u64> {
    let mut lines = Vec::new();
    for append in &tail.appends {
        let end = base + lines.len() as u64;
        if append.offset != end {
            return Err(end);
        }
        lines.extend_from_slice(append.lines);
    }
    Ok(lines)
}

/// Tells whether the log has everything the write-ahead log still knows of.
fn covers(reader: &LogReader, tail: &Tail<'_>) -> io::Result<bool> {
    for append in &tail.appends {
        if reader.bytes(append.offset, append.lines.len())? != append.lines {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Where a log ought to end, and with what.
struct Ends {
    /// Where the write-ahead log takes over.
    base: u64,
    /// What belongs there.
    wanted: Vec<u8>,
    /// Good bytes behind that.
    extra: u64,
}

fn plan_rewrite(
    reader: Option<&LogReader>,
    ends: Ends,
    ends_record: impl FnOnce(&[u8]) -> bool,
) -> io::Result<Plan> {
    let Ends { base, mut wanted, extra } = ends;
    let have = reader.map_or(Ok(Vec::new()), |reader| reader.bytes(base, wanted.len()))?;
    let have_len = reader.map_or(0, |reader| reader.len() - base);
    let same = wanted.iter().zip(&have).take_while(|(a, b)| a == b).count();
    if same == wanted.len() {
        let good = same as u64 + extra;
        if good == have_len {
            return Ok(Plan::Leave(Completion::Whole));
        }
        let (offset, cut_bytes) = (base + good, have_len - good);
        let completion = Completion::Repaired { offset, cut_bytes, refilled: 0, healed: false };
        return Ok(Plan::Rewrite { keep: offset, lines: Vec::new(), completion });
    }
    let keep = line_start(&wanted, same);
    let completion = if same as u64 == have_len {
        Completion::Refilled { bytes: (wanted.len() - same) as u64 }
    } else {
        Completion::Repaired {
            offset: base + same as u64,
            cut_bytes: have_len - same as u64,
            refilled: memchr::memchr_iter(b'\n', &wanted[keep..]).count() as u64,
            healed: have.len() == wanted.len() && ends_record(&have),
        }
    };
    Ok(Plan::Rewrite { keep: base + keep as u64, lines: wanted.split_off(keep), completion })
}

fn line_start(lines: &[u8], at: usize) -> usize {
    memchr::memrchr(b'\n', &lines[..at]).map_or(0, |newline| newline + 1)
}

/// Returns how many bytes behind what the write-ahead log has are whole lists that continue its history:
/// they were written from it once, before its own end was lost.
fn whole_lists_behind(
    codec: Codec,
    reader: &LogReader,
    stream: StreamId,
    tail: &Tail<'_>,
    base: u64,
    wanted: &[u8],
) -> io::Result<u64> {
    let last_line = wanted.strip_suffix(b"\n").map(|lines| &lines[line_start(lines, lines.len())..]);
    let mut room = Vec::new();
    let last_line = last_line.map(|line| Line::parse(codec.decode(line, &mut room)));
    let last = match (last_line, tail.checkpoint) {
        (Some(Ok(line)), _) => Some((line.seq, line.hash)),
        (None, Some(position)) => Some((position.last_seq, position.last_hash)),
        // Without a record to continue from, nothing behind can be told from rubbish.
        (Some(Err(_)), _) | (None, None) => None,
    };
    let Some((mut seq, mut hash)) = last else { return Ok(0) };
    let from = base + wanted.len() as u64;
    let mut whole = from;
    let mut lines = reader.forward(Cursor::at(from));
    while let Some(raw) = lines.next()? {
        let Ok(line) = Line::parse(raw.bytes) else { break };
        if !raw.whole || line.seq != seq + 1 || !line.follows(stream, hash) {
            break;
        }
        (seq, hash) = (line.seq, line.hash);
        if !line.more {
            whole = raw.end.offset();
        }
    }
    Ok(whole - from)
}
