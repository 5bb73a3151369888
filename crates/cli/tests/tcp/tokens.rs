//! Tokens across restarts and kills, on a damaged disk, and in the middle of being made.

use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::{Events, Token, ask, listening, port, words};
use crate::lab::{Lab, holds};

fn list(lab: &Lab) -> Vec<Value> {
    let output = lab.rekindle(&["token", "ls", "-a", "--json"]).output().expect("it runs");
    assert!(output.status.success(), "{}", words(&output));
    let list: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    list["tokens"].as_array().expect("a list").clone()
}

fn status(port: u16, token: &Token) -> u16 {
    ask(port, "GET", "/api/version", Some(token), &Value::Null).status
}

// I1
#[test]
fn a_token_outlives_daemons_and_the_one_that_comes_next_listens_where_the_last_did() {
    let (mut lab, first) = listening();
    let token = Token::create(&lab, &["--name", "ci"]);
    assert_eq!(status(first, &token), 200);
    // Killed: its successor was told nothing, and listens at the same port.
    lab.kill();
    lab.start();
    assert_eq!((port(&lab), status(first, &token)), (first, 200));
    let restarted = lab.rekindle(&["restart"]).output().expect("it runs");
    assert!(restarted.status.success(), "{}", words(&restarted));
    lab.died();
    assert_eq!((port(&lab), status(first, &token)), (first, 200));
    let listed = list(&lab);
    assert_eq!((listed.len(), &listed[0]["name"], &listed[0]["scope"]), (1, &json!("ci"), &json!("read")));
    // One that was stopped in order is over, and so is its port.
    assert!(lab.rekindle(&["stop"]).status().expect("it runs").success());
    lab.start();
    assert_eq!(crate::client::port_if_any(&lab), None);
    assert!(std::net::TcpStream::connect(("127.0.0.1", first)).is_err());
    let mode = lab.home().join("access.json").metadata().expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(!holds(&lab.home(), token.secret()));
}

#[test]
fn when_a_token_was_last_used_is_known_after_an_orderly_restart() {
    let (mut lab, port) = listening();
    let (used, unused) = (Token::create(&lab, &[]), Token::create(&lab, &[]));
    assert_eq!(status(port, &used), 200);
    lab.leave();
    let last = |token: &Token| {
        list(&lab).into_iter().find(|one| one["id"] == token.id.as_str()).expect("listed")["last_used_at"]
            .clone()
    };
    assert!(last(&used).is_string() && last(&unused).is_null());
    let shown = lab.rekindle(&["token", "ls"]).output().expect("it runs");
    assert!(words(&shown).contains("used ") && words(&shown).contains("never used"), "{}", words(&shown));
}

#[test]
fn what_is_taken_back_is_refused_at_once_and_its_streams_end() {
    let (lab, port) = listening();
    let id = lab.run("barrier here\nsay done");
    lab.reach("here");
    let (taken, kept) = (Token::create(&lab, &[]), Token::create(&lab, &[]));
    let path = format!("/api/sessions/{id}/events");
    let mut ends = Events::follow(port, &path, &taken, None);
    let mut ends_too = Events::follow(port, "/api/events", &taken, None);
    let mut stays = Events::follow(port, &path, &kept, None);
    assert!(ends.next_id().is_some() && stays.next_id().is_some());
    taken.revoke(&lab);
    assert_eq!(ask(port, "GET", "/api/version", Some(&taken), &Value::Null).code(), (410, "token_revoked"));
    while ends.next_id().is_some() {}
    assert!(ends_too.next_id().is_none());
    // The other one hears the rest.
    lab.pass("here");
    assert_eq!(lab.wait_end(&id), "completed");
    let newest = lab.show(&id)["last_seq"].as_u64().expect("a number");
    let reached = |id: String| id.split('.').next().and_then(|seq| seq.parse::<u64>().ok()) == Some(newest);
    while !reached(stays.next_id().expect("the stream goes on")) {}
}

#[test]
fn a_stream_ends_with_the_time_of_its_token() {
    let (lab, port) = listening();
    let id = lab.run("barrier here");
    lab.reach("here");
    let begin = Instant::now();
    let token = Token::create(&lab, &["--ttl", "3s"]);
    let mut events = Events::follow(port, &format!("/api/sessions/{id}/events"), &token, None);
    while events.next_id().is_some() {}
    let lasted = begin.elapsed();
    assert!(lasted >= Duration::from_secs(3), "{lasted:?}");
    assert_eq!(status(port, &token), 410);
}

