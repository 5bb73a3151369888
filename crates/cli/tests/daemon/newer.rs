//! Holders that a newer version made: they outlive downgrades too, and nobody is put beside them.

use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::path::Path;

use rekindle_holder::dir::{HolderDir, Launch};
use serde_json::{Value, json};

use crate::lab::{Lab, wait_for};

/// Listens as a holder would that speaks versions 2 to 7 only.
fn speak_newer(socket: &Path) {
    let listener = UnixListener::bind(socket).expect("bound");
    std::thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            let mut preamble = *b"RKHL\x02\0\x07\0\0\0\0\0\0\0\0\0";
            let _ = stream.write_all(&preamble);
            let _ = stream.read_exact(&mut preamble);
            // Whoever does not speak any of these hangs up.
            let _ = stream.read(&mut [0]);
        }
    });
}

// I4, I9, I10
#[test]
fn a_holder_of_a_newer_version_is_waited_for_and_nobody_is_put_beside_it() {
    let mut lab = Lab::new();
    let id = lab.run("barrier here\nsay one");
    lab.reach("here");
    let agents = lab.agents();
    lab.kill();
    // Where its own is found there is one that cannot be spoken to.
    let dir =
        rekindle_holder::client::inspect_all(&lab.home().join("holders")).expect("holders").remove(0).dir;
    let own = std::fs::read(dir.launch()).expect("a launch");
    let mut launch: Launch = HolderDir::read(&dir.launch()).expect("a launch");
    launch.socket = lab.path("run/newer.sock");
    speak_newer(&launch.socket);
    std::fs::write(dir.launch(), serde_json::to_vec(&launch).expect("plain")).expect("written");
    lab.start();
    let words = wait_for("what it is held by", || {
        lab.show(&id)["held"].as_str().filter(|held| held.contains("version")).map(str::to_owned)
    });
    assert!(words.contains("2 to 7") && words.contains("run that version"), "{words}");
    let shown = lab.show(&id);
    let proof = &shown["evidence"]["holder"]["proof"];
    assert_eq!((&shown["status"], proof), (&json!("running"), &json!("unresponsive")), "{shown}");
    let status = lab.rekindle(&["status", &id]).output().expect("it runs");
    let told = String::from_utf8_lossy(&[status.stdout, status.stderr].concat()).into_owned();
    assert!(told.contains("a different version"), "{told}");

    // The others are served; what is said to this one waits, and a resume starts nobody.
    let good = lab.run("say good");
    assert_eq!(lab.wait_end(&good), "completed");
    let said = json!({"content": "say two"});
    assert_eq!(lab.post(&format!("/api/sessions/{id}/messages"), &said)["queued"], true);
    let resume = |lab: &Lab| lab.ask("POST", &format!("/api/sessions/{id}/resume"), &Value::Null).status;
    resume(&lab);
    lab.restart();
    wait_for("the same words", || (lab.show(&id)["held"] == words.as_str()).then_some(()));
    assert_eq!(lab.count(&id, "agent.launching"), 1);
    assert_eq!(lab.living_agents().len(), agents.len() + 1, "its own and the good one's");

    // With a version that can speak to it everything goes on.
    std::fs::write(dir.launch(), own).expect("written");
    resume(&lab);
    lab.pass("here");
    wait_for("both turns", || (lab.count(&id, "run.completed") == 2).then_some(()));
    assert_eq!((lab.count(&id, "run.interrupted"), lab.count(&id, "agent.launching")), (0, 1));
    assert_eq!((lab.prompted("say one"), lab.prompted("say two")), (1, 1));
}
