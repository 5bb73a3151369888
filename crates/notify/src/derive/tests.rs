//! What is told of records, in tables: a session or the stream of tasks as short records, and the notices that they make.

use std::sync::Arc;
use std::time::Duration;

use rekindle_domain::event::{CancelReason, Event, RunWaiting, TaskStatus};
use rekindle_domain::id::{RunId, SessionId, TaskId};
use rekindle_domain::line::Line;
use rekindle_domain::projector::HolderProof;
use rekindle_domain::session::SessionState;
use rekindle_domain::task::TasksState;
use rekindle_domain::time::Timestamp;

use super::*;
use crate::notice::NoticeKind;

/// Fields that a record has unless a case says otherwise.
const COMMON: &str = r#""run_id":"run_1","boot_id":"boot_1","wait_id":"wait_1","resume_token_id":"rt_1","wait_kind":"permission",
    "working_dir":"/repo","title":"tidy up","provider":{"type":"acp","agent":"claude"},"message_id":"msg_1","task_id":"task_1",
    "actor":"scheduler","attempt":1,"session_id":"sess_1""#;

/// Writes records as lines, a second apart.
fn lines(records: &[&str]) -> Vec<String> {
    let line = |(at, record): (usize, &&str)| {
        let (kind, fields) = record.split_once(' ').unwrap_or((record, ""));
        let own: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str(&format!("{{{fields}}}")).expect("fields");
        let common = serde_json::from_str::<serde_json::Map<_, _>>(&format!("{{{COMMON}}}")).expect("fields");
        let mut all: serde_json::Map<String, serde_json::Value> = common;
        // A run is of a task only where a case says so.
        if kind.starts_with("run.") {
            all.remove("task_id");
        }
        all.extend(own);
        all.insert("seq".into(), (at + 1).into());
        all.insert("ts".into(), second(at as i64 + 1).to_string().into());
        all.insert("kind".into(), kind.into());
        serde_json::Value::from(all).to_string()
    };
    records.iter().enumerate().map(line).collect()
}

fn second(at: i64) -> Timestamp {
    Timestamp::from_millis(1_771_668_000_000 + at * 1000)
}

fn session(lines: &[String]) -> SessionState {
    let mut state = SessionState::empty("sess_1".parse().expect("an id"));
    for text in lines {
        let line = Line::parse(text.as_bytes()).expect("a line");
        let event = line.event().expect("an event");
        state.apply(line.seq, line.time(), &event).unwrap_or_else(|error| panic!("{error}: {text}"));
        state.last_seq = line.seq;
    }
    state
}

/// What is known of earlier runs: the first was of a task, the second cancelled by a rule.
struct Earlier;

impl SessionLookup for Earlier {
    fn run(&self, run: RunId) -> RunFacts {
        match run.as_str() {
            "run_of_task" => RunFacts { task_id: Some("task_1".parse().expect("an id")), cancel: None },
            "run_too_late" => RunFacts { task_id: None, cancel: Some(CancelReason::Deadline) },
            _ => RunFacts::default(),
        }
    }

    fn question(&self, _: &RunWaiting<'_>) -> Option<String> {
        Some("may I\nwrite?".into())
    }

    fn last_words(&self) -> Option<String> {
        Some("words of before".into())
    }
}

fn told(derived: &[Derived]) -> Vec<String> {
    let text = |derived: &Derived| {
        let notice = &derived.notice;
        let task = notice.task_id.map(|task| format!(" {task}")).unwrap_or_default();
        let why = notice.reason.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
        let words = notice.last_words.as_ref().map(|words| format!(" \"{words}\"")).unwrap_or_default();
        let asked = notice.question.as_ref().map(|asked| format!(" ({})", asked.text)).unwrap_or_default();
        format!("{} {}{task}{why}{words}{asked}", notice.event_id, notice.kind.name())
    };
    derived.iter().map(text).collect()
}

/// Derives what is told of the records behind the first few.
fn told_of(records: &[&str], behind: usize) -> Vec<String> {
    let lines = lines(records);
    let state = session(&lines);
    let mut notices = SessionNotices::new(&state, &Earlier);
    lines[behind..].iter().for_each(|text| notices.push(&Line::parse(text.as_bytes()).expect("a line")));
    told(&notices.finish())
}

