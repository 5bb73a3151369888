//! What is known of a task's last attempt, for the agent of the next one.

use rekindle_domain::task::Task;
use rekindle_domain::task::resume_context::{LastAttempt, resume_context};

use super::Tasks;
use crate::show::{find_run_checkpoints, log};

impl Tasks {
    /// Returns what the agent of a task's next attempt is told of the last one; nothing if there was none. What cannot be read any
    /// more is left out.
    pub(super) fn resume_text(&self, task: &Task) -> Option<String> {
        let session = task.session_id.filter(|_| task.attempt > 0)?;
        let entry = self.views.directory.get(self.views.store(), session);
        let taken_back = entry.as_ref().is_some_and(|entry| entry.state.replaced_by.is_some());
        let entry = entry.filter(|_| !taken_back);
        let run = entry.as_ref().and_then(|entry| entry.state.run.as_ref());
        let run = run.filter(|run| Some(run.run_id) == task.run_id);
        let cut = entry.as_ref().and_then(|entry| entry.state.recovery.interruption.as_ref());
        let history = run.and_then(|_| log::history(&*self.store, session).ok());
        let touched = history.zip(run).and_then(|(history, run)| {
            let found = find_run_checkpoints(&history.reader, Some(run.run_id.as_str())).ok().flatten()?;
            found.end?.files_touched
        });
        let said = entry.as_ref().and_then(|entry| self.views.session(entry).last_words);
        Some(resume_context(&LastAttempt {
            attempt: task.attempt + 1,
            most: task.spec.max_attempts.max(task.attempt + 1),
            why: task.last_end.as_deref().unwrap_or_default(),
            taken_back,
            turns: u32::from(run.is_some_and(|run| run.prompted)),
            tool_calls: run.map_or(0, |run| run.tool_calls),
            files: touched.as_ref().map_or(&[], |touched| &touched.first),
            file_count: touched.as_ref().map_or(0, |touched| touched.total),
            uncertain: cut.map_or(&[], |cut| &cut.uncertain),
            last_words: said.as_deref(),
        }))
    }
}
