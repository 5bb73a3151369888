//! Pipeline runs as tasks: rows made of ledgers, with the sessions of their steps as parts of them.

use std::collections::HashMap;

use rekindle_domain::blob_id::BlobId;
use rekindle_domain::event::{
    Budget, Event, OnCut, OnDrift, PipelineAborted, PipelineCompleted, PipelineDrift, PipelineFailed,
    PipelineImported, PipelineReopened, PipelineStarted, ProjectConfig, Raw, StepBegan, StepCounts, StepCut,
    StepFinished, StepIntended, StepInterrupted, TaskKind, TaskStatus, Usage,
};
use rekindle_domain::id::{PipelineId, RunId, SessionId, StepId, StepKey, TaskId};
use rekindle_taskdb::{
    Batch, Cursor, PipelineProjection, TaskDb, TaskQuery, TaskRow, TransitionRow, task_of_run,
};

use crate::records::{at, owner};

const HOME: &str = "home-pipelines";

const CONFIG: &str = r#"{"tasks":[{"id":"T-1","goal":"Make it so\nand well"}],"pipelines":{"default":{"stages":[
    {"name":"implement","agent":"a","prompt":"p"},{"name":"review","agent":"a","prompt":"p"}]}}}"#;

fn run() -> PipelineId {
    PipelineId::mint(1_771_668_000_000, 9)
}

fn task() -> TaskId {
    task_of_run(run()).expect("a number")
}

fn tree(n: u8) -> BlobId {
    BlobId::from_bytes([n; 32])
}

fn started(on_cut: Option<OnCut>) -> Event<'static> {
    let config: ProjectConfig = serde_json::from_str(CONFIG).expect("a configuration");
    PipelineStarted {
        pipeline: "default".into(),
        task: Box::new(config.tasks[0].clone()),
        config: Box::new(config),
        config_hash: tree(0),
        snapshot_id: "snap-1".into(),
        tree: tree(1),
        working_dir: "/repo".into(),
        origin: "/repo".into(),
        on_cut,
        by: "user:ada".into(),
        on_drift: None,
        budget: Some(Budget { tokens: Some(100), ..Budget::default() }),
        no_cache: false,
        options: None,
        idempotency_key: None,
    }
    .into()
}

fn step(name: &str) -> StepId {
    name.parse().expect("a step")
}

fn intended(name: &str) -> Event<'static> {
    let step_id = step(name);
    StepIntended {
        stage: step_id.stage.clone().into(),
        round: step_id.round,
        action: step_id.stage.clone().into(),
        step_id,
        key: StepKey::from_bytes([7; 32]),
        from: tree(1),
        agent: None,
        inputs_hash: tree(0),
    }
    .into()
}

fn began(name: &str, attempt: u32) -> Event<'static> {
    let (session_id, run_id) = (SessionId::mint(attempt.into(), 1), RunId::mint(attempt.into(), 1));
    StepBegan { step_id: step(name), session_id, run_id, attempt, reminder: false }.into()
}

fn finished(name: &str, usage: Option<Usage>, cached: bool) -> Event<'static> {
    StepFinished {
        step_id: step(name),
        key: StepKey::from_bytes([7; 32]),
        outcome: "completed".into(),
        payload: Some(Raw::from_value(&serde_json::json!({"summary": "first\nlast"})).expect("JSON")),
        payload_blob: None,
        to: tree(2),
        files_touched: None,
        usage,
        cached,
        counts: StepCounts::default(),
    }
    .into()
}

fn cut(name: &str, attempt: u32, reason: StepCut) -> Event<'static> {
    StepInterrupted { step_id: step(name), attempt, reason, detail: None, died_at: None, tree: None }.into()
}

fn drift(decision: OnDrift) -> Event<'static> {
    PipelineDrift {
        step_id: step("review-1"),
        expected: tree(1),
        found: tree(2),
        files: Default::default(),
        after_cut: Default::default(),
        unknown_author: Default::default(),
        decision,
        by: Some("user:eve".into()),
    }
    .into()
}

fn used(input_tokens: u64, cost: Option<f64>) -> Option<Usage> {
    Some(Usage { input_tokens, output_tokens: 1, cost })
}

