//! How a session is named on the command line.

use serde_json::Value;

use crate::support::{Home, code, stderr};

#[test]
fn a_unique_prefix_is_enough_with_or_without_its_beginning() {
    let home = Home::made();
    let whole = home.sessions().remove(3);
    let short = &whole[..whole.len() - 8];
    let bare = short.strip_prefix("sess_").expect("a session id");
    let log = home.ok(&["log", &whole, "--json"]);
    assert_eq!(home.ok(&["log", short, "--json"]), log);
    assert_eq!(home.ok(&["log", bare, "--json"]), log);
    assert_eq!(home.json(&["status", bare])["session_id"], whole.as_str());
}

#[test]
fn an_ambiguous_prefix_lists_the_candidates() {
    let home = Home::made();
    let sessions = home.sessions();
    let output = home.run(&["status", "sess_01"]);
    assert_eq!(code(&output), 2);
    let text = stderr(&output);
    assert!(text.contains("12 sessions begin with sess_01") && text.contains(&sessions[0]), "{text}");
}

#[test]
fn an_unknown_id_says_which_there_are() {
    let home = Home::made();
    let output = home.run(&["log", "sess_zzz"]);
    assert_eq!(code(&output), 2);
    let newest = home.sessions().pop().expect("a session");
    let text = stderr(&output);
    assert!(text.contains("no session's id begins with sess_zzz") && text.contains(&newest), "{text}");
}

#[test]
fn what_cannot_be_an_id_is_refused_before_anything_is_looked_up() {
    let home = Home::made();
    let before = home.picture();
    let huge = "a".repeat(100_000);
    let bad = [
        "../../etc/passwd",
        "/etc/passwd",
        "",
        "sess_",
        "sess_../../x",
        "sess_a.json",
        "sess_%2e%2e",
        "sess_\u{1b}[31m",
        "a b",
        "é",
        huge.as_str(),
    ];
    for id in bad {
        for command in ["log", "status"] {
            let output = home.run(&[command, "--json", "--", id]);
            assert_eq!(code(&output), 2, "{id:.60}");
            let text = stderr(&output);
            let error: Value = serde_json::from_str(&text).expect("an error object");
            assert_eq!(error["error"]["code"], "bad_session_id");
            assert!(text.len() < 500, "a huge id is not repeated whole");
            assert!(!stderr(&home.run(&[command, "--", id])).contains('\u{1b}'));
        }
    }
    before.assert_same(&home.picture(), "a bad id");
}

#[test]
fn wrong_usage_is_exit_code_two_also_as_json() {
    let home = Home::empty();
    for args in
        [&[][..], &["bogus"], &["log"], &["log", "x", "--from", "minus"], &["log", "x", "--text", "--json"]]
    {
        assert_eq!(code(&home.run(args)), 2, "{args:?}");
    }
    let output = home.run(&["bogus", "--json"]);
    let error: Value = serde_json::from_str(&stderr(&output)).expect("an error object");
    assert_eq!((code(&output), &error["error"]["code"]), (2, &Value::from("usage")));
    assert_eq!(code(&home.run(&["--help"])), 0);
}
