//! The commands around a session, as scripts use them: each with the real daemon, most of them without one too.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::lab::{Lab, wait_for};
use crate::ran::{Stdin, ran};

/// Returns an id without what all ids begin with.
fn bare(id: &str) -> &str {
    id.strip_prefix("sess_").expect("a session")
}

#[test]
fn ps_lists_what_goes_on_with_and_without_a_daemon() {
    let mut lab = Lab::new();
    let none = lab.ran(&["ps"]).exits(0);
    assert!(none.out.contains("no sessions") && none.out.contains("rekindle run"), "{none:?}");
    let idle = lab.run("say done");
    lab.wait_end(&idle);
    let waiting = lab.run("ask may I?");
    lab.wait_status(&waiting, "waiting");
    let elsewhere = lab.path("elsewhere");
    std::fs::create_dir(&elsewhere).expect("a directory");
    let mut body = lab.session("barrier here");
    body["working_dir"] = json!(elsewhere);
    let running = lab.create(&body);
    lab.reach("here");
    for daemon in [true, false] {
        let listed = lab.ran(&["ps"]).exits(0);
        for (id, status) in [(&idle, "idle"), (&waiting, "waiting"), (&running, "running")] {
            let is =
                |line: &&str| line.split_whitespace().next().is_some_and(|word| bare(id).starts_with(word));
            let line = listed.out.lines().find(is).unwrap_or_else(|| panic!("{id}: {listed:?}"));
            assert!(line.contains(status), "daemon {daemon}: {line}");
        }
        assert!(listed.out.contains("~/work") && listed.out.contains("~/elsewhere"), "{}", listed.out);
        assert!(!listed.out.contains("debug/rekindle"), "a program is known by its name: {}", listed.out);
        let here = lab.ran(&["ps", "--here"]).exits(0);
        assert!(!here.out.contains("  running") && here.out.contains("waiting"), "{}", here.out);
        let json = lab.ran(&["ps", "--json", "--here"]).exits(0).json();
        let ids: Vec<&str> = json["sessions"]
            .as_array()
            .expect("a list")
            .iter()
            .filter_map(|one| one["id"].as_str())
            .collect();
        assert_eq!(ids, [waiting.as_str(), idle.as_str()], "the newest first");
        if daemon {
            lab.kill();
        }
    }
    assert!(!lab.daemon_described(), "looking starts nothing");
}

#[test]
fn ps_leaves_out_what_has_been_idle_for_long() {
    let mut lab = Lab::new();
    let recent = lab.run("say done");
    lab.wait_end(&recent);
    lab.kill();
    // One of last year, as the first versions wrote them.
    let records = [
        r#"{"seq":1,"ts":"2025-02-21T10:01:25.000Z","kind":"session.created","title":"Old","working_dir":"/old","provider":{"type":"acp","agent":"claude"}}"#,
        r#"{"seq":2,"ts":"2025-02-21T10:01:26.000Z","kind":"message.user","message_id":"msg_1","content":"hello"}"#,
    ];
    let path = lab.home().join("sessions/sess_01aaa.messages.jsonl");
    std::fs::write(path, records.map(|record| format!("{record}\n")).concat()).expect("written");
    for daemon in [false, true] {
        if daemon {
            lab.start();
        }
        let few = lab.ran(&["ps"]).exits(0);
        let hint = format!("1 idle session not shown: {}", lab.hint("ps -a"));
        assert!(few.out.contains(&hint), "{daemon}: {}", few.out);
        assert!(few.out.contains("~/work") && !few.out.contains("01aaa"), "{}", few.out);
        let all = lab.ran(&["ps", "-a"]).exits(0);
        assert!(all.out.contains("01aaa") && all.out.contains("~/work"), "{}", all.out);
    }
}

