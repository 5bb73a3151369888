//! How the process ends, or fails to: crashes, signals, the end of stdin, children left behind.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::Command;

use serde_json::json;

use crate::driver::{World, said, signal, wait_for};

#[test]
fn crashes_come_when_and_how_they_are_asked_for() {
    let world = World::new();
    let cases = [
        ("say one\ncrash\nsay two", Some(1), None, "one"),
        ("say one\ncrash 42\nsay two", Some(42), None, "one"),
        ("say one\ncrash-signal\nsay two", None, Some(9), "one"),
        ("say one\ncrash-before\nsay two", Some(1), None, ""),
    ];
    for (script, code, signal, expected) in cases {
        let mut agent = world.session(&[]);
        agent.prompt(script);
        let rest: Vec<_> =
            agent.rest().iter().map(|line| serde_json::from_slice(line).expect("a message")).collect();
        assert_eq!(said(&rest), expected, "{script}");
        assert!(rest.iter().all(|message| message.get("result").is_none()), "{script}");
        let status = agent.ended();
        assert_eq!((status.code(), status.signal()), (code, signal), "{script}");
    }

    let mut agent = world.session(&[]);
    let (_, reply) = agent.turn("crash-after\nsay still here");
    assert_eq!(reply["result"]["stopReason"], "end_turn");
    assert_eq!((agent.rest().len(), agent.ended().code()), (0, Some(1)));
}

#[test]
fn a_crash_in_mid_line_leaves_a_line_without_an_end() {
    let world = World::new();
    let mut agent = world.session(&[]);
    agent.prompt("say one\ncrash mid-line");
    let rest = agent.rest();
    let torn = rest.last().expect("a line");
    assert!(torn.starts_with(b"{") && !torn.ends_with(b"\n"));
    assert!(rest[..rest.len() - 1].iter().all(|line| line.ends_with(b"\n")));
    assert_eq!(agent.ended().code(), Some(1));
}

#[test]
fn the_end_of_stdin_ends_the_process_whatever_it_does() {
    let world = World::new();
    for script in ["hang", "hang deaf", "sleep 10m", "run sleep 60", "ask ever?", "poke", "words 3000000"] {
        let mut agent = world.session(&[]);
        agent.prompt(&format!("say begun\n{script}"));
        agent.heard("begun");
        agent.close_stdin();
        assert_eq!(agent.ended().code(), Some(0), "{script}");
    }
    let mut idle = world.session(&[]);
    idle.close_stdin();
    assert_eq!(idle.ended().code(), Some(0));
}

#[test]
fn a_lingering_agent_works_on_after_the_end_of_stdin() {
    let world = World::new();
    let mut agent = world.session(&[]);
    agent.prompt("eof-linger\nbarrier here\nappend log later");
    wait_for("the barrier is reached", || world.path("barriers/here.reached").exists());
    agent.close_stdin();
    fs::write(world.path("barriers/here.go"), "").expect("a file");
    wait_for("it works on", || world.file("log") == "later\n");
    assert!(agent.child.try_wait().expect("our child").is_none());
}

#[test]
fn a_barrier_stops_the_turn_until_it_is_opened() {
    let world = World::new();
    let mut agent = world.session(&[]);
    let id = agent.prompt("append log before\nbarrier gate\nappend log after");
    wait_for("the barrier is reached", || world.path("barriers/gate.reached").exists());
    assert_eq!(world.file("log"), "before\n");
    fs::write(world.path("barriers/gate.go"), "").expect("a file");
    agent.reply(id);
    assert_eq!(world.file("log"), "before\nafter\n");
}

