//! Whoever is not let in: each with its status and code, in the log, and with nothing done.

use serde_json::{Value, json};

use crate::client::{Reply, Token, ask, ask_as, listening};
use crate::lab::{Lab, holds, wait_for};

/// What a home knows of its sessions.
fn sessions(lab: &Lab) -> Vec<(String, Vec<Value>)> {
    let list = lab.get("/api/sessions");
    let ids = list["sessions"].as_array().expect("sessions").iter().map(|one| &one["id"]);
    ids.map(|id| id.as_str().expect("an id")).map(|id| (id.to_owned(), lab.log(id))).collect()
}

#[test]
fn whoever_is_not_let_in_is_told_why_and_logged_and_nothing_is_done() {
    let (lab, port) = listening();
    let id = lab.run("ask may I?");
    let wait = lab.wait_status(&id, "waiting")["wait"]["wait_id"].as_str().expect("a wait").to_owned();
    let admin = Token::create(&lab, &["--scope", "admin"]);
    let reader = Token::create(&lab, &["--scope", "read"]);
    let answerer = Token::create(&lab, &["--scope", "answer"]);
    let expired = Token::create(&lab, &["--scope", "admin", "--ttl", "1s"]);
    let revoked = Token::create(&lab, &["--scope", "admin"]);
    revoked.revoke(&lab);
    let forged = Token { id: admin.id.clone(), text: format!("{}.{}", admin.id, "0".repeat(64)) };
    let never = Token { id: "tok_1".into(), text: format!("tok_1.{}", admin.secret()) };
    wait_for("its time to be over", || {
        (ask(port, "GET", "/api/version", Some(&expired), &Value::Null).status == 410).then_some(())
    });

    let before = sessions(&lab);
    let ours = format!("Host: 127.0.0.1:{port}\r\n");
    let good = format!("{ours}{}", admin.header());
    let cases: [(&str, String, (u16, &str)); 13] = [
        (
            "a foreign host",
            format!("Host: evil.example:{port}\r\n{}", admin.header()),
            (403, "host_not_allowed"),
        ),
        ("no host", admin.header(), (403, "host_not_allowed")),
        (
            "another machine",
            format!("Host: 10.0.0.5:{port}\r\n{}", admin.header()),
            (403, "host_not_allowed"),
        ),
        ("a foreign page", format!("{good}Origin: https://evil.example\r\n"), (403, "origin_not_allowed")),
        ("a page from a file", format!("{good}Origin: null\r\n"), (403, "origin_not_allowed")),
        (
            "a page of another port",
            format!("{good}Origin: http://127.0.0.1:1\r\n"),
            (403, "origin_not_allowed"),
        ),
        ("no token", ours.clone(), (401, "token_missing")),
        ("another scheme", format!("{ours}Authorization: Basic {}\r\n", admin.text), (401, "token_missing")),
        ("a wrong secret", format!("{ours}{}", forged.header()), (401, "token_unknown")),
        ("a token that never was", format!("{ours}{}", never.header()), (401, "token_unknown")),
        ("an expired one", format!("{ours}{}", expired.header()), (410, "token_expired")),
        ("a revoked one", format!("{ours}{}", revoked.header()), (410, "token_revoked")),
        ("one that may only look", format!("{ours}{}", reader.header()), (403, "token_scope")),
    ];
    let requests = [
        ("POST", "/api/sessions".to_owned(), lab.session("say never")),
        ("POST", format!("/api/sessions/{id}/cancel"), Value::Null),
        ("POST", format!("/api/waits/{wait}/answer"), json!({"option": "allow_once"})),
        ("DELETE", format!("/api/sessions/{id}?force=1"), Value::Null),
        ("POST", "/api/shutdown".to_owned(), json!({"agents": true})),
    ];
    for (who, headers, expected) in &cases {
        for (method, path, body) in &requests {
            let reply = ask_as(port, method, path, headers, body);
            assert_eq!(reply.code(), *expected, "{who}: {method} {path}");
            assert_eq!(reply.header("content-type"), Some("application/json"), "{who}");
            let challenge = reply.header("www-authenticate");
            assert_eq!(challenge.is_some(), expected.1.starts_with("token_"), "{who}: {challenge:?}");
            assert!(!reply.head.to_lowercase().contains("access-control"), "{}", reply.head);
        }
    }
    // Whoever may answer may not do more.
    for (method, path, body) in requests.iter().filter(|(_, path, _)| !path.contains("/waits/")) {
        assert_eq!(ask(port, method, path, Some(&answerer), body).code(), (403, "token_scope"), "{path}");
    }
    assert_eq!(sessions(&lab), before, "nothing was written");
    assert_eq!(lab.status(&id), "waiting");

    // Every one is in the log, and no secret is anywhere.
    let log = lab.daemon_log();
    for (who, _, (status, code)) in &cases {
        let line = |line: &&str| {
            line.contains("refused") && line.contains(&format!("status={status}")) && line.contains(code)
        };
        assert!(log.lines().any(|one| line(&one) && one.contains("127.0.0.1")), "{who}: {code}");
    }
    for token in [&admin, &reader, &answerer, &expired, &revoked] {
        assert!(!log.contains(token.secret()) && !holds(&lab.home(), token.secret()));
    }
}

