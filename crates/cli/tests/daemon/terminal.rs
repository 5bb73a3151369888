//! What a person at a terminal sees and does: words as they come, questions, leaving, coming back, and a terminal that
//! is as it was afterwards.

use std::process::Command;

use rustix::process::Signal;

use crate::lab::{Lab, wait_for};
use crate::pty::{CTRL_C, ESC, Pty};

/// The end of the question's last line, which is never broken in between.
const PROMPT: &str = "it waiting):";

fn run(lab: &Lab, prompt: &str) -> Command {
    let mut command = lab.rekindle(&["run", prompt, "--"]);
    command.args(lab.demo(&[]));
    command
}

/// Returns a command that watches, as it does at a terminal that can only print.
fn watch(lab: &Lab, arguments: &[&str]) -> Command {
    let mut command = lab.rekindle(arguments);
    command.env("TERM", "dumb");
    command
}

/// Returns the only session.
fn session(lab: &Lab) -> String {
    lab.get("/api/sessions")["sessions"][0]["id"].as_str().expect("a session").to_owned()
}

/// Returns the numbers of the words that `words` says, in the order in which they are seen.
fn numbers(text: &str) -> Vec<usize> {
    let number = |word: &str| word.strip_prefix('w').and_then(|number| number.parse().ok());
    text.split_whitespace().filter_map(number).collect()
}

#[test]
fn words_are_seen_as_they_come_and_each_once() {
    let lab = Lab::new();
    let mut terminal = Pty::start(&run(&lab, "words 3\nbarrier here\nwords 4\nsay the end"), 80);
    terminal.see("w1 w2 w3");
    lab.reach("here");
    assert!(!terminal.is_as_before(), "keys come one by one");
    lab.pass("here");
    assert_eq!(terminal.end(), Some(0));
    assert_eq!(numbers(&terminal.text()), [1, 2, 3, 1, 2, 3, 4]);
    assert!(terminal.text().trim_end().ends_with("the end"), "{}", terminal.text());
}

#[test]
fn a_daemon_is_started_for_whoever_has_none() {
    let lab = Lab::without_daemon();
    let mut terminal = Pty::start(&run(&lab, "say hello"), 80);
    assert_eq!(terminal.end(), Some(0));
    assert!(terminal.text().contains("\nhello\n"), "{}", terminal.text());
    lab.get("/healthz");
}

#[test]
fn a_question_is_whole_is_answered_by_a_key_and_leaves_no_trace_of_its_prompt() {
    for columns in [80, 40] {
        let lab = Lab::new();
        let asked = "may I delete everything below the directory that is named build?";
        let mut terminal = Pty::start(&run(&lab, &format!("ask {asked}\nsay thank you")), columns);
        terminal.see(PROMPT);
        let text = terminal.text();
        assert!(text.split_whitespace().collect::<Vec<_>>().join(" ").contains(asked), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= usize::from(columns)), "{text}");
        for part in ["1  Allow", "2  Always allow", "3  Reject", "4  Always reject"] {
            assert!(text.contains(part), "{part} in\n{text}");
        }
        // A key that means nothing does nothing.
        terminal.press("9");
        terminal.press("1");
        assert_eq!(terminal.end(), Some(0), "{}", terminal.text());
        let text = terminal.text();
        assert!(text.contains("\nanswered: Allow\n") && text.contains("\nthank you\n"), "{text}");
        assert!(!text.contains("Esc cancels") && !text.contains("elsewhere"), "{columns}: {text}");
    }
}

#[test]
fn a_question_that_wants_words_takes_them() {
    let lab = Lab::new();
    let mut terminal = Pty::start(&run(&lab, "question favourite colour?"), 40);
    terminal.see("Ctrl-C leaves):");
    terminal.press("a very dark bluue\x7f\x7fe, almost black as the night");
    // What is typed is broken between words as it grows.
    terminal.see("leaves): a\n  very dark blue, almost black as the\n  night");
    terminal.press("\r");
    assert_eq!(terminal.end(), Some(0));
    let text = terminal.text();
    assert!(lab.said(&session(&lab)).contains("a very dark blue, almost black as the night"), "{text}");
    assert!(!text.contains("Esc cancels"), "{text}");
}

#[test]
fn two_questions_at_once_are_put_one_after_the_other() {
    let lab = Lab::new();
    let mut terminal = Pty::start(&run(&lab, "ask-two first? | second?\nsay both"), 80);
    terminal.see("for permission: first?");
    terminal.see(PROMPT);
    assert!(!terminal.text().contains("permission: second?"), "{}", terminal.text());
    terminal.press("y");
    terminal.see("for permission: second?");
    terminal.see(PROMPT);
    terminal.press("y");
    assert_eq!(terminal.end(), Some(0));
    assert!(terminal.text().contains("\nboth\n"), "{}", terminal.text());
}

