//! Snapshot, token index and list cache beside what the log says. They are caches (I2): whatever is wrong
//! with one costs nothing but a replay, except that a newer version's are left alone.

use std::path::{Path, PathBuf};

use rekindle_domain::id::SessionId;
use rekindle_domain::session::{Position, SessionState};
use rekindle_domain::token::TokenIndex;
use serde::Serialize;

use super::HomeView;
use super::code::Code;
use super::finding::Finding;
use super::wal::RESTORE;
use crate::aside;
use crate::cache::{self, Cache, Cached};
use crate::disk::Disk;
use crate::index::Index;
use crate::layout::Layout;
use crate::load::{LoadError, legacy};

/// The caches of one session as found.
pub(super) struct Caches {
    snapshot: Result<Cached<SessionState>, LoadError>,
    tokens: Result<Cached<TokenIndex>, LoadError>,
    /// The snapshot is one of the earlier layout.
    legacy: bool,
    session: SessionId,
}

impl Caches {
    pub(super) fn read(disk: &dyn Disk, layout: &Layout, session: SessionId) -> Caches {
        Caches {
            snapshot: cache::read(disk, &layout.snapshot(session)),
            tokens: cache::read(disk, &layout.tokens(session)),
            legacy: legacy(disk, layout, session).is_some(),
            session,
        }
    }

    pub(super) fn has_snapshot(&self) -> bool {
        !matches!(self.snapshot, Ok(Cached::Missing))
    }

    /// Returns the snapshot, if it is one of this session.
    pub(super) fn snapshot(&self) -> Option<&SessionState> {
        match &self.snapshot {
            Ok(Cached::Good(state)) if state.id == self.session => Some(state),
            _ => None,
        }
    }

    /// Returns the token index, if it is one of this session.
    pub(super) fn tokens(&self) -> Option<&TokenIndex> {
        match &self.tokens {
            Ok(Cached::Good(tokens)) if tokens.id == self.session => Some(tokens),
            _ => None,
        }
    }

    /// Says what is wrong with the files by themselves. What may be the only copy of something is not to be deleted.
    pub(super) fn problems(&self, layout: &Layout, session: SessionId, only_copy: bool) -> Vec<Finding> {
        if let (true, Ok(Cached::Unreadable)) = (only_copy, &self.snapshot) {
            return vec![self.legacy_problem(layout, session)];
        }
        let own = (self.snapshot().is_some(), self.tokens().is_some());
        let (newer, unreadable) = (Code::SnapshotNewer, Code::SnapshotUnreadable);
        let snapshot =
            problem("snapshot", layout.snapshot(session), newer, unreadable, &self.snapshot, own.0);
        let (newer, unreadable) = (Code::TokensNewer, Code::TokensUnreadable);
        let tokens = problem("token index", layout.tokens(session), newer, unreadable, &self.tokens, own.1);
        snapshot.into_iter().chain(tokens).map(|finding| finding.of(session)).collect()
    }

    /// A snapshot that cannot be read as a cache beside a log that does not say what it may have.
    fn legacy_problem(&self, layout: &Layout, session: SessionId) -> Finding {
        let path = layout.snapshot(session);
        let (what, remedy) = match self.legacy {
            true => (
                "The snapshot has an earlier layout and has what the log does not: title, directory, start time.",
                "Nothing to do: keep it; its facts are put into the log when the session is first used.",
            ),
            false => (
                "The snapshot cannot be read, and the log has neither the session's title nor its directory.",
                "Keep it: it may be the only copy of them. Restore it from a backup if there is one.",
            ),
        };
        Finding::new(Code::SnapshotLegacy, path, what, remedy).of(session)
    }
}

/// Says what is wrong with a cache by itself.
fn problem<T: Cache>(
    word: &str,
    path: PathBuf,
    newer: Code,
    unreadable: Code,
    read: &Result<Cached<T>, LoadError>,
    own: bool,
) -> Option<Finding> {
    let what = match read {
        Ok(Cached::Missing) => return None,
        Ok(Cached::Good(_)) if own => return None,
        Ok(Cached::Good(_)) => format!("The {word} belongs to another session."),
        Ok(Cached::Unreadable) => format!("The {word} cannot be read."),
        Err(LoadError::Newer { found, known, .. }) => {
            let what = format!(
                "The {word} has version {found}, newer than version {known} which this Rekindle knows."
            );
            let remedy = "Use a newer Rekindle for this session; the file was not changed, and other sessions are not affected.";
            return Some(Finding::new(newer, path, what, remedy));
        }
        Err(other) => format!("The {word} cannot be read: {other}."),
    };
    let remedy = delete(&path);
    Some(Finding::new(unreadable, path, what, remedy))
}

/// What to do about a cache that is wrong.
fn delete(path: &Path) -> String {
    format!("It is a cache: delete it, and it is rebuilt at the next use: rm {}", path.display())
}

/// Compares a snapshot with the fold of the log up to the same record.
pub(super) fn compare_snapshot(
    view: &HomeView,
    snapshot: &SessionState,
    folded: &SessionState,
) -> Option<Finding> {
    if snapshot.position() != folded.position() {
        return Some(misfit(view, snapshot));
    }
    let folded = SessionState { extra: snapshot.extra.clone(), version: snapshot.version, ..folded.clone() };
    let path = view.home.snapshot(snapshot.id);
    let at = format!(" at record {}", snapshot.last_seq);
    let found =
        differs(Code::SnapshotDiffers, path, &format!("The snapshot{NOT_SAID}{at}"), snapshot, &folded);
    found.map(|finding| finding.of(snapshot.id).seq(snapshot.last_seq))
}

