//! Launches that come to nothing: for want of something, which is waited for and not counted, or because the agent is no
//! good, which is tried three times.

use std::time::Duration;

use super::home::{Home, Setup};
use super::table::Table;

/// What a run ends with when its agent was launched at last.
const DONE: &str = "agent.launching; input.queued prompt; message.agent; run.completed";

#[test]
fn a_shortage_is_waited_out_and_told() {
    let mut table = Table::default();
    for (setting, code) in [
        ("prepare", 24),
        ("prepare", 28),
        ("prepare", 12),
        ("spawn", 24),
        ("spawn", 11),
        ("begin", 24),
        ("begin", 12),
    ] {
        for times in [1, 5] {
            let life: &'static str = format!("{setting}={code}").leak();
            let mut home = Home::new(&vec![life; times]);
            home.send();
            let words = std::io::Error::from_raw_os_error(code).to_string();
            let name = format!("{life}, {times} times");
            let launch = if setting == "prepare" { "" } else { "; agent.launching; agent.exited" };
            table.is(&name, &home.news(), &format!("message.user; run.started{launch}"));
            assert!(home.held().starts_with("its agent cannot be launched yet: "), "{name}: {}", home.held());
            assert!(home.held().contains(&words), "{name}: {}", home.held());
            let before = if setting == "prepare" { "" } else { "agent.launching; agent.exited; " };
            let news = format!("{}{DONE}", before.repeat(times - 1));
            table.row(&name, home.wait_long(), &news, "idle", "");
        }
    }
    table.done(28);
}

#[test]
fn an_agent_that_cannot_be_launched_is_tried_three_times() {
    let mut table = Table::default();
    for (life, once) in [
        ("prepare=13", ""),
        ("spawn=13", "; agent.launching; agent.exited"),
        ("spawn=died", "; agent.launching; agent.exited"),
        ("begin=die", "; agent.launching; agent.exited"),
        ("greet=die", "; agent.launching; agent.exited"),
        ("new=die", "; agent.launching; agent.exited"),
    ] {
        let mut home = Home::new(&[life; 9]);
        let news = format!("message.user; run.started{}; run.failed", once.repeat(3));
        table.row(life, home.send(), &news, "idle", "");
        table.row(life, home.wait_long(), "", "idle", "");
        let mut home = Home::new(&[life, life]);
        let news = format!("message.user; run.started{}; {DONE}", once.repeat(2));
        table.row(life, home.send(), &news, "idle", "");
    }
    table.done(18);
}

#[test]
fn what_no_other_launch_would_change_is_not_tried_again() {
    let mut table = Table::default();
    let next = "message.user; run.started";
    let done = "input.queued prompt; message.agent; run.completed";
    // The next agent was not there, and is told what was asked before.
    let told = "agent.launching; session.restored reprimed; ";
    for (life, news, again) in [
        ("begin=2", "agent.launching; run.failed; agent.exited", told),
        ("begin=13", "agent.launching; run.failed; agent.exited", told),
        ("greet=no", "agent.launching; run.failed; agent.exited", told),
        ("new=no", "agent.launching; run.failed; agent.exited", told),
        ("no", "agent.launching; input.queued prompt; run.failed", ""),
    ] {
        let mut home = Home::new(&[life]);
        table.row(life, home.send(), &format!("{next}; {news}"), "idle", "");
        table.row(life, home.send(), &format!("{next}; {again}{done}"), "idle", "");
    }
    let mut home = Home::with(Setup { working_dir: "/not/there", ..Setup::default() }, &[]);
    table.row("no directory", home.send(), "message.user; run.started; run.failed", "idle", "");
    table.done(11);
}

#[test]
fn an_agent_without_its_environment_waits_for_it() {
    let setup = || Setup { env_names: vec!["A_KEY".to_owned()], ..Setup::default() };
    let held = "its agent needs A_KEY, which this daemon does not have";
    let mut table = Table::default();
    let mut home = Home::with(setup(), &[]);
    table.row("new", home.send(), "message.user; run.started", "running", held);
    table.row("later", home.wait_long(), "", "running", held);
    assert!(home.resume(&[]).is_err(), "nobody brings it");
    home.resume(&[("A_KEY", "x")]).expect("brought");
    table.row("resumed", &mut home, DONE, "idle", "");

    let mut home = Home::with(setup(), &[]);
    home.send().news();
    table.row("restarted", home.restart_with("A_KEY", "x"), "", "interrupted_startup", held);
    table.done(4);
}

#[test]
fn an_interruption_waits_for_the_environment_too() {
    let setup = Setup { env_names: vec!["A_KEY".to_owned()], ..Setup::default() };
    let mut home = Home::with(setup, &["die"]);
    home.send();
    home.resume(&[("A_KEY", "x")]).expect("brought");
    home.news();
    home.daemon_ends();
    let mut table = Table::default();
    home.restart();
    let held = "its agent needs A_KEY, which this daemon does not have";
    table.row("cut", home.wait_long(), "", "interrupted_agent", held);
    home.resume(&[("A_KEY", "x")]).expect("brought");
    let news = "run.started attempt=2; agent.launching; session.restored continued; input.queued prompt; message.agent; run.completed";
    table.row("resumed", &mut home, news, "idle", "");
    table.done(2);
}

#[test]
fn nothing_is_launched_while_everything_stops() {
    let mut home = Home::new(&["hang"]);
    home.send().news();
    home.pass(Duration::from_secs(1));
    home.stop_beginning();
    home.scripted.kill();
    home.wait_long();
    assert_eq!(home.news(), "run.interrupted agent_exit; agent.exited");
    assert_eq!(home.scripted.launches(), 1);
}

#[test]
fn a_holder_that_does_not_answer_at_first_is_given_its_agent_later() {
    let mut home = Home::new(&["connect=hang"]);
    let mut table = Table::default();
    let held = "its agent's holder does not answer: ";
    table.row("launched", home.send(), "message.user; run.started; agent.launching", "running", held);
    home.scripted.mute(false);
    table.row("answers", home.wait_long(), "input.queued prompt; message.agent; run.completed", "idle", "");
    assert_eq!(home.scripted.launches(), 1);
    table.done(2);
}

#[test]
fn a_holder_whose_agent_was_never_started_waits_for_the_environment_too() {
    let setup = Setup { env_names: vec!["A_KEY".to_owned()], ..Setup::default() };
    let mut home = Home::with(setup, &["connect=hang"]);
    home.send();
    home.resume(&[("A_KEY", "x")]).expect("brought");
    home.news();
    home.daemon_ends();
    home.scripted.mute(false);
    home.restart();
    let mut table = Table::default();
    table.row("without", home.wait_long(), "", "running", "its agent needs A_KEY");
    home.resume(&[("A_KEY", "x")]).expect("brought");
    let news = "run.adopted; input.queued prompt; message.agent; run.completed";
    table.row("with", home.wait_long(), news, "idle", "");
    table.done(2);
}
