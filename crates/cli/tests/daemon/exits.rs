//! Commands without a terminal: the answer and nothing else on stdout, an exit code that says how it went, and nothing
//! that waits for anyone.

use serde_json::Value;

use crate::lab::{Lab, wait_for};
use crate::ran::{Stdin, ran};

#[test]
fn stdout_has_the_answer_and_nothing_else() {
    let lab = Lab::new();
    let prompt = "think hm\nsay Hello \x1b[2Jworld\ntool read src/main.rs\nnotice by the way\nsay Bye";
    // Whoever calls us may hold stdin open for ever.
    let ran = lab.run_demo(&[prompt], Stdin::HeldOpen).exits(0);
    assert_eq!(ran.out, "Hello world\nBye\n");
    for part in ["hm", "src/main.rs", "by the way"] {
        assert!(ran.err.contains(part), "{part}: {}", ran.err);
    }
    assert!(!ran.err.contains('\x1b') && !ran.err.contains("\nHello"), "{}", ran.err);
    let again = lab.ran(&["attach"]).exits(0);
    assert_eq!(again.out, "Hello world\nBye\n");
}

#[test]
fn a_prompt_comes_from_an_argument_a_file_or_stdin() {
    let lab = Lab::new();
    std::fs::write(lab.path("work/task.md"), "say from a file\n").expect("a file");
    for (arguments, stdin, said) in [
        (&["say from an argument"][..], Stdin::HeldOpen, "from an argument\n"),
        (&["-f", "task.md"], Stdin::HeldOpen, "from a file\n"),
        (&["say first", "-f", "task.md"], Stdin::HeldOpen, "first\nfrom a file\n"),
        (&[], Stdin::Text("say from stdin"), "from stdin\n"),
        (&["-"], Stdin::Text("say from stdin"), "from stdin\n"),
        (&["-f", "-"], Stdin::Text("say from stdin"), "from stdin\n"),
        (&["say first", "-f", "-"], Stdin::Text("say from stdin"), "first\nfrom stdin\n"),
    ] {
        let ran = lab.run_demo(arguments, stdin).exits(0);
        assert_eq!(ran.out, said, "{arguments:?}");
    }
}

#[test]
fn a_question_ends_the_command_and_says_how_to_answer() {
    let lab = Lab::new();
    let ran = lab.run_demo(&["say so far\nask may I delete build?\nsay thank you"], Stdin::Nothing).exits(4);
    assert_eq!(ran.out, "so far\n");
    let ran =
        ran.tells("asks for permission: may I delete build?").tells("1  Allow").tells("4  Always reject");
    let how =
        ran.err.lines().find_map(|line| line.strip_prefix(&format!("answer with: {} ", lab.hint("answer"))));
    let wait = how.and_then(|how| how.strip_suffix(" NUMBER")).expect("how to answer");
    let then = ran.err.lines().find_map(|line| line.strip_prefix(&format!("then: {} ", lab.hint("attach"))));
    lab.ran(&["attach"]).exits(4).tells(wait);
    lab.ran(&["answer", wait, "1"]).exits(0);
    let rest = lab.ran(&["attach", then.expect("how to come back")]).exits(0);
    assert_eq!(rest.out, "so far\nthank you\n");
}

#[test]
fn a_policy_spares_the_question() {
    let lab = Lab::new();
    let ran = lab.run_demo(&["ask may I?\nsay thank you", "--permissions", "allow"], Stdin::Nothing).exits(0);
    assert_eq!(ran.out, "thank you\n");
}

// I8
#[test]
fn an_interrupted_run_that_does_not_go_on_is_its_own_exit_code() {
    let lab = Lab::new();
    let ran = lab.run_demo(&["say before\ncrash-signal", "--resume", "never"], Stdin::Nothing).exits(3);
    assert_eq!(ran.out, "before\n");
    let id = lab.only_session();
    ran.tells("interrupted: ").tells(&lab.hint(&format!("resume {id}")));
    let help = lab.ran(&["run", "--help"]).exits(0).out;
    assert!(help.contains("at most twice") && help.contains("--profile exec"), "{help}");
    lab.ran(&["attach"]).exits(3).tells(&lab.hint(&format!("resume {id}")));
    let resumed = lab.ran(&["resume"]).exits(0);
    assert!(resumed.out.contains("I remember"), "{resumed:?}");
    lab.ran(&["resume"]).exits(1).tells("error: ");
    assert_eq!(lab.prompted("say before"), 1);
}

