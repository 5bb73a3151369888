//! The projection of a session: what its records do to the rows of its runs. A run that somebody began by hand has a row of its own,
//! named after its first attempt; the run of a task says in the task's row how far it has come, and the stream of tasks says where
//! the task stands. Pure.

use std::collections::HashMap;

use rekindle_domain::event::{DEFAULT_ATTEMPTS, Event, Kind, RunStarted, TaskKind, TaskStatus};
use rekindle_domain::id::{MessageId, RunId, SessionId, TaskId};
use rekindle_domain::line::Line;
use rekindle_domain::session::{Position, Problem, Replay, SessionState};
use rekindle_domain::text_excerpt::{last_line, result};
use rekindle_domain::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::project::Owner;
use crate::project_pipeline::task_of_run;
use crate::row::{Progress, TaskRow, TaskUsage, TransitionRow};
use crate::run_transition::{Seen, Told, transition};

/// A session as far as its records are in rows. What it needs to go on is written with the rows.
#[derive(Debug)]
pub struct SessionProjection {
    replay: Replay,
    /// Messages that no run has begun with yet.
    prompts: Vec<(MessageId, String)>,
}

/// A projection as it is written.
#[derive(Serialize, Deserialize)]
struct Stored<S> {
    state: S,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    prompts: Vec<(MessageId, String)>,
}

/// Rows that some records change, and what they add to histories.
#[derive(Debug, Default)]
pub struct Changes {
    /// The rows, by their tasks.
    pub rows: HashMap<TaskId, TaskRow>,
    /// New lines of their histories.
    pub transitions: Vec<TransitionRow>,
}

impl SessionProjection {
    /// Begins before the first record of a session.
    pub fn new(session: SessionId) -> SessionProjection {
        SessionProjection { replay: Replay::from(SessionState::empty(session), None), prompts: Vec::new() }
    }

    /// Goes on from what was written.
    pub fn restore(written: &str) -> Result<SessionProjection, serde_json::Error> {
        let Stored { state, prompts } = serde_json::from_str::<Stored<SessionState>>(written)?;
        Ok(SessionProjection { replay: Replay::from(state, None), prompts })
    }

