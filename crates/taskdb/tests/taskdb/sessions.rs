//! Runs that people begin by hand, and how far the runs of tasks have come: rows made of the logs of sessions.

use std::collections::HashMap;

use rekindle_domain::chain::Link;
use rekindle_domain::event::{
    AgentExited, CancelReason, Event, FilesTouched, InterruptReason, MessageAgent, MessageUser, Options,
    PlanUpdated, Provider, Raw, ResumeHow, RunAdopted, RunCancelRequested, RunCancelled, RunCheckpoint,
    RunCompleted, RunFailed, RunInterrupted, RunResumed, RunStarted, RunWaiting, SessionCreated,
    SessionRestored, TaskKind, TaskStatus, ToolCall, UncertainTool, UsageUpdated, WaitKind,
};
use rekindle_domain::id::{BootId, HolderId, MessageId, RunId, SessionId, TaskId, TokenId, WaitId};
use rekindle_domain::line::{Draft, Envelope, Line, write};
use rekindle_domain::session::PlanProgress;
use rekindle_taskdb::{
    Batch, Changes, Cursor, SessionProjection, TaskDb, TaskQuery, TaskRow, TaskUsage, TransitionRow,
};

use crate::records::{at, owner};

const HOME: &str = "home-sessions";

fn session() -> SessionId {
    SessionId::mint(1_771_668_000_000, 7)
}

fn run(n: u64) -> RunId {
    RunId::mint(1_771_668_000_000 + n, u128::from(n) + (1 << 60))
}

fn row_of(n: u64) -> TaskId {
    TaskId::from_ulid(run(n).to_ulid().expect("minted"))
}

fn boot(n: u64) -> BootId {
    BootId::mint(1, n.into())
}

fn message(n: u64) -> MessageId {
    MessageId::mint(1, n.into())
}

fn holder() -> HolderId {
    "h_00000000000000000000000000000001".parse().expect("an id")
}

fn started(n: u64) -> RunStarted<'static> {
    RunStarted {
        run_id: run(n),
        boot_id: boot(1),
        machine_boot: None,
        message_id: Some(message(n)),
        attempt: 1,
        continues: None,
        origin_run_id: None,
        task_id: None,
    }
}

fn asked(n: u64, text: &str) -> Event<'static> {
    let (content, message_id) = (Raw::text(text), message(n));
    MessageUser { message_id, content, idempotency_key: None, queued: false, wait_id: None }.into()
}

fn said(n: u64, text: &str) -> Event<'static> {
    let (run_id, content) = (Some(run(n)), Raw::text(text));
    MessageAgent { run_id, message_id: message(900 + n), content, partial: false }.into()
}

fn completed(n: u64) -> Event<'static> {
    RunCompleted { run_id: run(n), stop_reason: Some("end_turn".into()), usage: None }.into()
}

fn interrupted(n: u64, uncertain: Vec<UncertainTool>) -> Event<'static> {
    let reason = InterruptReason::ProcessRestart;
    RunInterrupted { run_id: run(n), reason, uncertain, uncertain_turn: false, detail: None }.into()
}

fn used(input: u64, cost: f64) -> Event<'static> {
    UsageUpdated { input_tokens: input, output_tokens: 2, cost: Some(cost), raw: None }.into()
}

fn created() -> Event<'static> {
    SessionCreated {
        parent: None,
        title: "By hand".into(),
        working_dir: "/work/here".into(),
        provider: Provider { profile: "acp".into(), agent: Some("claude".into()), ..Provider::default() },
        options: Options::default(),
        env_names: vec!["KEY".into()],
        key: None,
        imported_from: None,
        idempotency_key: None,
        created_at: None,
        forked_from: None,
        restoring: None,
        worktree: None,
    }
    .into()
}

