//! Many callers who read and write without a pause while daemons are killed under them: whatever was acknowledged is there.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::lab::{Lab, PATIENCE, Reply, wait_for};

/// Callers, and those among them whose sessions have agents.
const CALLERS: usize = 32;
const SPEAKERS: usize = 4;

/// What a caller knows to have been done.
#[derive(Default)]
struct Known {
    session: String,
    /// Messages by the key they were sent with.
    messages: HashMap<String, String>,
    /// Titles, in order.
    titles: Vec<String>,
    /// The title that was sent last, acknowledged or not.
    tried: String,
}

/// How long it lasts, and how long each daemon lives.
fn times() -> (Duration, Duration) {
    match std::env::var_os("REKINDLE_TEST_LONG") {
        Some(_) => (Duration::from_secs(60), Duration::from_secs(5)),
        None => (Duration::from_secs(10), Duration::from_secs(1)),
    }
}

/// Asks until there is an answer: whoever got none does not know, and asks the same again.
fn ask(lab: &Lab, method: &str, path: &str, key: &str, body: &Value) -> Reply {
    let headers = if key.is_empty() { String::new() } else { format!("Idempotency-Key: {key}\r\n") };
    // Not now: nothing was done, or nobody knows.
    let for_good = |reply: &Reply| reply.status != 503;
    wait_for(&format!("{method} {path}"), || lab.try_ask(method, path, &headers, body).filter(for_good))
}

/// Reads and writes until it is over.
fn call(lab: &Lab, number: usize, over: &AtomicBool, answers: &AtomicUsize) -> Known {
    let mut body = lab.session("say hello");
    if number >= SPEAKERS {
        body.as_object_mut().expect("an object").remove("prompt");
    }
    let made = ask(lab, "POST", "/api/sessions", &format!("make-{number}"), &body);
    assert_eq!(made.status, 201, "{}", made.body);
    let session = made.body["id"].as_str().expect("an id").to_owned();
    let mut known = Known { session: session.clone(), ..Known::default() };
    let path = format!("/api/sessions/{session}");
    for round in 0.. {
        if over.load(Ordering::Relaxed) {
            break;
        }
        let reply = match round % 4 {
            0 => {
                known.tried = format!("title {number}.{round}");
                let reply = ask(lab, "PATCH", &path, "", &json!({"title": known.tried}));
                known.titles.push(known.tried.clone());
                reply
            }
            1 if number < SPEAKERS => {
                let key = format!("say-{number}-{round}");
                let content = json!({"content": format!("say answer{round}")});
                let reply = ask(lab, "POST", &format!("{path}/messages"), &key, &content);
                match reply.body["message_id"].as_str() {
                    Some(message) => drop(known.messages.insert(key, message.to_owned())),
                    // Its agent does not keep up with us.
                    None => assert_eq!(reply.body["error"]["code"], "queue_full", "{}", reply.body),
                }
                answers.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            1 => ask(lab, "GET", &path, "", &Value::Null),
            2 => ask(lab, "GET", "/api/sessions?limit=20", "", &Value::Null),
            _ => ask(lab, "GET", &format!("{path}/log?after=0"), "", &Value::Null),
        };
        assert_eq!(reply.status, 200, "{}", reply.body);
        answers.fetch_add(1, Ordering::Relaxed);
    }
    known
}

// I1, I2, I5: acknowledged is there, once.
#[test]
fn every_acknowledged_write_of_many_callers_outlives_the_daemons() {
    let mut lab = Lab::without_daemon();
    let (lasts, lives) = times();
    let (over, answers) = (AtomicBool::new(false), AtomicUsize::new(0));
    let known: Vec<Known> = std::thread::scope(|scope| {
        let (lab, over, answers) = (&lab, &over, &answers);
        let callers: Vec<_> =
            (0..CALLERS).map(|number| scope.spawn(move || call(lab, number, over, answers))).collect();
        let begin = Instant::now();
        while begin.elapsed() < lasts {
            let mut daemon = lab.begin(&[], &[]);
            daemon.first_line().expect("a line");
            let before = answers.load(Ordering::Relaxed);
            let born = Instant::now();
            // Each has answered someone, however slow the machine is.
            while born.elapsed() < lives || answers.load(Ordering::Relaxed) == before {
                assert!(born.elapsed() < PATIENCE, "nobody is answered: {}", lab.daemon_log());
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        over.store(true, Ordering::Relaxed);
        // Whoever waits for an answer gets it from the last one.
        let _daemon = lab.begin(&[], &[]);
        callers.into_iter().map(|caller| caller.join().expect("no panic")).collect()
    });
    lab.start();
    for one in &known {
        let log = whole_log(&lab, &one.session);
        let of = |kind: &str| log.iter().filter(|record| record["kind"] == kind).cloned().collect::<Vec<_>>();
        let said: Vec<Value> = of("message.user").iter().map(|said| said["message_id"].clone()).collect();
        let messages: HashSet<&String> = one.messages.values().collect();
        assert_eq!(messages.len(), one.messages.len(), "each key has a message of its own");
        for message in messages {
            assert_eq!(said.iter().filter(|id| *id == message).count(), 1, "{message} in {}", one.session);
        }
        let titles: HashSet<String> =
            of("session.updated").iter().filter_map(|one| Some(one["title"].as_str()?.to_owned())).collect();
        for title in &one.titles {
            assert!(titles.contains(title), "{title} in {}", one.session);
        }
        assert_eq!(lab.show(&one.session)["title"], one.tried);
        assert_eq!(of("run.interrupted").len(), 0, "no agent has noticed anything");
    }
    let writes: usize = known.iter().map(|one| one.titles.len() + one.messages.len()).sum();
    println!("{writes} acknowledged writes, {} answers", answers.load(Ordering::Relaxed));
    assert!(writes > CALLERS, "only {writes}");
}

/// Reads a whole log, and sees that it has no gap.
fn whole_log(lab: &Lab, session: &str) -> Vec<Value> {
    let (mut log, mut after): (Vec<Value>, u64) = (Vec::new(), 0);
    loop {
        let page = lab.get(&format!("/api/sessions/{session}/log?after={after}&limit=1000"));
        log.extend(page["records"].as_array().expect("records").iter().cloned());
        match page["next"].as_u64() {
            Some(next) => after = next,
            None => break,
        }
    }
    let numbers = log.iter().map(|record| record["seq"].as_u64().expect("a number"));
    assert!(numbers.eq(1..=log.len() as u64), "{session} has a gap");
    log
}
