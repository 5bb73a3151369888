//! What the fold keeps of each event: the queue, waits, tools, the agent, the run and its interruption.

use super::*;
use crate::budget::Used;
use crate::event::CancelReason;
use crate::time::Now;

fn state(appends: &[&str]) -> SessionState {
    Log::of(appends).replay.state
}

fn run(appends: &[&str]) -> Run {
    state(appends).run.expect("a run")
}

/// Checks which prompts wait for their turn.
fn check_queue(appends: &[&str], expected: &[&str]) {
    let queue = state(appends).queue;
    assert_eq!(queue.iter().map(MessageId::as_str).collect::<Vec<_>>(), expected, "{appends:?}");
}

/// Checks which waits of the latest run are kept, open or void.
fn check_waits(appends: &[&str], expected: &[(&str, u64)]) {
    let waits = state(appends).run.map_or(Vec::new(), |run| run.waits);
    let found: Vec<_> = waits.iter().map(|wait| (wait.wait_id.as_str(), wait.since_seq)).collect();
    assert_eq!(found, expected, "{appends:?}");
}

/// Checks which tool calls are begun and not ended.
fn check_tools(events: &[&str], expected: &[(&str, &str)]) {
    let tools = run(&[&[STARTED], events].concat()).tools;
    let found: Vec<_> = tools.iter().map(|tool| (tool.tool_call_id.as_str(), tool.title.as_str())).collect();
    assert_eq!(found, expected, "{events:?}");
}

// I13: a user's stop takes every queued prompt with it; a new message only those it names.
#[test]
fn queued_prompts_leave_by_their_turn_or_by_a_cancel() {
    let three =
        "message.user msg=2 queued=true; message.user msg=3 queued=true; message.user msg=4 queued=true";
    for (last, expected) in [
        ("message.user msg=5", &["msg_2", "msg_3", "msg_4"][..]),
        ("message.user msg=5 queued=true", &["msg_2", "msg_3", "msg_4", "msg_5"]),
        ("run.cancel_requested", &[]),
        ("run.cancel_requested why=stop_all", &[]),
        ("run.cancel_requested why=stop_all dropped=[\"msg_2\"]", &[]),
        ("run.cancel_requested why=new_message", &["msg_2", "msg_3", "msg_4"]),
        ("run.cancel_requested why=new_message dropped=[\"msg_2\",\"msg_4\",\"msg_9\"]", &["msg_3"]),
        ("run.cancel_requested why=wait_timeout dropped=[\"msg_3\"]", &["msg_2", "msg_4"]),
        ("run.cancel_requested why=of_a_newer_version dropped=[\"msg_3\"]", &["msg_2", "msg_4"]),
        ("run.completed; run.started run=2 msg=3", &["msg_2", "msg_4"]),
        ("run.completed; run.started run=2", &["msg_2", "msg_3", "msg_4"]),
        ("run.completed; run.cancel_requested run=null", &[]),
        ("run.interrupted; run.cancel_requested", &[]),
    ] {
        check_queue(&[STARTED, three, last], expected);
    }
}

#[test]
fn the_queue_is_bounded_and_a_prompt_at_its_turn_is_not_queued() {
    let queued: Vec<String> =
        (2..2 + MAX_QUEUED).map(|n| format!("message.user msg={n} queued=true")).collect();
    let mut appends = vec![STARTED];
    appends.extend(queued.iter().map(String::as_str));
    check(&appends[..MAX_QUEUED], "message.user msg=x queued=true", "");
    check(&appends, "message.user msg=x queued=true", "64 prompts are queued already");
    check(&appends, "message.user msg=x", "");
    appends.push("run.cancel_requested");
    check(&appends, "message.user msg=x queued=true", "");
}

