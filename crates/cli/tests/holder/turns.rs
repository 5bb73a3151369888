//! Whole turns with a real agent in a real holder, whose supervisor is a process that is killed: what the log says
//! afterwards is what the agent said, once.

use std::process::Command;
use std::time::{Duration, Instant};

use rekindle_holder::client::inspect_all;
use rekindle_testkit::rng::Rng;
use rustix::process::Signal;

use crate::home::{Home, REKINDLE, kill};
use crate::lab::{wait_for, wait_until_gone};

fn words(count: usize) -> String {
    (1..=count).map(|n| format!("w{n}")).collect::<Vec<_>>().join(" ")
}

// I4, I5, I6
#[test]
fn a_turn_whose_supervisor_is_killed_again_and_again_is_in_the_log_once() {
    let rounds = if std::env::var("REKINDLE_TEST_LONG").is_ok() { 100 } else { 20 };
    let home = Home::new();
    let prompt =
        "words 1500 every 1ms\ntool read a.txt\nask may I?\nwords 1500 every 1ms\nbarrier end\nsay finished";
    let mut rng = Rng::new(3);
    for _ in 0..rounds {
        let supervisor = home.drive(&["--prompt", prompt, "--answer", "allow_once"]);
        // The moment is the point: there is nothing to wait for but time.
        std::thread::sleep(Duration::from_millis(rng.below(300)));
        kill(supervisor);
    }
    home.pass("end");
    home.finish(&["--prompt", prompt, "--answer", "allow_once", "--stop"]);
    for kind in
        ["run.started", "run.completed", "run.waiting", "run.resumed", "agent.started", "token.consumed"]
    {
        assert_eq!(home.count(kind), 1, "{kind}: {:#?}", home.log());
    }
    // A supervisor killed between its record and the holder's start leaves a launch that never was.
    assert_eq!(home.count("agent.exited"), home.count("agent.launching"));
    assert_eq!(home.count("run.interrupted"), 0);
    assert_eq!(home.said(), [words(1500), words(1500), "finished".into()], "every word once");
    assert_eq!((home.told("session/prompt"), home.told("initialize"), home.told("session/new")), (1, 1, 1));
    assert_eq!(home.processes(), 1, "one agent all the time");
    let doctor =
        Command::new(REKINDLE).arg("--home").arg(home.path("home")).args(["doctor", "--json"]).output();
    let doctor: serde_json::Value =
        serde_json::from_slice(&doctor.expect("doctor runs").stdout).expect("JSON");
    let severe = |finding: &&serde_json::Value| finding["severity"] != "note";
    let findings = doctor["findings"].as_array().expect("findings");
    assert_eq!(findings.iter().filter(severe).collect::<Vec<_>>(), Vec::<&serde_json::Value>::new());
    let answers = home.record().iter().filter(|line| line.contains("\"optionId\"")).count();
    assert_eq!(answers, 1, "the permission was answered once");
}

// I4: a tool update between two chunks of one message, then a kill.
#[test]
fn a_message_with_a_tool_update_in_it_is_whole_after_a_kill() {
    let home = Home::new();
    let supervisor = home.drive(&["--prompt", "tool-between\nbarrier here\nsay end"]);
    home.reach("here");
    kill(supervisor);
    home.pass("here");
    home.finish(&["--stop"]);
    let said = home.said();
    assert_eq!(said.len(), 2, "{said:?}");
    assert_eq!(said[1], "end");
    assert!(said[0].split_whitespace().count() > 1, "one whole message: {:?}", said[0]);
}

// I4, I7
#[test]
fn a_permission_outlives_its_supervisor_and_is_answered_once_under_its_own_id() {
    let home = Home::new();
    let supervisor = home.drive(&["--prompt", "repeat-ids\nask the first?\nask the second?\nsay thanks"]);
    wait_for("the wait", || (home.count("run.waiting") == 1).then_some(()));
    kill(supervisor);
    assert!(!home.record().iter().any(|line| line.contains("optionId")), "nobody answered for us");
    home.finish(&["--answer", "allow_once", "--stop"]);
    assert_eq!(
        (home.count("run.waiting"), home.count("run.resumed"), home.count("run.completed")),
        (2, 2, 1)
    );
    assert_eq!(home.said(), ["thanks"]);
}

