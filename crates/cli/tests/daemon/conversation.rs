//! A conversation at a terminal: what a person types, sees and answers, whatever dies meanwhile, and a terminal that is as it was
//! afterwards.

use std::process::Command;
use std::time::Instant;

use rekindle_testkit::screen::Screen;
use rustix::process::Signal;

use crate::lab::{Lab, PATIENCE};
use crate::pty::{CTRL_C, Pty};
use crate::ran::Stdin;

const CTRL_D: &str = "\x04";

/// A person who converses.
struct Talk {
    pty: Pty,
    screen: Screen,
    /// How much of what was written is on the screen.
    shown: usize,
}

impl Talk {
    fn begin(command: &Command, columns: u16) -> Talk {
        let pty = Pty::start(command, columns);
        Talk { pty, screen: Screen::new(usize::from(columns), 24), shown: 0 }
    }

    fn text(&mut self) -> String {
        let written = self.pty.written();
        self.screen.write(&written[self.shown..]);
        self.shown = written.len();
        self.screen.text()
    }

    #[track_caller]
    fn see(&mut self, wanted: &str) {
        self.see_that(wanted, |text| text.contains(wanted));
    }

    #[track_caller]
    fn see_that(&mut self, what: &str, is: impl Fn(&str) -> bool) {
        let begin = Instant::now();
        loop {
            let text = self.text();
            if is(&text) {
                return;
            }
            assert!(begin.elapsed() < PATIENCE, "{what:?} is not to be seen:\n{text}");
            self.pty.read();
        }
    }

    fn types(&mut self, text: &str) {
        self.pty.press(text);
    }

    fn resize(&mut self, columns: u16) {
        // What was written for the old size is on the screen before it has another.
        self.text();
        self.screen.resize(usize::from(columns), 24);
        let written = self.pty.written().len();
        self.pty.resize(columns, 24);
        // What is read from here on was drawn for the new one.
        let begin = Instant::now();
        while self.pty.written().len() == written {
            assert!(begin.elapsed() < PATIENCE, "nothing is drawn for another size");
            self.pty.read();
        }
    }

    #[track_caller]
    fn end(&mut self) -> Option<i32> {
        let code = self.pty.end();
        self.text();
        assert!(!self.screen.marks_pastes(), "the terminal is given back");
        code
    }
}

/// Has an agent work in the background; returns its session.
fn session(lab: &Lab, prompt: &str) -> String {
    let id = lab.run(prompt);
    lab.wait_end(&id);
    id
}

fn attach(lab: &Lab) -> Talk {
    Talk::begin(&lab.rekindle(&["attach"]), 80)
}

/// Returns the numbers of the words that `words` says, in the order in which they are seen.
fn numbers(text: &str) -> Vec<usize> {
    let number = |word: &str| word.strip_prefix('w').and_then(|number| number.parse().ok());
    text.split_whitespace().filter_map(number).collect()
}

#[test]
fn a_message_is_typed_and_its_answer_seen_and_leaving_says_how_to_come_back() {
    let lab = Lab::new();
    let id = session(&lab, "say first");
    let mut talk = attach(&lab);
    talk.see("\nfirst\n");
    talk.see("ready");
    talk.types("say sec\x7fcond\r");
    talk.see("\nsecond\n");
    // Two lines, as they are pasted: they are one message.
    talk.types("\x1b[200~say third\rsay fourth\x1b[201~");
    talk.see("> say third\n  say fourth");
    talk.types("\r");
    talk.see("\nfourth\n");
    talk.see("ready");
    talk.types(CTRL_C);
    talk.see("/cancel stops the agent");
    talk.types("/detach\r");
    assert_eq!(talk.end(), Some(0));
    let text = talk.text();
    assert!(
        text.contains(&lab.hint(&format!("attach {}", &id[5..15]))) && text.contains("left. Come back"),
        "{text}"
    );
    assert!(!text.contains("> \n") && !text.trim_end().ends_with('>'), "the line is gone: {text}");
    assert_eq!((lab.prompted("say second"), lab.count(&id, "message.user")), (1, 3));
}

