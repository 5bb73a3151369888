//! Real programs: those that do as they should, that hang, fork, flood, and repeat what they were told.

use std::time::Instant;

use super::*;
use crate::fake_machine::FakeMachine;
use crate::samples;

/// Returns a sink that runs a script, which finds its directory in `$1`.
fn sink(script: &str, directory: &Path, limit: Duration) -> CommandSink {
    let mut machine = FakeMachine::with_variable("PATH", "/usr/local/bin:/usr/bin:/bin");
    machine.variables.insert("HOME".to_owned(), directory.display().to_string());
    machine.variables.insert("TOKEN".to_owned(), "hunter2".to_owned());
    machine.variables.insert("OTHER".to_owned(), "hidden".to_owned());
    let arguments = ["-c", script, "hook"].map(ToOwned::to_owned);
    let config = CommandConfig {
        program: "sh".to_owned(),
        arguments: arguments.into_iter().chain([directory.display().to_string()]).collect(),
        env: vec!["TOKEN".to_owned()],
    };
    CommandSink { limit, ..CommandSink::new(config, Include::Full, Arc::new(machine)) }
}

fn refused(delivery: Delivery) -> String {
    let Delivery::Refused { why } = delivery else { panic!("{delivery:?}") };
    why
}

#[test]
fn a_program_gets_the_message_on_its_input_and_a_short_environment() {
    let directory = tempfile::tempdir().expect("a directory");
    let script = "cat > \"$1\"/input; env > \"$1\"/env; pwd > \"$1\"/cwd";
    let sink = sink(script, directory.path(), LIMIT);
    assert_eq!(sink.deliver(&samples::message(), &samples::links()), Delivery::Delivered);
    let written = |name: &str| std::fs::read_to_string(directory.path().join(name)).expect("written");
    let input: serde_json::Value = serde_json::from_str(&written("input")).expect("JSON");
    assert_eq!(input["event_id"], samples::waiting().event_id);
    assert_eq!(input["links"][0]["url"], samples::links()[0].url);
    let env = written("env");
    for line in
        ["TOKEN=hunter2", "REKINDLE_KIND=waiting", "REKINDLE_EVENT_ID=sess_01kj0000000000000000000000.12"]
    {
        assert!(env.lines().any(|given| given == line), "{line}: {env}");
    }
    assert!(!env.contains("hidden") && !env.contains("CARGO"), "{env}");
    assert_eq!(Path::new(written("cwd").trim()), directory.path().canonicalize().expect("a path"));
}

#[test]
fn the_end_of_a_program_says_whether_it_is_run_again() {
    let directory = tempfile::tempdir().expect("a directory");
    let run =
        |script: &str| sink(script, directory.path(), LIMIT).deliver(&samples::message(), &samples::links());
    assert_eq!(run("exec 0<&-; exit 0"), Delivery::Delivered);
    let Delivery::Retry { why, after: None } = run("echo later >&2; exit 75") else { panic!("not again") };
    assert!(why.contains("75") && why.ends_with(": later"), "{why}");
    let why = refused(run("printf 'first\\n\\033[31mlast\\033[0m\\n\\n' >&2; exit 3"));
    assert!(why.contains('3') && why.ends_with(": last"), "{why}");
    assert!(refused(run("kill -9 $$")).contains("signal"));
    let missing =
        CommandConfig { program: "/no/such/program".to_owned(), arguments: Vec::new(), env: Vec::new() };
    let missing = CommandSink::new(missing, Include::Title, Arc::new(FakeMachine::new()));
    assert!(
        refused(missing.deliver(&samples::message(), &[])).contains("/no/such/program cannot be started")
    );
}

