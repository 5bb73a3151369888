//! Agents that have nothing to do for long.

use std::time::Duration;

use super::home::Home;
use super::table::Table;
use crate::drive::worker::IdleAgentPolicy;

const DONE: &str = "input.queued prompt; message.agent; run.completed";

fn ten_minutes() -> IdleAgentPolicy {
    IdleAgentPolicy { after: Some(Duration::from_secs(600)), most: None }
}

#[test]
fn an_idle_agent_that_can_be_brought_back_is_ended_and_the_next_message_brings_it_back() {
    let mut table = Table::default();
    let mut home = Home::new(&["text end"]);
    home.end_idle_agents(ten_minutes());
    home.send().news();
    table.row("soon", home.pass(Duration::from_secs(590)), "", "idle", "");
    table.row("late", home.pass(Duration::from_secs(20)), "agent.exited", "idle", "");
    let back = format!("message.user; run.started; agent.launching; session.restored continued; {DONE}");
    table.row("message", home.send(), &back, "idle", "");
    table.row("busy since", home.pass(Duration::from_secs(590)), "", "idle", "");
    // I4: nobody died, and nothing is interrupted.
    assert_eq!(home.count("run.interrupted"), 0);
    table.done(4);
}

#[test]
fn an_agent_at_work_and_one_that_cannot_be_brought_back_stay() {
    let mut table = Table::default();
    let mut home = Home::new(&["text hang"]);
    home.end_idle_agents(ten_minutes());
    home.send().news();
    table.row("at work", home.pass(Duration::from_secs(3600)), "", "running", "");
    let mut home = Home::new(&["ask"]);
    home.end_idle_agents(ten_minutes());
    home.send().news();
    table.row("asks", home.pass(Duration::from_secs(3600)), "", "waiting", "");
    let mut home = Home::new(&["can=nothing; text end"]);
    home.end_idle_agents(ten_minutes());
    home.send().news();
    table.row("forgets", home.pass(Duration::from_secs(3600)), "", "idle", "");
    table.done(3);
}

#[test]
fn an_agent_beyond_the_limit_is_ended_at_once() {
    let mut table = Table::default();
    let mut home = Home::new(&["text end"]);
    home.end_idle_agents(IdleAgentPolicy { after: None, most: Some(0) });
    let news = format!("message.user; run.started; agent.launching; {DONE}; agent.exited");
    table.row("none may stay", home.send(), &news, "idle", "");
    let back = format!(
        "message.user; run.started; agent.launching; session.restored continued; {DONE}; agent.exited"
    );
    table.row("again", home.send(), &back, "idle", "");
    table.done(2);
}
