//! Asking real processes who they are.

use std::time::{Duration, Instant};

use rekindle_agent::acp::Acp;
use rekindle_agent::known::Quirk;
use rekindle_agent::probe::{Probe, ProbeError, ProbeFailure, Probed, probe_all};

fn probe(script: &str, timeout: Duration) -> Result<Probed, ProbeError> {
    probe_for(script, timeout, false)
}

fn probe_for(script: &str, timeout: Duration, session: bool) -> Result<Probed, ProbeError> {
    of_script(script, timeout, session).run(&Acp::default()).map_err(|failure| failure.error)
}

fn of_script(script: &str, timeout: Duration, session: bool) -> Probe {
    let command = ["/bin/sh", "-c", script].map(str::to_owned).to_vec();
    let environment = vec![("PATH".into(), "/usr/bin:/bin".into())];
    Probe { command, environment, directory: std::env::temp_dir(), timeout, session }
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
    let refused = |probe: &Probe| probe.run(&Acp::default()).map_err(|failure| failure.error);
    assert!(matches!(refused(&nothing), Err(ProbeError::NoCommand)));
    let missing = Probe { command: vec!["/nowhere/agent".into()], ..nothing };
    assert!(matches!(refused(&missing), Err(ProbeError::Start { .. })));
}

#[test]
fn an_agent_that_fails_is_quoted() {
    let failed = |script: &str| {
        let failure = of_script(script, LONG, false).run(&Acp::default()).expect_err("no answer");
        (failure.text(), failure)
    };
    let (text, _) = failed("read line; echo 'node: bad option: --acp' >&2; exit 9");
    assert_eq!(text, "the agent ended before it answered; its stderr ends with: node: bad option: --acp");
    let (_, ProbeFailure { stderr, .. }) = failed("read line; yes wrong | head -n 100000 >&2; echo last >&2");
    assert!(stderr.ends_with("wrong\nlast") && stderr.len() <= 2048, "{} bytes", stderr.len());
    // One that has left the group holds the pipe open; nobody waits for it.
    let (text, _) = failed("read line; echo why >&2; setsid sleep 3 >/dev/null & exit 1");
    assert!(text.ends_with("ends with: why"), "{text}");
}

#[test]
fn agents_are_asked_at_the_same_time_and_answer_in_their_places() {
    let directory = tempfile::tempdir().expect("a directory");
    let place = directory.path().display();
    let answer = |name: &str| {
        format!(
            r#"echo '{{"jsonrpc":"2.0","id":1,"result":{{"protocolVersion":1,"agentInfo":{{"name":"{name}"}}}}}}'"#
        )
    };
    // Each waits for the other: one after the other, the first would never answer.
    let meet = |own: &str, other: &str| {
        format!(
            "read line; : >{place}/{own}; until [ -e {place}/{other} ]; do sleep 0.01; done; {}",
            answer(own)
        )
    };
    let probes =
        [meet("a", "b"), "exit 1".to_owned(), meet("b", "a")].map(|script| of_script(&script, LONG, false));
    let count = std::sync::atomic::AtomicUsize::new(0);
    let told = |_: usize| {
        count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    };
    let answers = probe_all(&probes, &Acp::default(), &told);
    let names: Vec<Option<String>> = answers.into_iter().map(|answer| answer.ok()?.name).collect();
    assert_eq!(names, [Some("a".into()), None, Some("b".into())]);
    assert_eq!(count.into_inner(), 3);
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
