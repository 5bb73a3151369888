//! `rekindle ps --watch`: what a person sees who leaves it open, and what a program reads.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Stdio};
use std::sync::mpsc::{self, Receiver};

use rekindle_holder::identity::Identity;
use rekindle_holder::tree::signal_exactly;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::lab::{Lab, PATIENCE, wait_for};
use crate::pty::{CTRL_C, Pty};

fn watch(lab: &Lab, columns: u16) -> Pty {
    Pty::start(&lab.rekindle(&["ps", "--watch"]), columns)
}

#[test]
fn the_list_is_drawn_over_in_place_as_things_change_and_q_gives_the_terminal_back() {
    let lab = Lab::new();
    let mut terminal = watch(&lab, 100);
    terminal.see("no sessions");
    let id = lab.run("say one\nbarrier here\nsay two");
    terminal.see("1 session: 1 running");
    lab.reach("here");
    lab.pass("here");
    terminal.see("1 session: 1 idle");
    terminal.see_that("the last words", |text| text.contains("onetwo") || text.contains("two"));
    terminal.see_that("nothing of what was there before", |text| {
        text.matches("1 session").count() == 1 && !text.contains("no sessions") && !text.contains("running")
    });
    let asks = lab.run("ask may I?");
    terminal.see("2 sessions: 1 idle, 1 waiting");
    terminal.see_that("the one first to which something happened last", |text| {
        // The first line counts both.
        let rows: Vec<&str> = text.lines().skip(1).collect();
        let at = |status: &str| rows.iter().position(|row| row.contains(status));
        at("waiting").zip(at("idle")).is_some_and(|(waiting, idle)| waiting < idle)
    });
    for id in [&id, &asks] {
        assert_eq!(lab.ask("DELETE", &format!("/api/sessions/{id}?force=1"), &Value::Null).status, 204);
    }
    terminal.see("no sessions");
    terminal.press("x");
    terminal.press("q");
    assert_eq!(terminal.end(), Some(0));
    assert_eq!(terminal.text().trim(), "", "what was there before is there again");
}

#[test]
fn the_bell_rings_for_what_it_is_for_and_not_for_what_was_there() {
    let lab = Lab::new();
    lab.configure("[notify.sinks.desk]\ntype = \"bell\"\nevents = [\"waiting\"]\n");
    lab.run("ask may I?");
    wait_for("the question", || lab.get("/api/waits")["waits"].get(0).cloned());
    let mut terminal = Pty::start(&lab.configured(&["ps", "--watch"]), 100);
    terminal.see("1 session: 1 waiting");
    lab.run("say done");
    terminal.see("1 idle");
    assert_eq!(terminal.bells(), 0);
    lab.run("ask and may I?");
    terminal.see("3 sessions: 1 idle, 2 waiting");
    terminal.hear_bells(1);
    terminal.press("q");
    assert_eq!((terminal.end(), terminal.bells()), (Some(0), 1));
}

#[test]
fn ages_go_on_while_nothing_happens() {
    let lab = Lab::new();
    lab.run("barrier here");
    lab.reach("here");
    let mut terminal = watch(&lab, 100);
    for age in ["  2s  ", "  3s  "] {
        terminal.see(age);
    }
    terminal.press("q");
    assert_eq!(terminal.end(), Some(0));
}

#[test]
fn the_terminal_is_given_back_whoever_ends_it() {
    let lab = Lab::new();
    lab.run("say one");
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let mut terminal = watch(&lab, 80);
        terminal.see("1 session");
        terminal.signal(signal);
        assert_eq!(terminal.end(), Some(130), "{signal:?}");
        assert_eq!(terminal.text().trim(), "", "{signal:?}");
    }
    let mut terminal = watch(&lab, 80);
    terminal.see("1 session");
    terminal.press(CTRL_C);
    assert_eq!(terminal.end(), Some(130));
    assert_eq!(terminal.text().trim(), "");
}

#[test]
fn it_never_has_more_rows_or_columns_than_the_terminal() {
    let lab = Lab::new();
    let mut body = lab.session("");
    body.as_object_mut().expect("an object").remove("prompt");
    for n in 0..30 {
        body["title"] = json!(format!("{n} is the number of a session that has a rather long title"));
        lab.create(&body);
    }
    let fits = |columns: usize, rows: usize| {
        move |text: &str| {
            let lines: Vec<&str> = text.trim_end().lines().collect();
            let narrow = lines.iter().all(|line| line.chars().count() <= columns);
            lines.len() == rows && narrow && lines.last().is_some_and(|last| last.contains("more lines"))
        }
    };
    let mut terminal = watch(&lab, 80);
    terminal.see_that("a full screen", fits(80, 24));
    terminal.resize(30, 10);
    terminal.see_that("a smaller one", fits(30, 10));
    terminal.resize(120, 50);
    terminal.see_that("all of them", |text| text.lines().count() >= 32 && !text.contains("more lines"));
    terminal.press("q");
    assert_eq!(terminal.end(), Some(0));
}