// I13: once a user wanted the end, no later reason takes that back.
#[test]
fn the_cancel_of_a_run_is_kept_and_a_users_is_not_replaced() {
    let asked = |why: &str| format!("run.cancel_requested why={why}");
    for (first, second, expected) in [
        ("user", None, CancelReason::User),
        ("wait_timeout", None, CancelReason::WaitTimeout),
        ("new_message", Some("user"), CancelReason::User),
        ("wait_timeout", Some("stop_all"), CancelReason::StopAll),
        ("wait_timeout", Some("new_message"), CancelReason::NewMessage),
        ("user", Some("wait_timeout"), CancelReason::User),
        ("user", Some("new_message"), CancelReason::User),
        ("stop_all", Some("wait_timeout"), CancelReason::StopAll),
    ] {
        let mut log = Log::of(&[STARTED, &asked(first)]);
        second.into_iter().for_each(|why| log.append(&asked(why)));
        let found = log.replay.state.run.and_then(|run| run.cancel);
        assert_eq!(found, Some(expected), "{first}, then {second:?}");
    }
    assert_eq!(run(&[STARTED]).cancel, None);
    assert_eq!(run(&[STARTED, CUT, "run.cancel_requested"]).cancel, Some(CancelReason::User));
    assert_eq!(run(&[STARTED, "run.cancel_requested", CUT]).cancel, Some(CancelReason::User));
    assert_eq!(
        run(&[STARTED, "run.cancel_requested", "run.adopted boot=b"]).cancel,
        Some(CancelReason::User)
    );
    assert_eq!(run(&[STARTED, CUT, "run.cancel_requested", "run.started run=2"]).cancel, None);
}

#[test]
fn void_waits_stay_listed_until_the_next_run() {
    let both = "run.waiting; run.waiting wait=2";
    let two = &[("wait_1", 4), ("wait_2", 5)][..];
    for (last, expected) in [
        (&[][..], two),
        (&["run.resumed"], &two[1..]),
        (&["run.resumed wait=2"], &two[..1]),
        (&["run.resumed", "run.waiting"], &[("wait_2", 5), ("wait_1", 7)]),
        (&[CUT], two),
        (&[CUT, "run.cancel_requested", "session.closed"], two),
        (&["run.resumed", CUT], &two[1..]),
        (&[CUT, "run.started run=2"], &[]),
        (&["run.completed"], &[]),
        (&["run.failed"], &[]),
        (&["run.cancelled"], &[]),
        (&["run.adopted boot=b"], two),
    ] {
        check_waits(&[&[STARTED, both], last].concat(), expected);
    }
    assert!(state(&[STARTED, both, CUT]).has_waits());
    assert!(!state(&[STARTED, CUT]).has_waits());
    let wait = run(&[STARTED, "run.waiting wait_kind=question deadline=60"]).waits.remove(0);
    assert_eq!(
        (wait.kind, wait.since, wait.deadline_at),
        (crate::event::WaitKind::Question, at(4), Some(at(60)))
    );
    assert_eq!(wait.resume_token_id.as_str(), "rt_1");
}

#[test]
fn tools_are_open_from_their_call_to_their_end() {
    let open = &[("tool_1", "a")][..];
    for (events, expected) in [
        (&["tool.call title=a"][..], open),
        (&["tool.call title=a status=in_progress"], open),
        (&["tool.call title=a", "tool.call tool=2 title=b"], &[("tool_1", "a"), ("tool_2", "b")]),
        (&["tool.call title=x", "tool.call title=a"], open),
        (&["tool.call title=x", "tool.update title=a"], open),
        (&["tool.call title=a", "tool.update title=null status=in_progress"], open),
        (&["tool.call title=a", "tool.update tool=2 title=b"], open),
        (&["tool.call status=completed"], &[]),
        (&["tool.call", "tool.call status=failed"], &[]),
        (&["tool.call", "tool.update status=completed"], &[]),
        (&["tool.call", "tool.update status=failed"], &[]),
        (&["tool.call", "tool.update status=cancelled"], &[]),
        (&["tool.call title=a", "tool.call tool=2", "tool.update tool=2 status=completed"], open),
        (&["tool.update title=b"], &[]),
        (&["tool.call", CUT], &[]),
        (&["tool.call", "run.completed", "tool.call tool=2"], &[]),
        (&["tool.call", "run.completed", "run.started run=2"], &[]),
    ] {
        check_tools(events, expected);
    }
    let calls: Vec<String> = (0..300).map(|n| format!("tool.call tool={n}")).collect();
    let mut log = Log::of(&[STARTED]);
    calls.iter().for_each(|call| log.append(call));
    assert_eq!(log.replay.state.run.expect("a run").tools.len(), 256, "an agent cannot fill the snapshot");
}