// I10, I12
#[test]
fn a_list_that_cannot_be_read_lets_in_nobody_and_stops_nobody_here() {
    let (mut lab, first) = listening();
    let token = Token::create(&lab, &["--scope", "admin"]);
    let file = lab.home().join("access.json");
    let whole = std::fs::read(&file).expect("a list");
    let torn = whole[..whole.len() / 2].to_vec();
    let newer = String::from_utf8(whole.clone()).expect("text").replace("\"version\":1", "\"version\":2");
    for (what, bytes, says) in [
        ("torn", torn, "not a list of access tokens"),
        ("empty", Vec::new(), "not a list of access tokens"),
        ("garbage", b"\xff\x00garbage".to_vec(), "not a list of access tokens"),
        ("newer", newer.into_bytes(), "newer than version 1"),
    ] {
        // Both a daemon that runs and one that starts with it.
        std::fs::write(&file, &bytes).expect("written");
        for start in [false, true] {
            if start {
                lab.kill();
                lab.start();
            }
            assert_eq!(port(&lab), first);
            let reply = ask(first, "GET", "/api/version", Some(&token), &Value::Null);
            assert_eq!(reply.code(), (503, "tokens_unreadable"), "{what}");
            assert_eq!(ask(first, "GET", "/healthz", None, &Value::Null).status, 200);
            assert_eq!(lab.get("/healthz")["status"], "ok");
        }
        assert!(lab.daemon_log().contains(says), "{what}");
        for arguments in [&["token", "ls"][..], &["token", "create"], &["token", "revoke", &token.id]] {
            let output = lab.rekindle(arguments).output().expect("it runs");
            assert_eq!(output.status.code(), Some(1), "{what}");
            assert!(
                words(&output).contains(says) && words(&output).contains("nothing was changed"),
                "{}",
                words(&output)
            );
        }
        assert_eq!(std::fs::read(&file).expect("a list"), bytes, "{what}: left as it was");
        let doctor = lab.rekindle(&["doctor"]).output().expect("it runs");
        assert!(
            words(&doctor).contains("access.json") && words(&doctor).contains(says),
            "{}",
            words(&doctor)
        );
    }
    // Put right, it is good again, without a restart.
    std::fs::write(&file, &whole).expect("written");
    assert_eq!(status(first, &token), 200);
}

// I1: a token that was shown is there; one whose maker died was not shown.
#[test]
fn dying_while_a_token_is_made_or_taken_back_leaves_the_list_before_or_after() {
    let lab = Lab::without_daemon();
    let first = Token::create(&lab, &[]);
    // What a crash in the middle of writing leaves is neither read nor in the way.
    std::fs::write(lab.home().join("access.json.tmp"), "{\"version\":1,\"tok").expect("written");
    let die = |place: &str, arguments: &[&str]| {
        let output = lab.rekindle(arguments).env("REKINDLE_CRASH_AT", place).output().expect("it runs");
        assert!(!output.status.success() && words(&output).contains(place), "{}", words(&output));
        assert!(!words(&output).contains("tok_"), "nothing was shown: {}", words(&output));
    };
    die("access.before", &["token", "create"]);
    assert_eq!(list(&lab).len(), 1);
    die("access.after", &["token", "create"]);
    assert_eq!(list(&lab).len(), 2);
    let stands = || {
        list(&lab).into_iter().find(|one| one["id"] == first.id.as_str()).expect("listed")["standing"].clone()
    };
    die("access.before", &["token", "revoke", &first.id]);
    assert_eq!(stands(), "active");
    die("access.after", &["token", "revoke", &first.id]);
    assert_eq!(stands(), "revoked");
}

#[test]
fn tokens_that_are_made_at_the_same_time_are_all_there() {
    let lab = Lab::without_daemon();
    Token::create(&lab, &[]);
    let making: Vec<_> = (0..12)
        .map(|_| {
            lab.rekindle(&["token", "create"]).stdout(std::process::Stdio::null()).spawn().expect("it runs")
        })
        .collect();
    for mut one in making {
        assert!(one.wait().expect("it ends").success());
    }
    assert_eq!(list(&lab).len(), 13);
}

#[test]
fn what_makes_no_sense_is_refused_with_words() {
    let lab = Lab::without_daemon();
    let token = Token::create(&lab, &[]);
    for (arguments, says) in [
        (&["create", "--ttl", "soon"][..], "or never"),
        (&["create", "--scope", "root"], "read"),
        (&["create", "--name", "a b"], "letters"),
        (&["revoke", "tok_zzz"], "begins with"),
        (&["revoke", "tok_"], "begins with"),
        (&["revoke", ""], "begins with"),
    ] {
        let output = lab.rekindle(&["token"]).args(arguments).output().expect("it runs");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", words(&output));
        assert!(words(&output).contains(says), "{arguments:?}: {}", words(&output));
    }
    Token::create(&lab, &[]);
    let both = lab.rekindle(&["token", "revoke", "0"]).output().expect("it runs");
    assert!(words(&both).contains("2 access tokens begin with"), "{}", words(&both));
    token.revoke(&lab);
    let again = lab.rekindle(&["token", "revoke", &token.id]).output().expect("it runs");
    assert!(again.status.success() && words(&again).contains("it was before"));
    let shown = words(&lab.rekindle(&["token", "ls"]).output().expect("it runs"));
    assert!(shown.contains("1 expired or revoked token hidden") && !shown.contains(&token.id), "{shown}");
}
