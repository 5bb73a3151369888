//! The place of a fork: from what a caller names, a run, a record or a snapshot, to the record behind which the history is cut.
//! A log is never read from its beginning for that: numbers and times rise along it.

use std::io;

use rekindle_domain::blob_id::BlobId;
use rekindle_domain::event::{CheckpointAt, Kind};
use rekindle_domain::fork::{At, Mark, cut_at};
use rekindle_domain::id::{RunId, SessionId};
use rekindle_domain::kept_snapshot::SnapshotName;
use rekindle_domain::line::Line;
use rekindle_domain::session::SessionState;
use rekindle_domain::time::Timestamp;
use rekindle_store::History;
use rekindle_store::log::Cursor;
use rekindle_wire::code::Code;
use rekindle_wire::hint::Hint;
use rekindle_wire::request::ForkAt;
use serde::Deserialize;

use crate::error::{Result, ServiceError};
use crate::show::log::history;
use crate::storage::Sessions;

/// Records read at a time on the way back.
const PAGE: usize = 256;

/// Finds the record behind which a session's history is cut.
pub(super) fn find_cut(store: &dyn Sessions, state: &SessionState, at: Option<&ForkAt>) -> Result<u64> {
    let at = at.map_or(Ok(At::End), read_place)?;
    if let (At::Run(run), Some(open)) = (at, state.open_run())
        && open.run_id == run
    {
        return Err(still_running(run));
    }
    let history = history(store, state.id)?;
    let through = match at {
        At::End => state.last_seq,
        At::Seq(seq) if seq > state.last_seq => {
            let message = format!("the session's history ends with record {}", state.last_seq);
            return Err(ServiceError::new(Code::RecordUnknown, message));
        }
        At::Seq(seq) => seq,
        At::Run(run) => end_of_run(&history, run)?,
    };
    cut_through(&history, through)
}

/// Finds the record behind which a session's history is cut if it is to end with this one at the latest.
pub(in crate::commands) fn cut_behind(store: &dyn Sessions, session: SessionId, through: u64) -> Result<u64> {
    cut_through(&history(store, session)?, through)
}

/// Returns the kept snapshot that a place is named by.
pub(super) fn snapshot_at(at: &ForkAt) -> Option<SnapshotName> {
    match at {
        ForkAt::Name(name) => name.parse().ok(),
        ForkAt::Seq(_) => None,
    }
}

/// Finds the record behind which a history is cut if it is to end with this one at the latest.
fn cut_through(history: &History, through: u64) -> Result<u64> {
    let mut marks = Marks { history, page: Vec::new(), next: None };
    let cut = cut_at(through, |seq| marks.get(seq)).map_err(ServiceError::internal)?;
    cut.ok_or_else(|| {
        let why = history.missing.as_deref().unwrap_or("there is no such record");
        ServiceError::new(
            Code::HistoryMissing,
            format!("the history up to record {through} cannot be read: {why}"),
        )
    })
}

/// Tells whether a run was started in a session's history up to a record.
pub(super) fn tells_of_turns(store: &dyn Sessions, session: SessionId, cut: u64) -> Result<bool> {
    let history = history(store, session)?;
    let mut marks = Marks { history: &history, page: Vec::new(), next: None };
    // Behind a run there is its end, or the rest of the append that has it.
    let mut seq = cut;
    while let Some(kind) = marks.kind(seq).map_err(ServiceError::internal)? {
        match kind {
            Some(kind) if kind.ends_run() => return Ok(true),
            // At the beginning of a fork what counts is what that goes on from.
            _ => {}
        }
        seq -= 1;
    }
    Ok(false)
}

fn read_place(at: &ForkAt) -> Result<At> {
    let name = match at {
        ForkAt::Seq(seq) => return Ok(At::Seq(*seq)),
        ForkAt::Name(name) => name,
    };
    if let Ok(run) = name.parse() {
        return Ok(At::Run(run));
    }
    if let Ok(snapshot) = name.parse::<SnapshotName>() {
        return Ok(At::Seq(snapshot.seq));
    }
    // Written in one way only, as the description says.
    let seq = name.parse().ok().filter(|seq: &u64| *seq > 0 && seq.to_string() == *name);
    seq.map(At::Seq).ok_or_else(|| {
        let shown: String = name.chars().take(80).collect();
        let message =
            format!("{shown:?} is not a place to fork at: name a run, a record number or a kept snapshot");
        ServiceError::new(Code::InvalidAt, message)
    })
}

pub(in crate::commands) fn still_running(run: RunId) -> ServiceError {
    let message = format!("{run} has not ended: a session can be forked only between two runs");
    ServiceError::new(Code::StillRunning, message).hint(Hint::CancelFirst)
}

/// Finds the record that ends a run.
fn end_of_run(history: &History, run: RunId) -> Result<u64> {
    let found = find_run(history, run)?;
    found.ended.ok_or_else(|| still_running(run))
}

/// What a history has of a run.
#[derive(Debug, Clone, Copy)]
struct FoundRun {
    /// The record that begins it.
    started: u64,
    /// The record that ends it, if one does.
    ended: Option<u64>,
    /// The first run of its attempts, if that is another.
    origin: Option<RunId>,
    /// What its directory contained before it.
    tree: Option<BlobId>,
}

/// Finds a run. An id has the time at which it was made, from which on its records stand; only where a clock was set back the whole
/// history is read.
fn find_run(history: &History, run: RunId) -> Result<FoundRun> {
    let made = run.to_ulid().and_then(|bits| i64::try_from(bits >> 80).ok()).map(Timestamp::from_millis);
    let near = made.map(|made| history.reader.find_time(made)).transpose().map_err(ServiceError::internal)?;
    for from in near.into_iter().chain([Cursor::START]) {
        if let Some(found) = search_run(history, from, run).map_err(ServiceError::internal)? {
            return Ok(found);
        }
    }
    Err(ServiceError::new(Code::RunNotInSession, format!("there is no run {run} in the session's history")))
}

