//! The part of the fold that takes in checkpoints of runs: each once, and only when it is time.

use super::{Checkpoint, SessionState, Touched};
use crate::event::{CheckpointAt, RunCheckpoint};

impl SessionState {
    /// Takes in a checkpoint.
    pub(super) fn note_checkpoint(&mut self, seq: u64, record: &RunCheckpoint) -> Result<(), String> {
        let id = record.run_id;
        let touched = record.files_touched.as_ref().map(|files| Touched {
            files: files.total,
            lines_added: files.lines_added,
            lines_removed: files.lines_removed,
        });
        let not_taken = record.not_taken.as_ref().map(|not_taken| not_taken.reason);
        let checkpoint = Checkpoint { seq, how: record.how, tree: record.tree, not_taken, touched };
        match record.at {
            CheckpointAt::Start => {
                let run = self.running(id)?;
                if run.checkpoints.start.is_some() {
                    return Err(format!("{id} has a checkpoint at its start already"));
                }
                if run.prompted {
                    return Err(format!("the prompt of {id} was given to an agent before"));
                }
                run.checkpoints.start = Some(checkpoint);
            }
            CheckpointAt::End if self.owed_end.is_some_and(|owed| owed.run_id == id) => self.owed_end = None,
            CheckpointAt::End => {
                let run = self.run.as_mut().filter(|run| run.run_id == id);
                let run = run.ok_or_else(|| format!("{id} is not the latest run, and owed no checkpoint"))?;
                if run.owed_end().is_none() {
                    return Err(format!("{id} goes on, or is owed no checkpoint at its end"));
                }
                run.checkpoints.end = Some(checkpoint);
            }
        }
        Ok(())
    }
}
