//! Everybody is gone and nothing is left of the agent's holder: what can still be said is said, and no more.

use serde_json::{Value, json};

use crate::kills::kill;
use crate::lab::{Lab, wait_for};

/// Kills everybody and removes what the holder left, then starts a daemon.
fn lose_everything(lab: &mut Lab) {
    lab.kill();
    lab.kill_holders();
    lab.living_agents().into_iter().for_each(kill);
    std::fs::remove_dir_all(lab.home().join("holders")).expect("removed");
    lab.start();
}

// I13: a cancel that was recorded wins over the loss of whoever should have obeyed.
#[test]
fn a_cancelled_run_of_which_nothing_is_left_is_cancelled() {
    let mut lab = Lab::new();
    let id = lab.run("say one\nhang deaf");
    wait_for("its turn", || (lab.prompted("hang deaf") == 1).then_some(()));
    lab.post(&format!("/api/sessions/{id}/cancel"), &json!(null));
    assert_eq!(lab.show(&id)["run"]["state"], "cancelling");
    lose_everything(&mut lab);
    assert_eq!(lab.wait_end(&id), "cancelled");
    assert_eq!((lab.count(&id, "run.interrupted"), lab.count(&id, "run.cancelled")), (0, 1));
}

// I7: no token outlives the wait it was for.
#[test]
fn every_token_of_a_wait_of_which_nothing_is_left_is_revoked() {
    let mut lab = Lab::new();
    let id = lab.run("ask may I?\nsay thank you");
    lab.wait_status(&id, "waiting");
    let wait = lab.get("/api/waits")["waits"][0]["wait_id"].as_str().expect("an id").to_owned();
    let tokens = [(); 2].map(|()| lab.post(&format!("/api/waits/{wait}/token"), &Value::Null));
    lose_everything(&mut lab);
    assert_eq!(lab.wait_end(&id), "interrupted");
    for token in &tokens {
        let body = json!({"token": token["token"], "answer": {"option": "allow_once"}});
        let reply = lab.ask("POST", &format!("/api/sessions/{id}/resume"), &body);
        assert_eq!((reply.status, &reply.body["error"]["code"]), (410, &json!("token_revoked")));
    }
    assert_eq!(lab.count(&id, "token.revoked"), 3, "its own, and the further ones");
}
