//! Damaged logs: whatever was going on, nothing is added to them, their agents work on until somebody ends them, and
//! everybody is told why nothing happens (I12).

use rekindle_wire::code::Code;
use rekindle_wire::view::HealthState;

use super::home::Home;
use super::table::Table;

const WHY: &str = "its log is damaged at byte ";

/// Lives of agents that are there when the log is found damaged, and those of whom nobody is left.
const LIVING: [&str; 4] = ["hang", "text hang", "tool hang", "ask end"];
const DEAD: [&str; 2] = ["die", "text die"];

fn damaged(life: &'static str) -> Home {
    let mut home = Home::new(&[life]);
    home.send();
    home.daemon_ends();
    home.rot(Some("run.started"));
    home
}

// I12: an agent whose log cannot be added to works on, and nothing of it is recorded.
#[test]
fn a_damaged_session_is_held_and_takes_nothing() {
    let mut table = Table::default();
    for life in LIVING.into_iter().chain(DEAD) {
        let mut home = damaged(life);
        home.restart();
        table.is(life, &home.held()[..WHY.len()], WHY);
        table.is(life, home.message().expect_err("damaged").code.as_str(), Code::SessionDamaged.as_str());
        table.is(life, home.cancel().expect_err("damaged").code.as_str(), Code::SessionDamaged.as_str());
        home.wait_long();
        table.is(life, &home.held()[..WHY.len()], WHY);
        table.is(life, &home.scripted.launches().to_string(), "1");
        let living = if LIVING.contains(&life) { "1" } else { "0" };
        table.is(life, &home.scripted.living().to_string(), living);
    }
    table.done(36);
}

// I12: what is forced to go ends with its agent, and nothing of it is destroyed.
#[test]
fn a_damaged_session_is_set_aside_with_its_agent_ended() {
    for life in LIVING.into_iter().chain(DEAD) {
        let mut home = damaged(life);
        home.restart().delete().expect("set aside");
        assert!(!home.is_there(), "{life}");
        assert_eq!(home.scripted.living(), 0, "{life}");
    }
}

// I12: whoever asks before anybody has looked after the session finds the damage, and is told why nothing happens.
#[test]
fn why_nothing_happens_is_shown_although_nobody_looks_after_the_session() {
    for life in LIVING.into_iter().chain(DEAD) {
        let mut home = damaged(life);
        let shown = home.start().shown();
        assert_eq!(shown.health.state, HealthState::Damaged, "{life}");
        assert!(shown.held.as_deref().is_some_and(|held| held.starts_with(WHY)), "{life}: {:?}", shown.held);
    }
    let mut home = Home::new(&["text hang"]);
    home.send();
    home.daemon_ends();
    home.rot(None);
    assert_eq!(home.start().shown().held, None, "nobody knows that anything was going on");
}