/// What is read of a record about a run.
#[derive(Deserialize)]
struct AboutRun {
    run_id: Option<RunId>,
    #[serde(default)]
    origin_run_id: Option<RunId>,
    /// Of a checkpoint: `start` or `end`.
    #[serde(default)]
    at: Option<CheckpointAt>,
    #[serde(default)]
    tree: Option<BlobId>,
}

fn search_run(history: &History, from: Cursor, run: RunId) -> io::Result<Option<FoundRun>> {
    let mut lines = history.reader.forward(from);
    let mut found: Option<FoundRun> = None;
    while let Some(raw) = lines.next()? {
        let Ok(line) = Line::parse(raw.bytes) else { continue };
        if !line.kind.starts_with("run.") || !line.text.contains(run.as_str()) {
            continue;
        }
        let Ok(about) = serde_json::from_str::<AboutRun>(line.text) else { continue };
        if about.run_id != Some(run) {
            continue;
        }
        match (Kind::from_name(line.kind), &mut found) {
            (Some(Kind::RunStarted), _) => {
                let origin = about.origin_run_id.filter(|origin| *origin != run);
                found = Some(FoundRun { started: line.seq, ended: None, origin, tree: None });
            }
            (Some(Kind::RunCheckpoint), Some(found)) if about.at == Some(CheckpointAt::Start) => {
                found.tree = about.tree;
            }
            (Some(kind), Some(found)) if kind.ends_run() => {
                found.ended = Some(line.seq);
                break;
            }
            _ => {}
        }
    }
    Ok(found)
}

/// Finds the run that ended last in a session's history, which may be of the session that it was forked from.
pub(in crate::commands) fn latest_run(store: &dyn Sessions, session: SessionId) -> Result<Option<RunId>> {
    let history = history(store, session)?;
    let mut end = history.reader.end();
    loop {
        let lines = history.reader.last(end, PAGE).map_err(ServiceError::internal)?;
        let Some((begin, _)) = lines.first() else { return Ok(None) };
        end = *begin;
        let parsed = lines.iter().rev().filter_map(|(_, bytes)| Line::parse(bytes).ok());
        let mut ends = parsed.filter(|line| Kind::from_name(line.kind).is_some_and(Kind::ends_run));
        if let Some(line) = ends.next() {
            let about = serde_json::from_str::<AboutRun>(line.text).map_err(ServiceError::internal)?;
            return Ok(about.run_id);
        }
    }
}

/// What there was before a run.
pub(in crate::commands) struct BeforeRun {
    /// The run, or the first of its attempts.
    pub(in crate::commands) run: RunId,
    /// The record behind which the history is cut.
    pub(in crate::commands) cut: u64,
    /// What the directory contained, if a checkpoint was taken.
    pub(in crate::commands) tree: Option<BlobId>,
}

/// Finds what there was before the prompt of a run.
pub(in crate::commands) fn before_run(
    store: &dyn Sessions,
    state: &SessionState,
    run: RunId,
) -> Result<BeforeRun> {
    let history = history(store, state.id)?;
    let mut found = find_run(&history, run)?;
    let run = found.origin.unwrap_or(run);
    if found.origin.is_some() {
        found = find_run(&history, run)?;
    }
    let cut = cut_through(&history, found.started.saturating_sub(1))?;
    Ok(BeforeRun { run, cut, tree: found.tree })
}

/// The records of a history by their numbers, read in pages from some record back.
struct Marks<'a> {
    history: &'a History,
    /// Records that were read, oldest first.
    page: Vec<(u64, Option<Kind>, Mark)>,
    /// Where the page before begins to be read.
    next: Option<Cursor>,
}

impl Marks<'_> {
    fn get(&mut self, seq: u64) -> io::Result<Option<Mark>> {
        Ok(self.find(seq)?.map(|(_, _, mark)| mark))
    }

    /// Returns the kind of a record; none in it if this version does not know the kind.
    fn kind(&mut self, seq: u64) -> io::Result<Option<Option<Kind>>> {
        Ok(self.find(seq)?.map(|(_, kind, _)| kind))
    }

    fn find(&mut self, seq: u64) -> io::Result<Option<(u64, Option<Kind>, Mark)>> {
        let known = |page: &[(u64, Option<Kind>, Mark)]| {
            page.binary_search_by_key(&seq, |(seq, _, _)| *seq).ok().map(|at| page[at])
        };
        if let Some(found) = known(&self.page) {
            return Ok(Some(found));
        }
        let oldest = self.page.first().map(|(oldest, _, _)| *oldest);
        let end = match self.next.filter(|_| oldest.is_some_and(|oldest| seq < oldest)) {
            Some(end) => end,
            None => {
                let Some(begin) = self.history.reader.find(seq)? else { return Ok(None) };
                let mut lines = self.history.reader.forward(begin);
                lines.next()?.map_or(begin, |raw| raw.end)
            }
        };
        let lines = self.history.reader.last(end, PAGE)?;
        self.next = lines.first().map(|(start, _)| *start);
        let parsed = lines.iter().filter_map(|(_, bytes)| Line::parse(bytes).ok());
        self.page = parsed
            .map(|line| (line.seq, Kind::from_name(line.kind), Mark::new(line.kind, line.more)))
            .collect();
        Ok(known(&self.page))
    }
}
