//! The checkpoints of runs that the logs of a home tell of, and which of them stay whatever their age is. For whoever collects what
//! nobody needs, and for whoever looks whether everything is there.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::io;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rekindle_domain::event::{Event, ForkedFrom};
use rekindle_domain::id::{RunId, SessionId};
use rekindle_domain::line::Line;
use rekindle_domain::session::SessionState;
use rekindle_store::Want;
use rekindle_store::blob_references::add_names;
use rekindle_store::blobs::BlobId;
use rekindle_store::log::{Cursor, LogReader};
use rekindle_store::offline::Offline;

/// Most forks of forks that are gone through to the checkpoint at which one was made; no history is longer.
const MOST_PARENTS: usize = 32;

/// A checkpoint that some record tells of.
#[derive(Debug, Clone)]
pub(super) struct RecordedCheckpoint {
    pub(super) session: SessionId,
    pub(super) seq: u64,
    pub(super) taken: SystemTime,
    pub(super) tree: Option<BlobId>,
    /// Lists that were too long for its record.
    pub(super) lists: Vec<BlobId>,
    /// It stays whatever its age is.
    pub(super) is_held: bool,
    /// It was taken in another home: the session was imported since, and its files need not have come along.
    pub(super) is_foreign: bool,
}

/// What the logs of a home tell of checkpoints.
#[derive(Default)]
pub(super) struct CheckpointRecords {
    pub(super) checkpoints: Vec<RecordedCheckpoint>,
    /// Everything else that these logs name.
    pub(super) named: HashSet<BlobId>,
    /// Sessions whose logs, and base files, could be read.
    pub(super) read: HashSet<SessionId>,
    /// Where they work, and whether the files of one of them are being restored there.
    pub(super) directories: BTreeMap<String, bool>,
}

impl CheckpointRecords {
    /// Reads the logs of all sessions. One that cannot be read is not among those that were.
    pub(super) fn read(offline: &Offline) -> io::Result<CheckpointRecords> {
        let (mut records, mut forks) = (CheckpointRecords::default(), HashMap::new());
        for session in offline.sessions()? {
            if let Ok(found) = SessionCheckpoints::read(offline, session) {
                records.read.insert(session);
                forks.extend(found.forked_from.map(|from| (session, from)));
                records.checkpoints.extend(found.checkpoints);
                records.named.extend(found.named);
                *records.directories.entry(found.working_dir).or_default() |= found.is_restoring;
            }
        }
        hold_those_of_forks(&mut records.checkpoints, &forks);
        Ok(records)
    }
}

/// What the log of one session tells.
#[derive(Default)]
struct SessionCheckpoints {
    forked_from: Option<ForkedFrom>,
    working_dir: String,
    is_restoring: bool,
    checkpoints: Vec<RecordedCheckpoint>,
    named: HashSet<BlobId>,
}

impl SessionCheckpoints {
    fn read(offline: &Offline, session: SessionId) -> io::Result<SessionCheckpoints> {
        let state = offline.load(session, Want::Status).map_err(io::Error::other)?.state;
        let mut found = SessionCheckpoints {
            forked_from: state.forked_from,
            working_dir: state.working_dir.clone(),
            is_restoring: state.restoring.is_some(),
            ..SessionCheckpoints::default()
        };
        let needed = run_in_need(&state);
        if let Some(base) = offline.base_reader(session)? {
            found.add_log(&base, session, None)?;
        }
        found.add_log(&offline.reader(session)?, session, needed)?;
        Ok(found)
    }

    fn add_log(&mut self, log: &LogReader, session: SessionId, needed: Option<RunId>) -> io::Result<()> {
        let mut lines = log.forward(Cursor::START);
        while let Some(raw) = lines.next()? {
            let Ok(line) = Line::parse(raw.bytes) else {
                add_names(raw.bytes, &mut self.named);
                continue;
            };
            match line.kind {
                "run.checkpoint" => match checkpoint(&line, session, needed) {
                    Some(checkpoint) => self.checkpoints.push(checkpoint),
                    None => add_names(raw.bytes, &mut self.named),
                },
                "session.updated" => {
                    if matches!(line.event(), Ok(Event::SessionUpdated(updated)) if updated.imported.is_some())
                    {
                        self.checkpoints.iter_mut().for_each(|earlier| earlier.is_foreign = true);
                    }
                    add_names(raw.bytes, &mut self.named);
                }
                _ => add_names(raw.bytes, &mut self.named),
            }
        }
        Ok(())
    }
}

/// Returns the run whose checkpoints are needed: one that goes on, or was cut and may be continued, which compares its directory with
/// what the run had left.
fn run_in_need(state: &SessionState) -> Option<RunId> {
    let cut = state.recovery.interruption.as_ref().map(|cut| cut.run_id);
    state.open_run().map(|run| run.run_id).or(cut)
}

fn checkpoint(line: &Line<'_>, session: SessionId, needed: Option<RunId>) -> Option<RecordedCheckpoint> {
    let Ok(Event::RunCheckpoint(record)) = line.event() else { return None };
    let millis = u64::try_from(line.time().as_millis()).unwrap_or(0);
    let skipped = record.skipped.as_ref().and_then(|skipped| skipped.all);
    let touched = record.files_touched.as_ref().and_then(|touched| touched.all);
    Some(RecordedCheckpoint {
        session,
        seq: line.seq,
        taken: UNIX_EPOCH + Duration::from_millis(millis),
        tree: record.tree,
        lists: skipped.into_iter().chain(touched).collect(),
        is_held: needed == Some(record.run_id),
        is_foreign: false,
    })
}

/// Marks the checkpoint at which each fork was made: the newest before its own records, in its base file or in the log of whichever
/// session it goes on from.
fn hold_those_of_forks(checkpoints: &mut [RecordedCheckpoint], forks: &HashMap<SessionId, ForkedFrom>) {
    let taken = checkpoints.iter().filter(|checkpoint| checkpoint.tree.is_some());
    let places: BTreeSet<(SessionId, u64)> =
        taken.map(|checkpoint| (checkpoint.session, checkpoint.seq)).collect();
    let mut held = HashSet::new();
    for (fork, from) in forks {
        let (mut session, mut seq) = (*fork, from.seq);
        for _ in 0..MOST_PARENTS {
            if let Some(newest) = places.range((session, 0)..=(session, seq)).next_back() {
                held.insert(*newest);
                break;
            }
            let Some(from) = forks.get(&session) else { break };
            (session, seq) = (from.session_id, seq.min(from.seq));
        }
    }
    for checkpoint in checkpoints {
        checkpoint.is_held |= held.contains(&(checkpoint.session, checkpoint.seq));
    }
}