#[test]
fn sigterm_ends_it_unless_a_script_says_otherwise() {
    let world = World::new();
    let mut agent = world.session(&[]);
    agent.prompt("say begun\nhang");
    agent.heard("begun");
    signal("TERM", agent.child.id());
    assert_eq!(agent.ended().signal(), Some(15));

    let record = world.path("record");
    let mut agent = world.session(&["--record", record.to_str().expect("a path")]);
    let id = agent.prompt("say begun\nignore-term\nbarrier deaf\nsay still here\nask go on?");
    // These arrive while the process is becoming another image of itself; none may be lost or come twice.
    let calls: Vec<u64> = (0..50).map(|_| agent.request("session/list", json!({}))).collect();
    wait_for("SIGTERM is ignored", || world.path("barriers/deaf.reached").exists());
    signal("TERM", agent.child.id());
    fs::write(world.path("barriers/deaf.go"), "").expect("a file");
    let mut before = Vec::new();
    let asked = loop {
        let message = agent.message();
        if message["method"] == "session/request_permission" {
            break message;
        }
        before.push(message);
    };
    assert!(said(&before).contains("still here"));
    agent.choose(&asked, "allow_once");
    let (more, reply) = agent.reply(id);
    assert_eq!(reply["result"]["stopReason"], "end_turn");
    before.extend(more);
    for call in calls {
        let answers =
            before.iter().filter(|message| message["id"] == call && message.get("method").is_none());
        assert_eq!(answers.count(), 1);
    }
    signal("TERM", agent.child.id());
    assert!(agent.call("session/list", json!({}))["result"].is_object());

    let text = fs::read_to_string(record).expect("the record");
    assert_eq!(text.lines().next(), Some(format!("pid {}", agent.child.id()).as_str()));
    assert_eq!(text.lines().filter(|line| line.starts_with("pid ")).count(), 1);
    assert_eq!(text.lines().filter(|line| line.contains("session/list")).count(), 51);
}

#[test]
fn the_record_has_each_line_once_for_each_process() {
    let world = World::new();
    let record = world.path("record");
    let flags = ["--record", record.to_str().expect("a path")];
    let mut pids = Vec::new();
    for _ in 0..2 {
        let mut agent = world.session(&flags);
        agent.turn("say one");
        agent.raw(b"half a line");
        agent.close_stdin();
        agent.ended();
        pids.push(agent.child.id());
    }
    let text = fs::read_to_string(record).expect("the record");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 10);
    for (process, pid) in lines.chunks(5).zip(pids) {
        assert_eq!(process[0], format!("pid {pid}"));
        assert!(process[1].contains("initialize") && process[2].contains("session/new"));
        assert!(process[3].contains("session/prompt"));
        assert_eq!(process[4], "torn half a line");
    }
}

/// A process that some agent left behind.
struct Grandchild(u32);

impl Grandchild {
    fn proc(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/{name}", self.0))
    }
}

impl Drop for Grandchild {
    fn drop(&mut self) {
        // It may be gone already, and a test that fails must not fail twice.
        let _ = Command::new("/bin/sh").args(["-c", &format!("kill -KILL {}", self.0)]).status();
    }
}

fn left_behind(world: &World, script: &str) -> (crate::driver::Agent, Grandchild) {
    let mut agent = world.session(&[]);
    agent.prompt(&format!("{script}\nbarrier born\ncrash"));
    agent.heard("grandchild");
    let pid = agent.heard("").parse().expect("a process id");
    let grandchild = Grandchild(pid);
    fs::write(world.path("barriers/born.go"), "").expect("a file");
    assert_eq!(agent.ended().code(), Some(1));
    (agent, grandchild)
}

#[test]
fn a_grandchild_holds_stdout_open_or_has_left_everything_behind() {
    let world = World::new();
    let (mut agent, grandchild) = left_behind(&world, "grandchild 60");
    let out = fs::read_link(grandchild.proc("fd/1")).expect("its stdout");
    assert!(out.to_string_lossy().starts_with("pipe:"));
    drop(grandchild);
    assert!(agent.rest().is_empty());

    let (mut agent, grandchild) = left_behind(&world, "grandchild 60 detach");
    // The end of stdout comes although the grandchild lives.
    assert!(agent.rest().is_empty());
    let stat = fs::read_to_string(grandchild.proc("stat")).expect("it lives");
    let session = stat.rsplit(") ").next().and_then(|rest| rest.split(' ').nth(3));
    assert_eq!(session, Some(grandchild.0.to_string().as_str()));
    for fd in ["fd/0", "fd/1", "fd/2"] {
        assert_eq!(fs::read_link(grandchild.proc(fd)).expect("a file"), PathBuf::from("/dev/null"));
    }
    let environment = fs::read(grandchild.proc("environ")).expect("its environment");
    assert!(String::from_utf8_lossy(&environment).contains("REKINDLE_DEMO_STATE="));
}
