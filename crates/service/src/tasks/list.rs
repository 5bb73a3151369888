//! Tasks asked for of the database: lists, histories, statistics. What it cannot answer is not guessed.

use rekindle_domain::event::{TaskKind, TaskStatus};
use rekindle_domain::id::{StreamId, TaskId};
use rekindle_taskdb::{Day, Progress, TaskQuery, TaskRow};
use rekindle_wire::code::Code;
use rekindle_wire::filter::TaskFilter;
use rekindle_wire::hint::Hint;
use rekindle_wire::view::{
    DayView, TaskList, TaskProgress, TaskStatsView, TaskUsage, TaskView, TransitionList, TransitionView,
};

use super::Tasks;
use super::update::{run_name, unknown};
use crate::error::{Result, ServiceError};
use crate::show::page_size;

/// Most tasks of a page, and as many as are listed if nobody says.
const MOST: usize = 500;
const USUAL: usize = 100;

impl Tasks {
    /// Lists tasks, the newest first.
    pub(crate) fn list(&self, filter: &TaskFilter) -> Result<TaskList> {
        let mut query = TaskQuery { limit: page_size(filter.limit, USUAL, MOST)?, ..TaskQuery::default() };
        for word in filter.status.iter().flat_map(|words| words.split(',')) {
            let status = TaskStatus::ALL.into_iter().find(|status| status.as_str() == word);
            query.statuses.push(status.ok_or_else(unknown_status)?);
        }
        if let Some(cursor) = &filter.cursor {
            let before = cursor.parse().map_err(|_| {
                ServiceError::new(Code::InvalidCursor, "the cursor did not come from this list")
                    .hint(Hint::RestartList)
            })?;
            query.before = Some(before);
        }
        (query.kind, query.session, query.parent) = (filter.kind, filter.session, filter.parent);
        query.prefix = filter.prefix;
        (query.label, query.agent) = (filter.label.clone(), filter.agent.clone());
        (query.directory, query.words) = (filter.cwd.clone(), filter.q.clone());
        query.home_id = match filter.all_homes.as_deref() {
            None | Some("0") => Some(self.store.home_id().to_string()),
            Some("1") => None,
            Some(_) => return Err(ServiceError::new(Code::InvalidQuery, "all_homes must be 1 or 0")),
        };
        let page = self.database.list(query)?;
        let tasks = page.tasks.into_iter().map(row_view).collect();
        Ok(TaskList { tasks, next: page.next.map(|last| last.to_string()) })
    }

    /// Streams came here from elsewhere: what they say becomes rows.
    pub(crate) fn take_in(&self, streams: impl Iterator<Item = StreamId>) {
        streams.for_each(|stream| self.database.grown(stream));
    }

    /// Returns the history of a task.
    pub(crate) fn transitions(&self, id: TaskId) -> Result<TransitionList> {
        let rows = self.database.transitions(id)?;
        if rows.is_empty() {
            return Err(unknown(id));
        }
        let transitions = rows
            .into_iter()
            .map(|row| TransitionView {
                n: row.n,
                from: row.from_status,
                to: row.to_status,
                reason: row.reason,
                actor: row.actor,
                at: row.at,
                metadata: row.metadata,
            })
            .collect();
        Ok(TransitionList { transitions })
    }

    /// Says how tasks stand.
    pub(crate) fn stats(&self) -> Result<TaskStatsView> {
        let (stats, as_of) = self.database.stats()?;
        let Day { ended, median_ms, p90_ms, tokens, cost, interruptions, adoptions, verdicts } = stats.day;
        let day = DayView { ended, median_ms, p90_ms, tokens, cost, interruptions, adoptions, verdicts };
        Ok(TaskStatsView { as_of, statuses: stats.statuses, agents: stats.agents, day })
    }
}

/// Returns what a row says of a task.
pub(super) fn row_view(row: TaskRow) -> TaskView {
    TaskView {
        id: row.task_id,
        kind: row.kind,
        parent_id: row.parent_id,
        pipeline_run: match row.kind {
            TaskKind::Pipeline => run_name(row.task_id).map(|name| name.to_string()),
            TaskKind::Task | TaskKind::Run => None,
        },
        title: row.title,
        working_dir: row.working_dir,
        branch: row.branch,
        agent: row.agent_name,
        status: row.status,
        reason: row.reason,
        attempt: row.attempt,
        max_attempts: row.max_attempts,
        session_id: row.session_id,
        run_id: row.run_id,
        priority: row.priority,
        not_before: row.not_before,
        deadline_at: row.deadline_at,
        budget: row.budget,
        labels: row.labels,
        after: row.after,
        created_by: row.created_by,
        created_at: row.created_at,
        updated_at: row.updated_at,
        started_at: row.started_at,
        ended_at: row.ended_at,
        position: None,
        waits_for: None,
        progress: progress(row.progress, row.usage),
        files_touched: row.files_touched,
        result: row.result.filter(|_| row.status.is_ended()),
        exit: row.exit,
    }
}

/// Returns how far a row says that a task has come.
fn progress(progress: Option<Progress>, usage: Option<rekindle_taskdb::TaskUsage>) -> Option<TaskProgress> {
    let Progress { turns, tool_calls, plan, last_words, .. } = progress?;
    let usage = usage.unwrap_or_default();
    let usage =
        TaskUsage { input_tokens: usage.input_tokens, output_tokens: usage.output_tokens, cost: usage.cost };
    Some(TaskProgress { turns, tool_calls, plan, last_words, usage, last_output_at: None, stalled: false })
}

fn unknown_status() -> ServiceError {
    let statuses = TaskStatus::ALL.iter().map(|status| status.as_str().to_owned()).collect();
    ServiceError::new(Code::InvalidQuery, "there is no such task status")
        .hint(Hint::ChooseStatus { statuses })
}
