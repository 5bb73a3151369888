//! All sessions: which there are, what stands beside their logs, and each of them on as many threads as are
//! worth it.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use rekindle_domain::id::SessionId;

use super::blobs::BlobUsage;
use super::caches::Caches;
use super::code::Code;
use super::finding::{Finding, Findings};
use super::histories::ForkedSessions;
use super::home::{list, unknown};
use super::kept_snapshots::KeptFiles;
use super::session::{self, Checked};
use super::{Counts, HomeView, Progress, Watcher};
use crate::aside::is_aside;
use crate::crash_report::at_work;
use crate::disk::Entry;
use crate::home::last_owner_of;
use crate::index::Index;
use crate::layout::{SessionFile, session_file};
use crate::redo::Completion;
use crate::threads::{map_on_threads, worthwhile};

/// How often a session that is being written to is looked at again before what was seen counts.
const TRIES: usize = 3;

/// Checks every session.
pub(super) fn check(
    view: &HomeView,
    blob_usage: &BlobUsage,
    findings: &mut Findings,
    watcher: Watcher<'_>,
) -> Counts {
    let names = list(&*view.home.disk, &view.home.sessions(), findings);
    let sessions = logs(&names);
    check_other_files(view, &names, &sessions, findings);
    let index = Index::read(&view.home);
    let total = sessions.len() as u64;
    let (counts, forks) = (Counts::default(), ForkedSessions::default());
    let totals = Mutex::new(Totals { findings, watcher, counts, bare: 0, behind: 0, total, forks });
    map_on_threads(worthwhile(), &sessions, |session| {
        let checked = check_one(view, blob_usage, &index, *session);
        // Whoever panicked while holding this left whole numbers behind.
        totals.lock().unwrap_or_else(PoisonError::into_inner).add(*session, checked);
    });
    let totals = totals.into_inner().unwrap_or_else(PoisonError::into_inner);
    let (counts, bare, behind, forks) = (totals.counts, totals.bare, totals.behind, totals.forks);
    forks.check(view, blob_usage, findings);
    check_lost(view, &names, &index, &sessions, findings);
    add_summary(view, &index, &sessions, (bare, behind), findings);
    counts
}

/// The findings and counts of all threads together.
struct Totals<'a, 'b> {
    findings: &'a mut Findings,
    watcher: Watcher<'b>,
    counts: Counts,
    /// Sessions without a snapshot.
    bare: u64,
    /// Sessions that the list cache has as they were before.
    behind: u64,
    total: u64,
    /// What is to be looked at once all logs were.
    forks: ForkedSessions,
}

impl Totals<'_, '_> {
    fn add(&mut self, session: SessionId, checked: Checked) {
        self.forks.note(session, &checked);
        self.counts.sessions += 1;
        self.counts.records += checked.records;
        self.counts.bytes += checked.bytes;
        self.bare += u64::from(!checked.has_snapshot);
        self.behind += u64::from(checked.index_behind);
        self.findings.add_all(checked.findings);
        (self.watcher)(Progress { what: "sessions", done: self.counts.sessions, total: self.total });
    }
}

/// Checks a session; one that seems wrong while someone writes to the home is looked at afresh.
fn check_one(view: &HomeView, blob_usage: &BlobUsage, index: &Index, session: SessionId) -> Checked {
    if view.home.quarantined.get(session).is_some() {
        // Whoever reads its log crashes; that is told where the crashes are.
        return Checked { has_snapshot: true, ..Checked::default() };
    }
    let _at_work = at_work(session, "check");
    let caches = || {
        let kept = KeptFiles::read(&view.raw, &view.home, session);
        (Caches::read(&*view.raw, &view.home, session), kept)
    };
    let mut checked = session::check(view, blob_usage, index, session, caches());
    for _ in 0..TRIES {
        if !view.owned || !checked.is_doubtful() {
            break;
        }
        let caches = caches();
        let Ok((fresh, _)) = HomeView::new(&view.raw, &view.home.layout, true) else { break };
        checked = session::check(&fresh, blob_usage, index, session, caches);
    }
    checked
}

fn logs(names: &[Entry]) -> Vec<SessionId> {
    let log = |entry: &Entry| match session_file(&entry.name) {
        SessionFile::Log(id) => Some(id),
        _ => None,
    };
    let mut sessions: Vec<SessionId> = names.iter().filter_map(log).collect();
    sessions.sort_unstable();
    sessions
}

