//! The stream of tasks: what may follow, what is remembered, and what a task's run means for it.

use proptest::prelude::*;

use super::compose::{self, actor};
use super::retry::RunSoFar;
use super::status_mapping::{Mapped, SessionFacts, task_status};
use super::transition::{Standing, Transition, transition};
use super::*;
use crate::event::{
    Dependency, DependencyCondition, Event, Options, Provider, Raw, RunCancelled, RunCompleted, RunFailed,
    RunStarted, TaskChanged, TaskClaimed, TaskCreated, TaskEnded, TaskKind, TaskRequeued, TaskResumed,
    TaskRetried, TaskSpec, TaskStatus, TaskWaiting, WaitKind,
};
use crate::id::{BootId, RunId, SessionId, TaskId};
use crate::line::Draft;
use crate::projector::SessionStatus;
use crate::recovery::Held;
use crate::session::{End, Run, SessionState};
use crate::time::Timestamp;

fn id(n: u64) -> TaskId {
    TaskId::from_ulid(u128::from(n) + 1)
}

fn run(n: u64) -> RunId {
    RunId::from_ulid(u128::from(n))
}

fn session() -> SessionId {
    SessionId::from_ulid(7)
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(1_771_668_000_000 + seconds * 1_000)
}

fn spec() -> TaskSpec {
    TaskSpec {
        kind: TaskKind::Task,
        parent_id: None,
        title: "do it".into(),
        prompt: Raw::text("do it"),
        working_dir: "/work".into(),
        worktree: None,
        provider: Provider::default(),
        options: Options::default(),
        env_names: Vec::new(),
        priority: 0,
        not_before: None,
        deadline_at: None,
        max_attempts: 3,
        repeatable: false,
        shared: false,
        budget: None,
        labels: Vec::new(),
        after: Vec::new(),
        idempotency_key: None,
        created_by: None,
    }
}

fn created(n: u64, spec: TaskSpec) -> Event<'static> {
    TaskCreated { task_id: id(n), actor: "user:ada".into(), task: Box::new(spec), met: Vec::new() }.into()
}

fn claimed(n: u64, attempt: u32) -> Event<'static> {
    let (session_id, run_id) = (session(), run(u64::from(attempt)));
    let actor = actor::SCHEDULER.into();
    TaskClaimed { task_id: id(n), attempt, session_id, run_id, actor, reason: None, resume_prompt: None }
        .into()
}

fn waiting(n: u64, attempt: u32) -> Event<'static> {
    TaskWaiting { task_id: id(n), attempt, actor: "agent".into(), reason: "permission".into() }.into()
}

fn resumed(n: u64, attempt: u32) -> Event<'static> {
    let (session_id, run_id) = (session(), run(u64::from(attempt)));
    let (actor, reason) = ("agent".into(), "continued".into());
    TaskResumed { task_id: id(n), attempt, session_id, run_id, actor, reason, ended: None }.into()
}

fn requeued(n: u64, attempt: u32) -> Event<'static> {
    let (actor, reason) = (actor::SCHEDULER.into(), "overloaded".into());
    TaskRequeued { task_id: id(n), attempt, actor, reason, delay_ms: 5_000, fresh: false }.into()
}

fn changed(n: u64) -> Event<'static> {
    TaskChanged { task_id: id(n), actor: "user:ada".into(), priority: Some(9), reason: None }.into()
}

fn ended(n: u64, attempt: u32, status: TaskStatus) -> Event<'static> {
    TaskEnded { task_id: id(n), attempt, status, actor: "agent".into(), reason: None }.into()
}

