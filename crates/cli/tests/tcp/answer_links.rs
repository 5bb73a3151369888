//! Answer links over TCP: what opening, confirming, repeating, mixing up and guessing one comes to. Whatever is refused does nothing and is
//! logged, and no secret is anywhere but in the link.

use std::io::{Read, Write};

use rekindle_lab::{Connection, request};
use serde_json::{Value, json};

use crate::client::{Token, ask, ask_as, connect, port};
use crate::lab::{Lab, Reply, holds, wait_for};

/// An answer link as a message has it.
#[derive(Debug, Clone)]
pub(crate) struct Link {
    pub(crate) label: String,
    pub(crate) url: String,
    wait: String,
    pub(crate) token: String,
}

impl Link {
    pub(crate) fn read(link: &Value) -> Link {
        let text = |name: &str| link[name].as_str().expect("a text").to_owned();
        let url = text("url");
        let (page, fragment) = url.split_once('#').expect("a fragment");
        assert_eq!(page, "https://box.example/rk/answer");
        let (wait, token) = fragment.split_once('.').expect("a wait and a token");
        Link { label: text("label"), wait: wait.to_owned(), token: token.to_owned(), url }
    }

    /// Returns the token's id and its secret.
    fn parts(&self) -> (&str, &str) {
        self.token.split_once('.').expect("two parts")
    }

    /// Does what the page does before anybody confirms.
    pub(crate) fn view(&self, port: u16) -> Reply {
        ask(port, "POST", &format!("/api/waits/{}/view", self.wait), None, &json!({"token": self.token}))
    }

    /// Does what the page does once somebody confirms.
    pub(crate) fn answer(&self, port: u16) -> Reply {
        self.answer_with(port, &self.wait, &json!({"option_id": self.option()}))
    }

    fn answer_with(&self, port: u16, wait: &str, answer: &Value) -> Reply {
        let mut body = answer.clone();
        body["token"] = json!(self.token);
        ask(port, "POST", &format!("/api/waits/{wait}/answer"), None, &body)
    }

    fn option(&self) -> &'static str {
        if self.label == "Allow" { "allow_once" } else { "reject_once" }
    }
}

/// Starts a daemon whose links begin with the address of a proxy before it.
fn linking(section: &str, env: &[(&str, &str)]) -> (Lab, u16) {
    let mut lab = Lab::without_daemon();
    lab.configure(&format!("{section}\n[notify]\nbase_url = \"https://box.example/rk/\"\n"));
    lab.start_with(&["--listen", "127.0.0.1:0"], env);
    let port = port(&lab);
    (lab, port)
}

fn wait_of(lab: &Lab, id: &str) -> String {
    lab.wait_status(id, "waiting")["wait"]["wait_id"].as_str().expect("a wait").to_owned()
}

/// Makes the links of a wait: to allow, and to reject.
fn links(lab: &Lab, wait: &str) -> [Link; 2] {
    let made = lab.post(&format!("/api/waits/{wait}/links"), &Value::Null);
    let links: Vec<Link> = made["links"].as_array().expect("links").iter().map(Link::read).collect();
    assert!(made["expires_at"].is_string(), "{made}");
    links.try_into().expect("never always, and nothing else")
}

#[track_caller]
pub(crate) fn check_no_secret(lab: &Lab, links: &[Link]) {
    let (log, metrics) = (lab.daemon_log(), lab.text("/metrics", "").1);
    for link in links {
        let (_, secret) = link.parts();
        assert!(!log.contains(secret) && !metrics.contains(secret) && !holds(&lab.home(), secret));
    }
}

/// Asks for the head of an answer alone.
fn head(port: u16, path: &str, headers: &str) -> String {
    let (mut stream, mut text) = (connect(port), String::new());
    let request = request("HEAD", path, &format!("{headers}Connection: close\r\n"), "");
    stream.write_all(request.as_bytes()).expect("asked");
    stream.read_to_string(&mut text).expect("an answer");
    text
}

