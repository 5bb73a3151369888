//! Looking at every session of a home: concurrently, with bounded memory, the unreadable beside the good.

use std::collections::HashSet;
use std::io;
use std::sync::{Mutex, PoisonError};

use rekindle_domain::id::SessionId;
use rekindle_domain::session::Replay;

use crate::crash_report::at_work;
use crate::disk::{EntryKind, Stat};
use crate::home_files::HomeFiles;
use crate::index::Index;
use crate::layout::{SessionFile, session_file};
use crate::load::{Effort, LoadError, Loaded, Want, load_within};
use crate::threads::{map_on_threads, worthwhile};

/// More of a log than this, in no cache, takes so long to read that nobody who asks for another session should wait for it: some
/// tens of milliseconds.
pub(crate) const LARGE: u64 = 8 << 20;

/// Who is told of each session, on any thread.
pub type Visitor<'a> = dyn Fn(SessionId, Result<Loaded, LoadError>) + Sync + 'a;

/// What is in `sessions/`.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    /// Every session that has a log, or a note that it should, sorted.
    pub(crate) sessions: Vec<SessionId>,
    /// Sessions that have a snapshot.
    pub(crate) snapshots: HashSet<SessionId>,
    /// Sessions whose log lacks records, by a note beside it.
    pub(crate) noted: HashSet<SessionId>,
    /// Names that are none of ours.
    pub(crate) foreign: Vec<String>,
}

/// Lists the sessions of a home.
pub(crate) fn list(home: &HomeFiles) -> io::Result<Listing> {
    let mut listing = Listing::default();
    for entry in home.disk.list(&home.sessions())? {
        match session_file(&entry.name) {
            SessionFile::Log(id) => listing.sessions.push(id),
            SessionFile::Snapshot(id) => drop(listing.snapshots.insert(id)),
            SessionFile::DamageNote(id) => drop(listing.noted.insert(id)),
            SessionFile::Base(_)
            | SessionFile::Tokens(_)
            | SessionFile::History(_)
            | SessionFile::Index
            | SessionFile::Temporary => {}
            SessionFile::Foreign => listing.foreign.push(entry.name),
        }
    }
    // A session whose log is gone altogether is listed by the note that says so.
    listing.sessions.extend(&listing.noted);
    listing.sessions.sort_unstable();
    listing.sessions.dedup();
    Ok(listing)
}

/// Loads every session and hands each to `visit`, on as many threads as are worth it.
///
/// Reads only. At most one session a thread is in memory; what the visitor keeps is its own affair.
pub(crate) fn survey(
    home: &HomeFiles,
    listing: &Listing,
    index: &Index,
    visit: &mut (dyn FnMut(SessionId, Result<Loaded, LoadError>) + Send),
) {
    let visit = Mutex::new(visit);
    survey_within(home, (listing, index), u64::MAX, &|session, loaded| {
        let mut visit = visit.lock().unwrap_or_else(PoisonError::into_inner);
        (*visit)(session, loaded);
    });
}

/// The same for a visitor that may be called by several threads at once; it is told of sessions of whose log more than `most`
/// bytes are in no cache, and these are not read.
pub(crate) fn survey_within(
    home: &HomeFiles,
    (listing, index): (&Listing, &Index),
    most: u64,
    visit: &Visitor<'_>,
) {
    map_on_threads(worthwhile(), &listing.sessions, |session| {
        let usable = home.check_quarantine(*session);
        let _at_work = usable.is_ok().then(|| at_work(*session, "load"));
        let loaded = usable.and_then(|()| match listed(home, listing, index, *session) {
            Some(loaded) => Ok(loaded),
            None => {
                let effort = Effort { most_unread: most, looks_for_note: listing.noted.contains(session) };
                load_within(home, *session, Want::Status, effort)
            }
        });
        visit(*session, loaded);
    });
}

/// Takes a session from the list cache, if the entry is good and says all there is to say.
fn listed(home: &HomeFiles, listing: &Listing, index: &Index, session: SessionId) -> Option<Loaded> {
    if index.is_empty() || listing.noted.contains(&session) {
        return None;
    }
    let log = home.disk.stat(&home.log(session)).ok().filter(|log| log.kind == EntryKind::File)?;
    // A newer version may have been here since the list was written: its snapshot is looked at, to be left alone.
    let newer = |stat: Stat| index.is_older_than(stat.modified);
    if listing.snapshots.contains(&session) && home.disk.stat(&home.snapshot(session)).is_ok_and(newer) {
        return None;
    }
    let state = index.state(session, log.len)?;
    // Whoever is waited for needs tokens, which the list does not have.
    if state.has_waits() {
        return None;
    }
    let read_from = state.position().log_offset;
    Some(Loaded { read_from, ..Loaded::new(Replay::from(state, None), None) })
}