// I7
#[test]
fn a_question_that_is_answered_elsewhere_vanishes() {
    let lab = Lab::new();
    let mut terminal = Pty::start(&run(&lab, "ask may I?\nbarrier here\nsay thank you"), 80);
    terminal.see(PROMPT);
    let answered = lab.rekindle(&["answer", "yes"]).output().expect("it runs");
    assert!(answered.status.success(), "{answered:?}");
    terminal.see("answered elsewhere by you: Allow");
    assert!(!terminal.text().contains(PROMPT), "{}", terminal.text());
    lab.reach("here");
    // The question is over: keys do nothing any more.
    terminal.press("1");
    lab.pass("here");
    assert_eq!(terminal.end(), Some(0));
    assert!(terminal.text().contains("\nthank you\n"), "{}", terminal.text());
    assert_eq!(lab.count(&session(&lab), "token.consumed"), 1);
}

// I4
#[test]
fn ctrl_c_leaves_and_attach_comes_back() {
    let lab = Lab::new();
    let mut terminal = Pty::start(&run(&lab, "say one\nbarrier here\nsay two"), 80);
    terminal.see("\none");
    lab.reach("here");
    terminal.press(CTRL_C);
    assert_eq!(terminal.end(), Some(130));
    let id = session(&lab);
    assert!(terminal.text().contains(&lab.hint(&format!("attach {}", &id[5..15]))), "{}", terminal.text());
    assert_eq!(lab.status(&id), "running");
    let mut again = Pty::start(&watch(&lab, &["attach"]), 80);
    again.see("> say one");
    lab.pass("here");
    assert_eq!(again.end(), Some(0));
    assert!(again.text().contains("\none\ntwo\n"), "{}", again.text());
    assert_eq!((lab.agents().len(), lab.prompted("say one")), (1, 1));
    let mut over = Pty::start(&watch(&lab, &["attach", &id]), 80);
    assert_eq!(over.end(), Some(0), "what is over is shown again");
    assert!(over.text().contains("\none\n") && over.text().contains("\ntwo\n"), "{}", over.text());
}

#[test]
fn ctrl_c_at_a_question_leaves_it_open() {
    let lab = Lab::new();
    let mut terminal = Pty::start(&run(&lab, "ask may I?\nsay thank you"), 40);
    terminal.see(PROMPT);
    terminal.press(CTRL_C);
    assert_eq!(terminal.end(), Some(130));
    assert!(!terminal.text().contains(PROMPT), "{}", terminal.text());
    let mut again = Pty::start(&watch(&lab, &["attach"]), 80);
    again.see(PROMPT);
    again.press("n");
    again.end();
    assert!(!lab.said(&session(&lab)).contains("thank you"));
}

// I13
#[test]
fn escape_cancels_the_run() {
    let lab = Lab::new();
    let mut terminal = Pty::start(&run(&lab, "say one\nsleep 60s\nsay two"), 80);
    terminal.see("\none");
    terminal.press(ESC);
    assert_eq!(terminal.end(), Some(1));
    let text = terminal.text();
    assert!(text.contains("cancelled") && !text.contains("\ntwo"), "{text}");
    assert_eq!(lab.wait_end(&session(&lab)), "cancelled");
}

#[test]
fn what_would_end_agents_at_logout_is_told_once_and_by_doctor_always() {
    let lab = Lab::new();
    let doctor = lab.ran(&["doctor", "--json"]).exits(0).json();
    // Whether there is anything to fear depends on the machine; that it is told does not.
    let danger =
        doctor["logout"]["remedy"].as_str().map(|remedy| remedy.get(..20).unwrap_or(remedy).to_owned());
    let told = |terminal: &Pty| danger.as_ref().is_some_and(|danger| terminal.text().contains(danger));
    let piped = lab.run_demo(&["say unseen"], crate::ran::Stdin::Nothing).exits(0);
    assert!(!piped.err.contains("warning: "), "what nobody reads is not told: {piped:?}");
    let mut first = Pty::start(&run(&lab, "say one"), 80);
    assert_eq!(first.end(), Some(0));
    assert_eq!((told(&first), first.text().contains("warning: ")), (danger.is_some(), danger.is_some()));
    let mut second = Pty::start(&run(&lab, "say two"), 80);
    assert_eq!(second.end(), Some(0));
    assert!(!second.text().contains("warning: "), "{}", second.text());
    assert_eq!(
        lab.ran(&["doctor", "--json"]).exits(0).json()["warnings"],
        0,
        "what was written is ours alone"
    );
    let again = lab.ran(&["doctor"]).exits(0);
    assert_eq!(
        danger.as_ref().is_some_and(|danger| again.out.contains(danger)),
        danger.is_some(),
        "{}",
        again.out
    );
}