/// Programs that look at the links in messages, for a preview or for viruses, get the same page whatever they ask.
#[test]
fn whoever_only_looks_at_links_answers_nothing() {
    let (lab, port) = linking("", &[]);
    let id = lab.run("ask may I?");
    let wait = wait_of(&lab, &id);
    let both = links(&lab, &wait);
    assert_eq!(both.each_ref().map(|link| link.label.as_str()), ["Allow", "Reject"]);
    let before = lab.log(&id);
    let by_proxy = "Host: box.example\r\nX-Forwarded-For: 192.0.2.1\r\n";
    let mut pages = Vec::new();
    for link in &both {
        let (_, fragment) = link.url.split_once('#').expect("a fragment");
        for path in ["/answer", "/answer?utm_source=chat", &format!("/answer?{fragment}")] {
            let mut connection = Connection::on(connect(port));
            connection.send(request("GET", path, by_proxy, "").as_bytes()).expect("asked");
            let answer = connection.receive().expect("an answer");
            assert_eq!(answer.status, 200, "{path}");
            pages.push(answer.text());
            let head = head(port, path, by_proxy);
            assert!(head.starts_with("HTTP/1.1 200") && !head.contains("<html"), "{path}: {head}");
        }
        for way in ["view", "answer"] {
            for path in
                [format!("/api/waits/{wait}/{way}"), format!("/api/waits/{wait}/{way}?token={}", link.token)]
            {
                let reply = ask_as(port, "GET", &path, by_proxy, &Value::Null);
                assert_eq!(reply.code(), (401, "token_missing"), "{path}");
            }
        }
        assert_eq!(
            ask(port, "POST", "/answer", None, &json!({"token": link.token})).code(),
            (401, "token_missing")
        );
        // Looking by the page's own way uses nothing up, however often.
        for _ in 0..3 {
            let seen = link.view(port);
            assert_eq!(seen.status, 200, "{seen:?}");
            let (body, option) = (&seen.body, json!({"option_id": link.option(), "label": link.label}));
            assert_eq!((&body["state"], &body["option"]), (&json!("open"), &option));
            let asked = json!({"kind": "permission", "question": "may I?", "detail": null, "cut": false});
            assert_eq!((&body["asked"], &body["wait_id"]), (&asked, &json!(wait)));
        }
    }
    assert!(pages.iter().all(|page| *page == pages[0] && page.contains("<noscript>")), "one page for all");
    assert!(!pages[0].contains(&wait) && !pages[0].contains("may I?"));
    assert_eq!(lab.log(&id), before, "nothing was done");
    assert_eq!(lab.status(&id), "waiting");
    check_no_secret(&lab, &both);
}

#[test]
fn the_page_comes_with_a_policy_that_lets_nothing_else_in() {
    let (_lab, port) = linking("", &[]);
    let reply = ask(port, "GET", "/answer", None, &Value::Null);
    for (name, value) in [
        ("content-type", "text/html; charset=utf-8"),
        ("cache-control", "no-store"),
        ("referrer-policy", "no-referrer"),
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
        ("cross-origin-opener-policy", "same-origin"),
    ] {
        assert_eq!(reply.header(name), Some(value), "{name}");
    }
    let policy = reply.header("content-security-policy").expect("a policy");
    assert!(policy.starts_with("default-src 'none'; script-src 'sha256-") && !policy.contains("unsafe"));
    // The name in links is ours; another is not.
    for (host, status) in [("box.example", 200), ("BOX.example:8443", 200), ("evil.example", 403)] {
        let reply = ask_as(port, "GET", "/answer", &format!("Host: {host}\r\n"), &Value::Null);
        assert_eq!(reply.status, status, "{host}");
    }
}

