//! The supervisor's process killed at random moments, again and again: what the agent says is in the session's log
//! once and in order, and what is said to it arrives once and in order.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rekindle_domain::event::{
    AgentLaunching, AgentNotice, Event as Happened, InputKind, InputQueued, Provider, Raw, SessionCreated,
};
use rekindle_domain::id::{BootId, HolderId, SessionId};
use rekindle_domain::line::{Draft, Line, Source};
use rekindle_domain::time::{Clock, Timestamp};
use rekindle_holder::client::{Control, Follower};
use rekindle_holder::dir::HolderDir;
use rekindle_holder::journal::{Item, hex};
use rekindle_holder::wire::Mode;
use rekindle_store::commit::{Append, Commits};
use rekindle_store::disk::RealDisk;
use rekindle_store::{Opener, Store};
use rekindle_testkit::rng::Rng;
use sha2::{Digest, Sha256};

use crate::lab::{Held, Lab, PATIENCE, limits};

/// How many inputs there are to send; more than all the rounds together can.
const INPUTS: u64 = 4_000;

/// Inputs on their way at once.
const WINDOW: u64 = 8;

struct Wall;

impl Clock for Wall {
    fn now(&self) -> Timestamp {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_millis(since.as_millis() as i64)
    }
}

pub(crate) fn store(home: &Path) -> Store {
    let opener = Opener { pid: std::process::id(), boot_id: BootId::mint(0, 1) };
    // The one before was killed, and its lock goes with it, but perhaps not before we look.
    let deadline = Instant::now() + PATIENCE;
    loop {
        match Store::open(Arc::new(RealDisk), home, opener, Arc::new(Wall)) {
            Ok(store) => return store,
            Err(error) => assert!(Instant::now() < deadline, "{error}"),
        }
    }
}

fn line(number: u64) -> Vec<u8> {
    format!("{{\"input\":{number}}}\n").into_bytes()
}

/// What the process that is killed does; in the process that kills, nothing.
#[test]
fn as_the_supervisor() {
    let Ok(home) = std::env::var("REKINDLE_TEST_SUPERVISE") else { return };
    let var = |name: &str| std::env::var(name).expect("set by the test");
    let session: SessionId = var("REKINDLE_TEST_SESSION").parse().expect("an id");
    let dir = HolderDir::new(PathBuf::from(var("REKINDLE_TEST_HOLDER")));
    supervise(Path::new(&home), session, &dir, var("REKINDLE_TEST_EPOCH").parse().expect("a number"));
}

fn supervise(home: &Path, session: SessionId, dir: &HolderDir, epoch: u64) {
    let store = store(home);
    let agent = store.open_session(session).expect("a session").state.agent.clone().expect("an agent");
    let holder: HolderId = agent.holder_id;
    let mut control =
        Control::connect(dir, Mode::Control, &format!("boot_{epoch}"), epoch, PATIENCE).expect("let in");
    let mut queued = agent.input_seq;
    // Recorded, and perhaps not sent: the holder knows.
    for number in control.marks().accepted + 1..=queued {
        control.input(number, "prompt", &line(number)).expect("accepted");
    }
    let (mut logged, mut low) = (agent.journal.seq, agent.journal.low.max(1));
    let mut follower = Follower::new(dir, low);
    let mut heard = heard(home, session).last().copied().unwrap_or(0);
    loop {
        let mut moved = false;
        while let Some(item) = follower.next_item().expect("a journal") {
            let seq = item.seq();
            if let Item::Line { bytes, .. } = &item
                && seq > logged
            {
                let text = String::from_utf8_lossy(bytes).into_owned();
                heard = text.trim_matches(|c: char| !c.is_ascii_digit()).parse().expect("a number");
                let notice =
                    AgentNotice { run_id: None, what: "line".into(), text: Some(text.into()), raw: None };
                let source = Some(Source(holder, seq, 0, seq + 1));
                let draft = Draft { event: notice.into(), source, at: None };
                store.append(Append::quick(session, vec![draft])).expect("appended");
                (logged, low, moved) = (seq, seq + 1, true);
            }
        }
        if moved {
            store.committer().sync().expect("synced");
            control.ack(low - 1).expect("sent");
        }
        if heard == INPUTS {
            return;
        }
        if queued < INPUTS.min(heard + WINDOW) {
            queued += 1;
            let bytes = line(queued);
            let queue = InputQueued {
                run_id: None,
                holder_id: holder,
                input_seq: queued,
                what: InputKind::Prompt,
                wait_id: None,
                line: Raw::text(std::str::from_utf8(&bytes).expect("text")),
                sha256: hex(&Sha256::digest(&bytes)).into(),
            };
            store.append(Append::durable(session, vec![queue.into()])).expect("appended");
            control.input(queued, "prompt", &bytes).expect("accepted");
        } else if !moved {
            let _ = control.next_event(Duration::from_millis(20)).expect("the holder lives");
        }
    }
}

