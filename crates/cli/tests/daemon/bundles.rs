//! Bundles, with real daemons and agents: a session goes to another home, and goes on there.

use serde_json::json;

use crate::lab::Lab;

// I4: whoever answers there is told what happened, and the log says so.
#[test]
fn a_session_goes_to_another_home_and_goes_on_there() {
    let here = Lab::new();
    let id = here.run("say one");
    here.wait_end(&id);
    // Beside the daemon, while the agent lives.
    let bundle = here.home().with_file_name("session.rkb");
    let file = bundle.to_str().expect("text");
    let exported = here.ran(&["export", &id, "-o", file, "--json"]).exits(0).json();
    assert_eq!(exported["sessions"][0]["session_id"], json!(id));
    let again = here.ran(&["export", &id, "-o", file]).exits(2);
    assert!(again.err.contains("--force"), "{again:?}");

    let there = Lab::new();
    let work = there.home().with_file_name("elsewhere");
    std::fs::create_dir(&work).expect("a directory");
    let cwd = work.to_str().expect("text");
    let refused = there.ran(&["import", file, "--cwd", cwd]).exits(1);
    assert!(refused.err.contains("--trust-command"), "{refused:?}");
    let told = there.ran(&["import", file, "--cwd", cwd, "--trust-command", "--dry-run"]).exits(0);
    assert!(told.err.contains("would be imported"), "{told:?}");
    assert!(there.ran(&["status", &id]).err.contains("no session"));
    let imported = there.ran(&["import", file, "--cwd", cwd, "--trust-command"]).exits(0);
    assert_eq!(imported.out.trim(), id, "{imported:?}");
    // The daemon there knows it at once, and it is no other than it was.
    let (old, new) = (here.log(&id), there.log(&id));
    assert_eq!(new[..old.len()], old);
    assert_eq!(there.show(&id)["working_dir"], cwd);
    there.post(&format!("/api/sessions/{id}/messages"), &json!({"content": "say two"}));
    there.wait_end(&id);
    let restored = there.log(&id).into_iter().find(|record| record["kind"] == "session.restored");
    assert_eq!(restored.expect("it is told")["verdict"], "reprimed");
    // The agent's command came along, and with it where it writes down what it is told.
    let prompt = here.record().into_iter().find(|line| line.contains("say two")).expect("its prompt");
    assert!(prompt.contains("Resume Context") && prompt.contains("say one"), "{prompt}");
    // Once more: the id is taken, and the history is the same.
    let twice = there.ran(&["import", file, "--cwd", cwd, "--trust-command"]).exits(0);
    let other = twice.out.trim().to_owned();
    assert!(other != id && twice.err.contains("is here already"), "{twice:?}");
    assert_eq!(there.log(&other)[..old.len()], old);
    there.ran(&["doctor"]).exits(0);
}