/// A session's life: a run with everything in it, one that was cut and continued, one that failed, one that was cancelled, one that
/// belongs to a task, and one that was cut and left for another message.
fn life(task: TaskId) -> Vec<Event<'static>> {
    let plan = r#"[{"content":"look","status":"completed"},{"content":"write","status":"in_progress"}]"#;
    let tool = |id: &'static str| -> Event<'static> {
        ToolCall {
            run_id: Some(run(1)),
            tool_call_id: id.into(),
            title: "edit".into(),
            tool_kind: None,
            status: Some("pending".into()),
            input: None,
            files: Vec::new(),
            raw: None,
        }
        .into()
    };
    let wait_id = WaitId::mint(1, 5);
    let files = FilesTouched { total: 1, lines_added: 3, ..FilesTouched::default() };
    vec![
        created(),
        asked(1, "do it"),
        started(1).into(),
        PlanUpdated {
            run_id: Some(run(1)),
            entries: serde_json::from_str::<Raw<'_>>(plan).expect("JSON").into_owned(),
        }
        .into(),
        tool("a"),
        tool("b"),
        RunWaiting {
            run_id: run(1),
            wait_id,
            wait_kind: WaitKind::Permission,
            resume_token_id: TokenId::mint(1, 1),
            deadline_at: None,
            tool_call_id: None,
            request: None,
            by: None,
            idempotency_key: None,
        }
        .into(),
        RunResumed {
            run_id: run(1),
            wait_id,
            answer: None,
            by: Some("ada".into()),
            how: ResumeHow::Answered,
            granted: Some(true),
        }
        .into(),
        RunAdopted { run_id: run(1), boot_id: boot(2), holder_id: None, gap: 0 }.into(),
        SessionRestored { method: "load".into(), verdict: "restored".into(), counts: None }.into(),
        said(1, "Done.\nAll of it."),
        used(100, 0.5),
        completed(1),
        checkpoint(1, files),
        // Cut, and continued by itself.
        asked(2, "and this"),
        started(2).into(),
        interrupted(2, Vec::new()),
        RunStarted {
            run_id: run(3),
            attempt: 2,
            continues: Some(run(2)),
            origin_run_id: Some(run(2)),
            message_id: None,
            ..started(3)
        }
        .into(),
        AgentExited { holder_id: holder(), code: None, signal: Some(9), stderr_tail: None }.into(),
        RunFailed { run_id: run(3), error: "it crashed".into() }.into(),
        // Cancelled by a person.
        asked(4, "never mind"),
        started(4).into(),
        RunCancelRequested {
            run_id: Some(run(4)),
            by: Some("ada".into()),
            why: CancelReason::User,
            dropped: Vec::new(),
        }
        .into(),
        RunCancelled { run_id: run(4), by: Some("ada".into()) }.into(),
        // Of a task, which has a row already.
        asked(5, "for the task"),
        RunStarted { task_id: Some(task), ..started(5) }.into(),
        said(5, "the task goes on"),
        used(40, 0.75),
        completed(5),
        // Cut in the middle of something, and left alone.
        asked(6, "try"),
        started(6).into(),
        interrupted(
            6,
            vec![UncertainTool { tool_call_id: "c".into(), title: "rm".into(), kind: None, input: None }],
        ),
        asked(7, "something else"),
        started(7).into(),
    ]
}

fn checkpoint(n: u64, files: FilesTouched) -> Event<'static> {
    let json = serde_json::json!({
        "run_id": run(n), "at": "end", "how": "live", "root": "/work/here", "files_touched": files,
    });
    let checkpoint: RunCheckpoint = serde_json::from_value(json).expect("a checkpoint");
    checkpoint.into()
}

/// Writes a log.
fn log(events: Vec<Event<'static>>) -> Vec<Vec<u8>> {
    let (mut lines, mut last) = (Vec::new(), None);
    for (event, seq) in events.into_iter().zip(1..) {
        let (mut line, ts) = (Vec::new(), at(seq).to_string());
        let place = Envelope { seq: seq as u64, ts: &ts, at: None, more: false };
        let link = Link::new(session(), last);
        last = Some(write(&Draft::from(event), place, link, &mut line).expect("a record"));
        line.pop();
        lines.push(line);
    }
    lines
}

