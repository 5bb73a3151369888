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
    // Nothing is left of any holder, and its processes are those of another boot: whatever was unfinished is cut.
    assert!(!seen.contains("running") && !seen.contains("waiting"), "{seen:?}");
}

// I9: a holder is dead only if that is proven: by a free lock, not by one that cannot be looked at.
#[test]
fn an_agent_is_gone_only_if_that_is_proven() {
    let home = Home::made_with(&["--sessions", "40", "--records", "30"]);
    let proof = |session: &str| home.json(&["status", session])["evidence"]["holder"].clone();
    let unfinished: Vec<(String, String)> = home
        .sessions()
        .into_iter()
        .filter_map(|id| Some((proof(&id)["id"].as_str()?.to_owned(), id)))
        .filter(|(_, id)| home.json(&["status", id])["run"]["ended_at"].is_null())
        .collect();
    let (holder, session) = unfinished.first().expect("an unfinished run");
    let directory = home.path().join("holders").join(holder);
    std::fs::create_dir_all(&directory).expect("a directory");
    let lock = std::fs::File::create(directory.join("lock")).expect("a lock");
    let told = |proof: &str, alive: bool, interrupted: bool| {
        let status = home.json(&["status", session]);
        assert_eq!(status["evidence"]["holder"]["proof"], proof, "{status}");
        assert_eq!(status["evidence"]["holder"]["alive"], alive, "{status}");
        let word = status["status"].as_str().expect("a status");
        assert_eq!(word.starts_with("interrupted"), interrupted, "{status}");
        let listed = home.json(&["ps", "-a"]);
        let all = listed["sessions"].as_array().expect("a list");
        let one = all.iter().find(|one| one["id"] == session.as_str()).expect("it is listed");
        assert_eq!((&one["status"], &one["evidence"]), (&status["status"], &status["evidence"]));
    };
    told("gone", false, true);
    lock.lock().expect("free");
    told("lock", true, false);
    lock.unlock().expect("ours");
    told("gone", false, true);
    std::fs::remove_file(directory.join("lock")).expect("removed");
    std::os::unix::fs::symlink("lock", directory.join("lock")).expect("a link to itself");
    told("unresponsive", true, false);
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
