//! Catching up with pipeline runs: the records of a ledger behind the cursor become the row of its run, a batch at a time.

use std::collections::HashMap;
use std::io;

use rekindle_domain::id::{PipelineId, StreamId, TaskId};
use rekindle_store::log::{Cursor as LogCursor, LogReader};
use rekindle_taskdb::project::Owner;
use rekindle_taskdb::{Batch, Cursor, PipelineProjection, TaskDb, TaskRow, task_of_run};

use super::catch_up::{AT_ONCE, CatchUpError, behind, hash, parse_lines, read_lines};
use super::catch_up_sessions::Reached;
use super::log_source::Logs;

/// Writes one batch of what the ledger of a run has and the database has not, up to a record.
pub(crate) fn catch_up_pipeline(
    logs: &dyn Logs,
    owner: &Owner,
    db: &mut TaskDb,
    run: PipelineId,
    last_seq: u64,
) -> Result<Reached, CatchUpError> {
    let home = &owner.home_id;
    let Some(task) = task_of_run(run) else { return Ok(Reached::End) };
    let reader = match logs.ledger(run) {
        Ok(reader) => reader,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            db.forget_pipeline(home, run)?;
            return Ok(Reached::End);
        }
        // One that cannot be read is told of elsewhere, and hides no other.
        Err(_) => return Ok(Reached::End),
    };
    let before = db.tasks(&[task])?.pop();
    // Whoever goes on after its row was removed has it again, from the beginning.
    let known = written(home, db, run, &reader)?.filter(|(.., seq)| *seq == 0 || before.is_some());
    let (mut projection, from, mut seq) = match known {
        Some(found) => found,
        None => {
            db.forget_pipeline(home, run)?;
            (PipelineProjection::default(), LogCursor::START, 0)
        }
    };
    let before: HashMap<TaskId, TaskRow> =
        before.filter(|_| seq > 0).into_iter().map(|row| (row.task_id, row)).collect();
    let (texts, _) = read_lines(&reader, from)?;
    let mut row = before.get(&task).cloned();
    let (mut transitions, mut last) = (Vec::new(), None);
    for (line, text) in parse_lines(&texts, last_seq).iter().zip(&texts) {
        // Behind a break nothing can be trusted.
        if line.seq != seq + 1 {
            break;
        }
        if let Ok(event) = line.event() {
            transitions.extend(projection.push(owner, run, &mut row, &event, line.happened_at()));
        }
        projection.bytes += text.len() as u64 + 1;
        seq = line.seq;
        last = Some(hash(line));
    }
    let Some(h) = last else { return Ok(Reached::End) };
    let cursor = Cursor { seq, h, state: serde_json::to_string(&projection).ok() };
    let rows = row.into_iter().map(|row| (row.task_id, row)).collect();
    let stream = StreamId::from(run);
    db.write(&Batch::new(owner, stream.as_str(), &before, rows, transitions, cursor))?;
    Ok(if texts.len() == AT_ONCE { Reached::More } else { Reached::End })
}

/// Returns the projection as it was written, where in the ledger it goes on, and behind which record; none if there is none, or it is
/// of another history.
fn written(
    home_id: &str,
    db: &mut TaskDb,
    run: PipelineId,
    reader: &LogReader,
) -> Result<Option<(PipelineProjection, LogCursor, u64)>, CatchUpError> {
    let Some(known) = db.cursor(home_id, StreamId::from(run).as_str())? else { return Ok(None) };
    let restored = known.state.as_deref().and_then(|state| serde_json::from_str(state).ok());
    let Some(projection) = restored else { return Ok(None) };
    let from = behind(reader, &known).map_err(CatchUpError::Log)?;
    Ok(from.map(|from| (projection, from, known.seq)))
}