#[test]
fn a_program_that_hangs_is_ended_with_all_that_it_began() {
    let directory = tempfile::tempdir().expect("a directory");
    // Children that ignore what asks them to end, and hold its outputs open.
    let script = "trap '' TERM; echo $$ > \"$1\"/pids; (trap '' TERM; sleep 600) & echo $! >> \"$1\"/pids; wait; sleep 600";
    let sink = sink(script, directory.path(), Duration::from_millis(700));
    let begun = Instant::now();
    let why = refused(sink.deliver(&samples::message(), &[]));
    assert!(why.contains("was ended after"), "{why}");
    assert!(begun.elapsed() < Duration::from_secs(5));
    let pids = std::fs::read_to_string(directory.path().join("pids")).expect("written");
    assert_eq!(pids.lines().count(), 2);
    for pid in pids.lines() {
        wait_until_gone(pid);
    }
}

#[test]
fn what_a_program_leaves_behind_neither_delays_nor_outlives_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let sink = sink("sleep 600 & echo $! > \"$1\"/pid", directory.path(), LIMIT);
    let begun = Instant::now();
    assert_eq!(sink.deliver(&samples::message(), &[]), Delivery::Delivered);
    assert!(begun.elapsed() < LIMIT / 2);
    wait_until_gone(std::fs::read_to_string(directory.path().join("pid")).expect("written").trim());
}

#[test]
fn a_flood_is_heard_to_a_limit_and_its_end_is_told() {
    let directory = tempfile::tempdir().expect("a directory");
    let run = |script: &str| {
        refused(sink(script, directory.path(), Duration::from_secs(5)).deliver(&samples::message(), &[]))
    };
    // Once nobody listens any more, writing ends it.
    let begun = Instant::now();
    assert!(run("exec yes >&2").contains("signal"));
    assert!(begun.elapsed() < Duration::from_secs(5));
    let why = run("head -c 500000 /dev/zero | tr '\\0' x >&2; echo >&2; echo the end >&2; exit 1");
    assert!(why.ends_with(": the end"), "{why}");
    let long = run("head -c 100000 /dev/zero | tr '\\0' x >&2; exit 1");
    assert!(!long.contains("xx"), "{long}");
}

#[test]
fn a_program_that_does_not_read_its_input_keeps_nobody() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut command = Command::new("sleep");
    command.arg("600");
    let begun = Instant::now();
    let outcome =
        process::run(&mut command, &vec![b'x'; 4 << 20], Duration::from_millis(300)).expect("it runs");
    assert!(matches!(outcome.ended, Ended::TimedOut) && begun.elapsed() < Duration::from_secs(3));
    let all = "cat > \"$1\"/input";
    let sink = sink(all, directory.path(), LIMIT);
    let mut command = Command::new("sh");
    command.args(&sink.config.arguments);
    process::run(&mut command, &vec![b'x'; 4 << 20], LIMIT).expect("it runs");
    assert_eq!(std::fs::metadata(directory.path().join("input")).expect("written").len(), 4 << 20);
}

#[test]
fn what_was_told_in_confidence_is_not_repeated() {
    let directory = tempfile::tempdir().expect("a directory");
    let script = "read -r input; echo \"$input and $TOKEN\" >&2; exit 1";
    let links =
        [AnswerLink { label: "Yes".to_owned(), url: "https://box.example/answer#w.topsecret".to_owned() }];
    let why = refused(sink(script, directory.path(), LIMIT).deliver(&samples::message(), &links));
    assert!(why.contains("links"), "{why}");
    let tail = "cat | tail -c 120 >&2; echo \" topsecret w.topsecret $TOKEN\" >&2; exit 1";
    let why = refused(sink(tail, directory.path(), LIMIT).deliver(&samples::message(), &links)) + &why;
    assert!(!why.contains("w.topsecret") && !why.contains("hunter2"), "{why}");
}

/// Waits until a process is gone, or has ended and nobody has asked how.
fn wait_until_gone(pid: &str) {
    let deadline = Instant::now() + Duration::from_secs(5);
    loop {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let state = stat.rsplit_once(") ").map(|(_, rest)| rest.chars().next());
        if matches!(state, None | Some(Some('Z' | 'X'))) {
            return;
        }
        assert!(Instant::now() < deadline, "{pid} lives: {stat}");
        std::thread::yield_now();
    }
}
