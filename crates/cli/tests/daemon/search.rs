//! A search through what was said and done, as people and scripts ask for it.

use serde_json::{Value, json};

use crate::lab::Lab;

/// Returns an id without what all ids begin with.
fn bare(id: &str) -> &str {
    id.strip_prefix("sess_").expect("a session")
}

#[test]
fn what_was_said_and_done_is_found_with_and_without_a_daemon() {
    let mut lab = Lab::new();
    let first = lab.run("say the Flaky test is fixed");
    lab.wait_end(&first);
    let elsewhere = lab.path("elsewhere");
    std::fs::create_dir(&elsewhere).expect("a directory");
    let mut body = lab.session("say another flaky\nsay TEST");
    body["working_dir"] = json!(elsewhere);
    let second = lab.create(&body);
    lab.wait_end(&second);
    for daemon in [true, false] {
        let found = lab.ran(&["search", "flaky", "test", "--json"]).exits(0).json();
        let shown = |found: &Value| -> Vec<(String, String)> {
            let matches = found["matches"].as_array().expect("a list").iter();
            let text = |one: &Value, field: &str| one[field].as_str().expect("a word").to_owned();
            matches.map(|one| (text(one, "session_id"), text(one, "found_in"))).collect()
        };
        let ours = |id: &String, what: &str| (id.clone(), what.to_owned());
        let all = shown(&found);
        assert_eq!(all.first().map(|(id, _)| id), Some(&second), "the newest session first: {found}");
        for hit in [ours(&first, "agent"), ours(&first, "prompt"), ours(&second, "prompt")] {
            assert!(all.contains(&hit), "daemon {daemon}: {hit:?} in {found}");
        }
        assert_eq!((&found["next"], &found["unreadable"]), (&Value::Null, &json!(0)));
        let one = lab.ran(&["search", "flaky", "--limit", "1"]).exits(0);
        assert_eq!(one.out.lines().filter(|line| line.starts_with("  ")).count(), 1, "{}", one.out);
        assert!(!one.out.contains('\u{1b}'), "no colours in a pipe");
        let here = lab.ran(&["search", "flaky", "--dir", elsewhere.to_str().expect("UTF-8")]).exits(0);
        assert!(
            here.out.contains(&bare(&second)[..10]) && !here.out.contains(&bare(&first)[..10]),
            "{}",
            here.out
        );
        lab.ran(&["search", "flaky", "nowhere"]).exits(0).shows("nothing found");
        if daemon {
            lab.kill();
        }
    }
    assert!(!lab.daemon_described(), "a search starts nothing");
    lab.ran(&["search", " "]).exits(2).tells("at least one word");
}