#[test]
fn each_scope_may_do_what_it_says() {
    let (lab, port) = listening();
    let id = lab.run("ask may I?");
    let wait = lab.wait_status(&id, "waiting")["wait"]["wait_id"].as_str().expect("a wait").to_owned();
    let reader = Token::create(&lab, &[]);
    let answerer = Token::create(&lab, &["--scope", "answer", "--name", "phone"]);
    let admin = Token::create(&lab, &["--scope", "admin"]);
    let log = format!("/api/sessions/{id}/log");
    for path in
        ["/api/version", "/api/sessions", "/api/waits", "/api/agents", "/api/holders", "/readyz", &log]
    {
        for token in [&reader, &answerer, &admin] {
            assert_eq!(ask(port, "GET", path, Some(token), &Value::Null).status, 200, "{path}");
        }
        assert_eq!(ask(port, "GET", path, None, &Value::Null).code(), (401, "token_missing"), "{path}");
    }
    let mint = format!("/api/waits/{wait}/token");
    assert_eq!(ask(port, "POST", &mint, Some(&reader), &Value::Null).code(), (403, "token_scope"));
    assert_eq!(ask(port, "POST", &mint, Some(&answerer), &Value::Null).status, 200);
    let answer = json!({"option": "allow_once"});
    assert_eq!(ask(port, "POST", &format!("/api/waits/{wait}/answer"), Some(&answerer), &answer).status, 202);
    assert_eq!(lab.wait_end(&id), "completed");
    // Who did it is recorded by the token's name and id.
    let by = format!("phone ({})", answerer.id);
    let records = lab.log(&id);
    for kind in ["run.resumed", "token.minted"] {
        let last = records.iter().rfind(|record| record["kind"] == kind).expect("a record");
        assert_eq!(last["by"], by.as_str(), "{last}");
    }
    let created = ask(port, "POST", "/api/sessions", Some(&admin), &lab.session("barrier here"));
    assert_eq!(created.status, 201, "{created:?}");
    let other = created.body["id"].as_str().expect("an id").to_owned();
    lab.reach("here");
    assert_eq!(
        ask(port, "POST", &format!("/api/sessions/{other}/cancel"), Some(&admin), &Value::Null).status,
        202
    );
    assert_eq!(lab.wait_end(&other), "cancelled");
    let cancel = lab.log(&other).into_iter().find(|record| record["kind"] == "run.cancel_requested");
    assert_eq!(cancel.expect("a record")["by"], admin.id.as_str());
}

#[test]
fn without_a_token_it_is_only_heard_that_it_listens() {
    let (_lab, port) = listening();
    let healthy = |headers: &str| -> Reply { ask_as(port, "GET", "/healthz", headers, &Value::Null) };
    let reply = healthy(&format!("Host: localhost:{port}\r\n"));
    assert_eq!((reply.status, &reply.body), (200, &json!({"status": "ok"})));
    assert_eq!(healthy("Host: evil.example\r\n").code(), (403, "host_not_allowed"));
    assert_eq!(
        healthy(&format!("Host: localhost:{port}\r\nOrigin: https://evil.example\r\n")).code(),
        (403, "origin_not_allowed")
    );
    for path in
        ["/", "/nowhere", "/readyz", "/metrics", "/healthz/x", "/answer/", "/answer/x", "/favicon.ico"]
    {
        assert_eq!(ask(port, "GET", path, None, &Value::Null).code(), (401, "token_missing"), "{path}");
    }
    let preflight = format!("Host: localhost:{port}\r\nAccess-Control-Request-Method: POST\r\n");
    let reply = ask_as(port, "OPTIONS", "/api/sessions", &preflight, &Value::Null);
    assert_eq!(reply.code(), (401, "token_missing"));
    assert!(!reply.head.to_lowercase().contains("access-control-allow"));
}