#[test]
fn a_launch_keeps_what_was_learnt_of_the_conversation_and_nothing_of_the_process() {
    let ready = "agent.ready cursor=c1 info={\"name\":\"x\"} capabilities={\"load\":true}";
    let before = &["session.created", AGENT, ready, "message.agent src=7", "agent.exited"][..];
    let agent = state(before).agent.expect("launched");
    assert_eq!(agent.journal, Journal { seq: 7, n: 0, low: 8 });
    assert!(
        agent.process.is_some() && agent.exited && agent.last_output_at.is_some() && agent.input_seq == 1
    );

    let relaunched = [before, &["agent.launching holder=2"]].concat();
    let agent = state(&relaunched).agent.expect("launched");
    let raw = |value: &Option<Box<RawValue>>| value.as_ref().map(|raw| raw.get().to_owned());
    assert_eq!((agent.holder_id.as_str(), agent.cursor.as_deref()), ("h_2", Some("c1")));
    assert_eq!(raw(&agent.info).as_deref(), Some(r#"{"name":"x"}"#));
    assert_eq!(raw(&agent.capabilities).as_deref(), Some(r#"{"load":true}"#));
    assert_eq!((agent.journal, agent.last_output_at, agent.input_seq), (Journal::default(), None, 0));
    assert_eq!((agent.process, agent.exited), (None, false));

    // A late word of the old holder is not the new one's, and a new conversation has a new cursor.
    let late = [&relaunched[..], &["message.agent src=9"]].concat();
    assert_eq!(state(&late).agent.expect("launched").journal, Journal::default());
    let fresh = [&relaunched[..], &["agent.ready holder=2 cursor=c2"]].concat();
    assert_eq!(state(&fresh).agent.expect("launched").cursor.as_deref(), Some("c2"));
}

#[test]
fn a_prompt_counts_for_the_open_run_only() {
    assert!(run(&[STARTED, AGENT]).prompted);
    assert!(!run(&[STARTED, "agent.launching", "input.queued input_seq=1 what=setup"]).prompted);
    assert!(!run(&[STARTED, "run.completed", AGENT]).prompted);
    assert!(!run(&[STARTED, AGENT, "run.completed", "run.started run=2"]).prompted);
}

#[test]
fn a_run_keeps_its_origin_its_boot_and_the_one_end_it_had() {
    let first = run(&["session.created", "run.started machine_boot=m9 msg=7"]);
    assert_eq!((first.attempt, first.origin_run_id, first.continues), (1, first.run_id, None));
    assert_eq!(
        (first.machine_boot.as_deref(), first.message_id.map(|id| id.to_string())),
        (Some("m9"), Some("msg_7".into()))
    );
    assert_eq!((first.started_at, first.ended_at, first.end), (at(2), None, None));
    let second = run(&[STARTED, CUT, "run.started run=2 boot=b attempt=2 continues=1 origin=1"]);
    assert_eq!(
        (second.attempt, second.continues, second.origin_run_id),
        (2, Some(first.run_id), first.run_id)
    );
    let adopted = state(&[STARTED, "run.adopted boot=b"]);
    assert_eq!(adopted.recovery.last_boot_seen, "boot_b".parse().ok());
    assert_eq!(adopted.run.map(|run| run.boot_id), "boot_b".parse().ok());

    let reason = InterruptReason::HolderLost;
    for (end, expected) in [
        ("run.completed", End::Completed),
        ("run.failed", End::Failed),
        ("run.cancelled", End::Cancelled),
        ("run.interrupted reason=holder_lost", End::Interrupted { reason, waiting: false }),
        ("run.waiting; run.interrupted reason=holder_lost", End::Interrupted { reason, waiting: true }),
        (
            "run.waiting; run.resumed; run.interrupted reason=holder_lost",
            End::Interrupted { reason, waiting: false },
        ),
    ] {
        let records = 3 + end.split(';').count();
        let run = run(&[STARTED, end]);
        assert_eq!((run.end, run.ended_at), (Some(expected), Some(at(records as i64))), "{end}");
    }
}

#[test]
fn an_interruption_is_remembered_until_the_next_run() {
    let cut =
        "run.interrupted reason=machine_restart uncertain_turn=true uncertain=[{\"tool_call_id\":\"t\"}]";
    let found = state(&[STARTED, cut, "run.cancel_requested"]).recovery.interruption.expect("remembered");
    assert_eq!(
        (found.run_id.as_str(), found.reason, found.at),
        ("run_1", InterruptReason::MachineRestart, at(4))
    );
    assert_eq!((found.uncertain.len(), found.uncertain_turn), (1, true));
    assert_eq!(state(&[STARTED, cut, "run.started run=2"]).recovery.interruption, None);
    assert_eq!(state(&[STARTED, "run.completed"]).recovery.interruption, None);
}

#[test]
fn properties_and_totals_change_only_where_a_record_names_them() {
    let created =
        "session.created title=one env_names=[\"PATH\"] options={\"resume\":\"never\",\"mode\":\"x\"}";
    let one = state(&[created, "session.updated title=null"]);
    assert_eq!((one.title.as_str(), one.working_dir.as_str(), one.created_at), ("one", "/repo", at(1)));
    assert_eq!(one.env_names, ["PATH"]);
    let two =
        state(&[created, "session.updated title=two provider={\"type\":\"exec\"} env_names=[] options={}"]);
    assert_eq!((two.title.as_str(), two.provider.profile.as_str(), two.env_names.len()), ("two", "exec", 0));
    assert_eq!((one.options.mode.as_deref(), two.options), (Some("x"), Options::default()));

    let told = "usage.updated input_tokens=5 output_tokens=7 cost=0.5";
    check_usage(&[STARTED, told], (5, 7, Some(0.5)));
    check_usage(&[STARTED, told, "usage.updated input_tokens=6"], (6, 0, Some(0.5)));
    check_usage(&[STARTED, told, "run.completed"], (5, 7, Some(0.5)));
    let last = "run.completed usage={\"input_tokens\":9,\"output_tokens\":9}";
    // A cost that the last word leaves out is not forgotten.
    check_usage(&[STARTED, told, last], (9, 9, Some(0.5)));
}

/// Checks tokens read, tokens written and the cost.
// I6: an attempt that continues another shares its budget.
#[test]
fn a_run_has_used_what_all_attempts_at_it_have_and_nothing_of_the_runs_before() {
    let used = |appends: &[&str]| {
        let state = state(appends);
        let now = Now { wall: state.updated_at, steady: state.updated_at };
        let part = |used: Used| (used.tokens, used.cost, used.turns);
        (part(state.used(&now)), part(state.used_by_run(&now)))
    };
    let told = "usage.updated input_tokens=5 output_tokens=7 cost=0.5";
    assert_eq!(used(&[STARTED]), ((None, None, 1), (None, None, 1)));
    let once = (Some(12), Some(0.5), 1);
    assert_eq!(used(&[STARTED, told]), (once, once));
    let next = "run.started run=2";
    let twice =
        [STARTED, told, "run.completed", next, "usage.updated input_tokens=3 output_tokens=0 cost=0.75"];
    assert_eq!(used(&twice), ((Some(15), Some(0.75), 2), (Some(3), Some(0.25), 1)));
    let again = "run.started run=2 boot=b attempt=2 continues=1 origin=1";
    assert_eq!(used(&[STARTED, told, CUT, again]), ((Some(12), Some(0.5), 2), (Some(12), Some(0.5), 2)));
}

fn check_usage(appends: &[&str], expected: (u64, u64, Option<f64>)) {
    let usage = state(appends).usage.shown();
    assert_eq!((usage.input_tokens, usage.output_tokens, usage.cost), expected, "{appends:?}");
}

#[test]
fn tokens_are_added_up_over_runs_and_counted_once_in_each() {
    let told = "usage.updated input_tokens=1000 output_tokens=10";
    let ended = "run.completed usage={\"input_tokens\":1000,\"output_tokens\":10}";
    let second = "run.started run=2";
    let ended_second = "run.completed run=2 usage={\"input_tokens\":1000,\"output_tokens\":10}";
    check_usage(&[STARTED, told, ended], (1000, 10, None));
    check_usage(&[STARTED, told, ended, second, told, ended_second], (2000, 20, None));
    // A report of the cost alone says nothing of tokens.
    check_usage(&[STARTED, told, ended, second, "usage.updated cost=0.5"], (1000, 10, Some(0.5)));
    // A turn that was cancelled or failed has used what it has used.
    check_usage(
        &[STARTED, told, "run.cancelled", second, told, "run.failed run=2 error=e"],
        (2000, 20, None),
    );
    let third = "run.started run=3";
    let ended_third = "run.completed run=3 usage={\"input_tokens\":1000,\"output_tokens\":10}";
    check_usage(&[STARTED, told, ended, second, ended_second, third, told, ended_third], (3000, 30, None));
}

#[test]
fn cost_is_added_up_over_agent_sessions_and_never_falls() {
    let first = &[STARTED, "agent.launching", "agent.ready cursor=a", "usage.updated cost=0.5"][..];
    let then = |more: &[&'static str]| [first, more].concat();
    check_usage(&then(&["usage.updated cost=0.75"]), (0, 0, Some(0.75)));
    check_usage(&then(&["usage.updated cost=0.25"]), (0, 0, Some(0.5)));
    check_usage(&then(&["usage.updated cost=-1", "usage.updated cost=0.5"]), (0, 0, Some(0.5)));
    let other = &["agent.launching holder=2", "agent.ready holder=2 cursor=b"][..];
    check_usage(&then(other), (0, 0, Some(0.5)));
    check_usage(&then(&[other, &["usage.updated cost=0.25"]].concat()), (0, 0, Some(0.75)));
    check_usage(
        &then(&[other, &["usage.updated cost=0.25", "usage.updated cost=1"]].concat()),
        (0, 0, Some(1.5)),
    );
    // The same session, brought back by another process: some go on counting, some begin again.
    let same = &["agent.launching holder=2", "agent.ready holder=2 cursor=a"][..];
    check_usage(&then(&[same, &["usage.updated cost=0.75"]].concat()), (0, 0, Some(0.75)));
    let again = [same, &["usage.updated cost=0.25", "usage.updated cost=0.5"]].concat();
    check_usage(&then(&again), (0, 0, Some(1.0)));
    // Without a session of its own every process is another one.
    let nameless = &["agent.launching holder=2", "agent.ready holder=2", "usage.updated cost=0.5"][..];
    check_usage(&then(nameless), (0, 0, Some(1.0)));
}

#[test]
fn how_full_the_context_is_stands_beside_the_totals() {
    let told = r#"usage.updated cost=0.5 raw={"sessionUpdate":"usage_update","used":53000,"size":200000}"#;
    let context = |appends: &[&str]| state(appends).usage.shown().context;
    let expected = Some(Context { used: 53_000, size: 200_000 });
    assert_eq!(context(&[STARTED, told]), expected);
    assert_eq!(context(&[STARTED, told, r#"usage.updated raw={"inputTokens":7}"#]), expected);
    let other = ["agent.launching", "agent.ready cursor=b"];
    assert_eq!(context(&[STARTED, told, other[0], other[1]]), None, "another conversation");
    let usage = state(&[STARTED, told]).usage;
    assert_eq!(usage.shown().input_tokens, 0, "what is in the context was not used once more");
    let kept: SessionUsage =
        serde_json::from_value(serde_json::to_value(usage).expect("JSON")).expect("read back");
    assert_eq!(kept, usage);
}

#[test]
fn a_boot_has_something_to_do_while_anything_is_open() {
    for (appends, expected) in [
        (&["session.created"][..], false),
        (&[STARTED], true),
        (&[STARTED, "run.completed"], false),
        (&[STARTED, CUT], true),
        (&["session.created", "message.user queued=true"], true),
        (&["session.created", "agent.launching"], true),
        (&["session.created", "agent.launching", "agent.exited"], false),
        (&["session.created; session.deleted"], true),
        (&[STARTED, "run.checkpoint at=start", "run.completed"], true),
        (&[STARTED, "run.checkpoint at=start", "run.completed", "run.checkpoint at=end"], false),
    ] {
        assert_eq!(state(appends).is_unfinished(), expected, "{appends:?}");
    }
}

#[test]
fn the_state_knows_whether_there_were_tokens() {
    for (appends, expected) in [
        (&[STARTED, AGENT][..], 0),
        (&[STARTED, WAIT], 1),
        (&[STARTED, WAIT, "token.consumed; run.resumed"], 2),
        (&[STARTED, WAIT, "token.minted token=2", "token.revoked token=2", "token.expired"], 4),
    ] {
        assert_eq!(state(appends).token_records, expected, "{appends:?}");
    }
}

/// Returns the state after one more record, read 1000 seconds after the log began and long after it happened.
fn read_late(record: &str) -> SessionState {
    let mut log = Log::of(&[STARTED, "agent.launching"]);
    log.record(draft(record), at(1000), false);
    assert_eq!(log.replay.oddities, [], "{record}");
    log.replay.state
}

#[test]
fn what_ended_while_nobody_was_there_ended_at_the_time_of_the_journal() {
    for ended in ["run.completed", "run.failed error=e", "run.cancelled", "run.interrupted"] {
        let state = read_late(&format!("{ended} src=5 at=7"));
        assert_eq!(state.run.as_ref().and_then(|run| run.ended_at), Some(at(7)), "{ended}");
        assert_eq!(state.agent.and_then(|agent| agent.last_output_at), Some(at(7)), "{ended}");
        assert_eq!(state.updated_at, at(1000), "whether a clock was set back is told by times of writing");
        assert!(state.recovery.interruption.is_none_or(|cut| cut.at == at(7)), "{ended}");
    }
    assert_eq!(read_late("run.waiting src=5 at=7").run.expect("a run").waits[0].since, at(7));
}

#[test]
fn a_journal_whose_clock_was_set_does_not_make_nonsense() {
    // The run began at second 3; the record is written at second 1000.
    for (journal, expected) in
        [("at=2", 1000), ("at=0", 1000), ("at=1001", 1000), ("at=1000", 1000), ("at=3", 3)]
    {
        let run = read_late(&format!("run.completed src=5 {journal}")).run.expect("a run");
        assert_eq!(run.ended_at, Some(at(expected)), "{journal}");
    }
    let run = read_late("run.completed at=7").run.expect("a run");
    assert_eq!(run.ended_at, Some(at(1000)), "only what is derived from a journal has its time");
}

#[test]
fn a_run_keeps_its_drift_in_brief() {
    let files: Vec<String> =
        (0..30).map(|number| format!(r#"{{"path":"{number}","change":"added"}}"#)).collect();
    let drift = format!(r#"run.drift agent=null files={{"total":30,"first":[{}]}}"#, files.join(","));
    let kept = run(&[STARTED, &drift]).drift.expect("kept");
    let files = kept.files.expect("files");
    assert_eq!((files.total, files.first.len()), (30, 10));
    assert_eq!(run(&[STARTED, &drift, CUT, "run.started run=2"]).drift, None);
}
