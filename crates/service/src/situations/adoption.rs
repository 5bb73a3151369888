//! Daemons that die while their agents work on, successors that take these over, and holders that do not answer.

use std::time::Duration;

use rekindle_domain::event::AgentNotice;
use rekindle_store::commit::Append;

use super::home::Home;
use super::table::Table;
use crate::drive::worker::Command;

// I4: an agent does not notice that its daemon was replaced, whatever it was at.
#[test]
fn a_successor_takes_over_an_agent_in_whatever_it_is_at() {
    let mut table = Table::default();
    for (life, done) in [
        ("greet=hang", ""),
        ("hang text end", "message.agent; run.completed"),
        ("text hang text end", "message.agent; run.completed"),
        ("tool hang done end", "tool.update; run.completed"),
        ("tool hang die", "run.interrupted agent_exit tools; agent.exited"),
    ] {
        for times in [1, 3] {
            let mut home = Home::new(&[life]);
            home.send().news();
            for _ in 0..times {
                home.restart();
            }
            let adopted = vec!["run.adopted"; times].join("; ");
            table.row(life, &mut home, &adopted, "running", "");
            if done.is_empty() {
                continue;
            }
            home.scripted.go_on();
            home.settle();
            table.is(life, &home.news(), done);
            assert_eq!(home.scripted.launches(), 1, "{life}");
        }
    }
    table.done(18);
}

// I4: however long its session is, whoever takes an agent over reads what was recorded since it was launched.
#[test]
fn an_agent_is_taken_over_without_reading_what_was_recorded_before_its_launch() {
    let mut home = Home::new(&["hang text end"]);
    let notice = || {
        let text = Some("x".repeat(16 << 10).into());
        AgentNotice { run_id: None, what: "words".into(), text, raw: None }.into()
    };
    for _ in 0..10 {
        let records = (0..64).map(|_| notice()).collect();
        home.store().append(Append::quick(home.session, records)).expect("recorded");
    }
    home.send().news();
    home.daemon_ends();
    home.start();
    let (log, last_seq) = (format!("{}.messages", home.session), home.state().last_seq);
    let before = home.disk.gate.bytes_read(&log);
    home.tell(Command::Look);
    home.settle();
    let read = home.disk.gate.bytes_read(&log) - before;
    assert_eq!(home.news(), "run.adopted");
    assert!(last_seq > 640 && read < 5 << 20, "{read} bytes were read, of 10 MiB before the launch");
    home.scripted.go_on();
    home.settle();
    assert_eq!(home.news(), "message.agent; run.completed");
    // The next prompt needs nothing of it either.
    let before = home.disk.gate.bytes_read(&log);
    home.send();
    let read = home.disk.gate.bytes_read(&log) - before;
    assert!(read < 1 << 20, "{read} bytes were read for a prompt");
}

// I4: what was said while nobody was there is in the log as if somebody had been.
#[test]
fn what_happens_while_nobody_is_there_is_recorded_by_the_next() {
    let mut table = Table::default();
    for (life, news, status) in [
        ("hang text end", "run.adopted; message.agent; run.completed", "idle"),
        (
            "hang tool done text end",
            "run.adopted; tool.call; tool.update; message.agent; run.completed",
            "idle",
        ),
        ("hang ask end", "run.adopted; tool.call; run.waiting", "waiting"),
        ("hang text die", "message.agent; run.interrupted agent_exit; agent.exited", "interrupted_agent"),
        ("hang tool die", "tool.call; run.interrupted agent_exit tools; agent.exited", "interrupted_agent"),
        ("hang text lost", "message.agent; run.interrupted holder_lost; agent.exited", "interrupted_startup"),
    ] {
        let mut home = Home::new(&[life]);
        home.send().news();
        home.daemon_ends();
        home.scripted.go_on();
        home.restart();
        let shown = format!("{} | {}", home.news(), home.status());
        table.is(life, &shown, &format!("{news} | {status}"));
    }
    table.done(6);
}

// I1: a message that was taken is done, even if the daemon dies before anyone has looked at it.
#[test]
fn a_message_that_nobody_has_looked_at_is_done_by_the_next_daemon() {
    let mut home = Home::new(&[]);
    home.send_only().news();
    let mut table = Table::default();
    let news = "run.adopted; agent.launching; input.queued prompt; message.agent; run.completed";
    table.row("new", home.restart(), news, "idle", "");
    home.send_only().news();
    let news = "run.adopted; input.queued prompt; message.agent; run.completed";
    table.row("with an agent", home.restart(), news, "idle", "");
    table.done(2);
}

// I9: a holder that does not answer is not dead.
#[test]
fn a_holder_that_does_not_answer_is_waited_for() {
    let mut table = Table::default();
    let held = "its agent's holder does not answer: cannot talk to the agent's holder";
    let mut home = Home::new(&["hang text end"]);
    home.send().news();
    home.daemon_ends();
    home.scripted.mute(true);
    home.restart();
    table.row("silent", &mut home, "", "running", held);
    table.is("silent", &home.proof(), "Some(Unresponsive)");
    table.row("for long", home.wait_long(), "", "running", held);
    table.is("for long", &home.proof(), "Some(Unresponsive)");
    home.scripted.mute(false);
    table.row("back", home.wait_long(), "run.adopted", "running", "");
    home.scripted.go_on();
    table.row("done", home.settle(), "message.agent; run.completed", "idle", "");
    assert_eq!(home.scripted.launches(), 1);
    table.done(6);
}

#[test]
fn a_holder_that_falls_silent_at_work_is_found_by_its_pulse() {
    let mut table = Table::default();
    let mut home = Home::new(&["hang text end"]);
    home.send().news();
    home.scripted.mute(true);
    home.pass(Duration::from_secs(5));
    table.is("silent", &home.proof(), "Some(Unresponsive)");
    home.scripted.mute(false);
    home.pass(Duration::from_secs(5));
    home.scripted.go_on();
    table.row("back", home.settle(), "message.agent; run.completed", "idle", "");
    table.is("back", &home.proof(), "Some(Lock)");
    table.done(3);
}

#[test]
fn holders_of_another_version_and_strangers_are_told_apart() {
    let mut table = Table::default();
    for (life, held) in [
        (
            "connect=old",
            "its agent's holder is from a different version of Rekindle and speaks versions 8 to 9",
        ),
        (
            "connect=stranger",
            "its agent's holder does not answer: the process at the holder's socket says that epoch 99 controls",
        ),
    ] {
        let mut home = Home::new(&[life]);
        table.row(life, home.send(), "message.user; run.started; agent.launching", "running", held);
        table.row(life, home.wait_long(), "", "running", held);
        assert!(!home.is_superseded());
    }
    table.done(4);
}

// A daemon that was replaced commands nobody and writes nothing more.
#[test]
fn a_daemon_whose_agent_another_commands_steps_back() {
    let mut home = Home::new(&["hang text end"]);
    home.send().news();
    home.scripted.take_away(9);
    home.pass(Duration::from_secs(10));
    assert!(home.is_superseded());
    home.wait_long();
    assert_eq!(home.news(), "");
}

#[test]
fn what_keeps_a_holder_from_reading_is_shown() {
    let mut home = Home::new(&["hang text end"]);
    home.send();
    home.scripted.trouble(Some("no room on the disk"));
    home.settle();
    assert_eq!(home.held(), "its agent is paused: no room on the disk");
    home.scripted.trouble(None);
    home.settle();
    assert_eq!(home.held(), "");
}