#[test]
fn status_says_what_how_it_is_known_and_what_to_do() {
    let mut lab = Lab::new();
    let id = lab.run("ask may I?");
    let waiting = lab.wait_status(&id, "waiting");
    let wait = waiting["waits"][0]["wait_id"].as_str().expect("a wait").to_owned();
    let told = lab.ran(&["status"]).exits(0);
    for part in [id.as_str(), "waiting", "known by", "may I?", &lab.hint(&format!("answer {wait}"))] {
        assert!(told.out.contains(part), "{part}: {}", told.out);
    }
    assert_eq!(lab.ran(&["status", "--json"]).exits(0).json()["status"], "waiting");
    lab.kill();
    let told = lab.ran(&["status"]).exits(0);
    assert!(told.out.contains("waiting") && told.out.contains(&id), "{}", told.out);
    assert_eq!(lab.ran(&["status", "--json"]).exits(0).json()["id"], id.as_str());
}

// I8, I9
#[test]
fn without_a_daemon_it_is_said_which_agents_live() {
    let mut lab = Lab::new();
    let (lives, dies) = (lab.run("say one\nbarrier one"), lab.run("say two\nbarrier two"));
    lab.reach("one");
    lab.reach("two");
    let holder = lab.show(&dies)["evidence"]["holder"]["pid"].as_i64().expect("a process") as i32;
    lab.kill();
    let told = lab.ran(&["status", &dies]).exits(0);
    assert!(told.out.contains("running, its agent keeps working; no daemon"), "{}", told.out);
    let listed = lab.ran(&["ps"]).exits(0);
    assert!(listed.out.contains("no daemon answers; 2 agents keep running"), "{}", listed.out);
    crate::kills::kill(holder);
    let told = lab.ran(&["status", &dies]).exits(0);
    for part in [
        "interrupted_startup",
        "its agent is gone",
        "agent process has exited (confirmed",
        &lab.hint("resume"),
    ] {
        assert!(told.out.contains(part), "{part}: {}", told.out);
    }
    let listed = lab.ran(&["ps", "--json"]).exits(0).json();
    let status = |id: &str| {
        let all = listed["sessions"].as_array().expect("a list");
        let one = all.iter().find(|one| one["id"] == id).expect("it is listed");
        (one["status"].clone(), one["evidence"]["holder"]["alive"].clone())
    };
    assert_eq!(status(&dies), (json!("interrupted_startup"), json!(false)));
    assert_eq!(status(&lives), (json!("running"), json!(true)));
    assert!(!lab.daemon_described(), "looking starts nothing");
}

// I4
#[test]
fn a_daemon_that_dies_while_it_is_asked_hides_nothing() {
    let mut lab = Lab::new();
    let id = lab.run("ask may I?");
    lab.wait_status(&id, "waiting");
    lab.kill();
    // It takes connections, and is gone before it answers: for ever, or until its successor is there.
    let socket = lab.path("run/dying");
    let listener = std::os::unix::net::UnixListener::bind(&socket).expect("a socket");
    let dying = std::thread::spawn(move || listener.incoming().take_while(Result::is_ok).take(200).count());
    let path = lab.home().join("daemon.json");
    let described = std::fs::read(&path).expect("the dead one's description");
    let mut place: Value = serde_json::from_slice(&described).expect("JSON");
    place["socket"] = json!(socket);
    std::fs::write(&path, place.to_string()).expect("written");
    for arguments in [&["ps"][..], &["status"], &["waits"], &["status", &id, "--json"]] {
        let told = lab.ran(arguments).exits(0);
        assert!(told.out.contains("wait") && told.err.is_empty(), "{told:?}");
    }
    let mut asking = lab.rekindle(&["status", "--json"]);
    let asked = std::thread::spawn(move || ran(&mut asking, Stdin::Nothing));
    lab.start();
    assert_eq!(asked.join().expect("it ran").exits(0).json()["status"], "waiting");
    drop(dying);
}

