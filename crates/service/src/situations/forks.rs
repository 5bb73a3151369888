//! Forks: what their agents are told, where they are cut, and what they do not take along.

use std::time::Duration;

use rekindle_domain::event::Event;
use rekindle_domain::id::{RunId, SessionId};
use rekindle_domain::line::Line;
use rekindle_store::log::Cursor;
use rekindle_wire::code::Code;
use rekindle_wire::request::{AgentChoice, ForkAt, NewFork};
use rekindle_wire::view::ForkVerdict;

use super::home::{Home, Setup};
use super::table::Table;
use crate::commands::{Locks, fork};
use crate::idempotency::Key;
use crate::log_search::for_each_line;

fn at(run: RunId) -> NewFork {
    NewFork { at: Some(ForkAt::Name(run.to_string())), ..NewFork::default() }
}

const TOLD: &str = "message.user; run.started; agent.launching; session.restored reprimed; input.queued prompt; message.agent; run.completed";

// I12: never silently fresh: the first prompt of a fork is told what happened up to the cut, and nothing of what came after.
#[test]
fn the_first_prompt_of_a_fork_is_told_the_history_up_to_the_cut() {
    let mut home = Home::new(&["", ""]);
    let first = home.say("paint it red");
    home.say("paint it blue");
    let parent = home.session;
    let before = home.state();
    assert_eq!(home.fork(at(first)).expect("forked"), ForkVerdict::Reprimed);
    assert_eq!(home.state().forked_from.map(|from| from.session_id), Some(parent));
    assert_eq!(home.course(), "", "nothing goes on in it");
    home.say("paint it green");
    let mut table = Table::default();
    table.row("first", &mut home, TOLD, "idle", "");
    let prompt = home.prompted();
    assert!(prompt.contains("[Resume Context]") && prompt.contains("paint it red"), "{prompt}");
    assert!(prompt.ends_with("paint it green") && !prompt.contains("blue"), "{prompt}");
    // From now on it is a session like any other: its agent is there, and comes back with what was said in its own session.
    home.say("and again");
    let again = "message.user; run.started; input.queued prompt; message.agent; run.completed";
    table.row("warm", &mut home, again, "idle", "");
    assert_eq!(home.prompted(), "and again");
    home.scripted.kill();
    home.settle().news();
    home.say("once more");
    let back = "message.user; run.started; agent.launching; session.restored continued; input.queued prompt; message.agent; run.completed";
    table.row("brought back", &mut home, back, "idle", "");
    table.done(3);
    // The other one is as it was.
    let now = home.go_on_with(parent).state();
    assert_eq!(
        (now.last_seq, now.run.as_ref().map(|run| run.run_id)),
        (before.last_seq, before.run.as_ref().map(|run| run.run_id))
    );
}

const FORKED: &str = "message.user; run.started; agent.launching; session.restored unverified; input.queued prompt; message.agent; run.completed";

// I12: an agent that makes a fork of its own session remembers, and is not told again; one that cannot any more is told, and the
// log says which.
#[test]
fn an_agent_that_can_fork_goes_on_from_its_own_session() {
    let mut table = Table::default();
    for (second, news) in [("fork=yes", FORKED), ("fork=no", TOLD), ("", TOLD)] {
        let mut home = Home::new(&["fork=yes", second]);
        home.say("paint it red");
        assert_eq!(home.fork(NewFork::default()).expect("forked"), ForkVerdict::Continued);
        home.say("paint it green");
        table.row(second, &mut home, news, "idle", "");
        assert_eq!(home.prompted() == "paint it green", news == FORKED, "{}", home.prompted());
        let own = home.state().agent.as_ref().and_then(|agent| agent.cursor.clone());
        assert_eq!(own.as_deref(), Some(if news == FORKED { "forked" } else { "own" }), "{second}");
    }
    // What it should remember when it comes back are the turns of before too.
    let mut home = Home::new(&["fork=yes", "fork=yes", "load=empty"]);
    home.say("paint it red");
    home.fork(NewFork::default()).expect("forked");
    home.say("paint it green");
    home.scripted.kill();
    home.settle().news();
    home.say("once more");
    let forgot = "message.user; run.started; agent.launching; session.restored shorter; session.restored reprimed; input.queued prompt; message.agent; run.completed";
    table.row("forgot", &mut home, forgot, "idle", "");
    assert_eq!(expected_by_loads(&home), [2], "an answer of before, and one since");
    // One that never answers is not asked again.
    let mut home = Home::new(&["fork=yes", "fork=hang", "fork=yes"]);
    home.say("paint it red");
    home.fork(NewFork::default()).expect("forked");
    home.say("paint it green");
    table.row("asked", &mut home, "message.user; run.started; agent.launching", "running", "");
    let over = "agent.notice load_timed_out; agent.exited; agent.launching; session.restored reprimed; input.queued prompt; message.agent; run.completed";
    table.row("over", home.pass(Duration::from_secs(61)), over, "idle", "");
    table.done(6);
}

