//! The history of a session: its own log, and before it what a fork goes on from. That is read through the parent's log, which
//! has it byte for byte, or from a base file once that log is gone. Nothing is copied to make a fork.

use std::io;

use rekindle_domain::chain::ChainHash;
use rekindle_domain::event::ForkedFrom;
use rekindle_domain::id::SessionId;
use rekindle_domain::line::Line;
use rekindle_domain::session::{Position, SessionState};

use crate::crash_report::Quarantined;
use crate::disk::{Disk, OpenMode, if_exists, is_shortage, temporary};
use crate::home_files::HomeFiles;
use crate::log::{Cursor, Damage, LogReader, broken_between};

/// Most logs that a history is read through, each a descriptor: a fork whose history would need more gets a base file when it is
/// made, which begins anew.
pub(crate) const MOST_LOGS: usize = 32;

/// The whole history of a session, to be read.
pub struct History {
    /// The lines. Places in it are those of the history, not of the session's own log.
    pub reader: LogReader,
    /// The session whose id the hash of the first record begins with.
    pub root: SessionId,
    /// Why what the session goes on from cannot be read, if it cannot: the lines begin behind it then.
    pub missing: Option<String>,
    /// How many bytes there are before the session's own log.
    base: u64,
}

impl History {
    /// Returns where the session's own log begins.
    pub fn own(&self) -> Cursor {
        Cursor::at(self.base)
    }

    /// Returns where a byte of the session's own log is.
    pub fn place(&self, own: Cursor) -> Cursor {
        Cursor::at(self.base + own.offset())
    }

    /// Returns where the session's own log ends, as of its state.
    pub fn end_of(&self, state: &SessionState) -> Cursor {
        self.place(Cursor::at(state.position().log_offset))
    }

    /// Finds the first record before the session's own that does not follow the one before it.
    pub(crate) fn broken_base(&self) -> io::Result<Option<Damage>> {
        broken_between(&self.reader, self.root, Position::default(), self.base)
    }

    /// Finds a record: its hash, and the byte behind it.
    fn find(&self, seq: u64) -> io::Result<Option<(Option<ChainHash>, u64)>> {
        let Some(begin) = self.reader.find(seq)? else { return Ok(None) };
        let mut lines = self.reader.forward(begin);
        let Some(raw) = lines.next()?.filter(|raw| raw.whole) else { return Ok(None) };
        Ok(Line::parse(raw.bytes).ok().map(|line| (line.hash, raw.end.offset())))
    }
}

/// What a fork goes on from: where it is, or why it is not there.
enum Base {
    /// A history, and the byte of it where the fork's own log takes over.
    Found(History, u64),
    /// It cannot be had.
    Missing(String),
}

/// Opens the history of a session.
pub(crate) fn open(home: &HomeFiles, session: SessionId) -> io::Result<History> {
    open_through(home, session, MOST_LOGS)
}

fn open_through(home: &HomeFiles, session: SessionId, logs: usize) -> io::Result<History> {
    let own = home.reader(session)?;
    let Some(from) = first_record(&own)? else {
        return Ok(History { reader: own, root: session, missing: None, base: 0 });
    };
    match find_base(home, session, &from, logs)? {
        Base::Found(base, end) => {
            let (root, missing) = (base.root, base.missing);
            Ok(History { reader: own.behind(base.reader, end), root, missing, base: end })
        }
        Base::Missing(why) => Ok(History { reader: own, root: session, missing: Some(why), base: 0 }),
    }
}

/// Reads what the log of a session goes on from: its first record says so.
fn first_record(own: &LogReader) -> io::Result<Option<ForkedFrom>> {
    let mut lines = own.forward(Cursor::START);
    let first = lines.next()?.filter(|raw| raw.whole);
    Ok(first.and_then(|raw| Line::parse(raw.bytes).ok()?.forked_from()))
}

/// Finds what a session is forked from, without reading more of its log than its beginning; none if it is no fork or has no log.
pub(crate) fn forked_from(home: &HomeFiles, session: SessionId) -> io::Result<Option<ForkedFrom>> {
    // A first line is looked at whatever is wrong with the session: who is forked from whom must be known before anything goes.
    let own = if_exists(LogReader::open(&*home.disk, &home.log(session), home.codec()))?;
    own.map_or(Ok(None), |own| first_record(&own))
}

