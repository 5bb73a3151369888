//! Messages that wait for their turn.

use super::home::Home;
use super::table::Table;

const DONE: &str = "input.queued prompt; message.agent; run.completed";

#[test]
fn messages_get_their_turn_one_after_the_other() {
    let mut home = Home::new(&["hang text end"]);
    home.send().send().send().news();
    home.scripted.go_on();
    let mut table = Table::default();
    let news = format!("message.agent; run.completed; run.started; {DONE}; run.started; {DONE}");
    table.row("queue", home.settle(), &news, "idle", "");
    table.done(1);
}

// I1: what waits is not lost by whoever dies.
#[test]
fn messages_that_wait_survive_every_death() {
    let mut table = Table::default();
    let again = "session.restored continued; ";
    for death in ["agent", "daemon", "both"] {
        let mut home = Home::new(&["hang text end"]);
        home.send().send();
        assert_eq!(
            home.news(),
            "message.user; run.started; agent.launching; input.queued prompt; message.user queued"
        );
        let news = match death {
            "agent" => {
                home.scripted.kill();
                format!(
                    "run.interrupted agent_exit; agent.exited; run.started attempt=2; agent.launching; {again}{DONE}; run.started; {DONE}"
                )
            }
            "daemon" => {
                home.restart();
                home.scripted.go_on();
                format!("run.adopted; message.agent; run.completed; run.started; {DONE}")
            }
            _ => {
                home.daemon_ends();
                home.scripted.lose();
                home.restart();
                format!(
                    "run.interrupted holder_lost; agent.exited; run.started attempt=2; agent.launching; {again}{DONE}; run.started; {DONE}"
                )
            }
        };
        table.row(death, home.wait_long(), &news, "idle", "");
    }
    table.done(3);
}

#[test]
fn a_cancel_empties_the_queue() {
    let mut home = Home::new(&["hang"]);
    home.send().send().send().news();
    home.cancel().expect("cancelled");
    let mut table = Table::default();
    table.row("queue", &mut home, "run.cancel_requested; input.queued cancel; run.cancelled", "idle", "");
    table.row("later", home.wait_long(), "", "idle", "");
    assert!(home.state().queue.is_empty());
    table.done(2);
}

#[test]
fn a_message_after_a_failed_run_begins_another() {
    let mut home = Home::new(&["no; text end"]);
    home.send().news();
    let mut table = Table::default();
    table.row("next", home.send(), &format!("message.user; run.started; {DONE}"), "idle", "");
    table.done(1);
}

#[test]
fn a_message_to_a_cut_session_comes_instead_of_its_continuation() {
    let mut home = Home::new(&["tool die"]);
    home.send().news();
    let mut table = Table::default();
    let news = format!("message.user; run.started; agent.launching; session.restored continued; {DONE}");
    table.row("message", home.send(), &news, "idle", "");
    table.row("later", home.wait_long(), "", "idle", "");
    table.done(2);
}

#[test]
fn a_closed_session_ends_its_agent_and_takes_nothing_more() {
    let mut home = Home::new(&[]);
    home.send().news();
    home.close();
    home.wait_long();
    assert_eq!(home.news(), "session.closed; agent.exited");
    assert!(home.message().is_err());
}
