//! Completing one session's log from the write-ahead log, at boot, before anything reads it.
//!
//! Above the place where the write-ahead log takes over, the session log is only a copy: it must agree byte
//! for byte, and where it does not it is put right. Below that place nothing is touched.

use std::io;

use rekindle_domain::chain::ChainHash;
use rekindle_domain::id::SessionId;
use rekindle_domain::line::Line;

use crate::disk::{Disk, DiskFile, OpenMode, write_all_at};
use crate::layout::Layout;
use crate::load::hash_before;
use crate::log::{Damage, LogReader};
use crate::session_files;
use crate::wal::scan::Tail;

/// What was found and done.
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
    /// What is missing cannot be had from here.
    Damaged(Damage),
}

/// Brings a session's log to what the write-ahead log knows of it. Running it again changes nothing.
pub(crate) fn complete(
    disk: &dyn Disk,
    layout: &Layout,
    session: SessionId,
    tail: &Tail<'_>,
) -> io::Result<Completion> {
    let path = layout.log(session);
    let reader = match LogReader::open(disk, &path) {
        Ok(reader) => Some(reader),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    if tail.is_deleted() && reader.is_none() {
        session_files::remove(disk, layout, session)?;
        return Ok(Completion::Removed);
    }
    let (base, base_hash) = match (tail.checkpoint, tail.appends.first()) {
        (Some(position), _) => (position.log_offset, Some(position.last_hash)),
        (None, Some(append)) => (append.offset, None),
        (None, None) => return Ok(Completion::Whole),
    };
    if let Some(damage) = check_base(reader.as_ref(), base, base_hash)? {
        return Ok(Completion::Damaged(damage));
    }
    let wanted = match gather(tail, base) {
        Ok(wanted) => wanted,
        Err(at) => match &reader {
            // The write-ahead log itself is damaged: fine, if the session log has what is missing there.
            Some(reader) if covers(reader, tail)? => return Ok(Completion::Whole),
            _ => {
                let detail = "records are missing from both the log and the write-ahead log".into();
                return Ok(Completion::Damaged(Damage { offset: at, detail }));
            }
        },
    };
    let extra = match &reader {
        Some(reader) => whole_lists_behind(reader, session, tail, base, &wanted)?,
        None => 0,
    };
    put_right(disk, layout, session, reader.as_ref(), Ends { base, wanted: &wanted, extra })
}

/// Checks that the log reaches the base and has the right record there.
fn check_base(
    reader: Option<&LogReader>,
    base: u64,
    hash: Option<Option<ChainHash>>,
) -> io::Result<Option<Damage>> {
    let len = reader.map_or(0, LogReader::len);
    if len < base {
        let detail = format!("the log ends at byte {len}, but was on disk up to byte {base}");
        return Ok(Some(Damage { offset: len, detail }));
    }
    let found = reader.map(|reader| hash_before(reader, base)).transpose()?.flatten();
    if hash.is_some_and(|expected| expected != found) {
        let detail = format!("another record than the one that was there ends at byte {base}");
        return Ok(Some(Damage { offset: base, detail }));
    }
    Ok(None)
}

/// Puts the appended lines together; fails with the byte where some are missing.
fn gather(tail: &Tail<'_>, base: u64) -> Result<Vec<u8>, u64> {
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
struct Ends<'a> {
    /// Where the write-ahead log takes over.
    base: u64,
    /// What belongs there.
    wanted: &'a [u8],
    /// Good bytes behind that.
    extra: u64,
}

fn put_right(
    disk: &dyn Disk,
    layout: &Layout,
    session: SessionId,
    reader: Option<&LogReader>,
    ends: Ends<'_>,
) -> io::Result<Completion> {
    let Ends { base, wanted, extra } = ends;
    let have = reader.map_or(Ok(Vec::new()), |reader| reader.bytes(base, wanted.len()))?;
    let have_len = reader.map_or(0, |reader| reader.len() - base);
    let same = wanted.iter().zip(&have).take_while(|(a, b)| a == b).count();
    let missing = same < wanted.len();
    let good = same as u64 + if missing { 0 } else { extra };
    if !missing && good == have_len {
        return Ok(Completion::Whole);
    }
    let file = disk.open(&layout.log(session), OpenMode::Create)?;
    let keep = line_start(wanted, same);
    if missing {
        write_tail(&*file, base + keep as u64, &wanted[keep..])?;
    } else {
        file.set_len(base + good)?;
    }
    if missing && same as u64 == have_len {
        return Ok(Completion::Refilled { bytes: (wanted.len() - same) as u64 });
    }
    Ok(Completion::Repaired {
        offset: base + good,
        cut_bytes: have_len - good,
        refilled: if missing { memchr::memchr_iter(b'\n', &wanted[keep..]).count() as u64 } else { 0 },
        healed: missing && have.len() == wanted.len() && have.ends_with(b"\"}\n"),
    })
}

/// Cuts first: a crash in between leaves a shorter log, which is completed again.
fn write_tail(file: &dyn DiskFile, at: u64, lines: &[u8]) -> io::Result<()> {
    file.set_len(at)?;
    write_all_at(file, lines, at)
}

fn line_start(lines: &[u8], at: usize) -> usize {
    memchr::memrchr(b'\n', &lines[..at]).map_or(0, |newline| newline + 1)
}

/// Returns how many bytes behind what the write-ahead log has are whole lists that continue its history:
/// they were written from it once, before its own end was lost.
fn whole_lists_behind(
    reader: &LogReader,
    session: SessionId,
    tail: &Tail<'_>,
    base: u64,
    wanted: &[u8],
) -> io::Result<u64> {
    let last_line = wanted.strip_suffix(b"\n").map(|lines| &lines[line_start(lines, lines.len())..]);
    let last = match (last_line.map(Line::parse), tail.checkpoint) {
        (Some(Ok(line)), _) => Some((line.seq, line.hash)),
        (None, Some(position)) => Some((position.last_seq, position.last_hash)),
        // Without a record to continue from, nothing behind can be told from rubbish.
        (Some(Err(_)), _) | (None, None) => None,
    };
    let Some((mut seq, mut hash)) = last else { return Ok(0) };
    let from = base + wanted.len() as u64;
    let mut whole = from;
    let mut lines = reader.forward(from);
    while let Some(raw) = lines.next()? {
        let Ok(line) = Line::parse(raw.bytes) else { break };
        if !raw.whole || line.seq != seq + 1 || !line.follows(session, hash) {
            break;
        }
        (seq, hash) = (line.seq, line.hash);
        if !line.more {
            whole = raw.end;
        }
    }
    Ok(whole - from)
}