    /// Returns what is to be written.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(&Stored { state: &self.replay.state, prompts: self.prompts.clone() })
    }

    /// Returns how far it has come.
    pub fn position(&self) -> Position {
        self.replay.position()
    }

    /// Returns the tasks whose rows some records may change.
    pub fn concerned(&self, lines: &[Line<'_>]) -> Vec<TaskId> {
        let begun =
            runs_begun(lines).filter_map(|run| row_id(run.task_id, run.origin_run_id.unwrap_or(run.run_id)));
        let mut ids: Vec<TaskId> = self.current().into_iter().chain(begun).collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    }

    /// Takes in the next record of the log.
    pub fn push(&mut self, owner: &Owner, line: &Line<'_>, changes: &mut Changes) -> Result<(), Problem> {
        let (before, row_before) = (Seen::of(&self.replay.state), self.current());
        // Where it ends in its file matters to nobody here, only that something came before the next.
        self.replay.push_unverified(line, line.seq.max(1))?;
        let after = Seen::of(&self.replay.state);
        let is_same_run = before.run_id == after.run_id;
        if is_same_run && before == after && !Kind::from_name(line.kind).is_some_and(is_told) {
            return Ok(());
        }
        let (event, at) = (line.event().ok(), line.happened_at());
        if let Some(Event::MessageUser(message)) = &event {
            self.prompts.push((message.message_id, message.content.as_json().to_owned()));
        }
        if !is_same_run {
            self.give_up(row_before, at, changes);
            self.begin(owner, at, changes);
        }
        let Some(row) = self.current().and_then(|id| changes.rows.get_mut(&id)) else { return Ok(()) };
        add_progress(row, &before, &after, event.as_ref());
        let state = &self.replay.state;
        if matches!(event, Some(Event::PlanUpdated(_))) {
            row.progress.get_or_insert_default().plan = state.run.as_ref().and_then(|run| run.plan.clone());
        }
        if state.run.as_ref().is_some_and(|run| run.task_id.is_none())
            && let Some(told) = transition(state, &before, &after, event.as_ref())
        {
            changes.transitions.push(step(row, told, at));
        }
        Ok(())
    }

    /// Returns the task in whose row the latest run is.
    fn current(&self) -> Option<TaskId> {
        let run = self.replay.state.run.as_ref()?;
        row_id(run.task_id, run.origin_run_id)
    }

    /// Another run has begun: whatever was before it and did not end is not gone on with.
    fn give_up(&self, before: Option<TaskId>, at: Timestamp, changes: &mut Changes) {
        let is_over = |row: &&mut TaskRow| row.kind == TaskKind::Run && !row.status.is_ended();
        let left = before.filter(|before| Some(*before) != self.current());
        if let Some(row) = left.and_then(|id| changes.rows.get_mut(&id)).filter(is_over) {
            let why = row.reason.as_deref().unwrap_or("interrupted");
            let reason = Some(format!("{why}; another message took its place"));
            let told = Told { status: TaskStatus::Failed, reason, actor: "user".into() };
            changes.transitions.push(step(row, told, at));
        }
    }

    /// A run has begun: the first of a chain of attempts makes a row, and each is a turn.
    fn begin(&mut self, owner: &Owner, at: Timestamp, changes: &mut Changes) {
        let (Some(id), state) = (self.current(), &self.replay.state) else { return };
        let Some(run) = &state.run else { return };
        let prompt = self.prompts.iter().position(|(message, _)| Some(*message) == run.message_id);
        let prompt = prompt.map(|place| self.prompts.remove(place).1);
        // Those that were taken out of the queue begin nothing.
        self.prompts.retain(|(message, _)| state.queue.contains(message));
        if run.task_id.is_none() && run.continues.is_none() {
            let prompt = prompt.unwrap_or_else(|| "\"\"".into());
            changes.rows.entry(id).or_insert_with(|| new_row(owner, id, state, prompt, at));
        }
        let Some(row) = changes.rows.get_mut(&id) else { return };
        row.progress.get_or_insert_default().turns += 1;
        if run.task_id.is_none() {
            (row.attempt, row.run_id, row.started_at) = (run.attempt, Some(run.run_id), Some(at));
        }
    }
}

/// Returns the tasks of which some records begin a run.
pub fn tasks_begun(lines: &[Line<'_>]) -> impl Iterator<Item = TaskId> {
    runs_begun(lines).filter_map(|run| run.task_id)
}

fn runs_begun<'a>(lines: &[Line<'a>]) -> impl Iterator<Item = RunStarted<'a>> {
    let begun = lines.iter().filter(|line| Kind::from_name(line.kind) == Some(Kind::RunStarted));
    begun.filter_map(|line| match line.event().ok()? {
        Event::RunStarted(started) => Some(started),
        _ => None,
    })
}

/// Returns the task in whose row a run is; none of a run of an older log, whose id is no number.
fn row_id(task: Option<TaskId>, origin: RunId) -> Option<TaskId> {
    task.or_else(|| origin.to_ulid().map(TaskId::from_ulid))
}

/// Tells whether a kind of record says something that rows have, beyond what the session's state keeps.
fn is_told(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::MessageUser
            | Kind::MessageAgent
            | Kind::PlanUpdated
            | Kind::RunCheckpoint
            | Kind::AgentExited
            | Kind::SessionRestored
    )
}