/// Brings a database up to date with a log, so many records at a time.
fn catch_up(db: &mut TaskDb, log: &[Vec<u8>], at_once: usize) {
    let (owner, stream) = (owner(HOME), session().to_string());
    loop {
        let known = db.cursor(HOME, &stream).expect("asked");
        let mut projection = match known.as_ref().and_then(|known| known.state.as_deref()) {
            Some(state) => SessionProjection::restore(state).expect("restored"),
            None => SessionProjection::new(session()),
        };
        let from = known.map_or(0, |known| known.seq as usize);
        let lines: Vec<Line<'_>> =
            log[from..].iter().take(at_once).map(|line| Line::parse(line).expect("a line")).collect();
        let Some(last) = lines.last() else { return };
        let before: HashMap<TaskId, TaskRow> = db
            .tasks(&projection.concerned(&lines))
            .expect("asked")
            .into_iter()
            .map(|row| (row.task_id, row))
            .collect();
        let mut changes = Changes { rows: before.clone(), transitions: Vec::new() };
        for line in &lines {
            projection.push(&owner, line, &mut changes).expect("it follows");
        }
        let h = last.hash.expect("a hash").to_string();
        let cursor = Cursor { seq: last.seq, h, state: Some(projection.to_json().expect("JSON")) };
        let Changes { rows, transitions } = changes;
        db.write(&Batch::new(&owner, &stream, &before, rows, transitions, cursor)).expect("written");
    }
}

/// Everything that a database says of the sessions' home.
fn everything(db: &mut TaskDb) -> Vec<(TaskRow, Vec<TransitionRow>)> {
    let query = TaskQuery { home_id: Some(HOME.into()), limit: 100, ..TaskQuery::default() };
    let rows = db.list(&query).expect("listed").tasks;
    rows.into_iter().map(|row| (row.clone(), db.transitions(row.task_id).expect("asked"))).collect()
}

/// What both databases must make of a session.
pub(crate) fn all(db: &mut TaskDb) {
    let task = TaskId::mint(1_771_668_000_000, 1 << 61);
    let new = rekindle_domain::event::TaskCreated {
        task_id: task,
        actor: "user:ada".into(),
        task: Box::new(crate::records::spec(2)),
        met: Vec::new(),
    };
    let mut row = None;
    let line = rekindle_taskdb::project::project(&owner(HOME), task, &mut row, &new.into(), at(0));
    let (row, line) = (row.expect("a row"), line.expect("a line"));
    let cursor = Cursor { seq: 1, h: "1".into(), state: None };
    let row = TaskRow { session_id: Some(session()), ..row };
    let rows = HashMap::from([(task, row)]);
    let batch = Batch::new(&owner(HOME), "tasks_home", &HashMap::new(), rows, vec![line], cursor);
    db.write(&batch).expect("written");
    let before = everything(db);

    let log = log(life(task));
    catch_up(db, &log, 1);
    let one_by_one = everything(db);
    assert_rows(&one_by_one, task);
    let stats = db.stats(HOME, at(100)).expect("counted");
    assert_eq!(stats.statuses.values().sum::<u64>(), 6);
    assert_eq!(stats.agents["claude"][&TaskStatus::Failed], 2);
    let day = stats.day;
    assert_eq!((day.tokens, day.cost), (Some(102), Some(0.5)), "of those that have ended");
    assert_eq!((day.interruptions, day.adoptions), (1, 1));
    assert_eq!(day.verdicts.into_iter().collect::<Vec<_>>(), [("restored".to_owned(), 1)]);

    // Forgotten with its session, and the task is as it was before; written again, all at once, everything is the same.
    db.forget_session(HOME, session()).expect("forgotten");
    assert_eq!(everything(db), before);
    assert_eq!(db.cursor(HOME, session().as_str()).expect("asked"), None);
    assert_eq!(db.stats(HOME, at(100)).expect("counted").statuses.values().sum::<u64>(), 1);
    catch_up(db, &log, 1_000);
    assert_eq!(everything(db), one_by_one);
    db.forget(HOME).expect("forgotten");
    assert!(everything(db).is_empty() && db.cursors(HOME).expect("asked").is_empty());
}

