//! Answer links as people get them: in a message that a real sink delivered, after one that was refused, and used from elsewhere.

use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use crate::answer_links::{Link, check_no_secret};
use crate::client::port;
use crate::hook_receiver::Receiver;
use crate::lab::{Lab, wait_for};

/// A hook that keeps what it is given, repeats it in an error, and fails.
const LOUD: &str = "tee $KEPT >&2; exit 1";

fn links(body: &Value) -> Vec<Link> {
    body["links"].as_array().expect("links").iter().map(Link::read).collect()
}

#[test]
fn a_link_in_a_message_answers_and_its_secret_stays_in_the_message() {
    let receiver = Receiver::start();
    receiver.refuses.store(1, Ordering::SeqCst);
    let mut lab = Lab::without_daemon();
    let kept = lab.path("kept.json");
    lab.set("HOOK_SECRET", "s3cret-of-the-hook");
    lab.set("KEPT", kept.display());
    lab.configure(&format!(
        "[notify]\nsettle = \"0s\"\nbase_url = \"https://box.example/rk/\"\n{}\
         [notify.sinks.loud]\ntype = \"command\"\ncommand = [\"sh\", \"-c\", {LOUD:?}]\nenv = [\"KEPT\"]\n",
        receiver.section("phone"),
    ));
    lab.start_with(&["--listen", "127.0.0.1:0"], &[]);
    let port = port(&lab);
    let id = lab.run("ask may I?\nsay done");
    wait_for("the message that was refused, and the one behind it", || {
        (receiver.bodies().len() == 2).then_some(())
    });
    let [refused, taken] = &receiver.bodies()[..] else { panic!("two messages") };
    assert_eq!(refused["event_id"], taken["event_id"]);
    let shown = wait_for("what the hook has said", || {
        let shown = lab.configured(&["notify", "log"]).output().expect("it runs");
        let text = String::from_utf8(shown.stdout).expect("text");
        text.contains("sh ended with").then_some(text)
    });
    let loud = serde_json::from_slice(&std::fs::read(&kept).expect("kept")).expect("JSON");
    let (old, new, loud) = (links(refused), links(taken), links(&loud));
    assert!(old.len() == 2 && new.len() == 2 && loud.len() == 2, "{old:?} {new:?} {loud:?}");

    // A message that was refused may have been read all the same; what it held is over.
    assert_eq!(old[0].answer(port).code(), (410, "token_revoked"));
    assert_eq!(lab.status(&id), "waiting");
    assert_eq!(loud[0].view(port).body["state"], "open", "each sink has its own");
    let allow = new.iter().find(|link| link.label == "Allow").expect("a link");
    assert_eq!(allow.view(port).body["state"], "open");
    assert_eq!(allow.answer(port).status, 202);
    assert_eq!(lab.wait_end(&id), "completed");
    assert_eq!(allow.answer(port).code(), (409, "token_consumed"));
    assert_eq!(loud[0].answer(port).code(), (410, "token_revoked"));
    receiver.wait_for("completed");
    let resumed = lab.log(&id).into_iter().find(|record| record["kind"] == "run.resumed").expect("a record");
    assert_eq!(resumed["how"], json!("answered"));

    let all: Vec<Link> = old.into_iter().chain(new).chain(loud).collect();
    check_no_secret(&lab, &all);
    for link in &all {
        assert!(!shown.contains(link.url.as_str()) && !shown.contains(&link.token), "{shown}");
    }
}