/// Compares a token index with the fold of the log up to the same record.
pub(super) fn compare_tokens(view: &HomeView, tokens: &TokenIndex, folded: &TokenIndex) -> Option<Finding> {
    let folded = TokenIndex { version: tokens.version, ..folded.clone() };
    let path = view.home.tokens(tokens.id);
    let at = format!(" at record {}", tokens.last_seq);
    let found = differs(Code::TokensDiffer, path, &format!("The token index{NOT_SAID}{at}"), tokens, &folded);
    found.map(|finding| finding.of(tokens.id).seq(tokens.last_seq))
}

const NOT_SAID: &str = " is not what the log says";

/// Says of a cache that it is not what it should be, and in which fields.
fn differs<T: PartialEq + Serialize>(
    code: Code,
    path: PathBuf,
    what: &str,
    found: &T,
    expected: &T,
) -> Option<Finding> {
    if found == expected {
        return None;
    }
    let (what, remedy) = (format!("{what}: {}.", differing(found, expected)), delete(&path));
    Some(Finding::new(code, path, what, remedy))
}

/// Names the fields in which two of a kind differ.
fn differing(found: &impl Serialize, expected: &impl Serialize) -> String {
    let value = |of: Result<serde_json::Value, _>| of.unwrap_or_default();
    let (found, expected) = (value(serde_json::to_value(found)), value(serde_json::to_value(expected)));
    let (Some(found), Some(expected)) = (found.as_object(), expected.as_object()) else {
        return "it differs".into();
    };
    let names = found.keys().chain(expected.keys().filter(|name| !found.contains_key(*name)));
    let differing: Vec<&str> =
        names.filter(|name| found.get(*name) != expected.get(*name)).map(String::as_str).collect();
    format!("it differs in {}", differing.join(", "))
}

fn misfit(view: &HomeView, snapshot: &SessionState) -> Finding {
    let path = view.home.log(snapshot.id);
    let what = format!("Record {} of the log is not the one the snapshot was made at.", snapshot.last_seq);
    let finding = Finding::new(Code::LogDiffersFromSnapshot, path, what, RESTORE);
    finding.of(snapshot.id).byte(snapshot.log_offset).seq(snapshot.last_seq)
}

/// A snapshot knows of records that the good part of the log does not have.
pub(super) fn ahead_of_log(view: &HomeView, snapshot: &SessionState, whole: Position, len: u64) -> Finding {
    if snapshot.last_seq <= whole.last_seq {
        return misfit(view, snapshot);
    }
    let what = format!(
        "The log is undamaged up to record {} at byte {} of {len}, but its snapshot reaches record {} at byte {}.",
        whole.last_seq, whole.log_offset, snapshot.last_seq, snapshot.log_offset
    );
    let finding = Finding::new(Code::LogShorterThanSnapshot, view.home.log(snapshot.id), what, RESTORE);
    finding.of(snapshot.id).byte(whole.log_offset).seq(whole.last_seq)
}

/// The list cache was made when the log was longer than its good part is now: it is made when everything is on disk.
pub(super) fn list_ahead(view: &HomeView, index: &Index, whole: &SessionState) -> Option<Finding> {
    let known = index.log_offset(whole.id).filter(|known| *known > whole.log_offset)?;
    // Of one that was set aside the good beginning may have been made its log again.
    if aside::newest(&*view.raw, &view.home, whole.id).is_ok_and(|aside| aside.is_some()) {
        return None;
    }
    let what = format!(
        "The log is undamaged up to record {} at byte {}, but it had {known} bytes when a daemon last stopped.",
        whole.last_seq, whole.log_offset
    );
    let finding = Finding::new(Code::LogShorterThanList, view.home.log(whole.id), what, RESTORE);
    Some(finding.of(whole.id).byte(whole.log_offset).seq(whole.last_seq))
}

/// A token index knows of records that the good part of the log does not have.
pub(super) fn tokens_ahead(view: &HomeView, tokens: &TokenIndex, whole: Position) -> Finding {
    let path = view.home.tokens(tokens.id);
    let what = format!(
        "The token index reaches record {}, but the log is undamaged only up to record {}.",
        tokens.last_seq, whole.last_seq
    );
    let remedy = delete(&path);
    Finding::new(Code::TokensDiffer, path, what, remedy).of(tokens.id).seq(tokens.last_seq)
}

/// Compares the list cache's entry of a session with the fold of its whole log. Tells also whether the entry is of an earlier time.
pub(super) fn listed(
    view: &HomeView,
    index: &Index,
    session: SessionId,
    log_len: u64,
    folded: &SessionState,
) -> (bool, Option<Finding>) {
    let Some(entry) = index.state(session, log_len) else { return (index.contains(session), None) };
    let folded = SessionState { extra: entry.extra.clone(), version: entry.version, ..folded.clone() };
    let what = format!("The list cache{NOT_SAID}");
    let found = differs(Code::IndexDiffers, view.home.index(), &what, &entry, &folded);
    (false, found.map(|finding| finding.of(session)))
}