/// Adds to a row how far its run has come.
fn add_progress(row: &mut TaskRow, before: &Seen, after: &Seen, event: Option<&Event<'_>>) {
    let calls = if before.run_id == after.run_id { before.tool_calls } else { 0 };
    let calls = after.tool_calls.saturating_sub(calls);
    let (usage, was) = (after.usage.shown(), before.usage.shown());
    let added = |now: u64, was: u64| now.checked_signed_diff(was).filter(|added| *added != 0);
    let tokens = [added(usage.input_tokens, was.input_tokens), added(usage.output_tokens, was.output_tokens)];
    let cost = usage.cost.filter(|cost| was.cost != Some(*cost)).map(|cost| cost - was.cost.unwrap_or(0.0));
    if tokens.iter().any(Option::is_some) || cost.is_some() {
        let sum = row.usage.get_or_insert_with(TaskUsage::default);
        let plus = |known: Option<u64>, added: Option<i64>| {
            added.map_or(known, |added| Some(known.unwrap_or(0).saturating_add_signed(added)))
        };
        sum.input_tokens = plus(sum.input_tokens, tokens[0]);
        sum.output_tokens = plus(sum.output_tokens, tokens[1]);
        sum.cost = cost.map_or(sum.cost, |added| Some(sum.cost.unwrap_or(0.0) + added));
    }
    if calls > 0 {
        row.progress.get_or_insert_default().tool_calls += calls;
    }
    match event {
        Some(Event::MessageAgent(said)) => {
            let text = said.content.plain_text();
            if let Some(line) = last_line(&text) {
                row.progress.get_or_insert_default().last_words = Some(line);
                row.result = result(&text);
            }
        }
        Some(Event::RunCheckpoint(checkpoint)) if Some(checkpoint.run_id) == after.run_id => {
            if let Some(files) = &checkpoint.files_touched {
                row.files_touched = Some((**files).clone());
            }
        }
        Some(Event::SessionRestored(restored)) => {
            row.progress.get_or_insert_default().verdict = Some(restored.verdict.as_ref().into());
        }
        // An agent that ends between two runs says nothing of either.
        Some(Event::AgentExited(exited)) if after.is_command || before.end.is_none() => {
            row.exit = match (exited.code, exited.signal) {
                (Some(code), _) => Some(code.to_string()),
                (None, Some(signal)) => Some(format!("signal {signal}")),
                (None, None) => None,
            };
        }
        _ => {}
    }
}

/// Moves a row on, and returns what its history says of that.
fn step(row: &mut TaskRow, told: Told, at: Timestamp) -> TransitionRow {
    let from_status = (row.transitions > 0).then_some(row.status);
    row.transitions += 1;
    (row.status, row.updated_at) = (told.status, at);
    row.reason = told.reason.clone();
    row.ended_at = told.status.is_ended().then_some(at);
    TransitionRow {
        task_id: row.task_id,
        n: row.transitions,
        from_status,
        to_status: told.status,
        reason: told.reason,
        actor: told.actor,
        at,
        metadata: Some(json!({"attempt": row.attempt, "session_id": row.session_id, "run_id": row.run_id})),
    }
}

fn new_row(
    owner: &Owner,
    task_id: TaskId,
    state: &SessionState,
    prompt: String,
    created_at: Timestamp,
) -> TaskRow {
    TaskRow {
        task_id,
        home_id: owner.home_id.clone(),
        host: owner.host.clone(),
        kind: TaskKind::Run,
        parent_id: state.parent.as_deref().and_then(|parent| task_of_run(parent.pipeline_id)),
        title: state.title.clone(),
        prompt,
        working_dir: state.working_dir.clone(),
        agent: state.provider.clone(),
        agent_name: state.provider.name(),
        options: state.options.clone(),
        env_names: state.env_names.clone(),
        branch: state.worktree.as_ref().map(|worktree| worktree.wanted.branch.clone()),
        priority: 0,
        not_before: None,
        deadline_at: None,
        max_attempts: DEFAULT_ATTEMPTS,
        repeatable: false,
        budget: None,
        labels: Vec::new(),
        after: Vec::new(),
        created_by: None,
        idempotency_key: None,
        status: TaskStatus::Running,
        reason: None,
        attempt: 1,
        session_id: Some(state.id),
        run_id: None,
        resume_prompt: None,
        progress: Some(Progress::default()),
        files_touched: None,
        result: None,
        usage: None,
        exit: None,
        created_at,
        updated_at: created_at,
        started_at: Some(created_at),
        ended_at: None,
        transitions: 0,
    }
}