/// I7: a resume token is all that is needed for its own wait, and opens nothing else.
#[test]
fn a_resume_token_alone_answers_its_wait_and_nothing_else() {
    let (lab, port) = listening();
    let wait_of =
        |id: &str| lab.wait_status(id, "waiting")["wait"]["wait_id"].as_str().expect("a wait").to_owned();
    let mint = |wait: &str| {
        let minted = lab.post(&format!("/api/waits/{wait}/token"), &Value::Null);
        minted["token"].as_str().expect("a token").to_owned()
    };
    let (id, other) = (lab.run("ask may I?\nask may I again?"), lab.run("ask something else?"));
    let (wait, other_wait) = (wait_of(&id), wait_of(&other));
    let (token, other_token) = (mint(&wait), mint(&other_wait));
    let path = format!("/api/waits/{wait}/answer");
    let with = |token: &str| json!({"option": "allow_once", "token": token});
    let before = sessions(&lab);

    // Whoever does not have it is told nothing of what there is.
    let (token_id, secret) = token.split_once('.').expect("two parts");
    let wrong = format!("{token_id}.{}", "0".repeat(64));
    let made_up = format!("rt_01khz0p6r8vk6mqj3b8y2c9d4e.{secret}");
    for path in [path.as_str(), "/api/waits/wait_01khz0p6r8vk6mqj3b8y2c9d4e/answer"] {
        assert_eq!(
            ask(port, "POST", path, None, &json!({"option": "allow_once"})).code(),
            (401, "token_missing")
        );
        assert_eq!(ask(port, "POST", path, None, &json!({"token": null})).code(), (401, "token_missing"));
        assert_eq!(ask(port, "POST", path, None, &json!(["no", "object"])).code(), (401, "token_missing"));
        for bad in [&wrong, &made_up, "nonsense"] {
            let reply = ask(port, "POST", path, None, &with(bad));
            assert_eq!(reply.code(), (401, "token_unknown"), "{path} {bad}");
            assert!(reply.header("www-authenticate").is_some());
        }
    }
    // Nor is it good for anything else, or through a foreign page.
    assert_eq!(ask(port, "POST", &path, None, &with(&other_token)).code(), (403, "token_scope"));
    let resume = |id: &str| format!("/api/sessions/{id}/resume");
    let answer = json!({"token": token, "answer": {"option": "allow_once"}});
    assert_eq!(ask(port, "POST", &resume(&other), None, &answer).code(), (403, "token_scope"));
    assert_eq!(ask(port, "POST", &resume(&id), None, &json!({})).code(), (401, "token_missing"));
    for path in [format!("/api/sessions/{id}/messages"), format!("/api/sessions/{id}/cancel")] {
        let body = json!({"content": "say x", "token": token});
        assert_eq!(ask(port, "POST", &path, None, &body).code(), (401, "token_missing"), "{path}");
    }
    let foreign = format!("Host: 127.0.0.1:{port}\r\nOrigin: https://evil.example\r\n");
    assert_eq!(ask_as(port, "POST", &path, &foreign, &with(&token)).code(), (403, "origin_not_allowed"));
    let large = json!({"text": "x".repeat(70_000), "token": token});
    assert_eq!(ask(port, "POST", &path, None, &large).code(), (413, "too_large"));
    assert_eq!(sessions(&lab), before, "nothing was done");

    // It answers its wait, once, and the record says by what.
    let taken = ask(port, "POST", &path, None, &with(&token));
    assert_eq!(taken.status, 202, "{taken:?}");
    assert_eq!(ask(port, "POST", &path, None, &with(&token)).body, taken.body, "the same again");
    let other_answer = json!({"option": "reject_once", "token": token});
    assert_eq!(ask(port, "POST", &path, None, &other_answer).code(), (409, "token_consumed"));
    let resumed = lab.log(&id).into_iter().find(|record| record["kind"] == "run.resumed").expect("a record");
    assert_eq!(resumed["by"], token_id, "{resumed}");
    // The next one by way of its session.
    let second = wait_for("the second question", || {
        let wait = lab.show(&id)["wait"]["wait_id"].as_str()?.to_owned();
        (wait != wait_of_first(&path)).then_some(wait)
    });
    let answer = json!({"token": mint(&second), "answer": {"option": "allow_once"}});
    assert_eq!(ask(port, "POST", &resume(&id), None, &answer).status, 202);
    assert_eq!(lab.wait_end(&id), "completed");
    assert!(!lab.daemon_log().contains(secret), "a secret is in the log");
}

/// Returns the wait that a path is of.
fn wait_of_first(path: &str) -> String {
    path.trim_start_matches("/api/waits/").trim_end_matches("/answer").to_owned()
}
