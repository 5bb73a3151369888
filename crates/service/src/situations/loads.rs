//! Sessions that are brought back by the next agent: whole, not at all, late, for ever, or with work inside.

use std::time::Duration;

use super::home::Home;
use super::table::Table;

const AGAIN: &str = "run.started attempt=2; agent.launching; ";

// I12: never silently fresh: the log tells what the agent remembers.
#[test]
fn what_an_agent_remembers_is_recorded() {
    let mut table = Table::default();
    for (first, second, news) in [
        ("text die", "", "session.restored continued; input.queued prompt; message.agent; run.completed"),
        (
            "text die",
            "load=empty",
            "session.restored shorter; session.restored reprimed; input.queued prompt; message.agent; run.completed",
        ),
        (
            "text die",
            "load=no",
            "session.restored reprimed; input.queued prompt; message.agent; run.completed",
        ),
        (
            "text die",
            "can=nothing",
            "session.restored reprimed; input.queued prompt; message.agent; run.completed",
        ),
        (
            "text die",
            "load=work",
            "session.restored continued; tool.call; message.agent; input.queued prompt; message.agent; run.completed",
        ),
    ] {
        let mut home = Home::new(&[first, second]);
        home.send().news();
        let name = format!("{first}, then {second}");
        table.row(&name, home.wait_long(), &format!("{AGAIN}{news}"), "idle", "");
    }
    table.done(5);
}

#[test]
fn a_load_that_never_returns_ends_its_agent_and_is_not_tried_again() {
    let mut home = Home::new(&["text die", "load=hang"]);
    home.send().news();
    let mut table = Table::default();
    table.row(
        "asked",
        home.wait_long_enough_to_continue(),
        "run.started attempt=2; agent.launching",
        "running",
        "",
    );
    table.row("patient", home.pass(Duration::from_secs(59)), "", "running", "");
    let news = "agent.notice load_timed_out; agent.exited; agent.launching; session.restored reprimed; input.queued prompt; message.agent; run.completed";
    table.row("over", home.pass(Duration::from_secs(2)), news, "idle", "");
    table.done(3);
}

#[test]
fn an_agent_that_dies_while_it_loads_is_tried_again() {
    let mut table = Table::default();
    let mut home = Home::new(&["text die", "load=die"]);
    home.send().news();
    let news = format!(
        "{AGAIN}agent.exited; agent.launching; session.restored continued; input.queued prompt; message.agent; run.completed"
    );
    table.row("once", home.wait_long(), &news, "idle", "");
    let mut home = Home::new(&["text die", "load=die", "load=die", "load=die"]);
    home.send().news();
    let news = format!(
        "{AGAIN}agent.exited; agent.launching; agent.exited; agent.launching; agent.exited; run.failed"
    );
    table.row("for ever", home.wait_long(), &news, "idle", "");
    table.done(2);
}

#[test]
fn an_agent_that_loses_what_it_loads_within_a_minute_is_given_one() {
    let mut home = Home::new(&["name=gemini-cli; text die", "name=gemini-cli; load=late"]);
    home.send().news();
    let mut table = Table::default();
    let held = "its agent starts in 62 s: this agent loses a conversation";
    table.row("cut", home.wait_long_enough_to_continue(), "run.started attempt=2", "running", held);
    table.row("half", home.pass(Duration::from_secs(50)), "", "running", "its agent starts in 12 s");
    let news =
        "agent.launching; session.restored unverified; input.queued prompt; message.agent; run.completed";
    table.row("over", home.pass(Duration::from_secs(15)), news, "idle", "");
    table.done(3);
}

#[test]
fn an_agent_that_would_run_a_cut_tool_again_gets_a_new_session() {
    let mut home = Home::new(&["name=OpenHands CLI ACP Agent; tool die", "name=OpenHands CLI ACP Agent"]);
    home.send().news();
    home.resume(&[]).expect("resumed");
    let mut table = Table::default();
    let news = format!("{AGAIN}session.restored reprimed; input.queued prompt; message.agent; run.completed");
    table.row("tool", &mut home, &news, "idle", "");
    table.done(1);
}