// I8
#[test]
fn a_run_that_failed_or_is_cancelled_says_so_with_and_without_a_daemon() {
    let mut lab = Lab::new();
    let failed = lab.run("refuse not today");
    let cancelled = lab.run("barrier never");
    lab.reach("never");
    assert_eq!(lab.wait_end(&failed), "failed");
    lab.ran(&["cancel", &cancelled]).exits(0);
    assert_eq!(lab.wait_end(&cancelled), "cancelled");
    // One that hears nothing any more cannot obey.
    let stubborn = lab.create(&json!({
        "working_dir": lab.path("work"), "prompt": "x",
        "agent": {"profile": "exec", "command": ["sh", "-c", "trap '' TERM INT; touch heard; sleep 60 & wait; sleep 60"]},
    }));
    wait_for("the agent", || lab.path("work/heard").exists().then_some(()));
    lab.post(&format!("/api/sessions/{stubborn}/cancel"), &json!({}));
    for daemon in [true, false] {
        let told = lab.ran(&["status", &failed]).exits(0);
        assert!(
            told.out.contains("idle, last run failed: ") && told.out.contains("not today"),
            "{}",
            told.out
        );
        let told = lab.ran(&["status", &cancelled]).exits(0);
        assert!(told.out.contains("idle, last run was cancelled by you"), "{}", told.out);
        let json = lab.ran(&["status", &failed, "--json"]).exits(0).json();
        assert_eq!((&json["status"], &json["run"]["state"]), (&json!("idle"), &json!("failed")), "{json}");
        assert!(json["run"]["detail"].as_str().is_some_and(|detail| detail.contains("not today")), "{json}");
        let listed = lab.ran(&["ps"]).exits(0);
        for part in ["idle, failed", "    last run failed: not today", "idle, cancelled", "cancelling"] {
            assert!(listed.out.contains(part), "daemon {daemon}: {part}: {}", listed.out);
        }
        let json = lab.ran(&["status", &stubborn, "--json"]).exits(0).json();
        assert_eq!(
            (&json["status"], &json["run"]["state"]),
            (&json!("running"), &json!("cancelling")),
            "{json}"
        );
        let told = lab.ran(&["status", &stubborn]).exits(0);
        assert!(told.out.contains("its run is being cancelled"), "{}", told.out);
        if daemon {
            lab.kill();
        }
    }
}

#[test]
fn waits_are_listed_and_answered_by_number_word_or_text() {
    let mut lab = Lab::new();
    let none = lab.ran(&["waits"]).exits(0);
    assert!(none.out.contains("no open questions"), "{none:?}");
    lab.ran(&["answer", "yes"]).exits(1).tells("there are no open questions");
    let first = lab.run("ask first?\nsay thanks");
    lab.wait_status(&first, "waiting");
    let listed = lab.ran(&["waits"]).exits(0);
    for part in ["first?", "1  Allow", "3  Reject", &lab.hint("answer wait_"), &first] {
        assert!(listed.out.contains(part), "{part}: {}", listed.out);
    }
    let second = lab.run("question colour?");
    lab.wait_status(&second, "waiting");
    lab.ran(&["answer", "yes"]).exits(2).tells("2 open questions match").tells(&first).tells(&second);
    lab.ran(&["answer", &first, "perhaps"]).exits(2).tells("perhaps").tells("2  Always allow");
    lab.kill();
    let offline = lab.ran(&["waits"]).exits(0);
    assert!(offline.out.contains("first?") && offline.out.contains("colour?"), "{}", offline.out);
    assert_eq!(lab.ran(&["waits", "--json"]).exits(0).json()["waits"].as_array().map(Vec::len), Some(2));
    lab.start();
    lab.ran(&["answer", &first, "reject_once"]).exits(0).tells(&lab.hint("attach"));
    lab.wait_end(&first);
    assert!(!lab.said(&first).contains("thanks"));
    let answered = lab.ran(&["answer", "--text", "deep red", "--json"]).exits(0).json();
    assert!(answered["run_id"].is_string(), "{answered}");
    lab.wait_end(&second);
    assert!(lab.said(&second).contains("deep red"), "{}", lab.said(&second));
}

