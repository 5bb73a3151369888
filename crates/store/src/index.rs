//! The list cache: every session's state in one file, one to a line, so that a cold start reads one file
//! instead of ten thousand. An entry counts only while its log is exactly as long as the entry says.

use std::collections::HashMap;
use std::io;
use std::time::SystemTime;

use rekindle_domain::event::ForkedFrom;
use rekindle_domain::id::{BootId, SessionId};
use rekindle_domain::session::{SNAPSHOT_VERSION, SessionState};

use crate::disk::{read_all, replace};
use crate::home_files::HomeFiles;

/// Largest list that is read; a larger one is passed over and the snapshots are read one by one.
const MAX_INDEX: u64 = 512 << 20;

const HEAD: &[u8] = b"{\"version\":1,\"sessions\":[\n";
const END: &[u8] = b"}\n";

/// How an entry says that its session is a fork; inside a string its quotes would be escaped.
const FORKED: &[u8] = b"\"forked_from\":{";

/// How the last line says who left the home in order after writing this: from then on only another owner changed anything.
const LEFT_BY: &str = "left_by";

/// The list as bytes, found by session; entries are parsed when they are asked for.
#[derive(Default)]
pub(crate) struct Index {
    bytes: Vec<u8>,
    lines: HashMap<SessionId, (usize, usize)>,
    /// When it was written.
    modified: Option<SystemTime>,
    /// Who wrote it as the last thing before leaving: every session that was there then is in it.
    pub(crate) left_by: Option<BootId>,
}

impl Index {
    /// Reads the list; anything wrong with it makes it empty.
    pub(crate) fn read(home: &HomeFiles) -> Index {
        let Ok(bytes) = read_all(&*home.disk, &home.index(), MAX_INDEX) else { return Index::default() };
        if !bytes.starts_with(HEAD) || !bytes.ends_with(END) {
            return Index::default();
        }
        let mut lines = HashMap::new();
        let mut start = HEAD.len();
        for end in memchr::memchr_iter(b'\n', &bytes[start..]).map(|at| at + HEAD.len()) {
            let line = bytes[start..end].strip_suffix(b",").unwrap_or(&bytes[start..end]);
            if let Some(id) = entry_id(line) {
                lines.insert(id, (start, start + line.len()));
            }
            start = end + 1;
        }
        let left_by = last_line(&bytes);
        Index {
            bytes,
            lines,
            left_by,
            modified: home.disk.stat(&home.index()).ok().map(|stat| stat.modified),
        }
    }

    /// Tells whether there is nothing in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Tells whether a file was written after it: then it cannot speak for that file.
    pub(crate) fn is_older_than(&self, modified: SystemTime) -> bool {
        self.modified.is_none_or(|written| written < modified)
    }

    /// Tells whether it has a session, as of whatever time.
    pub(crate) fn contains(&self, session: SessionId) -> bool {
        self.lines.contains_key(&session)
    }

    /// Returns the sessions it has, in no order.
    pub(crate) fn sessions(&self) -> impl Iterator<Item = SessionId> {
        self.lines.keys().copied()
    }

    /// Returns how long a session's log was when the list was made.
    pub(crate) fn log_offset(&self, session: SessionId) -> Option<u64> {
        self.entry(session).map(|state| state.log_offset)
    }

    /// Returns a session's state if the list has it as of a log of this length.
    pub(crate) fn state(&self, session: SessionId, log_len: u64) -> Option<SessionState> {
        self.entry(session).filter(|state| state.log_offset == log_len && state.version <= SNAPSHOT_VERSION)
    }

    /// Returns what a session is forked from, if it is in the list: that never changes. Most are no forks, and are not parsed.
    pub(crate) fn forked_from(&self, session: SessionId) -> Option<Option<ForkedFrom>> {
        let (start, end) = *self.lines.get(&session)?;
        if memchr::memmem::find(&self.bytes[start..end], FORKED).is_none() {
            return Some(None);
        }
        self.entry(session).map(|state| state.forked_from)
    }

    fn entry(&self, session: SessionId) -> Option<SessionState> {
        let (start, end) = *self.lines.get(&session)?;
        let state: SessionState = serde_json::from_slice(&self.bytes[start..end]).ok()?;
        (state.id == session).then_some(state)
    }
}

/// Finds the id in an entry without parsing it: it stands second, after the version.
fn entry_id(line: &[u8]) -> Option<SessionId> {
    let rest = line.strip_prefix(b"{\"version\":")?;
    let rest = &rest[memchr::memchr(b',', rest)?..];
    let rest = rest.strip_prefix(b",\"id\":\"")?;
    std::str::from_utf8(&rest[..memchr::memchr(b'"', rest)?]).ok()?.parse().ok()
}

/// Reads who left from the line behind the entries.
fn last_line(bytes: &[u8]) -> Option<BootId> {
    let body = bytes.strip_suffix(END)?;
    let line = &body[memchr::memrchr(b'\n', body)? + 1..];
    let rest = std::str::from_utf8(line.strip_prefix(b"],")?).ok()?;
    let (name, boot) = rest.split_once(':')?;
    (name.trim_matches('"') == LEFT_BY).then(|| boot.trim_matches('"').parse().ok()).flatten()
}

/// Replaces the list; `left_by` says who leaves the home behind it.
pub(crate) fn write<'a>(
    home: &HomeFiles,
    states: impl Iterator<Item = &'a SessionState>,
    left_by: Option<BootId>,
) -> io::Result<()> {
    let mut bytes = HEAD.to_vec();
    let mut first = true;
    for state in states {
        if !std::mem::take(&mut first) {
            bytes.extend_from_slice(b",\n");
        }
        serde_json::to_writer(&mut bytes, state).map_err(io::Error::other)?;
    }
    bytes.extend_from_slice(if first { b"" } else { b"\n" });
    bytes.push(b']');
    if let Some(boot) = left_by {
        bytes.extend_from_slice(format!(",\"{LEFT_BY}\":\"{boot}\"").as_bytes());
    }
    bytes.extend_from_slice(END);
    replace(&*home.disk, &home.index(), &bytes)
}