/// I7: the first answer wins, and nothing is taken for it again: a link is used once.
#[test]
fn a_link_answers_once_with_its_own_option() {
    let (lab, port) = linking("", &[]);
    let (id, other) = (lab.run("ask may I?\nsay done"), lab.run("ask something else?"));
    let (wait, other_wait) = (wait_of(&lab, &id), wait_of(&lab, &other));
    let ([allow, reject], [stranger, _]) = (links(&lab, &wait), links(&lab, &other_wait));

    // Before it is used: for another option, another wait, another session.
    let before = lab.log(&id);
    for answer in [
        json!({"option_id": "allow_once"}),
        json!({"option_id": "allow_always"}),
        json!({"option": "reject_once"}),
        json!({"text": "yes"}),
        json!({"form": {}}),
    ] {
        let refused = reject.answer_with(port, &wait, &answer);
        assert_eq!(refused.code(), (403, "token_scope"), "{answer}");
    }
    let yes = json!({"option_id": "allow_once"});
    assert_eq!(allow.answer_with(port, &other_wait, &yes).code(), (403, "token_scope"));
    assert_eq!(stranger.answer_with(port, &wait, &yes).code(), (403, "token_scope"));
    let resume = |id: &str, answer: &Value| {
        let body = json!({"token": allow.token, "answer": answer});
        ask(port, "POST", &format!("/api/sessions/{id}/resume"), None, &body)
    };
    assert_eq!(resume(&other, &yes).code(), (403, "token_scope"));
    assert_eq!(resume(&id, &json!({"option_id": "allow_always"})).code(), (403, "token_scope"));
    assert_eq!(lab.log(&id), before, "nothing was done");
    let log = lab.daemon_log();
    assert!(log.lines().any(|line| line.contains("token_scope") && line.contains("/answer")), "it is logged");

    // It is used, and its body comes again.
    let taken = allow.answer(port);
    assert_eq!(taken.status, 202, "{taken:?}");
    assert_eq!(lab.wait_end(&id), "completed");
    let after = lab.log(&id);
    // A page that did not hear the answer asks again, or somebody replays what it sent.
    assert_eq!(allow.answer(port).code(), (409, "token_consumed"));
    assert_eq!(resume(&id, &yes).code(), (409, "token_consumed"));
    // Whoever is known otherwise is told what came of the same answer.
    let again = lab.post(&format!("/api/waits/{wait}/answer"), &yes);
    assert_eq!(again, taken.body, "the first result");
    let refused = |line: &&str| line.contains("token_consumed");
    assert_eq!(lab.daemon_log().lines().filter(refused).count(), 2, "it is logged");
    assert_eq!(
        allow.answer_with(port, &wait, &json!({"option_id": "reject_once"})).code(),
        (403, "token_scope")
    );
    assert_eq!(reject.answer(port).code(), (410, "token_revoked"));
    let states = [&allow, &reject].map(|link| {
        let body = link.view(port).body;
        (
            body["state"].clone(),
            body["reason"].clone(),
            body["option"]["label"].clone(),
            body["asked"].is_null(),
        )
    });
    let used = (json!("consumed"), json!(null), json!("Allow"), false);
    assert_eq!(states, [used, (json!("revoked"), json!("answered"), json!(null), true)]);
    assert_eq!(lab.log(&id), after, "nothing more was done");
    let resumed = lab.log(&id).into_iter().find(|record| record["kind"] == "run.resumed").expect("a record");
    assert_eq!((&resumed["by"], &resumed["how"]), (&json!(allow.parts().0), &json!("answered")));
    check_no_secret(&lab, &[allow, reject, stranger]);
}

#[test]
fn newer_links_replace_those_of_the_same_caller_and_all_end_with_the_wait() {
    let (lab, port) = linking("", &[]);
    let id = lab.run("ask may I?");
    let wait = wait_of(&lab, &id);
    let phone = Token::create(&lab, &["--scope", "answer", "--name", "phone"]);
    let reader = Token::create(&lab, &["--scope", "read"]);
    let path = format!("/api/waits/{wait}/links");
    assert_eq!(ask(port, "POST", &path, None, &Value::Null).code(), (401, "token_missing"));
    assert_eq!(ask(port, "POST", &path, Some(&reader), &Value::Null).code(), (403, "token_scope"));
    let of_phone = Link::read(&ask(port, "POST", &path, Some(&phone), &Value::Null).body["links"][0]);
    let (older, newer) = (links(&lab, &wait), links(&lab, &wait));
    let state = |link: &Link| {
        let body = link.view(port).body;
        (body["state"].as_str().expect("a state").to_owned(), body["reason"].as_str().map(ToOwned::to_owned))
    };
    for link in &older {
        assert_eq!(state(link), ("revoked".into(), Some("replaced".into())));
        assert_eq!(link.answer(port).code(), (410, "token_revoked"));
    }
    assert_eq!((state(&newer[0]), state(&of_phone)), (("open".into(), None), ("open".into(), None)));
    assert_eq!(lab.status(&id), "waiting");
    lab.post(&format!("/api/sessions/{id}/cancel"), &Value::Null);
    assert_eq!(lab.wait_end(&id), "cancelled");
    for link in [&newer[0], &newer[1], &of_phone] {
        assert_eq!(state(link), ("revoked".into(), Some("cancelled".into())));
        assert_eq!(link.answer(port).code(), (410, "token_revoked"));
    }
    assert_eq!(ask(port, "POST", &path, Some(&phone), &Value::Null).code(), (409, "wait_closed"));
}

