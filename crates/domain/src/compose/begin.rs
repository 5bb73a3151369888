//! A run begins: with a message, with the oldest message of the queue, or as the continuation of one that was cut.

use crate::event::{
    Drift, InputQueued, MessageUser, Raw, RunDrift, RunStarted, SessionCreated, SessionRestored, TaskSpec,
    Worktree,
};
use crate::id::{BootId, MessageId, RunId, TaskId, WaitId};
use crate::line::Draft;
use crate::session::{MAX_QUEUED, Run, SessionState};

/// The life of the daemon that begins a run, and that of its machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Life {
    /// The daemon's.
    pub boot_id: BootId,
    /// The machine's: the kernel's boot id, if it is known.
    pub machine_boot: Option<String>,
}

/// A message as somebody gives it to a session.
#[derive(Debug, Clone, PartialEq)]
pub struct NewMessage {
    /// Its name.
    pub message_id: MessageId,
    /// What it says.
    pub content: Raw<'static>,
    /// The caller's key, as it is stored.
    pub idempotency_key: Option<String>,
    /// The void wait that it answers.
    pub wait_id: Option<WaitId>,
}

impl NewMessage {
    fn into_record(self, queued: bool) -> MessageUser<'static> {
        let NewMessage { message_id, content, idempotency_key, wait_id } = self;
        let idempotency_key = idempotency_key.map(Into::into);
        MessageUser { message_id, content, idempotency_key, queued, wait_id }
    }
}

/// What a message given to a session comes to.
#[derive(Debug, Clone, PartialEq)]
pub struct Given {
    /// Its records.
    pub records: Vec<Draft>,
    /// When it gets its turn.
    pub turn: Placement,
}

/// The placement of a message: when it gets its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// At once: a run begins with it.
    Now,
    /// After the run that goes on, and what waits already.
    Queued,
    /// After what waits already, the oldest of which begins a run with it: nobody continues what was cut any more.
    BehindOldest,
    /// After the run that goes on, and instead of the answer that its agent waits for: the records belong behind a cancel
    /// of that run, in one append with it.
    InsteadOfAnswer,
}

/// As many messages wait for their turn as may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{MAX_QUEUED} messages are already queued")]
pub struct QueueFull;

/// Composes a message to a session: `message.user` + `run.started` if nothing goes on there, else the message alone, queued.
///
/// `update` is a change of the session that comes with the message. The message is the first of the list, or the last where
/// the list stands behind a cancel. `run_id` is the name of the run, if one begins.
pub fn message(
    state: &SessionState,
    message: NewMessage,
    update: Option<Draft>,
    run_id: RunId,
    life: &Life,
) -> Result<Given, QueueFull> {
    // While files are being restored nothing begins.
    let at_rest = state.open_run().is_none() && state.restoring.is_none();
    // What someone answers to a question is not put behind what was said before it.
    if at_rest && (state.queue.is_empty() || message.wait_id.is_some()) {
        let mut records = with_message(message, run_id, life);
        records.extend(update);
        return Ok(Given { records, turn: Placement::Now });
    }
    if state.queue.len() >= MAX_QUEUED {
        return Err(QueueFull);
    }
    let queued = Draft::from(message.into_record(true));
    // What a program waits for keeps nobody from working, and nothing comes instead of its answer.
    if state.open_run().is_some_and(Run::has_asked) {
        let records = update.into_iter().chain([queued]).collect();
        return Ok(Given { records, turn: Placement::InsteadOfAnswer });
    }
    let mut records: Vec<Draft> = [queued].into_iter().chain(update).collect();
    // Someone speaks after an interruption: nothing is continued by itself any more, and who waits longest gets his turn.
    let oldest = state.queue.first().filter(|_| at_rest && state.recovery.interruption.is_some());
    let turn = if oldest.is_some() { Placement::BehindOldest } else { Placement::Queued };
    records.extend(oldest.map(|oldest| from_queue(*oldest, run_id, life).into()));
    Ok(Given { records, turn })
}

