//! One session: its whole log, record by record, beside the caches that were made from it.

use std::collections::HashSet;

use rekindle_domain::event::ForkedFrom;
use rekindle_domain::id::SessionId;
use rekindle_domain::line::Line;
use rekindle_domain::session::Replay;

use super::HomeView;
use super::blobs::{BlobUsage, references};
use super::caches::{self, Caches};
use super::code::{Code, Severity};
use super::finding::Finding;
use super::kept_snapshots::KeptFiles;
use super::wal::{self, RESTORE};
use crate::blobs::BlobId;
use crate::index::Index;
use crate::log::{LogReader, Stop, Torn, walk_each};
use crate::redo::Completion;

/// Most records of one log that are reported one by one: the first ones tell what is wrong.
const MAX_RECORDS_NAMED: usize = 20;

/// What was found of a session.
#[derive(Default)]
pub(super) struct Checked {
    pub(super) findings: Vec<Finding>,
    pub(super) records: u64,
    pub(super) bytes: u64,
    /// It has a snapshot, good or bad.
    pub(super) has_snapshot: bool,
    /// The list cache has it as it was before.
    pub(super) index_behind: bool,
    /// It goes on from the history of another.
    pub(super) forked_from: Option<ForkedFrom>,
}

impl Checked {
    /// Tells whether a second look is worth it: a log that is being written to may seem worse than it is.
    pub(super) fn is_doubtful(&self) -> bool {
        self.findings.iter().any(|finding| finding.severity != Severity::Note)
    }
}

/// Checks one session. The caches must have been read before `view` was made or its log is opened: a log
/// only grows, so that whatever they say must be in it.
pub(super) fn check(
    view: &HomeView,
    blob_usage: &BlobUsage,
    index: &Index,
    session: SessionId,
    (caches, kept): (Caches, KeptFiles),
) -> Checked {
    let path = view.home.log(session);
    let mut checked = Checked { has_snapshot: caches.has_snapshot(), ..Checked::default() };
    let mut pending = wal::pending(view, session);
    checked.findings.extend(noted_damage(view, session));
    let mut checks = RecordChecks {
        view,
        blob_usage,
        session,
        caches: &caches,
        kept,
        findings: Vec::new(),
        lines: 0,
        whole_lines: 0,
        unreadable: HashSet::new(),
        missing: HashSet::new(),
        snapshot_reached: false,
        tokens_reached: false,
    };
    let mut replay = Replay::new(session);
    let walked = LogReader::open(&*view.home.disk, &path, view.home.codec()).and_then(|reader| {
        checked.bytes = reader.len();
        walk_each(&reader, &mut replay, u64::MAX, &mut |replay, line| checks.record(replay, line))
    });
    let stop = match walked {
        Ok(stop) => stop,
        Err(error) => {
            // Without the log nobody can say what is in its caches alone.
            checked.findings.extend(caches.problems(&view.home, session, true));
            checked.findings.extend(pending);
            checked.findings.push(unreadable(view, session, &error));
            return checked;
        }
    };
    checked.records = checks.whole_lines;
    checked.forked_from = replay.state.forked_from;
    // What has no beginning in the log has it nowhere but beside it.
    let only_copy = replay.state.is_nameless() || replay.state.last_seq == 0;
    checked.findings.extend(caches.problems(&view.home, session, only_copy));
    let unreached = checks.unreached(&replay, &stop, checked.bytes);
    let RecordChecks { findings, lines, whole_lines, unreadable, kept, .. } = checks;
    checked.findings.extend(kept.problems(view, &stop, replay.whole.last_seq));
    // What is pending at the end of the log begins behind the last whole list.
    if let Some(finding) =
        pending.take_if(|finding| matches!(finding.code, Code::LogTorn | Code::LogHalfList))
    {
        pending = Some(finding.line(whole_lines + 1));
    }
    checked.findings.extend(pending);
    checked.findings.extend(findings);
    checked.findings.extend(odd_records(view, session, &replay, &unreadable));
    let torn_is_damage = unreached.iter().any(|finding| finding.severity == Severity::Error)
        || matches!(view.pending.get(&session), Some(Completion::Damaged(_)));
    // What is known to be damaged need not be said to be short as well.
    let known = torn_is_damage || matches!(stop, Stop::Damaged(_));
    let cut = if known { None } else { caches::list_ahead(view, index, &replay.state) };
    let torn_is_damage = torn_is_damage || cut.is_some();
    checked.findings.extend(cut);
    checked.findings.extend(unreached);
    match stop {
        Stop::End if replay.state.last_seq == 0 => {
            let what = "The log has no record.";
            let remedy = "Nothing to do: a crash came before the session's first record.";
            checked.findings.push(Finding::new(Code::LogEmpty, path, what, remedy).of(session));
        }
        Stop::End => {
            let (behind, differs) = caches::listed(view, index, session, checked.bytes, &replay.state);
            checked.index_behind = behind;
            checked.findings.extend(differs);
        }
        Stop::Torn(_) if torn_is_damage => {}
        Stop::Torn(Torn { offset, len, half_list }) => {
            let finding = wal::torn(path, offset, len, half_list);
            checked.findings.push(finding.of(session).line(whole_lines + 1));
        }
        Stop::Damaged(damage) => {
            let last = replay.state.last_seq;
            let what = format!("The log is damaged after record {last}: {}.", damage.detail);
            let finding = Finding::new(Code::LogDamaged, path, what, RESTORE);
            checked.findings.push(finding.of(session).byte(damage.offset).line(lines + 1));
        }
    }
    if replay.state.deleted {
        let what = "The session is deleted, but its files still exist.";
        let remedy = "Nothing to do: the removal is finished by the next start.";
        let path = view.home.log(session);
        checked.findings.push(Finding::new(Code::DeletionUnfinished, path, what, remedy).of(session));
    }
    checked
}