/// Finds what a fork goes on from: in its base file if it has one, else in its parent's history. Whatever is wrong there is told,
/// and the fork is good without it; only a shortage, which passes, is an error.
fn find_base(home: &HomeFiles, session: SessionId, from: &ForkedFrom, logs: usize) -> io::Result<Base> {
    match try_find_base(home, session, from, logs) {
        Err(error) if !is_shortage(&error) => {
            Ok(Base::Missing(format!("the history before record {} cannot be read: {error}", from.seq + 1)))
        }
        found => found,
    }
}

fn try_find_base(home: &HomeFiles, session: SessionId, from: &ForkedFrom, logs: usize) -> io::Result<Base> {
    let path = home.base(session);
    if let Some(reader) = if_exists(LogReader::open(&*home.disk, &path, home.codec()))? {
        let base = reader.len();
        let history = History { reader, root: from.root(), missing: None, base };
        if history.reader.hash_before(base)? == from.h {
            return Ok(Base::Found(history, base));
        }
        let why = format!("{} no longer ends with the same record {}", path.display(), from.seq);
        return Ok(Base::Missing(why));
    }
    if logs <= 1 {
        return Ok(Base::Missing(format!("its history goes through more than {MOST_LOGS} sessions")));
    }
    let parent = match open_through(home, from.session_id, logs - 1) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let why = format!("{}, which it was forked from, no longer has a log here", from.session_id);
            return Ok(Base::Missing(why));
        }
        opened => opened?,
    };
    // Where it was when the fork was made, unless something before it is missing or stored in another way since.
    if let Some(bytes) = from.bytes.filter(|bytes| *bytes <= parent.reader.len() && parent.missing.is_none())
        && parent.reader.hash_before(bytes)? == from.h
    {
        return Ok(Base::Found(parent, bytes));
    }
    match parent.find(from.seq)? {
        Some((hash, end)) if hash == from.h => Ok(Base::Found(parent, end)),
        found => {
            let how = if found.is_some() { "another than it was" } else { "not there any more" };
            Ok(Base::Missing(format!("record {} of {} is {how}", from.seq, from.session_id)))
        }
    }
}

/// Returns the point at which a history can be forked behind a record of it; none if it has no such record.
pub(crate) fn fork_point(home: &HomeFiles, session: SessionId, seq: u64) -> io::Result<Option<ForkedFrom>> {
    let history = open(home, session)?;
    let root = Some(history.root).filter(|root| *root != session);
    let found = history.find(seq)?;
    let (session_id, snapshot) = (session, None);
    Ok(found.map(|(h, end)| ForkedFrom { session_id, seq, h, bytes: Some(end), root, snapshot }))
}

/// Returns how many logs the history of a session is read through, its own included.
pub(crate) fn depth(home: &HomeFiles, session: SessionId) -> io::Result<usize> {
    let (mut depth, mut at) = (1, session);
    while depth <= MOST_LOGS
        && home.disk.stat(&home.base(at)).is_err()
        && let Some(from) = forked_from(home, at)?
    {
        (depth, at) = (depth + 1, from.session_id);
    }
    Ok(depth)
}

/// Writes the base file of a fork: the lines of its history before its own, byte for byte, durably. One that is there is whole. What
/// cannot be had cannot be kept either; tells whether there is one now.
///
/// `home` is read and `disk` written, which differ where a home is looked at together with its write-ahead log.
pub(crate) fn write_base(
    home: &HomeFiles,
    disk: &dyn Disk,
    session: SessionId,
    from: &ForkedFrom,
) -> io::Result<bool> {
    let path = home.base(session);
    if disk.stat(&path).is_err() {
        // Also of a parent that is left alone: its lines are copied, and nobody looks into them.
        let home = &HomeFiles { quarantined: Quarantined::default(), ..home.clone() };
        let (history, end) = match find_base(home, session, from, MOST_LOGS + 1)? {
            Base::Found(history, end) => (history, end),
            Base::Missing(_) => return Ok(false),
        };
        let temporary = temporary(&path);
        let written = (|| {
            let file = disk.open(&temporary, OpenMode::Replace)?;
            history.reader.copy_to(&*file, end)?;
            file.sync()?;
            disk.rename(&temporary, &path)
        })();
        if written.is_err() {
            let _ = disk.remove_file(&temporary);
        }
        written?;
    }
    // Also of one that was there: whoever gave it its name may have died before that was durable.
    disk.sync_dir(&home.sessions())?;
    Ok(true)
}