const BEGUN: [&str; 2] = ["session.created", "run.started"];
const TASK: [&str; 2] = ["session.created", r#"run.started "task_id":"task_1""#];

#[test]
fn a_session_tells_what_needs_or_interests_somebody_who_is_not_there() {
    let cut = r#"run.interrupted "reason":"agent_exit","detail":"signal 9""#;
    let cases: &[(&[&str], &[&str], &[&str])] = &[
        (&BEGUN, &[], &[]),
        (&BEGUN, &["run.waiting"], &["sess_1.3 waiting (may I write?)"]),
        (&BEGUN, &[r#"run.waiting "wait_kind":"external""#], &["sess_1.3 waiting (may I write?)"]),
        (&BEGUN, &[r#"run.waiting "wait_kind":"tool_result""#], &[]),
        (&BEGUN, &["run.waiting", r#"run.resumed "how":"answered""#], &["sess_1.3 waiting (may I write?)"]),
        (&BEGUN, &["run.completed"], &["sess_1.3 completed \"words of before\""]),
        (
            &BEGUN,
            &[r#"message.agent "content":"all\n done""#, r#"run.completed "stop_reason":"end_turn""#],
            &["sess_1.4 completed \"all done\""],
        ),
        (
            &BEGUN,
            &[r#"run.completed "stop_reason":"max_tokens""#],
            &["sess_1.3 completed: max_tokens \"words of before\""],
        ),
        (&BEGUN, &[r#"run.failed "error":"no\nroom""#], &["sess_1.3 failed: no room"]),
        (&BEGUN, &[cut], &["sess_1.3 interrupted: the agent's process ended (signal 9)"]),
        (
            &BEGUN,
            &[cut, r#"run.started "run_id":"run_2","continues":"run_1""#],
            &["sess_1.3 interrupted: the agent's process ended (signal 9)", "sess_1.4 resumed"],
        ),
        // Whoever cancels something knows that it ends.
        (&BEGUN, &[r#"run.cancel_requested "why":"user""#, "run.cancelled"], &[]),
        (&BEGUN, &[r#"run.cancel_requested "why":"stop_all""#, "run.cancelled"], &[]),
        (&BEGUN, &[r#"run.cancel_requested "why":"new_message""#, "run.cancelled"], &[]),
        // What a rule ends has failed.
        (
            &BEGUN,
            &[r#"run.cancel_requested "why":"deadline""#, "run.cancelled"],
            &["sess_1.4 failed: deadline"],
        ),
        (&BEGUN, &[r#"run.cancel_requested "why":"budget""#, "run.cancelled"], &["sess_1.4 failed: budget"]),
        (
            &BEGUN,
            &[r#"run.budget "scope":"session","part":"tokens","used":80.0,"limit":100.0,"exceeded":false"#],
            &["sess_1.3 budget: most of the tokens of the session is used: 80 of 100"],
        ),
        (
            &BEGUN,
            &[r#"run.budget "scope":"day","part":"cost","used":2.505,"limit":2.5,"exceeded":true"#],
            &["sess_1.3 budget: all of the cost of the day is used: 2.50 of 2.50"],
        ),
        // How the run of a task ends is told by the stream of tasks, and everything else here.
        (&TASK, &["run.completed"], &[]),
        (&TASK, &[r#"run.failed "error":"overloaded""#], &[]),
        (&TASK, &[r#"run.cancel_requested "why":"deadline""#, "run.cancelled"], &[]),
        (&TASK, &["run.waiting"], &["sess_1.3 waiting task_1 (may I write?)"]),
        (&TASK, &[cut], &["sess_1.3 interrupted task_1: the agent's process ended (signal 9)"]),
    ];
    for (before, new, expected) in cases {
        let records: Vec<&str> = before.iter().chain(*new).copied().collect();
        assert_eq!(told_of(&records, before.len()), *expected, "{new:?}");
        // It is the same however much is read at once.
        assert_eq!(told_of(&records, 0), *expected, "{new:?}");
    }
}

#[test]
fn a_run_that_is_not_the_latest_any_more_is_looked_up() {
    let id = |run: &str| format!("\"run_id\":\"{run}\"");
    let next = r#"run.started "run_id":"run_2""#;
    for (run, end, expected) in [
        ("run_of_task", "run.completed", &[][..]),
        ("run_by_hand", "run.completed", &["sess_1.3 completed"]),
        ("run_too_late", "run.cancelled", &["sess_1.3 failed: deadline"]),
        ("run_by_hand", "run.cancelled", &[]),
    ] {
        let started = format!("run.started {}", id(run));
        let ended = format!("{end} {}", id(run));
        assert_eq!(told_of(&["session.created", &started, &ended, next], 2), expected, "{run} {end}");
    }
}

struct Ended(Option<TasksState>);

impl TaskLookup for Ended {
    fn task(&self, id: TaskId) -> Option<EndedTaskFacts> {
        let task = self.0.as_ref()?.get(id)?;
        Some(EndedTaskFacts {
            task: Arc::unwrap_or_clone(task.clone()),
            ended: Some((TaskStatus::Failed, 1)),
        })
    }
}

const CREATED: &str =
    r#"task.created "task":{"title":"tidy up","prompt":"p","working_dir":"/repo","provider":{"type":"acp"}}"#;
const OTHER: &str = r#"task.created "task_id":"task_2","task":{"title":"other","prompt":"p","working_dir":"/repo","provider":{"type":"acp"}}"#;

fn told_of_tasks(records: &[&str], behind: usize) -> Vec<String> {
    let lines = lines(records);
    let mut state = TasksState::default();
    let mut before = None;
    for (at, text) in lines.iter().enumerate() {
        if at == behind {
            before = Some(state.clone());
        }
        let line = Line::parse(text.as_bytes()).expect("a line");
        let event: Event<'_> = line.event().expect("an event");
        state.apply(line.seq, line.time(), &event).unwrap_or_else(|error| panic!("{error}: {text}"));
    }
    let lookup = Ended(None);
    let mut notices = TaskNotices::new(before.unwrap_or_default(), &lookup);
    lines[behind..].iter().for_each(|text| notices.push(&Line::parse(text.as_bytes()).expect("a line")));
    told(&notices.finish(&state))
}

#[test]
fn tasks_tell_how_they_ended_and_when_nothing_is_left() {
    let requeued = r#"task.requeued "reason":"retry: overloaded","delay_ms":5"#;
    let completed = r#"task.ended "status":"completed","reason":"end_turn""#;
    let failed = r#"task.ended "status":"failed","reason":"it broke""#;
    let cancelled = r#"task.ended "status":"cancelled","reason":"cancelled""#;
    let empty = "tasks_home.3 queue_empty";
    let cases: &[(&[&str], &[&str])] = &[
        (&[CREATED], &[]),
        (&[CREATED, "task.claimed", completed], &["tasks_home.3 completed task_1", empty]),
        (&[CREATED, "task.claimed", failed], &["tasks_home.3 failed task_1: it broke", empty]),
        // A person ended it; that nothing is left is news all the same.
        (&[CREATED, "task.claimed", cancelled], &[empty]),
        // It is attempted again: it has not failed.
        (&[CREATED, "task.claimed", requeued], &[]),
        // The end of an attempt that is over ends nothing.
        (&[CREATED, "task.claimed", requeued, r#"task.claimed "attempt":2"#, failed], &[]),
        // Another one waits for its turn.
        (&[CREATED, OTHER, "task.claimed", completed], &["tasks_home.4 completed task_1"]),
        // Another waits for a person, who was told.
        (
            &[
                OTHER,
                r#"task.claimed "task_id":"task_2""#,
                r#"task.waiting "task_id":"task_2","reason":"question""#,
                CREATED,
                "task.claimed",
                completed,
            ],
            &["tasks_home.6 completed task_1", "tasks_home.6 queue_empty"],
        ),
        // What is asked is told by the session, which knows the question; that variables are missing only here.
        (&[CREATED, "task.claimed", r#"task.waiting "reason":"permission""#], &[]),
        (
            &[CREATED, "task.claimed", r#"task.waiting "reason":"env_missing: TOKEN""#],
            &["tasks_home.3 waiting task_1: env_missing: TOKEN"],
        ),
    ];
    for (records, expected) in cases {
        assert_eq!(told_of_tasks(records, 0), *expected, "{records:?}");
        assert_eq!(told_of_tasks(records, records.len() - 1), *expected, "{records:?}");
    }
}

#[test]
fn a_task_that_ended_before_anybody_looked_is_looked_up() {
    let all = lines(&[CREATED, "task.claimed", r#"task.ended "status":"failed","reason":"it broke""#]);
    let parse = |text: &String| -> TasksState {
        let mut state = TasksState::default();
        let line = Line::parse(text.as_bytes()).expect("a line");
        state.apply(line.seq, line.time(), &line.event().expect("an event")).expect("it follows");
        state
    };
    let lookup = Ended(Some(parse(&all[0])));
    let mut notices = TaskNotices::new(TasksState::default(), &lookup);
    notices.push(&Line::parse(all[2].as_bytes()).expect("a line"));
    let expected = ["tasks_home.3 failed task_1: it broke", "tasks_home.3 queue_empty"];
    assert_eq!(told(&notices.finish(&TasksState::default())), expected);
}

fn holds(records: &[&str], behind: usize, now: &[&str], holder: HolderProof) -> Vec<bool> {
    let lines = lines(records);
    let state = session(&lines);
    let mut notices = SessionNotices::new(&state, &Earlier);
    lines[behind..].iter().for_each(|text| notices.push(&Line::parse(text.as_bytes()).expect("a line")));
    let later: Vec<&str> = records.iter().chain(now).copied().collect();
    let later = session(&self::lines(&later));
    let standing = Standing { session: Some((&later, holder)), tasks: None };
    notices.finish().iter().map(|derived| still_holds(&derived.notice, &standing)).collect()
}

#[test]
fn what_is_not_so_any_more_when_it_has_settled_is_not_told() {
    use HolderProof::{Gone, Lock};
    let ask: Vec<&str> = BEGUN.into_iter().chain(["run.waiting"]).collect();
    assert_eq!(holds(&ask, 2, &[], Lock), [true]);
    assert_eq!(holds(&ask, 2, &[r#"run.resumed "how":"answered""#], Lock), [false], "answered");
    assert_eq!(holds(&ask, 2, &[], Gone), [false], "whoever asked is gone");
    let cut: Vec<&str> = BEGUN.into_iter().chain([r#"run.interrupted "reason":"agent_exit""#]).collect();
    assert_eq!(holds(&cut, 2, &[], Gone), [true]);
    let goes_on = r#"run.started "run_id":"run_2","continues":"run_1""#;
    assert_eq!(holds(&cut, 2, &[goes_on], Lock), [false], "it goes on by itself");
    let done: Vec<&str> = BEGUN.into_iter().chain(["run.completed"]).collect();
    assert_eq!(holds(&done, 2, &[r#"run.started "run_id":"run_2""#], Lock), [true], "what happened stays so");
}

fn watched(state: &SessionState, rules: &ClockRules, watch: &mut ClockWatch, at: i64) -> Vec<NoticeKind> {
    clock_notices(state, rules, watch, second(at)).iter().map(|notice| notice.kind).collect()
}

#[test]
fn the_clock_tells_of_a_stall_once_and_of_progress_now_and_then() {
    let rules =
        ClockRules { stall_after: Some(Duration::from_secs(60)), progress_every: Duration::from_secs(900) };
    let mut state = session(&lines(&BEGUN));
    let mut watch = ClockWatch::default();
    // The run began in second 2.
    assert_eq!(next_clock_notice(&state, &rules, &watch), Some(second(62)));
    assert_eq!(watched(&state, &rules, &mut watch, 61), []);
    assert_eq!(watched(&state, &rules, &mut watch, 62), [NoticeKind::Stalled]);
    assert_eq!(watched(&state, &rules, &mut watch, 1000), [], "once, and there is no progress");
    assert_eq!(next_clock_notice(&state, &rules, &watch), None);

    let launching =
        Line::parse(br#"{"seq":3,"ts":"","kind":"agent.launching","holder_id":"h_1","sha256":"0"}"#)
            .expect("a line")
            .event()
            .expect("an event");
    state.apply(3, second(3), &launching).expect("it follows");
    state.agent.as_mut().expect("an agent").last_output_at = Some(second(100));
    assert_eq!(watched(&state, &rules, &mut watch, 901), [NoticeKind::Stalled], "another one");
    assert_eq!(watched(&state, &rules, &mut watch, 902), [NoticeKind::Progress]);
    assert_eq!(watched(&state, &rules, &mut watch, 5000), [], "no sign of life since");
    state.agent.as_mut().expect("an agent").last_output_at = Some(second(903));
    assert_eq!(watched(&state, &rules, &mut watch, 1801), [NoticeKind::Stalled]);
    assert_eq!(watched(&state, &rules, &mut watch, 1802), [NoticeKind::Progress]);

    let asked: Vec<&str> = BEGUN.into_iter().chain(["run.waiting"]).collect();
    let waiting = session(&lines(&asked));
    assert_eq!(watched(&waiting, &rules, &mut ClockWatch::default(), 5000), [], "it waits for a person");
    let ended: Vec<&str> = BEGUN.into_iter().chain(["run.completed"]).collect();
    assert_eq!(watched(&session(&lines(&ended)), &rules, &mut ClockWatch::default(), 5000), []);
}

#[test]
fn an_event_is_named_by_its_stream_and_record() {
    let session: SessionId = "sess_7".parse().expect("an id");
    assert_eq!(event_id(session.into(), 12), "sess_7.12");
    assert_eq!(event_id(StreamId::tasks(), 3), "tasks_home.3");
}

/// What is told of a pipeline run: its end, and that it needs a person; what a person did themselves is not.
#[test]
fn a_run_tells_of_its_end_and_of_what_it_waits_for() {
    let config = r#"{"tasks":[{"id":"T-1","goal":"Make it so\nand well"}],"pipelines":{"default":{"stages":[{"name":"implement","agent":"a"}]}}}"#;
    let told = |on_cut: &str, record: &str| {
        let tree = rekindle_domain::blob_id::BlobId::of(b"tree");
        let started = format!(
            r#"pipeline.started "pipeline":"default","config":{config},"config_hash":"{tree}","task":{{"id":"T-1","goal":"Make it so\nand well"}},
            "snapshot_id":"snap-1","tree":"{tree}","origin":"/repo","by":"user:ada"{on_cut}"#
        );
        let expected = format!(r#""expected":"{tree}","found":"{tree}""#);
        let lines = lines(&[&started, &record.replace("TREES", &expected)]);
        let run = rekindle_domain::id::PipelineId::from_ulid(7);
        let mut state = rekindle_domain::pipeline::PipelineState::empty(run);
        let first = Line::parse(lines[0].as_bytes()).expect("a line");
        state.apply(first.time(), &first.event().expect("an event")).expect("a start");
        let line = Line::parse(lines[1].as_bytes()).expect("a line");
        line.event().expect("an event");
        let started = state.started.as_deref().expect("it was started");
        let notice = pipeline_notice(run, started, &line)?.notice;
        assert_eq!((notice.title.as_str(), notice.directory.as_deref()), ("T-1: Make it so", Some("/repo")));
        assert_eq!((pipeline_of(&notice), notice.task_id), (Some(run), Some(TaskId::from_ulid(7))));
        Some((notice.kind, notice.reason.unwrap_or_default()))
    };
    let cut = |attempt: u32, reason: &str| {
        format!(
            r#"step.interrupted "step_id":"implement-1","attempt":{attempt},"reason":"{reason}","died_at":null,"tree":null"#
        )
    };
    let asks = r#","on_cut":"ask""#;
    let resumes = "it continues when it is resumed";
    for (on_cut, record, expected) in [
        ("", "pipeline.completed".to_owned(), Some((NoticeKind::Completed, String::new()))),
        (
            "",
            r#"pipeline.failed "reason":"it will not do""#.into(),
            Some((NoticeKind::Failed, "it will not do".into())),
        ),
        ("", r#"pipeline.aborted "by":"user:ada""#.into(), None),
        ("", cut(1, "agent_gone"), None),
        ("", cut(1, "cancelled"), None),
        (asks, cut(1, "cancelled"), None),
        (
            asks,
            cut(1, "agent_gone"),
            Some((NoticeKind::Waiting, format!("implement-1 was interrupted: {resumes}"))),
        ),
        (
            "",
            cut(3, "agent_gone"),
            Some((NoticeKind::Waiting, format!("implement-1 was interrupted 3 times: {resumes}"))),
        ),
        (
            "",
            r#"pipeline.drift "step_id":"implement-1",TREES,"decision":"stop""#.into(),
            Some((NoticeKind::Waiting, "files are not as implement-1 expects them".into())),
        ),
        ("", r#"pipeline.drift "step_id":"implement-1",TREES,"decision":"accept""#.into(), None),
        (
            "",
            r#"pipeline.budget "scope":"run","part":"cost","used":4.1,"limit":5.0,"exceeded":false"#.into(),
            Some((NoticeKind::Budget, "most of the cost of the run is used: 4.10 of 5".into())),
        ),
    ] {
        assert_eq!(told(on_cut, &record), expected, "{record}");
    }
}