/// The stream after some records; each is taken in, or the test ends.
fn after(events: &[Event<'static>]) -> TasksState {
    let mut state = TasksState::default();
    for (index, event) in events.iter().enumerate() {
        let seq = index as u64 + 1;
        state.apply(seq, at(seq as i64), event).unwrap_or_else(|refused| panic!("{seq}: {refused}"));
    }
    state
}

#[test]
fn a_task_goes_through_its_statuses_and_leaves_when_it_has_ended() {
    let mut events = vec![created(1, spec()), claimed(1, 1), waiting(1, 1), resumed(1, 1)];
    let task = after(&events).get(id(1)).expect("open").clone();
    assert_eq!((task.status, task.attempt, task.transitions), (TaskStatus::Running, 1, 4));
    assert_eq!((task.session_id, task.run_id), (Some(session()), Some(run(1))));
    assert_eq!((task.created_at, task.started_at, task.updated_at), (at(1), Some(at(2)), at(4)));
    events.extend([requeued(1, 1), changed(1)]);
    let task = after(&events).get(id(1)).expect("open").clone();
    assert_eq!((task.status, task.not_before, task.priority), (TaskStatus::Pending, Some(at(10)), 9));
    assert_eq!(
        (task.wall_ms_at(at(100)), task.earlier_ms),
        (3_000, 3_000),
        "from its claim to its being queued again"
    );
    events.extend([claimed(1, 2), ended(1, 2, TaskStatus::Failed)]);
    let state = after(&events);
    assert!(state.is_empty() && state.get(id(1)).is_none());
    // Whoever brings it back says what it was.
    let was = task.to_ended(TaskStatus::Failed, Some("overloaded".into()), 8);
    let retried = TaskRetried {
        task_id: id(1),
        actor: "user:ada".into(),
        reason: "retried".into(),
        ended: Box::new(was),
        fresh: true,
        unmet: Vec::new(),
    };
    events.push(retried.into());
    let task = after(&events).get(id(1)).expect("open again").clone();
    assert_eq!((task.status, task.attempt, task.transitions), (TaskStatus::Pending, 1, 9));
    assert_eq!(task.last_end.as_deref(), Some("overloaded"));
    assert!(task.fresh && task.priority == 9 && task.created_at == at(1) && task.cancel.is_none());
}

/// Every record against a task that stands anywhere: what it comes to, or that it is refused.
#[test]
fn every_record_meets_every_status() {
    use TaskStatus::{Cancelled, Completed, Failed, Pending, Running, WaitingInput};
    let standing = |status| Some(Standing { status, attempt: 1, transitions: 5 });
    let all = [
        None,
        standing(Pending),
        standing(Running),
        standing(WaitingInput),
        standing(Completed),
        standing(Failed),
        standing(Cancelled),
    ];
    let back = |status| {
        let ended = after(&[created(1, spec())]).get(id(1)).expect("open").to_ended(status, None, 5);
        Box::new(ended)
    };
    let retried = |status| -> Event<'static> {
        let (actor, reason) = ("user:ada".into(), "retried".into());
        TaskRetried { task_id: id(1), actor, reason, ended: back(status), fresh: false, unmet: Vec::new() }
            .into()
    };
    // `.` is ignored, `!` refused; else the first letter of the status it comes to.
    for (event, expected) in [
        (created(1, spec()), "p!!!!!!"),
        (claimed(1, 2), "!r!!!!!"),
        (claimed(1, 1), "!!!!!!!"),
        (waiting(1, 1), "..ww..."),
        (waiting(1, 2), "......."),
        (resumed(1, 1), "..rr..."),
        (resumed(1, 2), "..rr..."),
        (resumed(1, 0), "......."),
        (requeued(1, 1), "..pp..."),
        (requeued(1, 2), "......."),
        (changed(1), "!prw!!!"),
        (ended(1, 1, Completed), ".ccc..."),
        (ended(1, 1, Failed), ".fff..."),
        (ended(1, 2, Failed), "......."),
        (ended(1, 1, Running), "!!!!!!!"),
        (retried(Failed), "p!!!!p!"),
        (retried(Cancelled), "p!!!!!p"),
        (retried(Completed), "!!!!!!!"),
    ] {
        let told: String = all
            .iter()
            .map(|before| match transition(*before, &event) {
                Ok(Transition::Ignored) => '.',
                Ok(Transition::Changed(now)) => now.status.as_str().chars().next().unwrap_or('?'),
                Err(_) => '!',
            })
            .collect();
        assert_eq!(told, expected, "{event:?}");
    }
}