// I7
#[test]
fn whoever_answers_too_late_is_told_who_was_faster() {
    let lab = Lab::new();
    let id = lab.run("ask may I?\nbarrier here\nsay thanks");
    let wait = lab.wait_status(&id, "waiting")["waits"][0]["wait_id"].as_str().expect("a wait").to_owned();
    lab.ran(&["answer", &wait, "yes"]).exits(0);
    lab.reach("here");
    let late = lab.ran(&["answer", &wait, "no"]).exits(1);
    late.tells("too late: it was answered by you: Allow; your answer (Reject) was not used")
        .tells(&id[5..15]);
    let late = lab.ran(&["answer", &wait, "no", "--json"]).exits(1);
    assert_eq!(late.error_code(), "token_consumed");
    // Whoever did not hear that it was taken may say it again.
    let same = lab.ran(&["answer", &wait, "yes"]).exits(0);
    let same = same.tells("it was already answered by you: Allow, with the same answer");
    assert!(!same.err.contains("too late"), "{same:?}");
    let same = lab.ran(&["answer", &wait, "yes", "--json"]).exits(0).json();
    assert_eq!(same["run_id"], lab.show(&id)["run"]["run_id"]);
    lab.pass("here");
    lab.wait_end(&id);
    let asks = lab.run("question colour?");
    let wait = lab.wait_status(&asks, "waiting")["waits"][0]["wait_id"].as_str().expect("a wait").to_owned();
    lab.ran(&["answer", &wait, "--text", "deep red"]).exits(0);
    lab.wait_end(&asks);
    let late = lab.ran(&["answer", &wait, "--text", "blue"]).exits(1);
    late.tells("it was answered by you: deep red; your answer (blue) was not used");
    lab.ran(&["answer", &wait, "--text", "deep red"]).exits(0).tells("with the same answer");
    assert_eq!((lab.count(&id, "run.resumed"), lab.count(&asks, "run.resumed")), (1, 1));
    lab.ran(&["answer", "wait_01zzz", "no"]).exits(1).tells("there are no open questions");
}

// I8, I9
#[test]
fn a_wait_whose_agent_is_gone_is_void_and_the_open_one_is_meant() {
    let mut lab = Lab::new();
    let mut body = lab.session("ask first?");
    body["resume"] = json!("never");
    let dies = lab.create(&body);
    let wait = lab.wait_status(&dies, "waiting")["waits"][0]["wait_id"].as_str().expect("a wait").to_owned();
    let lives = lab.run("ask second?\nsay thanks");
    lab.wait_status(&lives, "waiting");
    let holder = lab.show(&dies)["evidence"]["holder"]["pid"].as_i64().expect("a process") as i32;
    lab.kill();
    crate::kills::kill(holder);
    for daemon in [false, true] {
        if daemon {
            lab.start();
            lab.wait_status(&dies, "interrupted_waiting");
        }
        let json = lab.ran(&["waits", "--json"]).exits(0).json();
        let states = json["waits"].as_array().expect("a list").iter();
        let states: Vec<_> = states.map(|wait| (wait["session_id"].clone(), wait["state"].clone())).collect();
        let expected = [(json!(dies), json!("void")), (json!(lives), json!("open"))];
        assert_eq!(states, expected, "daemon {daemon}");
        let listed = lab.ran(&["waits"]).exits(0).out;
        let new_run = format!("an answer starts a new run: {}", lab.hint(&format!("answer {wait}")));
        assert!(listed.contains("void: its agent is gone") && listed.contains(&new_run), "{listed}");
        assert_eq!(listed.matches("answer with: ").count(), 1, "{listed}");
        assert_eq!(lab.ran(&["status", &dies, "--json"]).exits(0).json()["waits"][0]["state"], "void");
        let told = lab.ran(&["status", &dies]).exits(0).out;
        let told = told.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(told.contains("its agent is gone: an answer starts a new run"), "{told}");
    }
    lab.ran(&["answer", "yes"]).exits(0).tells(&lab.hint(&format!("attach {}", &lives[5..15])));
    assert_eq!(lab.wait_end(&lives), "completed");
}