/// Both are there when the conversation wakes up, and neither may wait for what comes next.
#[test]
fn a_key_that_comes_with_a_resize_is_heard_at_once() {
    let lab = Lab::new();
    session(&lab, "say first");
    let mut talk = attach(&lab);
    talk.see("ready");
    for round in 1..=40 {
        let columns: u16 = if round % 2 == 0 { 80 } else { 90 };
        talk.text();
        talk.screen.resize(usize::from(columns), 24);
        talk.pty.resize(columns, 24);
        talk.types("x");
        talk.see(&format!("> {}", "x".repeat(round)));
    }
    talk.types(CTRL_C);
    talk.types(CTRL_D);
    assert_eq!(talk.end(), Some(0));
}

// I4
#[test]
fn messages_wait_for_their_turn_and_are_shown_when_it_comes() {
    let lab = Lab::new();
    session(&lab, "say first");
    let mut talk = attach(&lab);
    talk.see("ready");
    talk.types("barrier here\r");
    lab.reach("here");
    talk.types("say later\r");
    talk.see("queued: say later");
    talk.see("1 queued");
    lab.pass("here");
    talk.see("> say later\nlater\n");
    talk.see_that("an empty queue", |text| !text.contains("queued"));
    talk.types("\x1b[200~say there\nsleep 60s\x1b[201~\r");
    talk.see("\nthere\n");
    talk.types("say never\r");
    talk.see("queued: say never");
    talk.types("/cancel\r");
    talk.see("taken out of the queue: say never");
    talk.see("ready");
    talk.types(CTRL_D);
    assert_eq!(talk.end(), Some(0));
    assert_eq!(lab.prompted("say never"), 0);
}

// I7
#[test]
fn a_question_is_answered_by_a_key_by_a_word_and_not_by_half_a_word() {
    let lab = Lab::new();
    let id = session(&lab, "say first");
    let mut talk = attach(&lab);
    talk.see("ready");
    talk.types("\x1b[200~ask may I?\nsay thank you\nask and now?\x1b[201~\r");
    talk.see("press 1-4, y or n");
    // The first of these keys would be an answer if the others did not follow.
    talk.types("no w");
    talk.see("> no w");
    assert_eq!(lab.count(&id, "token.consumed"), 0);
    talk.types("\x15");
    talk.see_that("an empty line", |text| text.trim_end().ends_with('>'));
    talk.types("1");
    talk.see("answered: Allow");
    talk.see("for permission: and now?");
    talk.see("press 1-4, y or n");
    talk.types("reject\r");
    talk.see("answered: Reject");
    talk.see("ready");
    talk.types(CTRL_D);
    assert_eq!(talk.end(), Some(0));
    let text = talk.text();
    assert!(text.contains("\nthank you\n") && !text.contains("elsewhere"), "{text}");
    assert_eq!(lab.count(&id, "token.consumed"), 2);
}

// I4: what was being typed stays, and no word is lost or repeated.
#[test]
fn a_daemon_killed_in_mid_word_costs_nothing() {
    let mut lab = Lab::new();
    let id = session(&lab, "say first");
    let mut talk = attach(&lab);
    talk.see("ready");
    talk.types("\x1b[200~words 20\nbarrier here\nwords 300 every 2ms\x1b[201~\r");
    talk.see("w20");
    lab.reach("here");
    talk.types("say half");
    talk.see("> say half");
    lab.kill();
    talk.see("a daemon is running again");
    talk.types(" a sentence");
    talk.see("> say half a sentence");
    lab.pass("here");
    talk.see("w100 ");
    lab.kill_described();
    talk.types("\r");
    talk.see("\nhalf a sentence\n");
    talk.see("ready");
    let expected: Vec<usize> = (1..=20).chain(1..=300).collect();
    let text = talk.text();
    assert_eq!(numbers(&text), expected, "{text}");
    assert_eq!((lab.count(&id, "message.user"), lab.prompted("say half a sentence")), (3, 1), "{text}");
    talk.types(CTRL_D);
    assert_eq!(talk.end(), Some(0));
}

#[test]
fn a_daemon_that_was_stopped_is_started_by_the_next_message() {
    let lab = Lab::without_daemon();
    lab.run_demo(&["say first"], Stdin::Nothing).exits(0);
    let mut talk = attach(&lab);
    talk.see("ready");
    lab.ran(&["stop"]).exits(0);
    talk.see("the daemon is gone");
    talk.types("say second\r");
    talk.see("\nsecond\n");
    talk.types(CTRL_D);
    assert_eq!(talk.end(), Some(0));
}