fn assert_rows(found: &[(TaskRow, Vec<TransitionRow>)], task: TaskId) {
    let of = |id: TaskId| {
        found.iter().find(|(row, _)| row.task_id == id).unwrap_or_else(|| panic!("no row {id}: {found:#?}"))
    };
    let steps = |id: TaskId| -> Vec<(TaskStatus, Option<String>, String)> {
        let lines = &of(id).1;
        let numbers: Vec<u32> = lines.iter().map(|line| line.n).collect();
        assert_eq!(numbers, (1..=lines.len() as u32).collect::<Vec<_>>(), "without a gap");
        lines.iter().map(|line| (line.to_status, line.reason.clone(), line.actor.clone())).collect()
    };
    let step = |status, reason: &str, actor: &str| {
        let reason = (!reason.is_empty()).then(|| reason.to_owned());
        (status, reason, actor.to_owned())
    };
    use TaskStatus::{Cancelled, Completed, Failed, Running, WaitingInput};

    let first = &of(row_of(1)).0;
    assert_eq!(
        (first.kind, first.title.as_str(), first.prompt.as_str()),
        (TaskKind::Run, "By hand", "\"do it\"")
    );
    assert_eq!((first.session_id, first.run_id, first.attempt), (Some(session()), Some(run(1)), 1));
    let progress = first.progress.as_ref().expect("progress");
    assert_eq!((progress.turns, progress.tool_calls), (1, 2));
    assert_eq!(progress.plan, Some(PlanProgress { done: 1, total: 2, now: Some("write".into()) }));
    assert_eq!(progress.last_words.as_deref(), Some("Done. All of it."));
    assert_eq!(first.result.as_deref(), Some("Done.\nAll of it."));
    let usage = TaskUsage { input_tokens: Some(100), output_tokens: Some(2), cost: Some(0.5) };
    assert_eq!(first.usage, Some(usage));
    assert_eq!(first.files_touched.as_ref().map(|files| (files.total, files.lines_added)), Some((1, 3)));
    assert_eq!(
        steps(row_of(1)),
        [
            step(Running, "", "user"),
            step(WaitingInput, "permission", "agent"),
            step(Running, "answered", "user:ada"),
            step(Running, "adopted", "recovery"),
            step(Completed, "end_turn", "agent"),
        ]
    );

    let second = &of(row_of(2)).0;
    assert_eq!((second.attempt, second.run_id, second.exit.as_deref()), (2, Some(run(3)), Some("signal 9")));
    let cut = steps(row_of(2));
    assert_eq!(cut.len(), 4);
    assert!(cut[1].0 == Running && cut[1].1.as_deref().is_some_and(|why| why.starts_with("interrupted")));
    assert_eq!(cut[2..], [step(Running, "continued", "recovery"), step(Failed, "it crashed", "agent")]);

    assert_eq!(
        steps(row_of(4)),
        [
            step(Running, "", "user"),
            step(Running, "cancel requested: cancelled", "user:ada"),
            step(Cancelled, "cancelled", "user:ada"),
        ]
    );

    // The task's own row has what its run said, and nothing of the session's other runs.
    let (row, history) = of(task);
    assert_eq!((history.len(), row.status, row.kind), (1, TaskStatus::Pending, TaskKind::Task));
    assert_eq!(row.result.as_deref(), Some("the task goes on"));
    let usage = TaskUsage { input_tokens: Some(40), output_tokens: Some(2), cost: Some(0.25) };
    assert_eq!(row.usage, Some(usage));
    assert!(found.iter().all(|(row, _)| row.task_id != row_of(5)));

    let left = steps(row_of(6));
    assert_eq!(left[1], step(WaitingInput, "uncertain", "recovery"));
    assert_eq!(left[2], step(Failed, "uncertain; another message took its place", "user"));
    let last = &of(row_of(7)).0;
    assert_eq!((last.status, last.prompt.as_str(), last.ended_at), (Running, "\"something else\"", None));
}