/// Looks at what stands in `sessions/` besides logs.
fn check_other_files(view: &HomeView, names: &[Entry], sessions: &[SessionId], findings: &mut Findings) {
    let directory = view.home.sessions();
    let removed = |id: &SessionId| view.pending.get(id) == Some(&Completion::Removed);
    let has_log = |id: &SessionId| sessions.binary_search(id).is_ok();
    for entry in names {
        let path = directory.join(&entry.name);
        match session_file(&entry.name) {
            SessionFile::Log(_) | SessionFile::Index => {}
            SessionFile::Temporary | SessionFile::Foreign => findings.add(unknown(&directory, entry)),
            SessionFile::Base(id)
            | SessionFile::Snapshot(id)
            | SessionFile::Tokens(id)
            | SessionFile::History(id)
            | SessionFile::DamageNote(id)
                if !has_log(&id) && is_aside(&*view.raw, &view.home, id) =>
            {
                let what = "Setting the session aside in damaged/ was interrupted; this is a leftover.";
                let remedy = "A repair finishes it.";
                findings.add(Finding::new(Code::AsideUnfinished, path, what, remedy).of(id));
            }
            SessionFile::DamageNote(id) if !has_log(&id) && !removed(&id) => {
                let what =
                    "A note says that records of this session are missing, and its log is missing too.";
                let remedy = "Restore the log from a backup, and keep the note until then.";
                findings.add(Finding::new(Code::LogMissing, path, what, remedy).of(id));
            }
            // A removal takes the log last: a snapshot without one means that the log was taken away.
            SessionFile::Snapshot(id) if !has_log(&id) && !removed(&id) => {
                let what = "The session's log is missing; this snapshot is all that is left of it.";
                let remedy =
                    "Restore the log from a backup, and keep this: it may be the only copy of what it says.";
                findings.add(Finding::new(Code::LogMissing, path, what, remedy).of(id));
            }
            SessionFile::Base(id) | SessionFile::Tokens(id) | SessionFile::History(id)
                if !has_log(&id) && !removed(&id) =>
            {
                let what = "The session has no log: this is all that is left of it.";
                let remedy =
                    "Restore the log from a backup, and keep this: it may be the only copy of what it says.";
                findings.add(Finding::new(Code::StrayCache, path, what, remedy).of(id));
            }
            SessionFile::DamageNote(_)
            | SessionFile::Base(_)
            | SessionFile::Snapshot(_)
            | SessionFile::Tokens(_)
            | SessionFile::History(_) => {}
        }
    }
    for (id, completion) in view.pending.iter().filter(|(id, _)| !has_log(id)) {
        let path = view.home.log(*id);
        match completion {
            Completion::Removed => {
                let what =
                    "The session is deleted, and the removal of its files is not recorded as finished.";
                let remedy = "Nothing to do: the next start finishes it.";
                findings.add(Finding::new(Code::DeletionUnfinished, path, what, remedy).of(*id));
            }
            Completion::Damaged(damage) => {
                let what = format!(
                    "The log is missing, and the write-ahead log cannot replace it: {}.",
                    damage.detail
                );
                findings.add(Finding::new(Code::LogMissing, path, what, "Restore it from a backup.").of(*id));
            }
            Completion::Whole
            | Completion::SetAside
            | Completion::Refilled { .. }
            | Completion::Repaired { .. } => {}
        }
    }
}

/// Looks for sessions of which nothing is left but their entry in the list.
fn check_lost(
    view: &HomeView,
    names: &[Entry],
    index: &Index,
    sessions: &[SessionId],
    findings: &mut Findings,
) {
    if view.owned {
        return;
    }
    let told: HashSet<SessionId> = names
        .iter()
        .filter_map(|entry| match session_file(&entry.name) {
            SessionFile::Snapshot(id) | SessionFile::DamageNote(id) => Some(id),
            _ => None,
        })
        .collect();
    let known = |id: SessionId| {
        sessions.binary_search(&id).is_ok() || told.contains(&id) || view.pending.contains_key(&id)
    };
    let last_owner = last_owner_of(&*view.raw, &view.home);
    for id in crate::missing_logs::lost(&*view.raw, &view.home, index, last_owner, known) {
        let what = "The session's log is missing: according to the list of sessions it existed when the last daemon stopped.";
        let remedy = format!(
            "Restore the log from a backup, and keep {} until then: it may be the only copy of what is known about the session.",
            view.home.index().display()
        );
        findings.add(Finding::new(Code::LogMissing, view.home.log(id), what, remedy).of(id));
    }
}

/// Says once what would be tedious to say of every session.
fn add_summary(
    view: &HomeView,
    index: &Index,
    sessions: &[SessionId],
    (bare, behind): (u64, u64),
    findings: &mut Findings,
) {
    if sessions.is_empty() {
        return;
    }
    if bare > 0 {
        let what = format!("Sessions without a snapshot: {bare} of {}.", sessions.len());
        let remedy = "Nothing to do: their logs are read from the start, and the next use writes a snapshot.";
        findings.add(Finding::new(Code::SnapshotMissing, view.home.sessions(), what, remedy));
    }
    let path = view.home.index();
    let stray = index.sessions().filter(|id| sessions.binary_search(id).is_err()).count();
    match view.raw.stat(&path) {
        Err(_) => {
            let what = "The list cache is missing.";
            let remedy = "Nothing to do: the next start rebuilds it from the snapshots.";
            findings.add(Finding::new(Code::IndexMissing, path, what, remedy));
        }
        Ok(_) if index.is_empty() => {
            let what = "The list cache cannot be read, or is empty.";
            let remedy =
                format!("It is a cache: delete it, and the next start rebuilds it: rm {}", path.display());
            findings.add(Finding::new(Code::IndexUnreadable, path, what, remedy));
        }
        Ok(_) if behind > 0 || stray > 0 => {
            let what = format!(
                "Entries of the list cache that do not match the length of their log: {behind}; entries without a session: {stray}."
            );
            let remedy = "Nothing to do: such entries are ignored.";
            findings.add(Finding::new(Code::IndexBehind, path, what, remedy));
        }
        Ok(_) => {}
    }
}
