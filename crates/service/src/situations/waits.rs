//! Questions of agents: answered, not answered in time, and answered after their agent is dead.

use std::time::Duration;

use rekindle_domain::event::{OnUncertain, Options, Permissions, ResumePolicy};
use rekindle_domain::recovery::Held;

use super::home::{Home, Setup};
use super::table::Table;

const ASKED: &str = "message.user; run.started; agent.launching; input.queued prompt; tool.call; run.waiting";

// I7: the first answer counts, and the same one again gets what it got.
#[test]
fn an_answer_lets_the_agent_go_on() {
    let mut table = Table::default();
    for option in ["allow_once", "reject_once"] {
        let mut home = Home::new(&["ask text end"]);
        table.row("asked", home.send(), ASKED, "waiting", "");
        let wait = home.wait_id();
        home.answer(option).expect("answered");
        table.row(
            option,
            &mut home,
            "run.resumed answered; input.queued answer; message.agent; run.completed",
            "idle",
            "",
        );
        home.answer_to(wait, option).expect("the same again");
        assert!(home.answer_to(wait, "allow_always").is_err(), "another one");
        table.row("again", &mut home, "", "idle", "");
    }
    table.done(6);
}

#[test]
fn a_policy_answers_at_once() {
    let mut table = Table::default();
    for permissions in [Permissions::Allow, Permissions::Deny] {
        let options = Options { permissions, ..Options::default() };
        let mut home = Home::with(Setup { options, ..Setup::default() }, &["ask text ask end"]);
        let news = format!(
            "{ASKED}; run.resumed answered; input.queued answer; message.agent; tool.call; run.waiting; run.resumed answered; input.queued answer; run.completed"
        );
        table.row("policy", home.send(), &news, "idle", "");
    }
    table.done(2);
}

// I1, I7: an answer to a question whose agent is dead is not lost: it begins a run, once.
#[test]
fn an_answer_to_a_dead_agent_begins_a_run() {
    let mut table = Table::default();
    let next = "message.user; run.started; agent.launching; session.restored continued; input.queued prompt; message.agent; run.completed";
    for (death, reason) in [("agent", "agent_exit"), ("holder", "holder_lost"), ("both", "holder_lost")] {
        let mut home = Home::new(&["ask text end"]);
        home.send().news();
        let wait = home.wait_id();
        match death {
            "agent" => home.scripted.kill(),
            "holder" => home.scripted.lose(),
            _ => {
                home.daemon_ends();
                home.scripted.lose();
                home.restart();
            }
        }
        let cut = format!("run.interrupted {reason}; agent.exited");
        table.row(death, home.wait_long(), &cut, "interrupted_waiting", Held::Unanswered.words());
        home.answer_to(wait, "allow_once").expect("answered");
        table.row(death, &mut home, next, "idle", "");
        home.answer_to(wait, "allow_once").expect("the same again");
        assert!(home.answer_to(wait, "reject_once").is_err(), "another one");
        table.row(death, home.wait_long(), "", "idle", "");
    }
    table.done(9);
}

#[test]
fn a_dead_agents_question_is_asked_again_where_that_is_wanted() {
    let mut table = Table::default();
    let again = "run.started attempt=2; agent.launching; session.restored continued; input.queued prompt; tool.call; run.waiting";
    for (on_uncertain, resume) in [(OnUncertain::Continue, false), (OnUncertain::Ask, true)] {
        let mut home =
            Home::with(Setup::policy(ResumePolicy::Auto, on_uncertain), &["ask end", "ask text end"]);
        home.send();
        home.scripted.kill();
        home.settle().news();
        if resume {
            home.resume(&[]).expect("resumed");
        }
        table.row("again", home.wait_long(), again, "waiting", "");
        home.answer("allow_once").expect("answered");
        table.row(
            "answered",
            &mut home,
            "run.resumed answered; input.queued answer; message.agent; run.completed",
            "idle",
            "",
        );
    }
    table.done(4);
}

#[test]
fn a_question_that_nobody_answers_in_time_ends_its_turn() {
    let options = Options { wait_timeout_s: Some(60), ..Options::default() };
    let setup = || Setup { options: options.clone(), ..Setup::default() };
    let mut table = Table::default();
    let mut home = Home::with(setup(), &["ask text end"]);
    home.send().news();
    table.row("patient", home.pass(Duration::from_secs(59)), "", "waiting", "");
    let news = "run.cancel_requested; run.resumed timeout; input.queued answer; input.queued cancel; run.interrupted wait_timeout";
    table.row("late", home.pass(Duration::from_secs(3)), news, "interrupted_waiting", "");
    assert!(home.state().recovery.interruption.is_some());
    table.row("for ever", home.wait_long(), "", "interrupted_waiting", "");
    table.done(3);
}

#[test]
fn a_message_comes_instead_of_an_answer() {
    let mut home = Home::new(&["ask text end; text end"]);
    home.send().news();
    let mut table = Table::default();
    let news = "run.cancel_requested; run.resumed cancelled; input.queued answer; input.queued cancel; message.user queued; run.cancelled; run.started; input.queued prompt; message.agent; run.completed";
    table.row("instead", home.send(), news, "idle", "");
    table.done(1);
}

// I4: a daemon that dies while a question is open changes nothing of it.
#[test]
fn a_question_survives_its_daemon() {
    let mut home = Home::new(&["ask text end"]);
    home.send().news();
    let mut table = Table::default();
    table.row("restarted", home.restart(), "run.adopted", "waiting", "");
    home.answer("allow_once").expect("answered");
    table.row(
        "answered",
        &mut home,
        "run.resumed answered; input.queued answer; message.agent; run.completed",
        "idle",
        "",
    );
    table.done(2);
}