#[test]
fn an_agent_that_remembers_too_much_or_too_little_is_told_instead() {
    let mut table = Table::default();
    // Cut before its latest turn.
    let mut home = Home::new(&["fork=yes", "fork=yes"]);
    let first = home.say("paint it red");
    home.say("paint it blue");
    assert_eq!(home.fork(at(first)).expect("forked"), ForkVerdict::Reprimed);
    home.say("paint it green");
    table.row("earlier", &mut home, TOLD, "idle", "");
    // The other session went on before the fork's agent was launched.
    let mut home = Home::new(&["fork=yes", "fork=yes"]);
    home.say("paint it red");
    let parent = home.session;
    assert_eq!(home.fork(NewFork::default()).expect("forked"), ForkVerdict::Continued);
    let child = home.session;
    home.go_on_with(parent);
    home.say("paint it blue");
    home.go_on_with(child).say("paint it green");
    table.row("moved on", &mut home, TOLD, "idle", "");
    assert!(!home.prompted().contains("blue"), "{}", home.prompted());
    // Another agent has no session of this one's.
    let mut home = Home::new(&["fork=yes", "fork=yes"]);
    home.say("paint it red");
    let other = AgentChoice::Command { profile: "acp".into(), command: vec!["other".into()] };
    let fork = NewFork { agent: Some(other), ..NewFork::default() };
    assert_eq!(home.fork(fork).expect("forked"), ForkVerdict::Reprimed);
    home.say("paint it green");
    table.row("another", &mut home, TOLD, "idle", "");
    table.done(3);
}

#[test]
fn a_fork_with_another_agent_is_reprimed_and_a_command_is_told_nothing() {
    let agent =
        |profile: &str| AgentChoice::Command { profile: profile.into(), command: vec!["other".into()] };
    let mut table = Table::default();
    let mut home = Home::new(&["", ""]);
    home.say("paint it red");
    let other = NewFork { agent: Some(agent("acp")), title: Some("other".into()), ..NewFork::default() };
    assert_eq!(home.fork(other).expect("forked"), ForkVerdict::Reprimed);
    let state = home.state();
    assert_eq!(
        (state.title.as_str(), state.provider.command.as_deref()),
        ("other", Some(&["other".to_owned()][..]))
    );
    home.say("go on");
    table.row("another", &mut home, TOLD, "idle", "");
    assert!(home.prompted().contains("paint it red"));
    let command = NewFork { agent: Some(agent("exec")), ..NewFork::default() };
    assert_eq!(home.fork(command).expect("forked"), ForkVerdict::Fresh);
    let mut home = Home::new(&[""]);
    assert_eq!(home.fork(NewFork::default()).expect("forked"), ForkVerdict::Fresh, "nothing was asked yet");
    home.say("begin");
    let fresh =
        "message.user; run.started; agent.launching; input.queued prompt; message.agent; run.completed";
    table.row("fresh", &mut home, fresh, "idle", "");
    table.done(2);
}

