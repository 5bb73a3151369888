//! Where a daemon listens, who says so, and what happens if it cannot.

use std::net::TcpListener;

use serde_json::Value;

use crate::client::{Token, ask, port, port_if_any, words};
use crate::lab::Lab;

fn configure(lab: &Lab, text: &str) -> String {
    let file = lab.path("config.toml");
    std::fs::write(&file, text).expect("written");
    file.display().to_string()
}

#[test]
fn several_addresses_are_listened_at_and_names_are_known() {
    let mut lab = Lab::without_daemon();
    // Not every machine has the other family.
    let second = if TcpListener::bind("[::1]:0").is_ok() { "[::1]:0" } else { "127.0.0.2:0" };
    lab.start_with(&["--listen", "127.0.0.1:0", "--listen", second, "--host", "Box.Example"], &[]);
    let place = rekindle_lab::daemon_file(&lab.home());
    let urls: Vec<&str> = place["listen"].as_str().expect("addresses").split(' ').collect();
    assert_eq!(urls.len(), 2, "{urls:?}");
    let token = Token::create(&lab, &[]);
    for url in &urls {
        let output = crate::client::elsewhere(&lab, url, Some(&token), &["ps"]);
        assert!(output.status.success(), "{}", words(&output));
    }
    let first: u16 = urls[0].rsplit_once(':').and_then(|(_, port)| port.parse().ok()).expect("a port");
    let named = format!("Host: box.example\r\nOrigin: https://box.example\r\n{}", token.header());
    assert_eq!(crate::client::ask_as(first, "GET", "/api/version", &named, &Value::Null).status, 200);
}

#[test]
fn the_configuration_says_where_a_daemon_that_is_not_told_listens() {
    let mut lab = Lab::without_daemon();
    let config = configure(&lab, "[serve]\nlisten = [\"127.0.0.1:0\"]\n");
    lab.start_with(&[], &[("REKINDLE_CONFIG", &config)]);
    let token = Token::create(&lab, &[]);
    assert_eq!(ask(port(&lab), "GET", "/api/version", Some(&token), &Value::Null).status, 200);
    // It is read again at each start, and is nothing that a successor was told.
    lab.kill();
    lab.start();
    assert_eq!(port_if_any(&lab), None);
}

// I10: a port that is taken does not keep a daemon from its sessions.
#[test]
fn a_port_that_is_taken_is_said_and_everything_else_is_served() {
    let lab = Lab::without_daemon();
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let told = lab.rekindle(&["serve", "--listen", &address]).output().expect("it runs");
    assert!(
        !told.status.success() && words(&told).contains(&format!("cannot listen at {address}")),
        "{}",
        words(&told)
    );

    let config = configure(&lab, &format!("[serve]\nlisten = [\"{address}\"]\n"));
    let agent = lab.demo(&[]);
    let mut run = lab.rekindle(&["run", "say hello", "--"]);
    let output = run.args(&agent).env("REKINDLE_CONFIG", &config).output().expect("it runs");
    assert_eq!(output.status.code(), Some(0), "{}", words(&output));
    assert!(
        words(&output).contains("does not listen on TCP") && words(&output).contains("hello"),
        "{}",
        words(&output)
    );
    // Restarted once the port is free, it has it.
    drop(taken);
    let restarted = lab.rekindle(&["restart"]).env("REKINDLE_CONFIG", &config).output().expect("it runs");
    assert!(restarted.status.success(), "{}", words(&restarted));
    assert_eq!(format!("127.0.0.1:{}", port(&lab)), address);
}

/// Budgets are in the configuration: nobody begins without what it says, and one that runs is not replaced by one that cannot.
#[test]
fn a_configuration_that_cannot_be_read_starts_no_daemon_and_stops_none() {
    let mut lab = Lab::without_daemon();
    let agent = lab.demo(&[]);
    for (wrong, line, why) in [
        ("[serve]\nlisten = [\"nowhere\"]\n", 2, "expected an address"),
        ("[budgets]\nrun = { wall = \"2s\" }\n[notify]\nsettel = \"1s\"\n", 4, "settel"),
        ("[budgets\n", 1, ""),
    ] {
        let config = configure(&lab, wrong);
        let mut run = lab.rekindle(&["run", "say hello", "--"]);
        let refused = run.args(&agent).env("REKINDLE_CONFIG", &config).output().expect("it runs");
        assert!(!refused.status.success(), "{}", words(&refused));
        let place = format!("{config}, line {line}: ");
        assert!(words(&refused).contains(&place) && words(&refused).contains(why), "{}", words(&refused));
        assert!(!lab.daemon_described(), "none was started");
    }
    lab.start();
    let pid = lab.daemon_pid();
    let config = configure(&lab, "[notify]\nsettel = \"1s\"\n");
    let refused = lab.rekindle(&["restart"]).env("REKINDLE_CONFIG", &config).output().expect("it runs");
    assert!(!refused.status.success(), "{}", words(&refused));
    assert!(words(&refused).contains("settel"), "{}", words(&refused));
    assert_eq!(
        (lab.get("/api/version")["pid"].as_i64(), lab.get("/healthz")["status"].clone()),
        (Some(pid.into()), "ok".into())
    );
}

#[test]
fn a_takeover_listens_where_the_one_before_did() {
    let mut lab = Lab::without_daemon();
    lab.start_with(&["--listen", "127.0.0.1:0"], &[]);
    let first = port(&lab);
    let place = || rekindle_lab::daemon_file(&lab.home());
    let before = place()["pid"].clone();
    let _successor = lab.begin(&["--takeover"], &[]);
    // One that had to be killed leaves its file behind.
    crate::lab::wait_for("its successor", || {
        let place = place();
        (place.is_object() && place["pid"] != before).then_some(())
    });
    assert_eq!(port(&lab), first);
    lab.died();
    let token = Token::create(&lab, &[]);
    assert_eq!(ask(first, "GET", "/api/version", Some(&token), &Value::Null).status, 200);
}
