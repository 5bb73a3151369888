//! Forks, with real daemons and agents: made by a command, told the story, through restarts, and without their parent.

use serde_json::{Value, json};

use crate::lab::{Lab, wait_for};

/// Returns the numbers of a session's history as its events tell them, from the beginning to the end of a run.
fn followed(lab: &Lab, id: &str, ends: usize) -> Vec<u64> {
    let (mut events, mut seqs, mut ended) = (lab.follow(id, None), Vec::new(), 0);
    while ended < ends {
        let event = events.next().expect("it goes on");
        let seq: Option<u64> = event.id.as_deref().and_then(|id| id.split('.').next()?.parse().ok());
        seqs.extend(seq);
        ended += usize::from(seq.is_some() && event.event == "run.completed");
    }
    seqs
}

// I1, I4, I12: nothing is lost with the daemon or with the parent, and the fork's agent is told what happened.
#[test]
fn a_fork_outlives_daemons_and_its_parent() {
    let mut lab = Lab::new();
    let parent = lab.run("say one");
    lab.wait_end(&parent);
    let path = format!("/api/sessions/{parent}/messages");
    lab.post(&path, &json!({"content": "say two"}));
    wait_for("the second turn", || (lab.count(&parent, "run.completed") == 2).then_some(()));
    let history = lab.log(&parent);
    let first_run = history.iter().find(|record| record["kind"] == "run.completed").expect("a run");
    let cut = first_run["seq"].as_u64().expect("a number");
    let run = first_run["run_id"].as_str().expect("an id");
    let forked = lab.ran(&["fork", &parent, "--at", run, "--title", "Another way"]).exits(0);
    let child = forked.out.trim().to_owned();
    assert!(forked.err.contains("reprimed") && forked.err.contains(&format!("record {cut}")), "{forked:?}");
    // By the number of a record within the second run: the same place.
    let last_end = history.iter().rfind(|record| record["kind"] == "run.completed").expect("a run");
    let body = json!({"at": last_end["seq"].as_u64().expect("a number") - 1});
    let by_record = lab.post(&format!("/api/sessions/{parent}/fork"), &body);
    assert_eq!(by_record["session"]["forked_from"], json!({"session_id": parent, "seq": cut}));
    assert_eq!(by_record["verdict"], "reprimed");
    let own = |records: &[Value]| records[..cut as usize].to_vec();
    assert_eq!(own(&lab.log(&child)), own(&history));
    assert_eq!(lab.log(&child).len() as u64, cut + 1);
    let status = lab.ran(&["status", &child]).exits(0);
    assert!(status.out.contains(&format!("from {parent} after record {cut}")), "{status:?}");
    lab.restart();
    lab.post(&format!("/api/sessions/{child}/messages"), &json!({"content": "say three"}));
    lab.wait_end(&child);
    let restored = lab.log(&child).into_iter().find(|record| record["kind"] == "session.restored");
    assert_eq!(restored.expect("it is told")["verdict"], "reprimed");
    let told = lab.record();
    let prompt = told.iter().find(|line| line.contains("say three")).expect("its prompt");
    assert!(
        prompt.contains("Resume Context") && prompt.contains("say one") && !prompt.contains("say two"),
        "{prompt}"
    );
    let whole = lab.log(&child);
    assert_eq!(lab.ask("DELETE", &format!("/api/sessions/{parent}"), &Value::Null).status, 204);
    assert!(lab.home().join(format!("sessions/{child}.base.jsonl")).exists());
    assert_eq!(lab.log(&child), whole);
    lab.restart();
    assert_eq!(lab.log(&child), whole);
    let seqs = followed(&lab, &child, 2);
    assert_eq!(
        seqs,
        (1..=seqs.len() as u64).collect::<Vec<_>>(),
        "all of it, from the parent's first record on"
    );
    assert!(seqs.len() as u64 > cut);
    lab.leave();
    let log = lab.ran(&["log", &child, "--json"]).exits(0);
    let records: Vec<Value> = log.out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(records[..whole.len()], whole);
    lab.ran(&["doctor"]).exits(0);
}

#[test]
fn a_fork_that_cannot_be_made_says_why() {
    let lab = Lab::new();
    let id = lab.run("barrier here");
    lab.reach("here");
    let run = lab.show(&id)["run"]["run_id"].as_str().expect("a run").to_owned();
    let refused = lab.ran(&["fork", &id, "--at", &run]).exits(1);
    assert!(refused.err.contains("has not ended"), "{refused:?}");
    let refused = lab.ran(&["fork", &id, "--at", "yesterday"]).exits(1);
    assert!(refused.err.contains("name a run"), "{refused:?}");
    let refused = lab.ran(&["fork", &id, "--agent", "nobody"]).exits(2);
    assert!(refused.err.contains("rekindle agents"), "{refused:?}");
    // Of a session whose first run goes on nothing has ended yet: a fork begins anew.
    let forked = lab.ran(&["fork", &id, "--json"]).exits(0).json();
    assert_eq!((&forked["verdict"], &forked["session"]["forked_from"]["seq"]), (&json!("fresh"), &json!(1)));
    lab.pass("here");
    lab.wait_end(&id);
}