/// Returns the numbers of the lines that a session's log has.
fn heard(home: &Path, session: SessionId) -> Vec<u64> {
    let bytes = std::fs::read(home.join(format!("sessions/{session}.messages.jsonl"))).expect("a log");
    let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let events = lines.map(|line| Line::parse(line).expect("a whole line"));
    let mut numbers = Vec::new();
    for line in events {
        if let Happened::AgentNotice(notice) = line.event().expect("an event") {
            let text = notice.text.expect("a text");
            numbers.push(text.trim_matches(|c: char| !c.is_ascii_digit()).parse().expect("a number"));
        }
    }
    numbers
}

fn session() -> SessionId {
    SessionId::mint(1, 1)
}

/// Makes a home whose only session has a holder.
fn make_home(lab: &Lab, held: &Held) -> PathBuf {
    let (home, session) = (lab.path("home"), session());
    {
        let store = store(&home);
        store.create(session).expect("a session");
        let created = SessionCreated {
            parent: None,
            title: "t".into(),
            working_dir: "/w".into(),
            provider: Provider { profile: "exec".into(), ..Provider::default() },
            options: Default::default(),
            env_names: Vec::new(),
            key: None,
            imported_from: None,
            idempotency_key: None,
            created_at: None,
            forked_from: None,
            restoring: None,
            worktree: None,
        };
        let holder_id: HolderId = held.holder_id.parse().expect("an id");
        let launching = AgentLaunching { holder_id, run_id: None, argv: Vec::new() };
        let records = vec![created.into(), launching.into()];
        store.append(Append::durable(session, records)).expect("appended");
    }
    home
}

/// Starts a supervisor of its own process, in a home of its own.
pub(crate) fn supervisor(lab: &Lab, held: &Held, epoch: u64) -> Child {
    start_supervisor(&make_home(lab, held), held, epoch)
}

fn start_supervisor(home: &Path, held: &Held, epoch: u64) -> Child {
    Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", "kills::as_the_supervisor", "--nocapture"])
        .env("REKINDLE_TEST_SUPERVISE", home)
        .env("REKINDLE_TEST_SESSION", session().to_string())
        .env("REKINDLE_TEST_HOLDER", held.dir.path())
        .env("REKINDLE_TEST_EPOCH", epoch.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("a supervisor")
}

// I4, I5
#[test]
fn a_supervisor_killed_at_random_loses_repeats_and_sends_nothing_twice() {
    let long = std::env::var("REKINDLE_TEST_LONG").is_ok();
    let rounds: u64 = if long { 1_000 } else { 200 };
    let lab = Lab::new();
    let (held, control) = lab.running(&["tee", "received"], limits());
    let agent = control.marks().agent.clone().or_else(|| held.control(1).marks().agent.clone());
    drop(control);
    let home = make_home(&lab, &held);
    let session = session();
    let seed = std::env::var("REKINDLE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let mut rng = Rng::new(seed);
    for round in 0..=rounds {
        let mut supervisor = start_supervisor(&home, &held, round + 2);
        if round == rounds {
            assert!(supervisor.wait().expect("our child").success(), "the last one finishes");
        } else {
            // The moment is the point: there is nothing to wait for but time.
            std::thread::sleep(Duration::from_micros(rng.below(60_000)));
            supervisor.kill().expect("our child");
            supervisor.wait().expect("our child");
        }
    }
    let expected: Vec<u64> = (1..=INPUTS).collect();
    assert!(heard(&home, session) == expected, "the log has every line once, in order (seed {seed})");
    let received = std::fs::read_to_string(lab.path("received")).expect("a record");
    let received: Vec<u64> = received
        .lines()
        .map(|line| line.trim_matches(|c: char| !c.is_ascii_digit()).parse().expect("a number"))
        .collect();
    assert!(received == expected, "the agent got every input once, in order (seed {seed})");
    let still = held.control(rounds + 5).marks().agent.clone();
    assert!(still.is_some() && (agent.is_none() || agent == still), "and is the same process");
}