#[test]
fn an_expired_link_answers_nothing() {
    let (lab, port) = linking("[waits]\ntoken_lifetime = \"1s\"", &[]);
    let id = lab.run("ask may I?");
    let [allow, _] = links(&lab, &wait_of(&lab, &id));
    wait_for("its time to be over", || (allow.view(port).body["state"] == "expired").then_some(()));
    assert_eq!(allow.answer(port).code(), (410, "token_expired"));
    assert!(lab.daemon_log().contains("token_expired"), "it is logged");
    assert!(allow.view(port).body["asked"].is_null(), "what is asked is not told any more");
    assert_eq!(lab.status(&id), "waiting");
}

/// A question that wants words, and a daemon without an address, have no links.
#[test]
fn what_cannot_be_linked_says_so() {
    let (lab, _) = linking("", &[]);
    let id = lab.run("question favourite colour?");
    let made = lab.post(&format!("/api/waits/{}/links", wait_of(&lab, &id)), &Value::Null);
    assert_eq!(made, json!({"links": [], "expires_at": null}));
    let plain = Lab::new();
    let id = plain.run("ask may I?");
    let refused = plain.ask("POST", &format!("/api/waits/{}/links", wait_of(&plain, &id)), &Value::Null);
    assert_eq!(refused.refusal(), (409, "links_unavailable"));
}

#[test]
fn too_many_wrong_secrets_are_refused_for_a_while_and_nobody_is_kept_out() {
    let (lab, port) = linking("", &[("REKINDLE_FAILURE_WINDOW", "3000")]);
    let id = lab.run("ask may I?");
    let [allow, _] = links(&lab, &wait_of(&lab, &id));
    let guess = |number: u8| {
        let token = format!("{}.{}", allow.parts().0, format!("{number:02x}").repeat(32));
        Link { token, ..allow.clone() }.view(port)
    };
    let refused = wait_for("eleven within the window", || {
        let replies: Vec<Reply> = (0..11).map(guess).collect();
        let told = |reply: &&Reply| reply.code() == (401, "token_unknown");
        let last = replies.last().filter(|last| last.code() == (429, "too_many_failures"));
        // A machine that is slow may have needed more than the window for the first ones.
        last.filter(|_| replies.iter().filter(told).count() == 10).cloned()
    });
    let seconds: u64 = refused.header("retry-after").expect("a header").parse().expect("a number");
    assert!((1..=4).contains(&seconds), "{seconds}");
    // Somebody behind the same address has a link that is good.
    assert_eq!(allow.view(port).status, 200);
    wait_for("the time to be over", || (guess(99).code() == (401, "token_unknown")).then_some(()));
    assert_eq!(allow.answer(port).status, 202);
    assert_eq!(lab.wait_end(&id), "completed");
    assert!(lab.daemon_log().contains("too_many_failures"), "it is logged");
}

/// Whoever dies while links are made has made all of them or none, and those before are good just as long.
#[test]
fn links_are_replaced_by_one_append_or_not_at_all() {
    for (place, replaced) in [("mint_links.before#2", false), ("mint_links.after#2", true)] {
        let (mut lab, _) = linking("", &[("REKINDLE_CRASH_AT", place)]);
        let id = lab.run("ask may I?");
        let wait = wait_of(&lab, &id);
        let [allow, _] = links(&lab, &wait);
        let path = format!("/api/waits/{wait}/links");
        assert!(lab.try_ask("POST", &path, "", &Value::Null).is_none(), "it dies over it");
        lab.died();
        lab.start_with(&["--listen", "127.0.0.1:0"], &[]);
        let port = port(&lab);
        lab.wait_status(&id, "waiting");
        let expected = if replaced { "revoked" } else { "open" };
        assert_eq!(allow.view(port).body["state"], expected, "{place}");
        let minted = lab.count(&id, "token.minted");
        assert_eq!(minted, if replaced { 5 } else { 3 }, "{place}: the wait's own, and two for each time");
        let [allow, _] = links(&lab, &wait);
        assert_eq!(allow.answer(port).status, 202, "{place}");
        assert_eq!(lab.wait_end(&id), "completed");
    }
}