#[test]
fn a_window_of_another_size_keeps_what_was_said_and_what_is_typed() {
    let lab = Lab::new();
    session(&lab, "say first");
    let mut talk = attach(&lab);
    talk.see("ready");
    talk.types("words 30\r");
    talk.see("w30");
    talk.see("ready");
    talk.types("wor");
    talk.see_that("what is typed", |text| text.trim_end().ends_with("> wor"));
    for (columns, key, typed) in [(40, "d", "> word"), (100, "s", "> words")] {
        talk.resize(columns);
        talk.types(key);
        talk.see_that("what is typed", |text| text.trim_end().ends_with(typed));
        talk.see_that("one panel", |text| {
            let count = |what| text.matches(what).count();
            text.trim_end().ends_with(typed) && (count("ready"), count("\n> wor")) == (1, 2)
        });
    }
    talk.types(" 3\r");
    talk.see("w1 w2 w3\n");
    talk.types(CTRL_D);
    assert_eq!(talk.end(), Some(0));
    let expected: Vec<usize> = (1..=30).chain(1..=3).collect();
    let text = talk.text();
    assert_eq!(numbers(&text), expected, "{text}");
}

#[test]
fn commands_do_what_they_say() {
    let lab = Lab::new();
    let id = session(&lab, "write notes.md one");
    let mut talk = attach(&lab);
    // All of it was heard, and with it what the agent offers.
    talk.see("+one");
    talk.see("ready");
    talk.types("/help\r");
    talk.see("/rewind [yes]");
    talk.types("/mode\r");
    talk.see("yolo");
    talk.types("/mode y\t\r");
    talk.see("mode from now on: yolo");
    talk.types("\x1b[200~commands\nsay listed\x1b[201~\r");
    talk.see("\nlisted\n");
    talk.types("/rev\tthis\r");
    talk.see("> /review this");
    talk.see("ready");
    talk.types("/nosuch\r");
    talk.see("there is no command /nosuch");
    talk.types(CTRL_C);
    talk.types("/tasks\r");
    talk.see("no task is running or waiting");
    talk.types("\x1b[200~write notes.md two\nsay written\x1b[201~\r");
    talk.see("\nwritten\n");
    talk.see("ready");
    talk.types("/fork\r");
    talk.see("the conversation continues in 0");
    talk.types("say in the fork\r");
    talk.see("\nin the fork\n");
    talk.types(CTRL_D);
    assert_eq!(talk.end(), Some(0));
    assert!(
        !talk.text().contains(&lab.hint(&format!("attach {}\n", &id[5..15]))),
        "it is the fork to come back to"
    );
}

#[test]
fn a_terminal_is_given_back_whoever_ends_the_conversation() {
    let lab = Lab::new();
    session(&lab, "say first");
    for signal in [Signal::TERM, Signal::HUP] {
        let mut talk = attach(&lab);
        talk.see("ready");
        talk.pty.signal(signal);
        assert_eq!(talk.end(), Some(130), "{signal:?}");
    }
}

#[test]
fn where_nobody_can_converse_it_is_watched_as_before() {
    let lab = Lab::new();
    session(&lab, "say first");
    let mut dumb = lab.rekindle(&["attach"]);
    dumb.env("TERM", "dumb");
    let mut watched = Pty::start(&dumb, 80);
    assert_eq!(watched.end(), Some(0));
    assert!(watched.text().contains("\nfirst\n") && !watched.text().contains("ready"), "{}", watched.text());
    assert_eq!(lab.ran(&["attach"]).exits(0).out, "first\n");
    // Without a command there is nothing to do where nobody sits.
    lab.ran(&[])
        .exits(2)
        .tells("no conversation can be held here: stdin is no terminal")
        .tells("Usage: rekindle");
    let mut dumb = lab.rekindle(&[]);
    dumb.env("TERM", "dumb");
    let mut refused = Pty::start(&dumb, 80);
    assert_eq!(refused.end(), Some(2));
    let told = refused.text();
    assert!(told.trim_start().starts_with("no conversation can be held here: with TERM=dumb"), "{told}");
    assert!(told.contains("Usage: rekindle") && !told.contains("demo-agent"), "{told}");
}

#[test]
fn without_a_command_this_directory_s_session_goes_on() {
    let lab = Lab::new();
    session(&lab, "say first");
    let mut talk = Talk::begin(&lab.rekindle(&[]), 80);
    talk.see("\nfirst\n");
    talk.types("say second\r");
    talk.see("\nsecond\n");
    talk.types(CTRL_D);
    assert_eq!(talk.end(), Some(0));
}