#[test]
fn a_terminal_is_given_back_whoever_ends_the_command() {
    let lab = Lab::new();
    for (n, signal) in [Signal::TERM, Signal::INT, Signal::HUP].into_iter().enumerate() {
        let mut terminal = Pty::start(&run(&lab, &format!("say one\nbarrier b{n}")), 80);
        terminal.see("\none");
        terminal.wait_taken();
        terminal.signal(signal);
        assert_eq!(terminal.end(), Some(130), "{signal:?}");
        lab.pass(&format!("b{n}"));
    }
}

#[test]
fn a_run_that_fails_gives_the_terminal_back_too() {
    let lab = Lab::new();
    let mut terminal = Pty::start(&run(&lab, "say one\nrefuse not today"), 80);
    assert_eq!(terminal.end(), Some(1));
    assert!(terminal.text().contains("not today"), "{}", terminal.text());
}

// I4: at a stand-still and in mid-sentence.
#[test]
fn a_daemon_killed_under_a_watching_client_costs_no_word_and_repeats_none() {
    let mut lab = Lab::new();
    let mut terminal = Pty::start(&run(&lab, "words 20\nbarrier here\nwords 400 every 2ms"), 80);
    terminal.see("w20");
    lab.reach("here");
    lab.kill();
    terminal.see("the daemon went away");
    terminal.see("a daemon is running again");
    lab.pass("here");
    terminal.see("w100 ");
    lab.kill_described();
    assert_eq!(terminal.end(), Some(0), "{}", terminal.text());
    let text = terminal.text();
    let expected: Vec<usize> = (1..=20).chain(1..=400).collect();
    assert_eq!(numbers(&text), expected, "{text}");
    assert_eq!(text.matches("the daemon went away").count(), 2, "{text}");
    assert_eq!(lab.agents().len(), 1);
    let id = session(&lab);
    assert_eq!((lab.count(&id, "run.interrupted"), lab.count(&id, "run.started")), (0, 1));
}

#[test]
fn a_question_outlives_the_daemon_on_the_screen() {
    let mut lab = Lab::new();
    let mut terminal = Pty::start(&run(&lab, "ask may I?\nsay thank you"), 80);
    terminal.see(PROMPT);
    lab.kill();
    terminal.see("a daemon is running again");
    terminal.see(PROMPT);
    wait_for("the wait", || lab.get("/api/waits")["waits"].get(0).cloned());
    terminal.press("1");
    assert_eq!(terminal.end(), Some(0), "{}", terminal.text());
    let text = terminal.text();
    assert!(text.contains("\nthank you\n") && text.matches("asks for permission").count() == 1, "{text}");
}

#[test]
fn whoever_stops_the_daemon_is_obeyed_by_those_who_watch() {
    let lab = Lab::without_daemon();
    let mut terminal = Pty::start(&run(&lab, "say one\nbarrier here"), 80);
    terminal.see("\none");
    lab.reach("here");
    lab.ran(&["stop"]).exits(0);
    terminal.see("the daemon went away");
    lab.ran(&["restart"]).exits(0);
    terminal.see("a daemon is running again");
    lab.pass("here");
    assert_eq!(terminal.end(), Some(0), "{}", terminal.text());
}

#[test]
fn in_the_background_of_a_shell_nothing_is_asked_and_nothing_stops() {
    let lab = Lab::new();
    let run = run(&lab, "say one\nask may I?");
    let mut shell = Command::new("bash");
    shell.args(["-c", "set -m; \"$@\" & wait $!", "bash"]).arg(run.get_program()).args(run.get_args());
    let variables = run.get_envs().filter_map(|(name, value)| Some((name, value?)));
    shell.envs(variables).current_dir(lab.path("work"));
    let mut terminal = Pty::start(&shell, 80);
    assert_eq!(terminal.end(), Some(4), "{}", terminal.text());
    // It begins a row, and is whole.
    let answer = format!("answer with:\n{} wait_", lab.hint("answer"));
    assert!(terminal.text().contains(&answer), "{}", terminal.text());
}

#[test]
fn json_at_a_terminal_commands_nothing() {
    let lab = Lab::new();
    let id = lab.run("say \u{9b}31m\u{202e}evil");
    lab.wait_end(&id);
    for arguments in [&["log", &id, "--json"][..], &["ps", "--json"], &["status", &id, "--json"]] {
        let mut terminal = Pty::start(&lab.rekindle(arguments), 200);
        terminal.see("\\u009b31m\\u202eevil");
        assert_eq!(terminal.end(), Some(0));
        assert!(!terminal.text().contains(['\u{9b}', '\u{202e}']), "{arguments:?}");
    }
    let piped = lab.rekindle(&["log", &id, "--json"]).output().expect("it runs");
    assert!(String::from_utf8_lossy(&piped.stdout).contains("\u{202e}"), "a program gets it as it is");
}
