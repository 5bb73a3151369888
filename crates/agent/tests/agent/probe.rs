//! Asking real processes who they are.

use std::time::{Duration, Instant};

use rekindle_agent::acp::Acp;
use rekindle_agent::known::Quirk;
use rekindle_agent::probe::{Probe, ProbeError, Probed};

fn probe(script: &str, timeout: Duration) -> Result<Probed, ProbeError> {
    probe_for(script, timeout, false)
}

fn probe_for(script: &str, timeout: Duration, session: bool) -> Result<Probed, ProbeError> {
    let command = ["/bin/sh", "-c", script].map(str::to_owned).to_vec();
    let environment = vec![("PATH".into(), "/usr/bin:/bin".into())];
    Probe { command, environment, directory: std::env::temp_dir(), timeout, session }.run(&Acp::default())
}

const LONG: Duration = Duration::from_secs(20);

#[test]
fn an_agent_behind_a_banner_says_who_it_is() {
    let script = r#"echo "Welcome!"; read line; case "$line" in *initialize*) ;; *) exit 9;; esac
        echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentInfo":{"name":"gemini-cli","version":"0.61.0"},"agentCapabilities":{"loadSession":true},"authMethods":[{"id":"k"}]}}'
        cat >/dev/null"#;
    let probed = probe(script, LONG).expect("an answer");
    assert_eq!((probed.name.as_deref(), probed.version.as_deref()), (Some("gemini-cli"), Some("0.61.0")));
    assert!(probed.can.load && !probed.can.resume && probed.quirks.has(Quirk::ReplaysAfterLoad));
    let json = serde_json::to_value(&probed).expect("JSON");
    assert_eq!(json["auth_methods"][0]["id"], "k");
}

#[test]
fn an_agent_that_is_asked_for_a_session_says_what_it_offers() {
    let greet = r#"read line; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}'; read line"#;
    let open = r#"case "$line" in *session/new*) ;; *) exit 9;; esac; echo noise
        echo '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s","modes":{"currentModeId":"a","availableModes":[{"id":"a"},{"id":"b"}]},"models":{"availableModels":[{"modelId":"m"}]}}}'
        cat >/dev/null"#;
    let probed = probe_for(&format!("{greet}; {open}"), LONG, true).expect("an answer");
    let offers = serde_json::to_value(probed.offers).expect("JSON");
    assert_eq!(offers["modes"][0], serde_json::json!({"id": "a", "name": "a", "current": true}));
    assert_eq!((&offers["modes"][1]["id"], &offers["models"][0]["id"]), (&"b".into(), &"m".into()));
    let refusal = r#"echo '{"id":2,"error":{"code":-32000,"message":"sign in"}}'; cat >/dev/null"#;
    let refused = probe_for(&format!("{greet}; {refusal}"), LONG, true);
    assert!(matches!(refused, Err(ProbeError::NoSession(failure)) if failure.is_auth_required()));
}

#[test]
fn silence_noise_refusal_and_death_are_told_apart() {
    assert!(matches!(probe("exec sleep 60", Duration::from_millis(200)), Err(ProbeError::Silent(_))));
    assert!(matches!(probe("exit 3", LONG), Err(ProbeError::Ended | ProbeError::Pipe(_))));
    assert!(matches!(probe("exec yes", LONG), Err(ProbeError::Flood)));
    let refusal = r#"read line; echo '{"id":1,"error":{"code":-32600,"message":"no"}}'; sleep 60"#;
    assert!(matches!(probe(refusal, LONG), Err(ProbeError::Refused(failure)) if failure.code == -32600));
    let nothing =
        Probe { command: vec![], environment: vec![], directory: "/".into(), timeout: LONG, session: false };
    assert!(matches!(nothing.run(&Acp::default()), Err(ProbeError::NoCommand)));
    let missing = Probe { command: vec!["/nowhere/agent".into()], ..nothing };
    assert!(matches!(missing.run(&Acp::default()), Err(ProbeError::Start { .. })));
}

#[test]
fn what_it_started_is_ended_with_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("pid");
    // A child that ignores the request to end, and holds the output open.
    let script = format!(
        "(trap '' TERM; sh -c 'echo $PPID' >{}; while :; do sleep 1; done) & trap '' TERM; read line; wait",
        file.display()
    );
    let begun = Instant::now();
    assert!(matches!(probe(&script, Duration::from_millis(500)), Err(ProbeError::Silent(_))));
    assert!(begun.elapsed() < LONG);
    let pid: i32 = std::fs::read_to_string(&file).expect("the child ran").trim().parse().expect("a number");
    // Its parent is gone too, so somebody else reaps it; dead is all it must be, once it has noticed.
    loop {
        let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        if state.is_empty() || state.contains(") Z ") || state.contains(") X ") {
            break;
        }
        assert!(begun.elapsed() < 2 * LONG, "{state}");
        std::thread::yield_now();
    }
}