fn unreadable(view: &HomeView, session: SessionId, error: &std::io::Error) -> Finding {
    let path = view.home.log(session);
    let what = format!("The log cannot be read: {error}.");
    let remedy =
        format!("Make it a readable file (chmod 600 {}), or restore it from a backup.", path.display());
    Finding::new(Code::LogUnreadable, path, what, remedy).of(session)
}

fn noted_damage(view: &HomeView, session: SessionId) -> Option<Finding> {
    let damage = crate::load::damage_note(&view.home, session)?;
    let path = view.home.damage_note(session);
    let what = format!("Records are missing from the log, as an earlier start found: {}.", damage.detail);
    let remedy = format!("Restore the log from a backup and then remove this note: rm {}", path.display());
    Some(Finding::new(Code::DamageNoted, path, what, remedy).of(session).byte(damage.offset))
}

/// The checks of each record, and what they found.
struct RecordChecks<'a> {
    view: &'a HomeView,
    blob_usage: &'a BlobUsage,
    session: SessionId,
    caches: &'a Caches,
    kept: KeptFiles,
    findings: Vec<Finding>,
    lines: u64,
    /// Lines up to the end of the last whole list.
    whole_lines: u64,
    /// Records whose payload does not decode.
    unreadable: HashSet<u64>,
    missing: HashSet<BlobId>,
    snapshot_reached: bool,
    tokens_reached: bool,
}

impl RecordChecks<'_> {
    fn record(&mut self, replay: &Replay, line: &Line<'_>) {
        self.lines += 1;
        if !line.more {
            self.whole_lines = self.lines;
        }
        // Lines without a hash are older than today's payloads; the fold knows how to read those.
        if line.hash.is_some()
            && let Err(error) = line.event()
        {
            if self.unreadable.len() < MAX_RECORDS_NAMED {
                let what = format!("The payload of a {} record does not decode: {error}.", line.kind);
                let remedy =
                    "Use the Rekindle that wrote it, or a newer one; the record itself is undamaged.";
                self.add(Finding::new(Code::RecordUnreadable, self.log(), what, remedy).seq(line.seq));
            }
            self.unreadable.insert(line.seq);
        }
        for blob in references(line.text) {
            if !self.blob_usage.mark_referenced(self.view, &blob) && self.missing.insert(blob) {
                let path = self.view.home.blob(&blob);
                let what =
                    format!("Record {} of {} names this blob, and it is missing.", line.seq, self.session);
                let remedy = "Restore the file from a backup; everything else of the session can be read.";
                self.add(Finding::new(Code::BlobMissing, path, what, remedy).seq(line.seq));
            }
        }
        self.kept.record(self.view, line);
        if let Some(state) = self.caches.snapshot().filter(|state| state.last_seq == line.seq) {
            self.snapshot_reached = true;
            let found = caches::compare_snapshot(self.view, state, &replay.state);
            self.findings.extend(found);
        }
        let tokens = self.caches.tokens().filter(|tokens| tokens.last_seq == line.seq);
        if let (Some(tokens), Some(folded)) = (tokens, &replay.tokens) {
            self.tokens_reached = true;
            let found = caches::compare_tokens(self.view, tokens, folded);
            self.findings.extend(found);
        }
    }

    /// Says of caches that the good part of the log does not reach what that means.
    fn unreached(&self, replay: &Replay, stop: &Stop, len: u64) -> Vec<Finding> {
        // Behind damage nothing can be compared, and the damage says it all.
        if matches!(stop, Stop::Damaged(_)) {
            return Vec::new();
        }
        let whole = replay.whole;
        let mut found = Vec::new();
        if let Some(state) = self.caches.snapshot().filter(|_| !self.snapshot_reached) {
            found.push(caches::ahead_of_log(self.view, state, whole, len));
        }
        if let Some(tokens) = self.caches.tokens().filter(|_| !self.tokens_reached) {
            found.push(caches::tokens_ahead(self.view, tokens, whole));
        }
        found
    }

    fn log(&self) -> std::path::PathBuf {
        self.view.home.log(self.session)
    }

    fn add(&mut self, finding: Finding) {
        self.findings.push(finding.of(self.session));
    }
}

/// Records that the fold could not make sense of, besides those that do not decode.
fn odd_records(
    view: &HomeView,
    session: SessionId,
    replay: &Replay,
    unreadable: &HashSet<u64>,
) -> Vec<Finding> {
    let odd = replay.oddities.iter().filter(|(seq, _)| !unreadable.contains(seq)).take(MAX_RECORDS_NAMED);
    odd.map(|(seq, why)| {
        let what = format!("Record {seq} cannot follow what came before it: {why}.");
        let remedy = "Nothing is lost and the record is ignored; please report how it came about.";
        Finding::new(Code::RecordOdd, view.home.log(session), what, remedy).of(session).seq(*seq)
    })
    .collect()
}
