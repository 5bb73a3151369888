//! Commands as agents: whatever they do, they do once, and their end is the run's, whether they wait for their prompt or not.

use serde_json::json;

use crate::agents_here::install_one;
use crate::lab::{Lab, wait_for};
use crate::ran::{Stdin, ran};

fn run(lab: &Lab, script: &str) -> String {
    let command = ["sh", "-c", script];
    let mut body = lab.session("do it");
    body["agent"] = json!({"profile": "exec", "command": command});
    body["resume"] = json!("never");
    lab.create(&body)
}

// I5, I6: a command that is over before its prompt comes has run all the same.
#[test]
fn a_command_that_does_not_wait_for_its_prompt_runs_once() {
    let lab = Lab::new();
    let ran = lab.path("ran");
    for (number, (end, kind, status)) in [
        ("true", "run.completed", "idle"),
        ("exit 3", "run.failed", "idle"),
        ("kill -9 $$", "run.interrupted", "interrupted_agent"),
    ]
    .into_iter()
    .cycle()
    .take(12)
    .enumerate()
    {
        let id = run(&lab, &format!("echo {number} >> {}; echo hello; {end}", ran.display()));
        lab.wait_status(&id, status);
        assert_eq!((lab.count(&id, kind), lab.count(&id, "agent.launching")), (1, 1), "{:?}", lab.log(&id));
        assert_eq!(lab.said(&id).trim(), "hello");
    }
    let ran = std::fs::read_to_string(ran).expect("they ran");
    assert_eq!(ran, (0..12).map(|number| format!("{number}\n")).collect::<String>());
}

// I5, I14: nobody knows what a command has done that was cut. It is run again only if a person says so, with the same words.
#[test]
fn a_command_that_was_cut_is_not_run_again_by_itself() {
    let lab = Lab::new();
    let (ran, heard) = (lab.path("ran"), lab.path("heard"));
    let script = format!("echo ran >> {}; cat >> {}; kill -9 $$", ran.display(), heard.display());
    let mut body = lab.session("count these");
    body["agent"] = json!({"profile": "exec", "command": ["sh", "-c", script]});
    let id = lab.create(&body);
    let lines = |path: &std::path::Path| std::fs::read_to_string(path).unwrap_or_default();
    for times in 1..=2 {
        wait_for("the end", || (lab.count(&id, "run.interrupted") == times).then_some(()));
        let shown = lab.wait_status(&id, "interrupted_agent");
        assert!(shown["held"].as_str().is_some_and(|held| !held.is_empty()), "{shown}");
        assert_eq!(shown["profile"], "exec");
        // Nobody is told that it goes on from where it was.
        let status = lab.rekindle(&["status", &id]).output().expect("it runs");
        let words = String::from_utf8_lossy(&status.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            words.contains(&format!(
                "{} runs its command again, from the beginning",
                lab.hint(&format!("resume {id}"))
            )),
            "{words}"
        );
        assert!(!words.contains("tool calls"), "{words}");
        assert_eq!(lines(&ran), "ran\n".repeat(times));
        assert_eq!(lines(&heard), "count these\n".repeat(times));
        if times == 1 {
            lab.post(&format!("/api/sessions/{id}/resume"), &json!({}));
        }
    }
}

#[test]
fn a_command_that_fails_is_told_with_what_it_complained_of() {
    let lab = Lab::new();
    let id = run(&lab, "cat > /dev/null; echo one >&2; echo 'no such thing' >&2; exit 3");
    lab.wait_end(&id);
    let failed = lab.log(&id).into_iter().find(|record| record["kind"] == "run.failed").expect("it failed");
    let error = failed["error"].as_str().expect("words");
    assert!(error.contains("exit code 3") && error.contains("no such thing"), "{error}");
}

// I5: what a person types behind -- is run, with the prompt where it wants it, and its end is ours.
#[test]
fn a_command_line_is_run_as_it_is_typed() {
    let lab = Lab::new();
    for (command, out, code) in [
        (&["sh", "-c", "tr a-z A-Z"][..], "TWO WORDS\n", 0),
        (&["sh", "-c", "echo \"[$1]\"", "sh", "{prompt}"], "[two words]\n", 0),
        (&["printf", "%s|", "--ask={prompt}", "x"], "--ask=two words|x|\n", 0),
        (&["sh", "-c", "cat > /dev/null; printf 'half a line'; exit 7"], "half a line\n", 1),
    ] {
        let mut run = lab.rekindle(&["run", "two words", "--"]);
        let ran = ran(run.args(command), Stdin::Nothing).exits(code);
        assert_eq!(ran.out, out, "{command:?}: {}", ran.err);
    }
}

// I1, I5: daemons come and go under a command that works, and it says everything once.
#[test]
fn a_command_outlives_its_daemons_and_loses_no_line() {
    let mut lab = Lab::new();
    let go = lab.path("go");
    let script = format!(
        "cat; for i in $(seq 1 200); do echo line $i; done; while [ ! -e {} ]; do sleep 0.01; done; echo last",
        go.display()
    );
    let id = run(&lab, &script);
    for _ in 0..3 {
        // Each of them has heard it.
        wait_for("words", || lab.get("/api/sessions")["sessions"][0]["last_words"].is_string().then_some(()));
        lab.restart();
    }
    std::fs::write(go, "").expect("written");
    assert_eq!(lab.wait_end(&id), "completed");
    let lines: String = (1..=200).map(|number| format!("line {number}\n")).collect();
    assert_eq!(lab.said(&id), format!("do it\n{lines}last\n"));
    assert_eq!((lab.count(&id, "agent.launching"), lab.count(&id, "run.interrupted")), (1, 0));
}