/// A run in which everything happens that a row tells of.
fn ledger() -> Vec<Event<'static>> {
    vec![
        started(None),
        intended("implement-1"),
        began("implement-1", 1),
        cut("implement-1", 1, StepCut::AgentGone),
        began("implement-1", 2),
        cut("implement-1", 2, StepCut::Cancelled),
        began("implement-1", 3),
        finished("implement-1", used(10, Some(0.5)), false),
        intended("review-1"),
        drift(OnDrift::Stop),
        drift(OnDrift::Accept),
        began("review-1", 1),
        finished("review-1", used(5, None), false),
        PipelineFailed { reason: Some("it will not do".into()), by: None }.into(),
        PipelineReopened { reason: None, by: Some("user:bob".into()) }.into(),
        intended("review-2"),
        finished("review-2", used(1_000, Some(9.0)), true),
        PipelineCompleted { reason: None, by: None }.into(),
    ]
}

/// Writes a ledger, some records at once; each time as whoever reads what was written before.
fn write(db: &mut TaskDb, run: PipelineId, events: &[Event<'static>], at_once: usize) {
    for (batch, events) in events.chunks(at_once).enumerate() {
        let known = db.cursor(HOME, run.as_str()).expect("asked");
        let mut projection: PipelineProjection = known
            .and_then(|known| serde_json::from_str(&known.state.expect("a state")).ok())
            .unwrap_or_default();
        let id = task_of_run(run).expect("a number");
        let before: HashMap<TaskId, TaskRow> =
            db.tasks(&[id]).expect("asked").into_iter().map(|row| (row.task_id, row)).collect();
        let mut row = before.get(&id).cloned();
        let (mut transitions, mut seq) = (Vec::new(), (batch * at_once) as u64);
        for event in events {
            seq += 1;
            let happened = at(i64::try_from(seq).expect("few"));
            transitions.extend(projection.push(&owner(HOME), run, &mut row, event, happened));
        }
        let state = serde_json::to_string(&projection).ok();
        let cursor = Cursor { seq, h: format!("{seq:016x}"), state };
        let rows = row.into_iter().map(|row| (row.task_id, row)).collect();
        db.write(&Batch::new(&owner(HOME), run.as_str(), &before, rows, transitions, cursor))
            .expect("written");
    }
}

fn whole(db: &mut TaskDb) -> Vec<(TaskRow, Vec<TransitionRow>)> {
    db.tasks_behind(HOME, None, 100).expect("rows")
}

/// What each line of a history says.
fn history(rows: &[TransitionRow]) -> Vec<(TaskStatus, &str, &str)> {
    rows.iter().map(|row| (row.to_status, row.reason.as_deref().unwrap_or("-"), row.actor.as_str())).collect()
}

pub(crate) fn all(db: &mut TaskDb) {
    write(db, run(), &ledger(), 100);
    let rows = whole(db);
    let (row, told) = &rows[0];
    assert_eq!((rows.len(), row.task_id, row.kind), (1, task(), TaskKind::Pipeline));
    assert_eq!((row.title.as_str(), row.agent_name.as_str()), ("T-1: Make it so", "pipeline"));
    assert_eq!((row.prompt.as_str(), row.working_dir.as_str()), (r#""Make it so\nand well""#, "/repo"));
    assert_eq!(
        (row.status, row.attempt, row.created_by.as_deref()),
        (TaskStatus::Completed, 2, Some("user:ada"))
    );
    assert_eq!(row.budget.and_then(|budget| budget.tokens), Some(100));
    assert_eq!((row.result.as_deref(), row.ended_at), (Some("first\nlast"), Some(at(18))));
    // What another run paid for was not used here.
    let usage = row.usage.expect("some was told of");
    assert_eq!((usage.input_tokens, usage.output_tokens, usage.cost), (Some(15), Some(2), Some(0.5)));
    let progress = row.progress.as_ref().expect("it has come far");
    assert_eq!(progress.turns, 4);
    assert_eq!(progress.last_words.as_deref(), Some("review-2: completed: first last"));
    let plan = progress.plan.as_ref().map(|plan| (plan.done, plan.total, plan.now.clone()));
    assert_eq!(plan, Some((2, 2, None)));
    assert_eq!(
        history(told),
        [
            (TaskStatus::Running, "-", "user:ada"),
            (TaskStatus::WaitingInput, "implement-1 was cancelled", "recovery"),
            (TaskStatus::Running, "implement-1 goes on", "recovery"),
            (TaskStatus::WaitingInput, "drift: files are not as review-1 expects them", "recovery"),
            (TaskStatus::Running, "drift: accept", "user:eve"),
            (TaskStatus::Failed, "it will not do", "agent"),
            (TaskStatus::Running, "reopened", "user:bob"),
            (TaskStatus::Completed, "-", "agent"),
        ]
    );
    // However little is written at once, and whoever goes on.
    for at_once in [1, 3, 7] {
        db.forget_pipeline(HOME, run()).expect("forgotten");
        assert_eq!((whole(db), db.cursor(HOME, run().as_str()).expect("asked")), (Vec::new(), None));
        write(db, run(), &ledger(), at_once);
        assert_eq!(whole(db), rows, "{at_once}");
    }
    let cursors = db.pipeline_cursors(HOME).expect("asked");
    assert_eq!((cursors.len(), cursors[0].0.as_str()), (1, run().as_str()));
    waits(db);
    imports(db);
    let query = TaskQuery {
        kind: Some(TaskKind::Pipeline),
        home_id: Some(HOME.into()),
        limit: 10,
        ..TaskQuery::default()
    };
    assert_eq!(db.list(&query).expect("listed").tasks.len(), 4);
    // What everything is counted by goes with it.
    for run in [run(), other(1), other(2), other(3)] {
        db.forget_pipeline(HOME, run).expect("forgotten");
    }
    assert!(
        db.counts(HOME)
            .expect("counted")
            .values()
            .flat_map(|counts| counts.values())
            .all(|count| *count == 0)
    );
    db.forget(HOME).expect("forgotten");
}

fn other(n: u128) -> PipelineId {
    PipelineId::mint(1_771_668_001_000, n)
}

/// A run that came from elsewhere waits for somebody, and works where it is now; one that has ended stays so.
fn imports(db: &mut TaskDb) {
    let imported = || -> Event<'static> {
        PipelineImported { machine: None, made_at: None, working_dir: Some("/here".into()) }.into()
    };
    let mut ledger = vec![started(None), intended("implement-1"), began("implement-1", 1), imported()];
    let mut standing = |ledger: &[Event<'static>]| {
        db.forget_pipeline(HOME, other(3)).expect("forgotten");
        write(db, other(3), ledger, 100);
        let row = db.tasks(&[task_of_run(other(3)).expect("a number")]).expect("asked").remove(0);
        assert_eq!(row.working_dir, "/here");
        (row.status, row.ended_at)
    };
    assert_eq!(standing(&ledger), (TaskStatus::WaitingInput, None));
    ledger.push(began("implement-1", 2));
    assert_eq!(standing(&ledger), (TaskStatus::Running, None));
    ledger.push(PipelineAborted { reason: None, by: None }.into());
    ledger.push(imported());
    assert_eq!(standing(&ledger), (TaskStatus::Cancelled, Some(at(6))));
}

/// Cuts that a person is asked about: at once if that was said at the start, else the third one; and an end by a person.
fn waits(db: &mut TaskDb) {
    let asks = [
        started(Some(OnCut::Ask)),
        intended("implement-1"),
        began("implement-1", 1),
        cut("implement-1", 1, StepCut::AgentGone),
    ];
    write(db, other(1), &asks, 2);
    let mut often = vec![started(None), intended("implement-1")];
    for attempt in 1..=3 {
        often.extend([began("implement-1", attempt), cut("implement-1", attempt, StepCut::AgentGone)]);
    }
    often.push(PipelineAborted { reason: None, by: Some("user:bob".into()) }.into());
    write(db, other(2), &often, 5);
    let told =
        |db: &mut TaskDb, n: u128| db.transitions(task_of_run(other(n)).expect("a number")).expect("asked");
    let waits = (TaskStatus::WaitingInput, "implement-1 was cut: agent_gone", "recovery");
    assert_eq!(history(&told(db, 1))[1..], [waits]);
    assert_eq!(
        history(&told(db, 2))[1..],
        [
            (TaskStatus::WaitingInput, "implement-1 was cut 3 times", "recovery"),
            (TaskStatus::Cancelled, "aborted", "user:bob"),
        ]
    );
}
