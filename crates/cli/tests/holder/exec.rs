//! Plain commands as agents: the prompt is an argument or all of their input, what they print is what they say, and
//! their exit code is the end of the run. Their supervisors are processes that are killed.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rekindle_agent::exec::{Exec, PromptBy};
use rekindle_agent::profile::{Capabilities, Outgoing, Profile, Sent};
use rekindle_agent::said::{Asked, Request, Said};
use rekindle_domain::event::{InputKind, Raw};
use rekindle_holder::client::inspect_all;
use rekindle_holder::journal::OutFlags;
use rekindle_holder::tree::signal_exactly;
use rekindle_service::live::LiveError;
use rekindle_testkit::rng::Rng;
use rustix::process::Signal;

use crate::home::{Home, begin, kill};
use crate::lab::wait_for;

const STDIN: Exec = Exec { prompt_by: PromptBy::Stdin };

/// Reads to the end of its input before it says anything.
const CAT: &[&str] = &["sh", "-c", "text=$(cat); echo \"heard: $text\"; echo bye"];

const ECHO: &[&str] = &["echo", "{prompt}"];

/// What the log has of the agent's words, in one piece.
fn said(home: &Home) -> String {
    home.said().concat()
}

// I6
#[test]
fn a_command_that_reads_to_the_end_of_its_input_ends_by_itself() {
    let home = Home::new();
    home.command(&["--profile", "exec", "--stdin", "--prompt", "fix it\nplease"], CAT).succeed();
    assert_eq!(said(&home), "heard: fix it\nplease\nbye\n");
    assert_eq!(home.count("run.completed"), 1);
    let exited = home.find("agent.exited");
    assert!(exited.contains("\"code\":0"), "{exited}");
    assert_eq!(home.journals().matches("\"ctl\":\"close_input\"").count(), 1);
}

#[test]
fn a_prompt_in_the_command_needs_no_input_and_the_command_sees_its_end() {
    let home = Home::new();
    let command = &["sh", "-c", "echo \"asked: $1\"; cat; echo end", "sh", "{prompt}"];
    home.command(&["--profile", "exec", "--prompt", "say so"], command).succeed();
    home.command(&["--profile", "exec", "--prompt", "and again"], command).succeed();
    assert_eq!(home.said(), ["asked: say so\nend\n", "asked: and again\nend\n"], "a process for each prompt");
    assert_eq!((home.count("run.started"), home.count("run.completed")), (2, 2));
    assert_eq!((home.count("agent.launching"), home.count("agent.exited")), (2, 2));
    assert_eq!((home.count("input.queued"), home.count("run.adopted")), (0, 0));
}

// I6, I12
#[test]
fn an_exit_code_is_the_end_of_the_run_and_a_signal_is_an_interruption() {
    let home = Home::new();
    let arguments = &["--profile", "exec", "--stdin", "--prompt", "go"];
    home.command(arguments, &["sh", "-c", "read go; echo partly; exit 3"]).succeed();
    let failed = home.find("run.failed");
    assert!(failed.contains("exit code 3"), "{failed}");
    assert!(home.find("agent.exited").contains("\"code\":3"));
    assert_eq!((said(&home).as_str(), home.count("run.completed")), ("partly\n", 0));

    let home = Home::new();
    let output = home.command(arguments, &["sh", "-c", "read go; printf half; kill -9 $$"]).finish();
    assert!(!output.status.success(), "nothing ended by anyone's word");
    let interrupted = home.find("run.interrupted");
    assert!(interrupted.contains("agent_exit"), "{interrupted}");
    assert_eq!((said(&home).as_str(), home.count("run.completed"), home.count("run.failed")), ("half", 0, 0));
}

/// Does everything but the last step: what a supervisor leaves that is killed right before it.
#[derive(Debug)]
struct LeavesOpen(Exec);

impl Profile for LeavesOpen {
    fn input_ends_with_prompt(&self) -> bool {
        false
    }

    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn capabilities(&self, agent: Option<&str>) -> Capabilities {
        self.0.capabilities(agent)
    }