// I4
#[test]
fn an_interrupted_run_that_goes_on_is_watched_to_its_end() {
    let lab = Lab::new();
    let ran = lab.run_demo(&["say before\ncrash-signal"], Stdin::Nothing).exits(0);
    assert!(ran.out.starts_with("before\n") && ran.out.contains("I remember"), "{ran:?}");
    ran.tells("interrupted: ").tells("continues after the interruption, attempt 2");
}

#[test]
fn failures_wrong_usage_and_missing_daemons_have_codes_of_their_own() {
    let lab = Lab::new();
    lab.run_demo(&["refuse not today"], Stdin::Nothing).exits(1).tells("not today");
    lab.run_demo(&["stop-reason max_tokens"], Stdin::Nothing).exits(1).tells("max_tokens");
    let mut gone = lab.rekindle(&["run", "hello", "--", "/no/such/agent"]);
    ran(&mut gone, Stdin::Nothing).exits(1).tells("could not be started");
    for (arguments, words) in [
        (&["run"][..], "the prompt is missing"),
        (&["run", " \n"], "the prompt is missing"),
        (&["run", "x", "--agent", "nobody"], "nobody"),
        (&["run", "x", "--cwd", "/no/such/place", "--", "true"], "/no/such/place"),
        (&["run", "x", "-f", "no-such-file"], "no-such-file"),
        (&["run", "x", "--env", "NO_SUCH_VARIABLE", "--", "true"], "NO_SUCH_VARIABLE"),
        (&["run", "--no-such-option"], "--no-such-option"),
        (&["attach", "../x"], "../x"),
        (&["rm"], "SESSION"),
        (&["answer"], "the answer is missing"),
    ] {
        lab.ran(arguments).exits(2).tells(words);
    }
    lab.ran(&["attach", "01zzz"]).exits(2).tells("01zzz");
}

#[test]
fn a_command_that_ends_says_how_once_and_only_if_something_is_wrong() {
    let lab = Lab::new();
    let exec = |script: &str| {
        let mut command = lab.rekindle(&["run", "x", "--profile", "exec", "--", "sh", "-c"]);
        ran(command.arg(script), Stdin::Nothing)
    };
    let done = exec("cat").exits(0);
    assert_eq!((done.out.as_str(), done.err.as_str()), ("x\n", "> x\n"));
    let failed = exec("cat; exit 3").exits(1).tells("failed: the command ended with exit code 3\n");
    assert_eq!(failed.err.matches('3').count(), 1, "{failed:?}");
}

#[test]
fn a_long_prompt_is_not_shown_whole_again() {
    let lab = Lab::new();
    let prompt = format!("say short\n# {}", "long ".repeat(1 << 17));
    std::fs::write(lab.path("work/task.md"), &prompt).expect("a file");
    let ran = lab.run_demo(&["-f", "task.md"], Stdin::Nothing);
    assert!(
        ran.err.len() < 10_000 && ran.err.contains("(2 lines, 640.0 KiB; rekindle log shows all"),
        "{}",
        ran.err.len()
    );
}

#[test]
fn a_directory_that_was_removed_is_named_as_the_cause() {
    let lab = Lab::new();
    let gone = lab.path("gone");
    std::fs::create_dir(&gone).expect("a directory");
    let mut shell = std::process::Command::new("sh");
    let run = lab.rekindle(&["run", "x", "--", "true"]);
    let script = r#"cd "$0" && rmdir "$0" && exec "$@""#;
    shell.args(["-c", script]).arg(&gone).arg(run.get_program()).args(run.get_args());
    shell.envs(run.get_envs().filter_map(|(name, value)| Some((name, value?))));
    ran(&mut shell, Stdin::Nothing).exits(2).tells("was removed").tells("cd DIR").tells("--cwd DIR");
    std::fs::write(lab.path("file"), "").expect("a file");
    let below = lab.path("file/home");
    let mut doctor = std::process::Command::new(crate::lab::REKINDLE);
    let told = ran(doctor.args(["doctor", "--home"]).arg(&below), Stdin::Nothing);
    told.exits(2).tells(&format!("ls -ld {}", below.display()));
}

#[test]
fn what_needs_a_daemon_and_must_not_start_one_says_so() {
    let lab = Lab::without_daemon();
    lab.ran(&["log", "-f"]).exits(5).tells("no daemon");
    lab.ran(&["stop"]).exits(0).tells("no daemon and no agent is running");
    assert!(!lab.home().join("daemon.json").exists());
    // One that cannot start is none.
    let place =
        lab.path("a-place-for-sockets-that-is-longer-than-any-path-of-a-socket-may-be".repeat(2).as_str());
    let mut run = lab.rekindle(&["run", "hello", "--", "true"]);
    run.env("TMPDIR", &place).env("XDG_RUNTIME_DIR", &place);
    let ran = ran(&mut run, Stdin::Nothing);
    assert_eq!(ran.code, Some(5), "{ran:?}");
}

