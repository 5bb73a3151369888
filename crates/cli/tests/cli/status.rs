//! What `rekindle status` says.

use crate::support::{Home, code, stderr, stdout};

// I8: a status says since when it holds and how that is known; an interrupted one is no failure.
#[test]
fn every_status_says_since_when_and_how_it_is_known() {
    let home = Home::made_with(&["--sessions", "40", "--records", "30"]);
    let mut seen = std::collections::BTreeSet::new();
    for session in home.sessions() {
        let status = home.json(&["status", &session]);
        let word = status["status"].as_str().expect("a status").to_owned();
        assert!(status["since"].is_string() && status["evidence"]["last_seq"].is_u64(), "{status}");
        assert_eq!(status["health"]["state"], "ok");
        let output = home.run(&["status", &session]);
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        let text = stdout(&output);
        for row in ["session", "status", "since", "known by", "next"] {
            assert!(text.lines().any(|line| line.starts_with(row)), "{row} is missing:\n{text}");
        }
        assert!(text.contains(&word) && text.lines().all(|line| line.chars().count() <= 100), "{text}");
        seen.insert(word);
    }
    assert!(seen.contains("idle") && seen.iter().any(|word| word.starts_with("interrupted")), "{seen:?}");
    // I9: nobody has looked at the recorded holder, so it is not said to be dead.
    assert!(seen.contains("running") && seen.contains("waiting"), "{seen:?}");
}

// I12: a damaged session says so, with the byte and what to do.
#[test]
fn a_damaged_session_says_where_and_what_to_do() {
    let home = Home::made();
    let done = home.json(&["dev", "damage", "cut-below-snapshot"]);
    let path = done["path"].as_str().expect("a path");
    let session = home.sessions().into_iter().find(|id| path.contains(id)).expect("one of ours");
    let status = home.json(&["status", &session]);
    assert_eq!(status["health"]["state"], "damaged");
    assert_eq!(status["health"]["offset"], done["byte"]);
    let text = home.ok(&["status", &session]);
    let folded: Vec<&str> = text.split_whitespace().collect();
    let folded = folded.join(" ");
    assert!(folded.contains(&format!("damaged at byte {}", done["byte"])), "{text}");
    assert!(folded.contains("rekindle doctor"), "{text}");
}