    fn parse_line<'a>(
        &self,
        line: &'a str,
        flags: OutFlags,
        asked: &dyn Fn(u64) -> Option<Request>,
    ) -> Vec<Said<'a>> {
        self.0.parse_line(line, flags, asked)
    }

    fn sent(&self, what: InputKind, line: &[u8]) -> Sent {
        self.0.sent(what, line)
    }

    fn asked<'a>(&self, request: &'a str) -> Option<Asked<'a>> {
        self.0.asked(request)
    }

    fn message_limit(&self) -> usize {
        self.0.message_limit()
    }

    fn ready_at_start(&self) -> bool {
        self.0.ready_at_start()
    }

    fn prompt(&self, input_seq: u64, cursor: Option<&str>, content: &Raw<'_>) -> Option<Outgoing> {
        self.0.prompt(input_seq, cursor, content)
    }
}

// I4, I5: the input is in the holder's journal, and the one who would have said that nothing follows is dead.
#[test]
fn a_supervisor_that_died_before_it_closed_the_input_is_made_up_for_once() {
    let home = Home::new();
    let script = "read first; echo \"first: $first\"; cat; echo over";
    let command: &[&str] = &["sh", "-c", script];
    let arguments: &[&str] = &["--profile", "exec", "--stdin", "--prompt", "only line"];
    let (mut live, store) = home.launch(command, Arc::new(LeavesOpen(STDIN)));
    let (unsent, records) = begin(&store, "only line");
    live.say(unsent, &records);
    wait_for("the agent to wait for more", || {
        live.step().expect("driven");
        home.journals().contains("first: only line").then_some(())
    });
    drop((live, store));
    home.command(arguments, command).succeed();
    assert_eq!(said(&home), "first: only line\nover\n");
    assert_eq!(
        (home.count("run.started"), home.count("run.completed"), home.count("run.adopted")),
        (1, 1, 1)
    );
    assert_eq!((home.count("input.queued"), home.count("run.interrupted")), (1, 0));
    let journals = home.journals();
    assert_eq!(journals.matches("\"ctl\":\"close_input\"").count(), 1, "closed once");
    assert_eq!(journals.matches("input=1,kind=prompt").count(), 1, "sent once");
}

// I4, I5, I6
#[test]
fn a_command_whose_supervisors_are_killed_at_random_is_in_the_log_once() {
    let rounds = if std::env::var("REKINDLE_TEST_LONG").is_ok() { 100 } else { 25 };
    let script = "text=$(cat); pad=$(printf %060d 0); i=0; while [ $i -lt 3000 ]; do i=$((i+1)); echo \"$text $i $pad\"; \
                  [ $((i % 30)) -ne 0 ] || sleep 0.01; done; while [ ! -e go ]; do sleep 0.01; done; exit 5";
    let home = Home::new();
    let arguments = &["--profile", "exec", "--stdin", "--prompt", "line"];
    let mut rng = Rng::new(7);
    // As long as a start takes, and as long again: on a slow machine the moments lie further apart.
    let since = Instant::now();
    let first = home.command(arguments, &["sh", "-c", script]);
    wait_for("the command", || (home.count("agent.started") == 1).then_some(()));
    let most = 2 * since.elapsed().as_micros() as u64;
    kill(first);
    for _ in 1..rounds {
        let supervisor = home.command(arguments, &["sh", "-c", script]);
        // The moment is the point: there is nothing to wait for but time.
        std::thread::sleep(Duration::from_micros(rng.below(most)));
        kill(supervisor);
    }
    // Whoever was killed may have answered what its log has not yet: the next one to open the home writes that.
    drop(crate::kills::store(&home.path("home")));
    let adopted = home.count("run.adopted");
    let last = home.command(arguments, &["sh", "-c", script]);
    wait_for("the last one to take over", || (home.count("run.adopted") > adopted).then_some(()));
    std::fs::write(home.path("go"), "").expect("a file");
    last.succeed();
    let expected: String = (1..=3000).map(|n| format!("line {n} {:060}\n", 0)).collect();
    let messages: Vec<_> = home.said().iter().map(|text| (text.len(), text[..20].to_owned())).collect();
    let kinds: Vec<_> = home.log().into_iter().map(|(kind, _)| kind).collect();
    assert!(said(&home) == expected, "every line once: {messages:?} in {kinds:?}");
    assert_eq!(
        (home.count("run.started"), home.count("run.failed"), home.count("run.interrupted")),
        (1, 1, 0)
    );
    assert_eq!(home.count("agent.started"), 1, "one command all the time");
}

