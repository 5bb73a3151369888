//! Commands against a daemon elsewhere.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::Output;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::{Token, ask, elsewhere, listening, words};
use crate::lab::Lab;

struct There {
    lab: Lab,
    url: String,
    token: Token,
}

impl There {
    fn new() -> There {
        let (lab, port) = listening();
        let token = Token::create(&lab, &["--scope", "admin", "--name", "laptop"]);
        There { lab, url: format!("http://127.0.0.1:{port}"), token }
    }

    fn run(&self, arguments: &[&str]) -> Output {
        elsewhere(&self.lab, &self.url, Some(&self.token), arguments)
    }

    #[track_caller]
    fn good(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", words(&output));
        words(&output)
    }

    fn begin(&self, prompt: &str, more: &[&str]) -> Output {
        let agent = self.lab.demo(&[]);
        let mut arguments = vec!["run", prompt];
        arguments.extend(more);
        arguments.push("--");
        arguments.extend(agent.iter().map(String::as_str));
        self.run(&arguments)
    }
}

#[test]
fn every_command_that_speaks_http_works() {
    let there = There::new();
    let run = there.begin("say hello from there", &[]);
    assert_eq!(run.status.code(), Some(0), "{}", words(&run));
    assert!(String::from_utf8_lossy(&run.stdout).contains("hello from there"));
    // This directory's latest, by the same path there; and by the beginning of its id.
    let list: Value = serde_json::from_str(&there.good(&["ps", "--json"])).expect("JSON");
    let id = list["sessions"][0]["id"].as_str().expect("an id").to_owned();
    assert!(there.good(&["status"]).contains(&id));
    assert!(there.good(&["status", &id[5..16]]).contains("idle"));
    assert!(there.good(&["attach"]).contains("hello from there"));
    assert!(there.good(&["send", "say and again"]).contains("and again"));
    let log = there.good(&["log", &id]);
    assert!(log.contains("hello from there") && log.contains("and again"), "{log}");
    let lines = there.good(&["log", &id, "--json"]);
    let here = there.lab.rekindle(&["log", &id, "--json"]).output().expect("it runs");
    assert_eq!(lines, String::from_utf8_lossy(&here.stdout), "to the byte");
    assert_eq!(there.good(&["log", &id, "--json", "--last", "2"]).lines().count(), 2);
    assert!(there.good(&["agents"]).contains("claude"));

    let waits = there.begin("ask may I?", &["--detach"]);
    assert_eq!(waits.status.code(), Some(0), "{}", words(&waits));
    // Whoever copies a hint asks there again.
    let hint = format!("watch it with: rekindle --server {} attach ", there.url);
    assert!(words(&waits).contains(&hint), "{}", words(&waits));
    let other = String::from_utf8_lossy(&waits.stdout).trim().to_owned();
    there.lab.wait_status(&other, "waiting");
    assert!(there.good(&["waits"]).contains(&other));
    there.good(&["answer", "yes"]);
    assert_eq!(there.lab.wait_end(&other), "completed");
    let resumed = there.lab.log(&other).into_iter().find(|record| record["kind"] == "run.resumed");
    assert_eq!(resumed.expect("a record")["by"], format!("laptop ({})", there.token.id).as_str());

    let third = there.begin("barrier here", &["--detach"]);
    let third = String::from_utf8_lossy(&third.stdout).trim().to_owned();
    there.lab.reach("here");
    there.good(&["cancel", &third]);
    assert_eq!(there.lab.wait_end(&third), "cancelled");
    let nothing = there.run(&["resume", &third]);
    assert!(words(&nothing).contains("nothing was interrupted"), "{}", words(&nothing));
    there.good(&["rm", &third]);
    assert!(there.run(&["status", &third]).status.code() == Some(2));
    assert!(!there.lab.path("nowhere").exists(), "no home was made here");
}