// I5
#[test]
fn send_goes_to_this_directorys_latest_session_or_to_a_beginning() {
    let lab = Lab::new();
    lab.ran(&["send", "say hello"]).exits(2).tells("no session works in");
    let id = lab.run("say one");
    lab.wait_end(&id);
    assert_eq!(lab.ran(&["send", "say two"]).exits(0).out, "two\n");
    assert_eq!(lab.ran(&["send", bare(&id), "say three"]).exits(0).out, "three\n");
    let piped = ran(&mut lab.rekindle(&["send", &id, "-"]), Stdin::Text("say four"));
    assert_eq!(piped.exits(0).out, "four\n");
    std::fs::write(lab.path("work/task.md"), "say five\n").expect("a file");
    assert_eq!(lab.ran(&["send", &id, "-f", "task.md"]).exits(0).out, "five\n");
    lab.ran(&["send", "--detach", "barrier here"]).exits(0).tells("sent").tells(&id[5..15]);
    lab.reach("here");
    lab.ran(&["send", "-d", "say six"]).exits(0).tells("queued");
    let queued: Value = lab.ran(&["send", "-d", "say seven", "--json"]).exits(0).json();
    assert_eq!(queued["queued"], true);
    lab.pass("here");
    wait_for("all of it", || lab.said(&id).ends_with("seven").then_some(()));
    assert_eq!(lab.said(&id), "onetwothreefourfivesixseven");
    lab.ran(&["send"]).exits(2).tells("the message is missing");
}

/// I12: `diff` and `rewind` without an id mean what somebody did last, and not a session whose agent has just ended.
#[test]
fn the_latest_session_is_the_one_that_was_used_last() {
    let mut lab = Lab::new();
    let older = lab.run("say one");
    lab.wait_end(&older);
    let its_agent = lab.agents();
    let newer = lab.run("say two");
    lab.wait_end(&newer);
    let latest = |lab: &Lab| lab.ran(&["status", "--json"]).exits(0).json()["id"].clone();
    assert_eq!(latest(&lab), newer.as_str());
    its_agent.iter().for_each(|pid| crate::kills::kill(*pid));
    wait_for("its end", || (lab.count(&older, "agent.exited") == 1).then_some(()));
    assert_eq!(latest(&lab), newer.as_str());
    lab.kill();
    assert_eq!(latest(&lab), newer.as_str(), "without a daemon");
    lab.start();
    lab.ran(&["send", &older, "say three"]).exits(0);
    assert_eq!(latest(&lab), older.as_str());
}

#[test]
fn beginnings_of_ids_must_mean_one_session() {
    let lab = Lab::new();
    let ids = [lab.run("say one"), lab.run("say two")];
    let common = bare(&ids[0]).bytes().zip(bare(&ids[1]).bytes()).take_while(|(a, b)| a == b).count();
    let shared = bare(&ids[0])[..common].to_owned();
    let several = lab.ran(&["status", &shared]).exits(2).tells("2 sessions begin with");
    assert!(ids.iter().all(|id| several.err.contains(id)), "{several:?}");
    for id in &ids {
        lab.wait_end(id);
        let told = lab.ran(&["status", &bare(id)[..=common]]).exits(0);
        assert!(told.out.contains(id.as_str()), "{told:?}");
    }
    lab.ran(&["status", "zz"]).exits(2).tells("zz");
}

// I13
#[test]
fn cancel_ends_the_run_and_the_session_goes_on() {
    let lab = Lab::new();
    let id = lab.run("sleep 60s");
    lab.wait_status(&id, "running");
    wait_for("the prompt", || (lab.prompted("sleep 60s") == 1).then_some(()));
    lab.ran(&["cancel"]).exits(0);
    assert_eq!(lab.wait_end(&id), "cancelled");
    lab.ran(&["cancel"]).exits(1).tells("error: ");
    lab.ran(&["attach"]).exits(1).tells("cancelled");
    assert_eq!(lab.ran(&["send", "say again"]).exits(0).out, "again\n");
}