#[test]
fn whoever_waits_for_a_task_learns_its_end() {
    use DependencyCondition::{Completed, Ended};
    let waits = |condition| TaskSpec { after: vec![Dependency { task_id: id(1), condition }], ..spec() };
    let queue = [created(1, spec()), created(2, waits(Completed)), created(3, waits(Ended))];
    let state = after(&queue);
    assert!(state.get(id(2)).expect("open").unmet.len() == 1);
    for (status, second_fails) in
        [(TaskStatus::Completed, false), (TaskStatus::Failed, true), (TaskStatus::Cancelled, true)]
    {
        let mut state = state.clone();
        state.apply(4, at(4), &ended(1, 0, status)).expect("it ends");
        let (second, third) = (state.get(id(2)).expect("open"), state.get(id(3)).expect("open"));
        assert!(second.unmet.is_empty() && third.unmet.is_empty());
        assert_eq!(second.failed_dependency, second_fails.then_some(id(1)), "{status:?}");
        assert_eq!((third.failed_dependency, third.eligible_at), (None, at(4)));
    }
    // Whoever leaves first is not waited with.
    let mut left = state.clone();
    left.apply(4, at(4), &ended(2, 0, TaskStatus::Cancelled)).expect("it ends");
    left.apply(5, at(5), &ended(1, 0, TaskStatus::Completed)).expect("it ends");
    assert_eq!(left.iter().map(|task| task.id).collect::<Vec<_>>(), [id(3)]);
    // What was met before it was asked for is not waited for.
    let met =
        TaskCreated { task_id: id(4), actor: "x".into(), task: Box::new(waits(Ended)), met: vec![id(1)] };
    let mut state = state;
    state.apply(4, at(4), &met.into()).expect("created");
    assert!(state.get(id(4)).expect("open").unmet.is_empty());
}