#[test]
fn a_fork_takes_neither_queue_nor_waits_nor_an_open_run_along() {
    let mut home = Home::new(&["text end; text ask end", ""]);
    home.say("paint it red");
    let asked = home.say("paint it blue");
    let last = home.state().last_seq;
    for (place, code) in [
        (ForkAt::Name(asked.to_string()), Code::StillRunning),
        (ForkAt::Name("run_01khz0p6r8vk6mqj3b8y2c9d4e".into()), Code::RunNotInSession),
        (ForkAt::Name("yesterday".into()), Code::InvalidAt),
        (ForkAt::Name("007".into()), Code::InvalidAt),
        (ForkAt::Seq(last + 1), Code::RecordUnknown),
        (ForkAt::Seq(0), Code::HistoryMissing),
    ] {
        let refused = home.fork(NewFork { at: Some(place.clone()), ..NewFork::default() });
        assert_eq!(refused.expect_err("refused").code, code, "{place:?}");
    }
    let cut = |home: &Home| home.state().forked_from.map(|from| from.seq);
    // In the middle of the run that is open: what has ended by then.
    let parent = home.session;
    home.fork(NewFork { at: Some(ForkAt::Seq(last)), ..NewFork::default() }).expect("forked");
    let by_record = cut(&home);
    home.go_on_with(parent);
    home.fork(NewFork::default()).expect("forked");
    assert_eq!(cut(&home), by_record);
    let state = home.state();
    assert!(state.run.is_none() && state.queue.is_empty() && state.token_records == 0);
    assert_eq!((home.status(), state.agent.is_none()), ("idle", true));
    home.say("paint it green");
    let prompt = home.prompted();
    assert!(prompt.contains("red") && !prompt.contains("blue"), "{prompt}");
    // The other one still waits, and its token is good.
    home.go_on_with(parent);
    assert_eq!(home.status(), "waiting");
    home.answer("allow_once").expect("answered");
    assert_eq!(home.status(), "idle");
}

#[test]
fn a_fork_is_made_once_for_a_key() {
    let home = Home::with(Setup::default(), &[]);
    let (views, locks) = (home.views(), Locks::default());
    let key = |body| Key { key: "k".into(), body: [body; 32] };
    let make = |body| fork::fork(&views, &locks, home.session, NewFork::default(), Some(&key(body)));
    let first: SessionId = make(1).expect("forked");
    assert_eq!(make(1).expect("the same"), first);
    assert_eq!(make(2).expect_err("another request").code, Code::KeyReused);
}

/// Returns how much each load of a session's log was expected to bring back.
fn expected_by_loads(home: &Home) -> Vec<u64> {
    let mut expected = Vec::new();
    for_each_line(&home.store().reader(home.session).expect("a log"), |line| {
        if let Ok(Event::SessionRestored(restored)) = line.event()
            && restored.method == "load"
        {
            expected.push(restored.counts().expected);
        }
    })
    .expect("readable");
    expected
}

/// Returns the kinds of all records of a session's history.
fn kinds(home: &Home) -> Vec<String> {
    let history = home.store().history(home.session).expect("a history");
    let (mut lines, mut kinds) = (history.reader.forward(Cursor::START), Vec::new());
    while let Some(raw) = lines.next().expect("readable") {
        kinds.push(Line::parse(raw.bytes).expect("a record").kind.to_owned());
    }
    kinds
}

#[test]
fn removing_the_parent_leaves_the_fork_its_history_and_its_agent() {
    let mut home = Home::new(&["", "", ""]);
    home.say("paint it red");
    let parent = home.session;
    home.fork(NewFork::default()).expect("forked");
    home.say("paint it green");
    let (child, known) = (home.session, kinds(&home));
    assert_eq!(known.iter().filter(|kind| *kind == "session.created").count(), 2);
    home.go_on_with(parent);
    home.delete().expect("removed");
    assert!(!home.is_there());
    home.go_on_with(child);
    assert_eq!(kinds(&home), known);
    // An agent that remembers nothing is told all of it.
    home.scripted.kill();
    home.settle();
    home.fork(NewFork::default()).expect("forked again");
    home.say("and now?");
    let prompt = home.prompted();
    assert!(prompt.contains("red") && prompt.contains("green"), "{prompt}");
}