#[test]
fn rm_removes_what_is_over_and_by_force_what_is_not() {
    let lab = Lab::new();
    let (over, goes_on) = (lab.run("say done"), lab.run("barrier here"));
    lab.wait_end(&over);
    lab.reach("here");
    lab.ran(&["rm", &over, "01zzz"]).exits(2).tells("01zzz");
    lab.ran(&["rm", &goes_on]).exits(1).tells("error: ").tells(&lab.hint(&format!("rm --force {goes_on}")));
    let removed = lab.ran(&["rm", &over]).exits(0);
    assert!(removed.out.contains(&over), "{removed:?}");
    let removed = lab.ran(&["rm", "--force", "--json", &goes_on]).exits(0).json();
    assert_eq!(removed["removed"], goes_on.as_str());
    lab.ran(&["status", &goes_on]).exits(2);
    wait_for("an empty list", || lab.ran(&["ps", "-a"]).exits(0).out.contains("no sessions").then_some(()));
}

#[test]
fn nobody_is_started_to_remove_what_is_not_there() {
    let mut lab = Lab::without_daemon();
    lab.ran(&["rm", "xx"]).exits(2);
    assert!(!lab.home().exists(), "nothing is made for it");
    lab.start();
    let over = lab.run("say done");
    lab.wait_end(&over);
    lab.leave();
    lab.ran(&["rm", &over, "xx"]).exits(2).tells("no session's id begins with sess_xx");
    assert!(!lab.daemon_described());
    lab.ran(&["rm", &over]).exits(0);
}

// I3, I4
#[test]
fn a_log_is_followed_across_daemons() {
    let mut lab = Lab::new();
    let id = lab.run("say one\nbarrier here\nsay two");
    lab.reach("here");
    let mut follow = lab.rekindle(&["log", "-f", "--json"]);
    let mut child = follow.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let mut next = move || -> Value {
        let line = lines.next().expect("another record").expect("text");
        serde_json::from_str(&line).expect("JSON")
    };
    let mut followed = vec![next()];
    lab.restart();
    lab.pass("here");
    while followed.last().is_some_and(|record| record["kind"] != "run.completed") {
        followed.push(next());
    }
    let seqs: Vec<u64> = followed.iter().filter_map(|record| record["seq"].as_u64()).collect();
    assert_eq!(seqs, (1..=followed.len() as u64).collect::<Vec<_>>());
    assert_eq!(lab.count(&id, "run.adopted"), 1);
    lab.ran(&["rm", &id]).exits(0);
    let status = wait_for("the end of the log", || child.try_wait().expect("looked"));
    assert_eq!(status.code(), Some(0), "a log that is removed has been followed to its end");
}

#[test]
fn log_prints_what_was_said_and_verbatim_records() {
    let lab = Lab::new();
    let id = lab.run("say hello\x1b[2J there");
    lab.wait_end(&id);
    let text = lab.ran(&["log"]).exits(0);
    assert!(text.out.contains("hello there") && !text.out.contains('\x1b'), "{}", text.out);
    let json = lab.ran(&["log", &id, "--json"]).exits(0);
    assert_eq!(json.out.lines().count(), lab.log(&id).len());
    assert_eq!(lab.ran(&["log", "--json", "--last", "2"]).exits(0).out.lines().count(), 2);
}

// I4
#[test]
fn restart_and_stop_leave_agents_at_work_and_stop_all_ends_them() {
    let lab = Lab::without_daemon();
    let id =
        lab.run_demo(&["-d", "say one\nbarrier here\nsay two\nbarrier there"], Stdin::Nothing).exits(0).out;
    let id = id.trim_end();
    lab.reach("here");
    let before = lab.get("/api/version");
    let replaced = lab.ran(&["restart", "--json"]).exits(0).json();
    assert_ne!(replaced["pid"], before["pid"], "{replaced}");
    assert_eq!(replaced["agents"], 1, "{replaced}");
    lab.ran(&["restart"]).exits(0).tells("1 agent kept running");
    lab.pass("here");
    lab.reach("there");
    lab.ran(&["stop"]).exits(0).tells("1 agent keeps running");
    assert!(!lab.daemon_described());
    let agent = rekindle_holder::identity::Identity::of(lab.agents()[0]).expect("it lives");
    lab.ran(&["log", "-f"]).exits(5);
    lab.ran(&["stop"]).exits(0).tells("no daemon is running; 1 agent keeps running without one");
    assert!(!lab.daemon_described());
    // Without a daemon too.
    lab.ran(&["stop", "--all"]).exits(0).tells("with every agent");
    assert!(rekindle_holder::tree::await_end(&agent, crate::lab::PATIENCE).expect("looked"));
    assert!(!lab.daemon_described());
    let told = lab.ran(&["status", id]).exits(0);
    assert!(told.out.contains("idle"), "{told:?}");
    assert_eq!(lab.agents().len(), 1);
}