#[test]
fn a_refused_record_changes_nothing() {
    let before = after(&[created(1, spec()), claimed(1, 1)]);
    let other = Event::from(crate::event::SessionClosed { by: None, replaced_by: None });
    for event in [created(1, spec()), claimed(1, 2), claimed(2, 1), changed(2), other] {
        let mut state = before.clone();
        state.apply(3, at(3), &event).expect_err("refused");
        assert_eq!(state, before);
    }
    let mut state = before.clone();
    let newer = Event::read("task.teleported", r#"{"task_id":"task_1"}"#).expect("kept");
    state.apply(3, at(3), &newer).expect("a newer version wrote it");
    assert_eq!(state, before);
}

// I5: keys are bounded, and the oldest goes first.
#[test]
fn keys_are_found_until_there_are_too_many() {
    let keyed = |n: u64| TaskSpec { idempotency_key: Some(format!("key-{n} aa")), ..spec() };
    let mut state = after(&[created(1, keyed(1)), created(2, keyed(2))]);
    assert_eq!(state.request_like("key-2 bb"), Some(2), "whatever it was used for");
    assert_eq!(state.request_like("key-3 aa"), None);
    state.apply(3, at(3), &ended(1, 0, TaskStatus::Failed)).expect("ended");
    assert_eq!(state.request_like("key-1 aa"), Some(1), "of a task that has ended too");
    for n in 3..MAX_TASK_KEYS as u64 + 2 {
        state.add_key(crate::session::MessageKey::new(&format!("key-{n} aa"), n));
    }
    assert_eq!((state.request_like("key-1 aa"), state.request_like("key-2 aa")), (None, Some(2)));
}

#[test]
fn the_cache_says_all_of_the_state() {
    let waits = TaskSpec {
        after: vec![Dependency { task_id: id(1), condition: DependencyCondition::Completed }],
        idempotency_key: Some("key-1 aa".into()),
        ..spec()
    };
    let mut state = after(&[created(1, spec()), created(2, waits), claimed(1, 1)]);
    state.set_position(crate::chain::Position { last_seq: 3, log_offset: 900, last_hash: None });
    let text = serde_json::to_string(&state).expect("JSON");
    let mut again: TasksState = serde_json::from_str(&text).expect("read");
    assert_eq!((&again, again.request_like("key-1 aa")), (&state, Some(2)));
    again.apply(4, at(4), &ended(1, 1, TaskStatus::Completed)).expect("ended");
    assert!(again.get(id(2)).expect("open").unmet.is_empty(), "who waits for whom is known");
    let newer = text.replace("\"version\":1", "\"version\":2");
    assert!(serde_json::from_str::<TasksState>(&newer).is_err());
}

fn running() -> Task {
    Task::clone(after(&[created(1, spec()), claimed(1, 1)]).get(id(1)).expect("open"))
}

/// The run of the first attempt: whether its prompt reached an agent, and how many tools it called.
fn its_run(prompted: bool, tool_calls: u32) -> Run {
    let mut state = SessionState::empty(session());
    let created = r#"{"working_dir":"/work","provider":{"type":"exec","agent":null,"model":null}}"#;
    state.apply(1, at(1), &Event::read("session.created", created).expect("read")).expect("created");
    let started = RunStarted {
        run_id: run(1),
        boot_id: BootId::from_ulid(1),
        machine_boot: None,
        message_id: None,
        attempt: 1,
        continues: None,
        origin_run_id: None,
        task_id: Some(id(1)),
    };
    state.apply(2, at(2), &started.into()).expect("started");
    let mut run = state.run.expect("a run");
    assert_eq!(run.task_id, Some(id(1)));
    (run.prompted, run.tool_calls) = (prompted, tool_calls);
    run
}

fn told(draft: Option<Draft>) -> String {
    match draft.map(|draft| draft.event) {
        None => "nothing".into(),
        Some(Event::TaskEnded(ended)) => {
            format!("{} by {}: {}", ended.status.as_str(), ended.actor, ended.reason.unwrap_or_default())
        }
        Some(Event::TaskRequeued(requeued)) => {
            format!("requeued for {}", requeued.delay_ms)
        }
        Some(Event::TaskResumed(resumed)) => format!("resumed {}: {}", resumed.attempt, resumed.reason),
        Some(Event::TaskWaiting(waiting)) => format!("waiting: {}", waiting.reason),
        Some(other) => format!("{other:?}"),
    }
}

#[test]
fn the_end_of_a_run_is_the_end_of_its_task_or_of_an_attempt() {
    let done =
        || Event::from(RunCompleted { run_id: run(1), stop_reason: Some("end_turn".into()), usage: None });
    let failed = |error: &'static str| Event::from(RunFailed { run_id: run(1), error: error.into() });
    let cut = || Event::from(RunCancelled { run_id: run(1), by: Some("ada".into()) });
    let task = running();
    let wished = |status| {
        let mut task = running();
        let (actor, reason) = ("budget".into(), "budget: tokens".into());
        task.cancel = Some(TaskCancel { actor, reason, status });
        task
    };
    let repeatable = Task { spec: TaskSpec { repeatable: true, ..spec() }.into(), ..running() };
    let last = Task { attempt: 3, ..running() };
    let command = {
        let provider = Provider { profile: "exec".into(), ..Provider::default() };
        Task { spec: TaskSpec { provider, ..spec() }.into(), ..running() }
    };
    let (unsent, quiet, busy) = (its_run(false, 0), its_run(true, 0), its_run(true, 2));
    let follow = |task: &Task, run: &Run, event: Event<'static>| {
        let run = RunSoFar { run, has_begun: run.prompted };
        told(compose::with_run(task, run, session(), &event))
    };
    for (outcome, expected) in [
        (follow(&task, &busy, done()), "completed by agent: end_turn"),
        (follow(&wished(TaskStatus::Failed), &busy, done()), "completed by agent: end_turn"),
        (follow(&task, &busy, cut()), "cancelled by user:ada: its run was cancelled"),
        (follow(&wished(TaskStatus::Failed), &busy, cut()), "failed by budget: budget: tokens"),
        (follow(&wished(TaskStatus::Cancelled), &busy, cut()), "cancelled by budget: budget: tokens"),
        // An agent that was never told anything has done nothing.
        (follow(&task, &unsent, failed("no such program")), "requeued for 5000"),
        (follow(&last, &unsent, failed("no such program")), "failed by agent: no such program"),
        (follow(&wished(TaskStatus::Cancelled), &unsent, failed("x")), "cancelled by budget: budget: tokens"),
        (follow(&task, &quiet, failed("wrong key")), "failed by agent: wrong key"),
        (follow(&task, &quiet, failed("overloaded; retry after 60")), "requeued for 60000"),
        (follow(&task, &busy, failed("overloaded")), "failed by agent: overloaded"),
        // Nobody knows what a command has done.
        (follow(&command, &quiet, failed("overloaded")), "failed by agent: overloaded"),
        (follow(&command, &unsent, failed("no such program")), "requeued for 5000"),
        (follow(&repeatable, &busy, failed("overloaded")), "requeued for 5000"),
        (follow(&repeatable, &busy, failed("exit status 1")), "requeued for 5000"),
    ] {
        assert_eq!(outcome, expected);
    }
    // Another run of its session, and its own run in another session, are not its affair.
    let other = Event::from(RunCompleted { run_id: run(2), stop_reason: None, usage: None });
    assert_eq!(follow(&task, &busy, other), "nothing");
    let so_far = RunSoFar { run: &busy, has_begun: true };
    let elsewhere = compose::with_run(&task, so_far, SessionId::from_ulid(8), &done());
    assert_eq!(told(elsewhere), "nothing");
    let life = crate::compose::begin::Life { boot_id: BootId::from_ulid(2), machine_boot: None };
    let continued = crate::compose::begin::continuation(&busy, run(2), &life);
    assert_eq!(continued.task_id, Some(id(1)), "a continuation is the task's too");
    assert_eq!(follow(&task, &busy, continued.into()), "resumed 2: continued");
}