#[test]
fn a_daemon_elsewhere_is_stopped_and_agents_work_on() {
    let mut there = There::new();
    let id = there.lab.run("barrier here\nsay done");
    there.lab.reach("here");
    assert!(there.good(&["stop"]).contains("its agents keep working"));
    there.lab.died();
    assert_eq!(there.lab.living_agents().len(), 1);
    let gone = there.run(&["ps"]);
    assert_eq!(gone.status.code(), Some(5), "{}", words(&gone));
    assert!(words(&gone).contains(&there.url) && words(&gone).contains("serve --listen"), "{}", words(&gone));
    there.lab.start();
    there.lab.pass("here");
    assert_eq!(there.lab.wait_end(&id), "completed");
}

#[test]
fn what_needs_the_home_says_so_and_nobody_is_started() {
    let there = There::new();
    for arguments in [&["doctor"][..], &["restart"], &["token", "ls"], &["serve"], &["agents", "--probe"]] {
        let output = there.run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", words(&output));
        assert!(words(&output).contains("another"), "{arguments:?}: {}", words(&output));
    }
    // Whoever watches is told as well, and not shown an empty list for ever.
    let revoked = Token::create(&there.lab, &[]);
    revoked.revoke(&there.lab);
    let watched = elsewhere(&there.lab, &there.url, Some(&revoked), &["ps", "--watch", "--json"]);
    assert_eq!(watched.status.code(), Some(1), "{}", words(&watched));
    assert!(words(&watched).contains("token_revoked"), "{}", words(&watched));
    // Nobody listens there: nobody is started here in its stead.
    let free = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
    let begin = Instant::now();
    for arguments in [
        &["ps"][..],
        &["ps", "--watch"],
        &["run", "say x", "--agent", "claude"],
        &["attach"],
        &["stop"],
        &["waits"],
    ] {
        let output = elsewhere(&there.lab, &format!("http://{free}"), Some(&there.token), arguments);
        assert_eq!(output.status.code(), Some(5), "{arguments:?}: {}", words(&output));
        let failure =
            elsewhere(&there.lab, &format!("http://{free}"), None, &[&["--json"], arguments].concat());
        let failure: Value = serde_json::from_slice(&failure.stderr).expect("JSON");
        assert_eq!(failure["error"]["code"], "no_daemon", "{failure}");
    }
    assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
    assert!(!there.lab.path("nowhere").exists());
}

#[test]
fn tokens_come_from_a_file_or_the_environment_and_refusals_are_passed_on() {
    let there = There::new();
    let file = there.lab.path("laptop.token");
    std::fs::write(&file, format!("{}\n", there.token.text)).expect("written");
    let name = file.to_str().expect("text");
    let by_file = elsewhere(&there.lab, &there.url, None, &["--token-file", name, "ps"]);
    assert!(by_file.status.success(), "{}", words(&by_file));
    assert!(words(&by_file).contains("chmod 600"), "{}", words(&by_file));
    // The whole of it from the environment.
    let mut command = std::process::Command::new(crate::lab::REKINDLE);
    command.args(["ps"]).env("REKINDLE_SERVER", &there.url).env("REKINDLE_TOKEN_FILE", name);
    command.env("REKINDLE_HOME", there.lab.path("nowhere"));
    assert!(command.output().expect("it runs").status.success());

    let none = elsewhere(&there.lab, &there.url, None, &["ps"]);
    assert_eq!(none.status.code(), Some(1), "{}", words(&none));
    assert!(words(&none).contains("access token is needed") && words(&none).contains("token create"));
    let reader = Token::create(&there.lab, &[]);
    let weak = elsewhere(&there.lab, &there.url, Some(&reader), &["run", "say x", "--", "true"]);
    assert!(words(&weak).contains("may only read"), "{}", words(&weak));
    reader.revoke(&there.lab);
    let late = elsewhere(&there.lab, &there.url, Some(&reader), &["ps"]);
    assert!(words(&late).contains("was revoked"), "{}", words(&late));
    let empty = there.lab.path("empty.token");
    std::fs::write(&empty, "\n").expect("written");
    for (url, arguments, says) in [
        (
            there.url.as_str(),
            &["--token-file", empty.to_str().expect("text"), "ps"][..],
            "contains no access token",
        ),
        (&there.url, &["--token-file", "/no/such/file", "ps"], "cannot be read"),
        ("http://192.0.2.1:7700", &["ps"], "unencrypted"),
        ("nonsense", &["ps"], "is not the address of a server"),
    ] {
        let output = elsewhere(&there.lab, url, None, arguments);
        assert_eq!(output.status.code(), Some(2), "{}", words(&output));
        assert!(words(&output).contains(says), "{}", words(&output));
    }
}