#[test]
fn json_is_records_line_by_line_and_errors_are_objects() {
    let lab = Lab::new();
    let ran = lab.run_demo(&["--json", "words 3\nask may I?"], Stdin::Nothing).exits(4);
    let lines: Vec<Value> = ran.out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let records: Vec<&Value> = lines.iter().filter(|line| line["seq"].is_u64()).collect();
    assert_eq!(records.first().map(|record| record["seq"].as_u64()), Some(Some(1)));
    assert!(records.iter().any(|record| record["kind"] == "run.waiting"), "{}", ran.out);
    assert!(lines.iter().any(|line| line["delta"]["text"].is_string()), "{}", ran.out);
    assert_eq!(ran.err, "");
    let detached = lab.run_demo(&["--json", "-d", "say hi"], Stdin::Nothing).exits(0).json();
    let id = detached["id"].as_str().expect("an id").to_owned();
    assert_eq!(lab.wait_end(&id), "completed");
    let unknown = lab.ran(&["status", "01zzz", "--json"]).exits(2);
    assert_eq!((unknown.error_code().as_str(), unknown.out.as_str()), ("session_unknown", ""));
    assert_eq!(lab.ran(&["run", "--json", "--nonsense"]).exits(2).error_code(), "usage");
    assert_eq!(lab.ran(&["run", "--json"]).exits(2).error_code(), "no_prompt");
}

#[test]
fn a_detached_run_prints_its_id_alone_and_works_on() {
    let lab = Lab::without_daemon();
    let ran = lab.run_demo(&["-d", "say hi"], Stdin::HeldOpen).exits(0);
    let id = ran.out.trim_end().to_owned();
    assert_eq!(ran.out, format!("{id}\n"));
    let ran = ran.tells(&lab.hint(&format!("attach {}", &id[5..15])));
    assert!(ran.err.lines().count() == 1, "{ran:?}");
    assert_eq!(lab.ran(&["attach", &id]).exits(0).out, "hi\n");
}

// I4
#[test]
fn a_daemon_killed_behind_a_pipe_changes_nothing_in_the_answer() {
    let mut lab = Lab::new();
    let mut command = lab.rekindle(&["run", "words 20\nbarrier here\nwords 300 every 1ms", "--"]);
    command.args(lab.demo(&[]));
    let watching = std::thread::spawn(move || ran(&mut command, Stdin::HeldOpen));
    lab.reach("here");
    lab.kill();
    wait_for("the next daemon", || lab.ran(&["ps"]).out.contains("running").then_some(()));
    lab.pass("here");
    let ran = watching.join().expect("it ran").exits(0);
    let words = |count: usize| (1..=count).map(|n| format!("w{n}")).collect::<Vec<_>>().join(" ");
    assert_eq!(ran.out, format!("{}\n{}\n", words(20), words(300)), "{}", ran.err);
    ran.tells("the daemon went away").tells("a daemon is running again");
}

#[test]
fn the_answer_to_a_queued_message_begins_with_its_own_words() {
    let lab = Lab::new();
    let id = lab.run("say first\nbarrier here\nsay rest");
    lab.reach("here");
    let sent = std::thread::scope(|scope| {
        let sent = scope.spawn(|| lab.ran(&["send", &id, "say second"]));
        wait_for("the queue", || (lab.show(&id)["queued"] == 1).then_some(()));
        lab.pass("here");
        sent.join().expect("no panic")
    });
    assert_eq!(sent.exits(0).tells("rest").out, "second\n");
}

#[test]
fn an_id_without_a_message_is_not_sent_as_one() {
    let lab = Lab::new();
    let id = lab.run("say hello");
    lab.wait_end(&id);
    let bare = id.trim_start_matches("sess_").to_owned();
    for name in [id.as_str(), &bare, &bare[..10]] {
        lab.ran(&["send", name])
            .exits(2)
            .tells("is missing: give it after the id")
            .tells(&format!("send {name} TEXT"));
    }
    assert_eq!(lab.count(&id, "message.user"), 1);
    // What is piped is the message, as it is without an id.
    ran(&mut lab.rekindle(&["send", "--detach", &id]), Stdin::Text("say piped")).exits(0);
    lab.ran(&["send", "--detach", "say 01khz0p6r8"]).exits(0);
    crate::lab::wait_for("all three", || (lab.count(&id, "run.completed") == 3).then_some(()));
    assert_eq!((lab.prompted("say piped"), lab.prompted("say 01khz0p6r8")), (1, 1));
}