#[test]
fn a_task_catches_up_with_a_run_of_its_own_that_it_does_not_know_of() {
    let task = running();
    let later = |end| Run { run_id: run(2), attempt: 2, end, ..its_run(true, 1) };
    let told_of = |run: &Run| {
        let drafts = compose::catch_up(&task, session(), run);
        let mut state = after(&[created(1, spec()), claimed(1, 1)]);
        for (seq, draft) in (3..).zip(&drafts) {
            state.apply(seq, at(seq as i64), &draft.event).expect("it follows");
        }
        (drafts.into_iter().map(|draft| told(Some(draft))).collect::<Vec<_>>(), state.len())
    };
    assert_eq!(told_of(&its_run(true, 1)), (Vec::new(), 1), "it is known");
    assert_eq!(told_of(&Run { task_id: None, ..later(None) }), (Vec::new(), 1), "somebody else's");
    assert_eq!(told_of(&later(None)), (vec!["resumed 2: continued".into()], 1));
    for (end, expected) in [
        (End::Completed, "completed by agent: "),
        (End::Failed, "failed by agent: its run failed"),
        (End::Cancelled, "cancelled by agent: its run was cancelled"),
    ] {
        assert_eq!(told_of(&later(Some(end))), (vec!["resumed 2: continued".into(), expected.into()], 0));
    }
}

#[test]
fn a_session_says_where_its_task_stands() {
    use SessionStatus::{Idle, InterruptedAgent, InterruptedStartup, InterruptedWaiting, Running, Waiting};
    let missing = ["KEY".to_owned(), "URL".to_owned()];
    let facts = |status, held, waits_for| SessionFacts { status, held, waits_for, missing_env: &[] };
    let say = |facts: &SessionFacts<'_>| match task_status(facts) {
        None => "-".to_owned(),
        Some(Mapped { status, reason }) => format!("{} {}", status.as_str(), reason.unwrap_or_default()),
    };
    for (status, held, waits_for, expected) in [
        (Idle, None, None, "-"),
        (Running, None, None, "running "),
        (Waiting, None, Some(WaitKind::Permission), "waiting_input permission"),
        (Waiting, None, Some(WaitKind::Question), "waiting_input question"),
        (Waiting, None, Some(WaitKind::ToolResult), "waiting_input tool_result"),
        (Waiting, None, Some(WaitKind::External), "waiting_input external"),
        (Waiting, None, Some(WaitKind::Unknown), "waiting_input question"),
        (InterruptedStartup, None, None, "running interrupted: interrupted_startup"),
        (InterruptedAgent, None, None, "running interrupted: interrupted_agent"),
        (InterruptedWaiting, None, Some(WaitKind::Permission), "running interrupted: interrupted_waiting"),
        (InterruptedWaiting, Some(Held::Unanswered), Some(WaitKind::Permission), "waiting_input permission"),
        (InterruptedStartup, Some(Held::Asks), None, "waiting_input interrupted: interrupted_startup"),
        (InterruptedStartup, Some(Held::Uncertain), None, "waiting_input uncertain"),
        (InterruptedAgent, Some(Held::Command), None, "waiting_input uncertain"),
        (InterruptedStartup, Some(Held::NoEnvironment), None, "waiting_input env_missing"),
    ] {
        assert_eq!(say(&facts(status, held, waits_for)), expected);
    }
    for held in [Held::Never, Held::Budget, Held::TimedOut, Held::NoDirectory] {
        for status in [InterruptedStartup, InterruptedAgent, InterruptedWaiting] {
            let said = say(&facts(status, Some(held), None));
            assert!(said.starts_with("failed interrupted: ") && said.ends_with(held.words()), "{said}");
        }
    }
    // Variables that nobody has are named, whatever else there is; a session at rest needs none.
    for status in [Running, Waiting, InterruptedStartup] {
        let without =
            SessionFacts { missing_env: &missing, ..facts(status, Some(Held::NoEnvironment), None) };
        assert_eq!(say(&without), "waiting_input env_missing: KEY, URL");
    }
    assert_eq!(say(&SessionFacts { missing_env: &missing, ..facts(Idle, None, None) }), "-");
}

