//! Cancels, at every moment of a run: asked for once, recorded before anything else, and never undone (I13).

use std::time::Duration;

use rekindle_wire::code::Code;

use super::home::{Home, Setup};
use super::table::Table;

// I13: a cancel wins.
#[test]
fn a_run_is_cancelled_whatever_it_is_at() {
    let mut table = Table::default();
    for (moment, life, news) in [
        ("launching", "greet=hang", "run.cancel_requested; run.cancelled"),
        ("opening", "new=hang", "run.cancel_requested; run.cancelled"),
        ("before the first word", "hang", "run.cancel_requested; input.queued cancel; run.cancelled"),
        (
            "in the middle of a text",
            "text hang",
            "run.cancel_requested; input.queued cancel; message.agent; run.cancelled",
        ),
        ("in a tool call", "tool hang", "run.cancel_requested; input.queued cancel; run.cancelled"),
        (
            "waiting",
            "ask end",
            "run.cancel_requested; run.resumed cancelled; input.queued answer; input.queued cancel; run.cancelled",
        ),
    ] {
        let mut home = Home::new(&[life]);
        home.send().news();
        assert!(home.cancel().expect(moment).is_some());
        table.row(moment, &mut home, news, "idle", "");
        table.row(moment, home.wait_long(), "", "idle", "");
    }
    table.done(12);
}

#[test]
fn an_agent_that_ignores_a_cancel_is_ended() {
    let mut table = Table::default();
    for (life, at_once) in [("cancel=ignored; hang", ""), ("cancel=ignored; tool hang", "")] {
        let mut home = Home::new(&[life]);
        home.send().news();
        home.cancel().expect("cancelled");
        table.row(life, &mut home, "run.cancel_requested; input.queued cancel", "running", at_once);
        table.row(life, home.pass(Duration::from_secs(29)), "", "running", "");
        table.row(life, home.pass(Duration::from_secs(2)), "run.cancelled; agent.exited", "idle", "");
    }
    table.done(6);
}

#[test]
fn nothing_is_cancelled_where_nothing_goes_on() {
    for life in ["text end", "no"] {
        let mut home = Home::new(&[life]);
        home.send().news();
        assert_eq!(home.cancel().expect_err("over").code, Code::NothingRunning);
        assert_eq!(home.news(), "");
    }
    let mut home = Home::new(&[]);
    assert_eq!(home.cancel().expect_err("never begun").code, Code::NothingRunning);
}

#[test]
fn a_cancel_asked_for_again_is_recorded_once() {
    let mut home = Home::new(&["cancel=ignored; hang"]);
    home.send().news();
    for _ in 0..3 {
        assert!(home.cancel().expect("cancelled").is_some());
    }
    assert_eq!(home.news(), "run.cancel_requested; input.queued cancel");
}

// I13: whoever dies after a cancel was recorded, the run ends as cancelled and is not continued.
#[test]
fn a_cancelled_run_stays_cancelled_whoever_dies() {
    let mut table = Table::default();
    for (death, news) in [
        ("agent", "run.cancelled; agent.exited"),
        ("holder", "run.cancelled; agent.exited"),
        ("both", "run.cancelled; agent.exited"),
        ("daemon", "run.adopted"),
    ] {
        let mut home = Home::new(&["cancel=ignored; hang"]);
        home.send();
        home.cancel().expect("cancelled");
        home.news();
        match death {
            "agent" => home.scripted.kill(),
            "holder" => home.scripted.lose(),
            "both" => {
                home.daemon_ends();
                home.scripted.lose();
                home.restart();
            }
            _ => drop(home.restart()),
        }
        let (status, held) = if death == "daemon" { ("running", "") } else { ("idle", "") };
        table.row(death, home.settle(), news, status, held);
    }
    table.done(4);
}

// I13: a cancel wins.
#[test]
fn a_run_that_was_cut_is_cancelled_and_not_continued() {
    let mut home = Home::new(&["die"]);
    home.send().news();
    home.cancel().expect("cancelled");
    let mut table = Table::default();
    table.row("cut", &mut home, "run.cancel_requested", "interrupted_agent", "");
    table.row("cut", home.wait_long(), "", "interrupted_agent", "");
    table.done(2);
    assert_eq!(home.scripted.launches(), 1);
}