/// Composes a session: `session.created`, and the run that begins with its first message, if there is one.
pub fn session(
    created: SessionCreated<'static>,
    first: Option<(NewMessage, RunId)>,
    life: &Life,
) -> Vec<Draft> {
    let run = first.map(|(message, run_id)| with_message(message, run_id, life));
    [created.into()].into_iter().chain(run.into_iter().flatten()).collect()
}

/// An attempt of a task: a run of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attempt {
    /// The task.
    pub task_id: TaskId,
    /// Which attempt it is, from 1.
    pub number: u32,
}

/// Composes the first attempt of a task in a new session: `session.created` + `message.user` + `run.started`.
pub fn task_session(
    spec: &TaskSpec,
    (message, run_id): (NewMessage, RunId),
    attempt: Attempt,
    life: &Life,
) -> Vec<Draft> {
    let created = SessionCreated {
        parent: None,
        title: spec.title.clone().into(),
        working_dir: spec.working_dir.clone().into(),
        provider: spec.provider.clone(),
        options: spec.options.clone(),
        env_names: spec.env_names.clone(),
        key: None,
        imported_from: None,
        idempotency_key: None,
        created_at: None,
        forked_from: None,
        restoring: None,
        worktree: spec.worktree.as_deref().map(|wanted| Box::new(Worktree::wanted(wanted.clone()))),
    };
    let run = task_run(None, (message, run_id), attempt, life);
    [created.into()].into_iter().chain(run).collect()
}

/// Composes an attempt of a task in a session at rest: `message.user` + `run.started`. `last` is the session's latest run; if that
/// was of the same task, both count as attempts of the same thing.
pub fn task_run(
    last: Option<&Run>,
    (message, run_id): (NewMessage, RunId),
    attempt: Attempt,
    life: &Life,
) -> Vec<Draft> {
    let message_id = message.message_id;
    let last = last.filter(|last| last.task_id == Some(attempt.task_id));
    let started = RunStarted {
        attempt: attempt.number,
        origin_run_id: last.map(|last| last.origin_run_id),
        task_id: Some(attempt.task_id),
        ..started(run_id, life, Some(message_id), None)
    };
    vec![message.into_record(false).into(), started.into()]
}

/// Composes the prompt of a run for its agent: `input.queued`, and before it `session.restored` if the agent was not there and is
/// told with it what happened before (never silently fresh), and `run.drift` if something is not as the turn before had left it.
pub fn prompt(queued: InputQueued<'static>, tells_past: bool, drift: Option<Drift>) -> Vec<Draft> {
    let (method, verdict) = ("context".into(), "reprimed".into());
    let told = tells_past.then(|| SessionRestored { method, verdict, counts: None }.into());
    let drift = drift.zip(queued.run_id).map(|(drift, run_id)| RunDrift { run_id, drift }.into());
    told.into_iter().chain(drift).chain([queued.into()]).collect()
}

/// Composes a run that begins with a new message: `message.user` + `run.started`.
pub fn with_message(message: NewMessage, run_id: RunId, life: &Life) -> Vec<Draft> {
    let message_id = message.message_id;
    vec![message.into_record(false).into(), started(run_id, life, Some(message_id), None).into()]
}

/// Returns the record of a run that begins with a message of the queue.
pub fn from_queue(message: MessageId, run_id: RunId, life: &Life) -> RunStarted<'static> {
    started(run_id, life, Some(message), None)
}

/// Returns the record of a run that continues one that was cut: one attempt more of the same origin.
pub fn continuation(cut: &Run, run_id: RunId, life: &Life) -> RunStarted<'static> {
    started(run_id, life, None, Some(cut))
}

fn started(
    run_id: RunId,
    life: &Life,
    message_id: Option<MessageId>,
    cut: Option<&Run>,
) -> RunStarted<'static> {
    RunStarted {
        run_id,
        boot_id: life.boot_id,
        machine_boot: life.machine_boot.clone().map(Into::into),
        message_id,
        attempt: cut.map_or(1, |cut| cut.attempt + 1),
        continues: cut.map(|cut| cut.run_id),
        origin_run_id: cut.map(|cut| cut.origin_run_id),
        task_id: cut.and_then(|cut| cut.task_id),
    }
}