#[test]
fn a_task_follows_its_session_and_says_nothing_twice() {
    let mapped = |status, reason: Option<&str>| Mapped { status, reason: reason.map(str::to_owned) };
    let task = running();
    let waits = mapped(TaskStatus::WaitingInput, Some("permission"));
    assert_eq!(told(compose::follow_session(&task, &waits)), "waiting: permission");
    let waiting = Task { status: TaskStatus::WaitingInput, reason: Some("permission".into()), ..running() };
    assert_eq!(told(compose::follow_session(&waiting, &waits)), "nothing");
    assert_eq!(told(compose::follow_session(&waiting, &mapped(TaskStatus::Running, None))), "resumed 1: ");
    let told_why = Task { reason: Some("its turn".into()), ..running() };
    assert_eq!(told(compose::follow_session(&told_why, &mapped(TaskStatus::Running, None))), "nothing");
    let cut = mapped(TaskStatus::Running, Some("interrupted: x"));
    assert_eq!(told(compose::follow_session(&task, &cut)), "resumed 1: interrupted: x");
    let over = mapped(TaskStatus::Failed, Some("given up"));
    assert_eq!(told(compose::follow_session(&task, &over)), "failed by recovery: given up");
}

#[test]
fn a_pending_task_is_cancelled_at_once_and_a_running_one_when_its_run_has_ended() {
    let pending = Task::clone(after(&[created(1, spec())]).get(id(1)).expect("open"));
    for (task, records) in [(&pending, 2), (&running(), 1)] {
        let drafts = compose::cancel(task, "user:ada", "not needed", TaskStatus::Cancelled);
        assert_eq!(drafts.len(), records);
    }
    let mut state = after(&[created(1, spec()), claimed(1, 1)]);
    for (seq, draft) in
        compose::cancel(&running(), "user:ada", "no", TaskStatus::Cancelled).iter().enumerate()
    {
        state.apply(3 + seq as u64, at(3), &draft.event).expect("it follows");
    }
    for draft in compose::cancel(&running(), "budget", "budget", TaskStatus::Failed) {
        state.apply(4, at(4), &draft.event).expect("it follows");
    }
    let cancel = state.get(id(1)).expect("open").cancel.clone().expect("wished");
    assert_eq!(
        (cancel.actor.as_str(), cancel.status),
        ("user:ada", TaskStatus::Cancelled),
        "a person's stands"
    );
    let mut state = after(&[created(1, spec())]);
    for draft in compose::cancel(&pending, "user:ada", "no", TaskStatus::Cancelled) {
        state.apply(2, at(2), &draft.event).expect("it follows");
    }
    assert!(state.is_empty());
}

proptest! {
    /// Whatever records come, in whatever order: a number for each that counts, and nobody waits for a task that is not open.
    #[test]
    fn random_records_keep_the_state_whole(steps in prop::collection::vec((0_u8..9, 0_u64..4, 0_u32..3), 0..60)) {
        let mut state = TasksState::default();
        let mut counts = [0_u32; 4];
        for (seq, (kind, n, attempt)) in steps.into_iter().enumerate() {
            let seq = seq as u64 + 1;
            let waits = TaskSpec {
                after: vec![Dependency { task_id: id((n + 1) % 4), condition: DependencyCondition::Completed }],
                ..spec()
            };
            let event = match kind {
                0 => created(n, spec()),
                1 => created(n, waits),
                2 => claimed(n, attempt),
                3 => waiting(n, attempt),
                4 => resumed(n, attempt),
                5 => requeued(n, attempt),
                6 => changed(n),
                7 => ended(n, attempt, TaskStatus::Completed),
                _ => ended(n, attempt, TaskStatus::Failed),
            };
            let before = state.get(id(n)).map(|task| task.standing());
            let outcome = transition(before, &event);
            prop_assert_eq!(state.apply(seq, at(seq as i64), &event).is_ok(), outcome.is_ok());
            if let Ok(Transition::Changed(standing)) = outcome {
                let count = &mut counts[n as usize];
                *count = if before.is_none() { 1 } else { *count + 1 };
                prop_assert_eq!(standing.transitions, *count);
                prop_assert_eq!(state.get(id(n)).is_some(), !standing.status.is_ended());
            }
            let (pending, begun): (Vec<_>, Vec<_>) =
                state.iter().partition(|task| task.status == TaskStatus::Pending);
            prop_assert_eq!(state.begun().collect::<Vec<_>>(), begun);
            prop_assert_eq!(state.has_pending(), !pending.is_empty());
        }
        let text = serde_json::to_string(&state).expect("JSON");
        prop_assert_eq!(&serde_json::from_str::<TasksState>(&text).expect("read"), &state);
    }
}