#[test]
fn a_daemon_of_another_version_is_noted() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let lab = Lab::without_daemon();
    let answering = std::thread::spawn(move || {
        for body in [r#"{"version":"9.9.9","pid":1}"#, r#"{"waits":[]}"#] {
            let (mut stream, _) = listener.accept().expect("a caller");
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte).expect("a head");
                head.push(byte[0]);
            }
            write!(
                stream,
                "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                body.len()
            )
            .expect("answered");
        }
    });
    let output = elsewhere(&lab, &url, None, &["waits"]);
    answering.join().expect("both were asked");
    assert!(output.status.success(), "{}", words(&output));
    assert!(words(&output).contains("the daemon is version 9.9.9"), "{}", words(&output));
}

// I4: who watches from elsewhere goes on with the next daemon.
#[test]
fn whoever_watches_from_elsewhere_goes_on_with_the_next_daemon() {
    let mut there = There::new();
    let id = there.lab.run("say one\nbarrier here\nsay two");
    there.lab.reach("here");
    let mut command = std::process::Command::new(crate::lab::REKINDLE);
    command.args(["--server", &there.url, "attach", &id]).env("REKINDLE_TOKEN", &there.token.text);
    command.env("REKINDLE_HOME", there.lab.path("nowhere")).current_dir(there.lab.path("work"));
    command
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    let mut watching = command.spawn().expect("it runs");
    let mut first = [0; 3];
    watching.stdout.as_mut().expect("a pipe").read_exact(&mut first).expect("the first word");
    there.lab.kill();
    there.lab.start();
    there.lab.pass("here");
    let output = watching.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(0), "{}", words(&output));
    assert_eq!(String::from_utf8_lossy(&first), "one");
    let rest = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!((rest.matches("one").count(), rest.matches("two").count()), (0, 1), "{}", words(&output));
}

// I2: what a record only names is there for whoever reads it, wherever they are.
#[test]
fn what_is_too_large_for_a_log_is_to_be_had_from_elsewhere() {
    let there = There::new();
    let run = there.begin("words 60000", &[]);
    assert_eq!(run.status.code(), Some(0), "{}", words(&run));
    let said = String::from_utf8_lossy(&run.stdout).trim().to_owned();
    let list: Value = serde_json::from_str(&there.good(&["ps", "--json"])).expect("JSON");
    let id = list["sessions"][0]["id"].as_str().expect("an id").to_owned();
    let message = there.lab.log(&id).into_iter().find(|record| record["kind"] == "message.agent");
    let content = &message.expect("a message")["content"];
    let blob = content["blob"].as_str().expect("it is kept apart").to_owned();

    let port = crate::client::port(&there.lab);
    let reader = Token::create(&there.lab, &["--scope", "read", "--name", "reader"]);
    let get = |name: &str| ask(port, "GET", &format!("/api/blobs/{name}"), Some(&reader), &Value::Null);
    let got = get(&blob);
    assert_eq!((got.status, got.header("content-type")), (200, Some("application/octet-stream")));
    assert_eq!(got.body, json!(said), "the JSON that would stand in the record");
    assert_eq!(get(&"0".repeat(64)).code(), (404, "blob_unknown"));
    assert_eq!(get("..%2Fdaemon.json").code(), (404, "blob_unknown"));
    assert_eq!(ask(port, "GET", &format!("/api/blobs/{blob}"), None, &Value::Null).status, 401);
    for command in [&["log", &id][..], &["attach", &id]] {
        assert!(there.good(command).contains(&said[said.len() - 50..]), "{command:?}");
    }

    let file = there.lab.home().join(format!("blobs/{}/{blob}.zst", &blob[..2]));
    std::fs::write(&file, "rubbish").expect("written");
    assert_eq!(get(&blob).code(), (409, "blob_damaged"));
    assert!(there.good(&["log", &id]).contains("kept apart"), "and whoever reads the log is told");
}