// I5, I6, I12: the agent and its holder are killed; the next one comes back to the conversation.
#[test]
fn a_killed_agent_is_interrupted_once_and_its_conversation_is_found_again() {
    let home = Home::new();
    home.finish(&["--prompt", "say the first answer"]);
    let supervisor = home.drive(&["--prompt", "words 20\nrun sleep 60\nsay never"]);
    wait_for("the tool", || (home.count("tool.update") > 0).then_some(()));
    let holder = inspect_all(&home.path("home/holders")).expect("holders").remove(0);
    let status = holder.status.there().expect("a status");
    let tree: Vec<_> = home.trees().iter().flat_map(|tree| tree.members().expect("processes")).collect();
    kill(supervisor);
    rekindle_holder::tree::signal_exactly(&status.holder, Signal::KILL).expect("signalled");
    wait_until_gone(&status.holder);
    // The next supervisor harvests, proves the tree gone, launches anew and loads.
    home.finish(&["--prompt", "say the third answer", "--stop"]);
    tree.iter().for_each(wait_until_gone);
    assert_eq!(home.count("run.interrupted"), 1);
    let interrupted = home.log().into_iter().find(|(kind, _)| kind == "run.interrupted").expect("it").1;
    assert!(interrupted.contains("holder_lost") && interrupted.contains("uncertain"), "{interrupted}");
    let restored = home.log().into_iter().find(|(kind, _)| kind == "session.restored").expect("it").1;
    assert!(restored.contains("\"continued\""), "{restored}");
    assert_eq!(home.told("session/load"), 1);
    let said = home.said();
    assert_eq!(
        (said.first().map(String::as_str), said.last().map(String::as_str)),
        (Some("the first answer"), Some("the third answer"),)
    );
    assert_eq!(
        home.record().iter().filter(|line| line.contains("say never")).count(),
        1,
        "sent once, never again"
    );
}

// I5: between any two steps of a start, a death leaves no agent or one that is recorded.
#[test]
fn a_supervisor_killed_while_starting_leaves_no_agent_or_one_that_is_recorded() {
    let rounds = if std::env::var("REKINDLE_TEST_LONG").is_ok() { 200 } else { 25 };
    let mut rng = Rng::new(5);
    let (mut round, mut begun) = (0, 0);
    // As long as it takes when nobody is killed: on a slow machine, or a busy one, the moments lie further apart.
    let since = Instant::now();
    Home::new().finish(&["--prompt", "say hello", "--stop"]);
    let mut most = since.elapsed();
    while round < rounds || begun == 0 && round < 10 * rounds {
        round += 1;
        let home = Home::new();
        let supervisor = home.drive(&["--prompt", "say hello"]);
        std::thread::sleep(Duration::from_micros(rng.below(most.as_micros() as u64)));
        kill(supervisor);
        begun += usize::from(home.processes() > 0);
        let since = Instant::now();
        home.finish(&["--prompt", "say hello", "--stop"]);
        most = most.max(since.elapsed());
        let launched = home.count("agent.launching");
        assert!(home.processes() <= launched, "an agent that nobody recorded");
        // One that had come to its end before it was killed leaves a second turn to the next.
        let runs = home.count("run.started");
        assert_eq!(
            (home.count("run.completed"), home.count("run.interrupted")),
            (runs, 0),
            "{:#?}",
            home.log()
        );
        assert_eq!(home.said(), vec!["hello"; runs]);
        assert_eq!(home.told("session/prompt"), runs);
        for tree in home.trees() {
            wait_for("nobody to be left", || tree.members().expect("processes").is_empty().then_some(()));
        }
    }
    assert!(begun > 0, "some were killed with their agent running");
}

// I6, I13
#[test]
fn a_cancel_whose_supervisor_is_killed_is_sent_once_and_the_turn_ends_by_the_agents_word() {
    let home = Home::new();
    let supervisor = home.drive(&["--prompt", "words 30\nask really?\nsay never"]);
    wait_for("the wait", || (home.count("run.waiting") == 1).then_some(()));
    kill(supervisor);
    let mut rng = Rng::new(9);
    for _ in 0..15 {
        let supervisor = home.drive(&["--cancel"]);
        std::thread::sleep(Duration::from_millis(rng.below(60)));
        kill(supervisor);
        if home.count("run.cancelled") > 0 {
            break;
        }
    }
    if home.count("run.cancelled") == 0 {
        home.finish(&["--cancel"]);
    }
    assert_eq!(
        (home.count("run.cancel_requested"), home.count("run.cancelled")),
        (1, 1),
        "{:#?}",
        home.log()
    );
    assert_eq!((home.told("session/cancel"), home.count("run.completed")), (1, 0));
    let answers = home.record().iter().filter(|line| line.contains("\"outcome\":\"cancelled\"")).count();
    assert_eq!(answers, 1, "the open question was answered once");
    home.finish(&["--prompt", "say still here", "--stop"]);
    assert_eq!(home.said().last().map(String::as_str), Some("still here"));
}

// I4: requests with the same wire ids, two at once, one withdrawn, all while nobody is attached.
#[test]
fn two_questions_at_once_and_one_withdrawn_are_found_as_they_are() {
    let home = Home::new();
    let supervisor =
        home.drive(&["--prompt", "repeat-ids\nbarrier here\nask-two left | right\nwithdraw gone?\nsay end"]);
    home.reach("here");
    kill(supervisor);
    home.pass("here");
    home.finish(&["--answer", "allow_once", "--stop"]);
    assert_eq!((home.count("run.waiting"), home.count("run.resumed")), (3, 3));
    let withdrawn =
        home.log().iter().filter(|(kind, line)| kind == "run.resumed" && line.contains("withdrawn")).count();
    let answered =
        home.log().iter().filter(|(kind, line)| kind == "run.resumed" && line.contains("answered")).count();
    assert_eq!(withdrawn + answered, 3);
    assert!(answered >= 2, "both of the pair");
    assert_eq!(home.said().last().map(String::as_str), Some("end"));
    assert_eq!(home.count("run.completed"), 1);
}