// I4, I5: what is too large for the log is kept beside it, and is sent from there.
#[test]
fn a_large_prompt_that_was_recorded_and_not_sent_arrives_whole() {
    let large = "x".repeat(2 << 20);
    for queued in [false, true] {
        let home = Home::new();
        let command: &[&str] = &["sh", "-c", "wc -c"];
        let (mut live, store) = home.launch(command, Arc::new(STDIN));
        let (unsent, records) = begin(&store, &large);
        live.say(unsent, &records);
        if queued {
            // The holder is stopped: the input is in the log, and of its parts some are in the socket.
            let holders = inspect_all(&home.path("home/holders")).expect("holders");
            let holder = holders[0].status.there().expect("a status").holder.clone();
            wait_for("the agent to be ready", || {
                let ready = home.journals().contains("\"ctl\":\"started\"");
                ready.then_some(())
            });
            signal_exactly(&holder, Signal::STOP).expect("signalled");
            let stuck = live.step().expect_err("nobody answers");
            drop((live, store));
            signal_exactly(&holder, Signal::CONT).expect("signalled");
            assert!(stuck.to_string().contains("holder"), "{stuck}");
        } else {
            drop((live, store));
        }
        assert_eq!(home.count("input.queued"), usize::from(queued));
        home.command(&["--profile", "exec", "--stdin"], command).succeed();
        assert_eq!(said(&home).trim(), (large.len() + 1).to_string());
        assert_eq!((home.count("input.queued"), home.count("run.completed")), (1, 1));
    }
}

// I5, I6: nothing has run, so nothing was interrupted, and the next one begins.
#[test]
fn a_launch_that_came_to_nothing_leaves_its_run_to_the_next() {
    let home = Home::new();
    let (store, exec) = (home.own(), Exec { prompt_by: PromptBy::Argument });
    begin(&store, "now");
    let broken = home.launch_in(Path::new("/bin/false"), store, ECHO, Arc::new(exec));
    assert!(matches!(broken.err(), Some(LiveError::Spawn(_))));
    home.command(&["--profile", "exec"], ECHO).succeed();
    assert_eq!(said(&home), "now\n");
    assert_eq!(
        (home.count("run.started"), home.count("run.completed"), home.count("run.interrupted")),
        (1, 1, 0)
    );
    assert_eq!(
        (home.count("agent.launching"), home.count("agent.exited"), home.count("agent.started")),
        (2, 2, 1)
    );
}

// I4, I5, I6
#[test]
fn a_prompt_in_a_command_is_carried_out_once_whenever_its_supervisor_is_killed() {
    let rounds = if std::env::var("REKINDLE_TEST_LONG").is_ok() { 100 } else { 15 };
    let mut rng = Rng::new(11);
    for _ in 0..rounds {
        let home = Home::new();
        let arguments = &["--profile", "exec", "--prompt", "once"];
        let command = &["sh", "-c", "echo ran >> runs; echo $1; cat; sleep 0.02; echo end", "sh", "{prompt}"];
        let supervisor = home.command(arguments, command);
        std::thread::sleep(Duration::from_millis(rng.below(60)));
        kill(supervisor);
        home.command(arguments, command).succeed();
        // One that had come to its end before it was killed leaves a second turn to the next.
        let runs = home.count("run.started");
        let ran = std::fs::read_to_string(home.path("runs")).expect("it ran");
        assert_eq!((ran.lines().count(), home.said()), (runs, vec!["once\nend\n".to_owned(); runs]));
        assert_eq!((home.count("run.completed"), home.count("run.interrupted")), (runs, 0));
    }
}
