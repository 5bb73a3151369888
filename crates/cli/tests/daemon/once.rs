//! Requests with a key, many at the same time: what they ask for happens once.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::lab::{Lab, Reply, wait_for};

const CALLERS: usize = 16;

/// Asks for the same thing with the same key from many sides; all are answered alike.
fn at_once(lab: &Lab, path: &str, body: &Value) -> Value {
    let ask = || lab.try_ask("POST", path, "Idempotency-Key: one\r\n", body).expect("an answer");
    let replies: Vec<Reply> = std::thread::scope(|scope| {
        let callers: Vec<_> = (0..CALLERS).map(|_| scope.spawn(ask)).collect();
        callers.into_iter().map(|caller| caller.join().expect("no panic")).collect()
    });
    assert!(replies.iter().all(|reply| matches!(reply.status, 201 | 202)));
    let bodies: HashSet<String> = replies
        .iter()
        .map(|reply| reply.body.get("message_id").or(reply.body.get("id")).expect("an id").to_string())
        .collect();
    assert_eq!(bodies.len(), 1, "{bodies:?}");
    replies.into_iter().next().expect("a reply").body
}

// I5: asked for many times at once, done once.
#[test]
fn of_many_requests_with_one_key_one_makes_a_session_and_the_others_find_it() {
    let lab = Lab::new();
    let made = at_once(&lab, "/api/sessions", &lab.session("say hello"));
    let id = made["id"].as_str().expect("an id");
    lab.wait_end(id);
    assert_eq!(lab.get("/api/sessions")["sessions"].as_array().map(Vec::len), Some(1));
    assert_eq!(lab.prompted("say hello"), 1);
}

// I5: the same of messages, in a session that is at rest and in one that is busy.
#[test]
fn of_many_messages_with_one_key_one_is_taken_at_rest_and_in_a_queue() {
    let lab = Lab::new();
    for (busy, first) in [(false, "say one"), (true, "barrier here\nsay one")] {
        let id = lab.run(first);
        if busy {
            lab.reach("here");
        } else {
            lab.wait_end(&id);
        }
        let path = format!("/api/sessions/{id}/messages");
        let text = format!("say two {busy}");
        let taken = at_once(&lab, &path, &json!({"content": text}));
        assert_eq!(taken["queued"], busy);
        if busy {
            lab.pass("here");
        }
        crate::lab::wait_for("the second turn", || (lab.count(&id, "run.completed") == 2).then_some(()));
        assert_eq!(lab.count(&id, "message.user"), 2);
        assert_eq!(lab.prompted(&text), 1);
    }
}

// I5: whoever takes over an agent finds the prompt in the log in the same moment as it is told of it.
#[test]
fn a_prompt_that_comes_while_its_agent_is_taken_over_is_said_once() {
    let mut lab = Lab::new();
    let ids: Vec<String> = (0..8).map(|_| lab.run("say first")).collect();
    for id in &ids {
        lab.wait_end(id);
    }
    for round in 0..6 {
        lab.kill();
        lab.start();
        std::thread::scope(|scope| {
            for (at, id) in ids.iter().enumerate() {
                let (lab, text) = (&lab, format!("say word{round}x{at}"));
                let path = format!("/api/sessions/{id}/messages");
                scope.spawn(move || lab.post(&path, &json!({"content": text})));
            }
        });
        for (at, id) in ids.iter().enumerate() {
            wait_for("its end", || (lab.count(id, "run.completed") == round + 2).then_some(()));
            assert_eq!(lab.prompted(&format!("say word{round}x{at}")), 1);
        }
    }
    assert!(!lab.daemon_log().contains("lost the agent"), "{}", lab.daemon_log());
}

/// Sends a message with a key, and returns what was answered.
fn keyed(lab: &Lab, id: &str, key: usize, text: &str) -> Value {
    let headers = format!("Idempotency-Key: key-{key}\r\n");
    let path = format!("/api/sessions/{id}/messages");
    let reply = lab.try_ask("POST", &path, &headers, &json!({"content": text})).expect("an answer");
    assert_eq!(reply.status, 202, "{}", reply.body);
    reply.body
}

// I5: a key is not forgotten because others came, a daemon died and every cache was deleted.
#[test]
fn a_key_is_known_after_many_newer_ones_and_without_caches() {
    let mut lab = Lab::new();
    let id = lab.run("say hello");
    lab.wait_end(&id);
    let first = keyed(&lab, &id, 0, "barrier a");
    let mut queued = None;
    for (barrier, keys) in [("a", 1..50), ("b", 51..100)] {
        lab.reach(barrier);
        for key in keys {
            let taken = keyed(&lab, &id, key, "say never");
            queued.get_or_insert(taken);
        }
        lab.post(&format!("/api/sessions/{id}/cancel"), &Value::Null);
        assert_eq!(lab.wait_end(&id), "cancelled");
        if barrier == "a" {
            keyed(&lab, &id, 50, "barrier b");
        }
    }
    let messages = lab.count(&id, "message.user");
    let again = |lab: &Lab, when: &str| {
        assert_eq!(keyed(lab, &id, 0, "barrier a"), first, "{when}");
        assert_eq!(Some(keyed(lab, &id, 1, "say never")), queued, "{when}");
        assert_eq!(lab.count(&id, "message.user"), messages, "{when}");
        let other = lab.try_ask(
            "POST",
            &format!("/api/sessions/{id}/messages"),
            "Idempotency-Key: key-0\r\n",
            &json!({"content": "another"}),
        );
        assert_eq!(other.expect("an answer").body["error"]["code"], "key_reused", "{when}");
    };
    again(&lab, "at once");
    lab.kill();
    for cache in ["index.json".to_owned(), format!("{id}.json"), format!("{id}.tokens.json")] {
        let _ = std::fs::remove_file(lab.home().join("sessions").join(cache));
    }
    lab.start();
    again(&lab, "after a death, without caches");
}