#[test]
fn a_cancelled_load_ends_its_agent() {
    let mut home = Home::new(&["die", "load=hang"]);
    home.send().wait_long_enough_to_continue().news();
    home.cancel().expect("cancelled");
    let mut table = Table::default();
    table.row("load", &mut home, "run.cancel_requested; run.cancelled; agent.exited", "idle", "");
    table.done(1);
}

#[test]
fn a_command_is_cancelled_by_its_end() {
    let mut home = Home::with(Setup::command(), &["text hang"]);
    home.send().news();
    home.cancel().expect("cancelled");
    let mut table = Table::default();
    table.row(
        "command",
        &mut home,
        "run.cancel_requested; message.agent; run.cancelled; agent.exited",
        "idle",
        "",
    );
    table.done(1);
}

#[test]
fn a_cancel_reaches_a_run_that_waits_for_its_launch() {
    let mut table = Table::default();
    for lives in [&["prepare=24", "prepare=24", "prepare=24"][..], &["spawn=24", "spawn=24", "spawn=24"]] {
        let mut home = Home::new(lives);
        home.send().news();
        home.cancel().expect("cancelled");
        table.row(lives[0], &mut home, "run.cancel_requested; run.cancelled", "idle", "");
        let launched = home.scripted.launches();
        home.wait_long();
        assert_eq!(home.scripted.launches(), launched, "nothing is launched for it any more");
    }
    table.done(2);
}

#[test]
fn a_holder_that_does_not_answer_is_cancelled_when_it_does() {
    let mut home = Home::new(&["hang"]);
    home.send().news();
    home.scripted.mute(true);
    home.cancel().expect("recorded");
    assert_eq!(home.news(), "run.cancel_requested; input.queued cancel");
    home.pass(Duration::from_secs(10));
    assert_eq!((home.news(), home.status()), (String::new(), "running"));
    home.scripted.mute(false);
    home.wait_long();
    assert_eq!((home.news(), home.status()), ("run.cancelled".to_owned(), "idle"));
}

#[test]
fn a_run_that_nobody_has_looked_at_is_cancelled_without_an_agent() {
    let mut home = Home::new(&[]);
    home.send_only();
    home.cancel().expect("cancelled");
    let mut table = Table::default();
    let news = "message.user; run.started; run.cancel_requested; run.cancelled";
    table.row("new", &mut home, news, "idle", "");
    assert_eq!(home.scripted.launches(), 0);
    table.done(1);
}

// An agent that was done before it read the cancel has done its work, and the log says so.
#[test]
fn a_turn_that_ends_in_spite_of_a_cancel_is_completed() {
    let mut home = Home::new(&["cancel=ignored; hang text end"]);
    home.send().news();
    home.cancel().expect("cancelled");
    home.scripted.go_on();
    let mut table = Table::default();
    let news = "run.cancel_requested; input.queued cancel; message.agent; run.completed";
    table.row("too late", home.settle(), news, "idle", "");
    table.done(1);
}

// I13: a cancel that was recorded while its agent could not be told is told by whoever takes over.
#[test]
fn a_successor_tells_the_agent_what_its_predecessor_could_not() {
    let mut home = Home::new(&["hang"]);
    home.send().news();
    home.scripted.mute(true);
    home.cancel().expect("recorded");
    home.daemon_ends();
    home.scripted.mute(false);
    home.restart();
    let mut table = Table::default();
    let news = "run.cancel_requested; input.queued cancel; run.adopted; run.cancelled";
    table.row("told", &mut home, news, "idle", "");
    table.done(1);
}

#[test]
fn a_session_is_removed_with_its_agent() {
    for life in ["", "hang", "ask end", "text die", "greet=hang"] {
        let mut home = Home::new(&[life]);
        home.send();
        home.delete().expect("removed");
        assert!(!home.is_there(), "{life}");
        assert_eq!(home.scripted.left_behind(), 0, "{life}");
    }
}