// I4, I8
#[test]
fn a_daemon_that_dies_is_named_and_its_successor_is_followed() {
    let mut lab = Lab::new();
    lab.run("barrier here\nsay done");
    lab.reach("here");
    let mut terminal = watch(&lab, 100);
    terminal.see("1 session: 1 running");
    lab.kill();
    terminal.see("the daemon went away; agents keep working");
    terminal.see_that("read from disk", |text| text.contains("running"));
    assert!(!lab.daemon_described(), "whoever only looks starts none");
    lab.start();
    terminal.see("1 session: 1 running");
    assert!(!terminal.text().contains("went away"), "{}", terminal.text());
    lab.pass("here");
    terminal.see("1 session: 1 idle");
    terminal.press("q");
    assert_eq!(terminal.end(), Some(0));
}

#[test]
fn without_a_daemon_the_disk_is_shown_until_one_comes() {
    let mut lab = Lab::without_daemon();
    let mut terminal = watch(&lab, 100);
    terminal.see("no daemon answers");
    lab.start();
    lab.run("say one");
    terminal.see("1 session: 1 idle");
    terminal.press("q");
    assert_eq!(terminal.end(), Some(0));
}

/// A command whose lines are read as they come.
struct Piped {
    child: Child,
    lines: Receiver<String>,
}

impl Piped {
    fn start(lab: &Lab, arguments: &[&str]) -> Piped {
        let mut command = lab.rekindle(arguments);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("it starts");
        let lines = lines(child.stdout.take().expect("a pipe"));
        Piped { child, lines }
    }

    /// Reads on until a line is as wanted.
    #[track_caller]
    fn until(&self, what: &str, is: impl Fn(&str) -> bool) -> String {
        loop {
            let line =
                self.lines.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("waited in vain for {what}"));
            if is(&line) {
                return line;
            }
        }
    }

    /// Reads on until a document is as wanted.
    #[track_caller]
    fn document(&self, what: &str, is: impl Fn(&Value) -> bool) -> Value {
        let read = |line: &str| serde_json::from_str::<Value>(line).expect("a document on a line");
        read(&self.until(what, |line| is(&read(line))))
    }

    fn end(mut self) -> Option<i32> {
        let process = Identity::of(self.child.id().cast_signed()).expect("it lives");
        signal_exactly(&process, Signal::TERM).expect("asked");
        wait_for("its end", || self.child.try_wait().expect("looked")).code()
    }
}

impl Drop for Piped {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn lines(pipe: ChildStdout) -> Receiver<String> {
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        let lines = BufReader::new(pipe).lines();
        lines.map_while(Result::ok).all(|line| tell.send(line).is_ok())
    });
    told
}

#[test]
fn a_program_gets_a_document_for_each_change() {
    let mut lab = Lab::new();
    let watch = Piped::start(&lab, &["ps", "--watch", "--json"]);
    let first = watch.document("the first", |_| true);
    assert_eq!(first, json!({"daemon": true, "sessions": [], "next": null}));
    let id = lab.run("barrier here\nsay done");
    let status = |document: &Value, status: &str| document["sessions"][0]["status"] == status;
    let running = watch.document("the run", |document| status(document, "running"));
    assert_eq!(running["sessions"][0]["id"], id.as_str());
    lab.reach("here");
    lab.kill();
    let alone = watch.document("the end of the daemon", |document| document["daemon"] == false);
    assert!(status(&alone, "running"), "{alone}");
    lab.start();
    watch.document("the next daemon", |document| document["daemon"] == true);
    lab.pass("here");
    watch.document("the end of the run", |document| status(document, "idle"));
    assert_eq!(watch.end(), Some(130));
}

#[test]
fn a_pipe_gets_a_table_for_each_change_and_nothing_that_moves_a_cursor() {
    let lab = Lab::new();
    let watch = Piped::start(&lab, &["ps", "--watch"]);
    watch.until("an empty table", |line| line.starts_with("no sessions"));
    lab.run("say done");
    watch.until("the run's end", |line| {
        assert!(!line.contains('\x1b'), "{line:?}");
        line.contains("idle") && line.contains("done")
    });
    assert_eq!(watch.end(), Some(130));
}