#[test]
fn nothing_is_started_only_to_be_stopped() {
    let lab = Lab::without_daemon();
    for arguments in [&["stop"][..], &["stop", "--all"]] {
        lab.ran(arguments).exits(0).tells("no daemon and no agent is running");
        assert!(!lab.home().exists(), "nothing is made for it");
    }
    assert_eq!(lab.ran(&["stop", "--all", "--json"]).exits(0).json()["stopped"], false);
    lab.ran(&["restart"]).exits(0).tells("no agent was running");
    lab.ran(&["stop"]).exits(0).tells("stopped; no agent is running");
    let before =
        std::fs::metadata(lab.home().join("logs/daemon.log")).expect("a log").modified().expect("a time");
    lab.ran(&["stop", "--all"]).exits(0).tells("nothing to stop");
    let after =
        std::fs::metadata(lab.home().join("logs/daemon.log")).expect("a log").modified().expect("a time");
    assert_eq!(before, after, "nobody was started");
}

#[test]
fn a_daemon_of_another_version_is_noted_once_and_works() {
    let lab = Lab::new();
    let path = lab.home().join("daemon.json");
    let mut place: Value = serde_json::from_slice(&std::fs::read(&path).expect("there")).expect("JSON");
    place["version"] = json!("0.0.1-\u{1b}[2Jold");
    std::fs::write(&path, place.to_string()).expect("written");
    let ran = lab.run_demo(&["say hello"], Stdin::Nothing).exits(0);
    assert_eq!(ran.out, "hello\n");
    let notes: Vec<&str> = ran.err.lines().filter(|line| line.starts_with("note: ")).collect();
    assert!(
        matches!(notes.as_slice(), [note] if note.contains("0.0.1-old") && note.contains("rekindle restart")),
        "{notes:?}"
    );
    let ran = lab.ran(&["restart"]).exits(0).tells(env!("CARGO_PKG_VERSION"));
    assert!(!ran.err.contains("rekindle restart"), "whoever restarts needs no such advice: {}", ran.err);
    let ran = lab.ran(&["ps"]).exits(0);
    assert_eq!(ran.err, "");
}

#[test]
fn a_machine_on_which_nothing_was_ever_asked_has_empty_lists() {
    let lab = Lab::without_daemon();
    let none = lab.ran(&["ps"]).exits(0);
    assert!(none.out.contains("no sessions") && none.err.is_empty(), "{none:?}");
    assert_eq!(lab.ran(&["ps", "--json"]).exits(0).json(), json!({"sessions": [], "next": null}));
    let none = lab.ran(&["waits"]).exits(0);
    assert!(none.out.contains("no open questions") && none.err.is_empty(), "{none:?}");
    assert!(!lab.home().exists(), "nothing is made for it");
}

#[test]
fn ids_in_lists_are_of_one_length() {
    let lab = Lab::new();
    let mut seen = std::collections::BTreeSet::new();
    for number in 0..4 {
        let id = lab.run(&format!("say {number}"));
        lab.wait_end(&id);
        let listed = lab.ran(&["ps"]).exits(0);
        let ids = listed.out.lines().filter(|line| line.starts_with("01"));
        seen.extend(ids.filter_map(|line| Some(line.split_whitespace().next()?.len())));
    }
    assert_eq!(seen.len(), 1, "{seen:?}");
}