// I5: each message is a process of its own; one that waits for its turn gets it.
#[test]
fn every_message_runs_the_command_again_with_its_own_words() {
    let lab = Lab::new();
    let id = run(&lab, "read words; echo \"<$words>\"");
    for words in ["second", "third"] {
        lab.post(&format!("/api/sessions/{id}/messages"), &json!({"content": words}));
    }
    wait_for("three ends", || (lab.count(&id, "run.completed") == 3).then_some(()));
    assert_eq!(lab.said(&id), "<do it>\n<second>\n<third>\n");
}

// I13: a command that was cancelled before it was told its prompt has begun all the same, and ends.
#[test]
fn a_cancelled_command_ends_whether_it_was_told_its_prompt_or_not() {
    for script in ["sleep 600", "cat > /dev/null; sleep 600", "echo begun; sleep 600"] {
        let mut lab = Lab::without_daemon();
        lab.set("REKINDLE_STOP_GRACE", 200);
        lab.start();
        let id = run(&lab, script);
        wait_for("the command", || (lab.count(&id, "agent.started") == 1).then_some(()));
        if script.starts_with("echo") {
            lab.restart();
        }
        lab.post(&format!("/api/sessions/{id}/cancel"), &json!({}));
        assert_eq!(lab.wait_end(&id), "cancelled", "{script}");
        wait_for("its end", || (lab.count(&id, "agent.exited") == 1).then_some(()));
        wait_for("its holder to go", || lab.living_holders().is_empty().then_some(()));
        assert_eq!(lab.count(&id, "run.cancelled"), 1, "{script}");
    }
}

#[test]
fn a_prompt_that_is_too_long_for_an_argument_is_refused_at_once() {
    let lab = Lab::new();
    let file = lab.path("prompt.txt");
    for bytes in [200_000, 1_100_000] {
        std::fs::write(&file, "x".repeat(bytes)).expect("written");
        let file = file.to_str().expect("text");
        let run = lab.rekindle(&["run", "-f", file, "--", "echo", "{prompt}"]).output().expect("it runs");
        let words = String::from_utf8_lossy(&run.stderr);
        assert_eq!(run.status.code(), Some(1), "{words}");
        assert!(words.contains("without {prompt} it reads its prompt from its input"), "{words}");
        let run = lab.rekindle(&["run", "-f", file, "--", "wc", "-c"]).output().expect("it runs");
        assert_eq!(run.status.code(), Some(0), "{}", String::from_utf8_lossy(&run.stderr));
        assert_eq!(String::from_utf8_lossy(&run.stdout).trim(), (bytes + 1).to_string(), "a line ends");
    }
    let holders = std::fs::read_dir(lab.home().join("holders")).expect("a directory");
    assert_eq!(holders.count(), 2, "nothing was made for what could not begin");
}

// I12: an agent that is run as a command has not done what it was asked, whatever its exit code says.
#[test]
fn an_agent_that_is_run_as_a_command_fails_with_a_hint() {
    let lab = Lab::new();
    install_one(&lab, "wrapper", "");
    let program = lab.path("bin/wrapper").display().to_string();
    let run = |more: &[&str]| {
        let words = [&["run", "write x.txt hi"], more, &["--", &program]].concat();
        ran(&mut lab.rekindle(&words), Stdin::Nothing)
    };
    run(&[]).exits(1).tells("JSON-RPC").tells("--profile acp");
    assert!(!lab.path("work").join("x.txt").exists());
    run(&["--profile", "acp"]).exits(0);
    assert!(lab.path("work").join("x.txt").exists());
    // What is only about the protocol is an answer like any other.
    let about = r#"echo '{"jsonrpc":"2.0","id":1,"result":{}}'"#;
    ran(&mut lab.rekindle(&["run", "say it", "--", "sh", "-c", about]), Stdin::Nothing).exits(0);
}

// I8: a command that says nothing may be an agent that waits to be spoken to; it is not called a failure for that.
#[test]
fn a_silent_command_comes_with_a_hint() {
    let lab = Lab::new();
    let silent = ["run", "are you there?", "--", "sh", "-c", "cat >/dev/null"];
    ran(&mut lab.rekindle(&silent), Stdin::Nothing).exits(0).tells("wrote nothing").tells("--profile acp");
    ran(&mut lab.rekindle(&["status"]), Stdin::Nothing).exits(0).shows("--profile acp");
    let speaks = ["run", "are you there?", "--", "sh", "-c", "echo yes"];
    let spoken = lab.rekindle(&speaks).output().expect("it runs");
    assert!(!String::from_utf8_lossy(&spoken.stderr).contains("--profile"), "{spoken:?}");
    let waits = ["run", "--detach", "are you there?", "--", "sh", "-c", "cat >/dev/null; exec sleep 1000"];
    ran(&mut lab.rekindle(&waits), Stdin::Nothing).exits(0);
    ran(&mut lab.rekindle(&["status"]), Stdin::Nothing)
        .exits(0)
        .shows("nothing so far")
        .shows("--profile acp");
}
