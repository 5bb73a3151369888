//! Who commands: the highest epoch, proven, and nobody else.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rekindle_agent::exec::{Exec, PromptBy};
use rekindle_agent::profile::Profile;
use rekindle_holder::client::{ConnectError, Control, RequestError, inspect_all};
use rekindle_holder::tree::signal_exactly;
use rekindle_holder::wire::{Event, Mode, PREAMBLE_LEN, Preamble, Refusal, Refused};
use rekindle_service::live::{LiveAgent, LiveError};
use rustix::process::Signal;

use crate::lab::{Lab, PATIENCE, limits, wait_for, wait_for_event};

const ECHO: &[&str] = &["cat"];

/// What a holder grants a peer that does not read.
const STEP: Duration = Duration::from_secs(2);

// I4
#[test]
fn a_frozen_predecessor_loses_command_at_once_and_for_ever() {
    let lab = Lab::new();
    let (held, mut frozen) = lab.running(ECHO, limits());
    frozen.input(1, "prompt", b"one\n").expect("accepted");
    // It does not read, does not write, does not hang up: as a stopped process.
    let since = Instant::now();
    let mut new = held.control(2);
    assert!(since.elapsed() < STEP, "nobody waited for it: {:?}", since.elapsed());
    new.input(2, "prompt", b"two\n").expect("the new one commands");
    // It wakes up.
    let error = frozen.input(3, "prompt", b"three\n").expect_err("fenced");
    assert!(matches!(error, RequestError::Fenced { by: 2 } | RequestError::Closed), "{error}");
    let back = held.connect(Mode::Control, 1).expect_err("stale");
    assert!(matches!(&back, ConnectError::Refused(refused) if refused.reason == Refusal::Stale), "{back}");
    new.input(3, "prompt", b"drei\n").expect("the number is free");
    held.wait_for_line("drei");
    assert_eq!(held.lines(), ["one", "two", "drei"]);
}

// I4: a process that was really stopped, as by a debugger or a laptop's lid.
#[test]
fn a_supervisor_that_was_stopped_finds_itself_replaced_when_it_goes_on() {
    use rustix::process::{Pid, Signal, kill_process};
    let lab = Lab::new();
    let (held, control) = lab.running(ECHO, limits());
    drop(control);
    let mut stopped = crate::kills::supervisor(&lab, &held, 2);
    crate::lab::wait_for("its first input", || (!held.lines().is_empty()).then_some(()));
    let pid = Pid::from_raw(stopped.id() as i32).expect("a pid");
    kill_process(pid, Signal::STOP).expect("our child");
    let since = Instant::now();
    let mut new = held.control(3);
    assert!(since.elapsed() < STEP, "nobody waited for it: {:?}", since.elapsed());
    let accepted = new.marks().accepted;
    new.input(accepted + 1, "prompt", b"{\"mine\":1}\n").expect("the new one commands");
    held.wait_for_line("{\"mine\":1}");
    kill_process(pid, Signal::CONT).expect("our child");
    let status = stopped.wait().expect("our child");
    assert!(!status.success(), "it was told, and ended");
    let marks = new.status().expect("we still command");
    assert_eq!((marks.epoch, marks.accepted), (3, accepted + 1), "and it sent nothing more");
}

#[test]
fn another_user_is_refused() {
    let lab = Lab::new();
    let (held, mut control) = lab.running(ECHO, limits());
    // Only root can become someone else; python does it in one line. Elsewhere there is nothing to show.
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let socket =
        rekindle_holder::client::inspect(&held.dir).launch.there().expect("a launch note").socket.clone();
    for path in [socket.as_path(), &lab.path("run"), &lab.path("")] {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)).expect("opened for all");
    }
    let script = "import os, socket, sys; os.setuid(65534); s = socket.socket(socket.AF_UNIX); s.settimeout(10); \
                  s.connect(sys.argv[1]); sys.exit(0 if s.recv(16) == b'' else 1)";
    let Ok(visit) = std::process::Command::new("python3").args(["-c", script]).arg(&socket).output() else {
        return;
    };
    assert!(
        visit.status.success(),
        "not a byte for another user: {}",
        String::from_utf8_lossy(&visit.stderr)
    );
    control.input(1, "prompt", b"untouched\n").expect("accepted");
    held.wait_for_line("untouched");
}

#[test]
fn the_same_epoch_of_another_supervisor_is_refused_and_of_the_same_is_a_reconnection() {
    let lab = Lab::new();
    let (held, first) = lab.running(ECHO, limits());
    let other = Control::connect(&held.dir, Mode::Control, "boot_other", 1, PATIENCE).expect_err("stale");
    assert!(matches!(&other, ConnectError::Refused(refused) if refused.reason == Refusal::Stale), "{other}");
    let mut again = held.control(1);
    again.input(1, "prompt", b"one\n").expect("accepted");
    drop(first);
    held.wait_for_line("one");
}

#[test]
fn an_epoch_file_rolled_back_does_not_help_an_old_supervisor() {
    let lab = Lab::new();
    let (held, _control) = lab.running(ECHO, limits());
    let _newer = held.control(7);
    std::fs::write(held.dir.epoch(), br#"{"epoch":1,"instance":"boot_3"}"#).expect("written");
    let back = held.connect(Mode::Control, 3).expect_err("the holder remembers");
    assert!(matches!(&back, ConnectError::Refused(refused) if refused.epoch == 7), "{back}");
}

#[test]
fn a_wrong_secret_is_refused_and_the_agent_does_not_notice() {
    let lab = Lab::new();
    let (held, mut control) = lab.running(ECHO, limits());
    let right = std::fs::read(held.dir.secret()).expect("a secret");
    std::fs::write(held.dir.secret(), [0; 32]).expect("written");
    let error = held.connect(Mode::Control, 9).expect_err("the wrong secret");
    assert!(matches!(error, ConnectError::Refused(_) | ConnectError::NotTheHolder { .. }), "{error}");
    std::fs::write(held.dir.secret(), right).expect("written");
    control.input(1, "prompt", b"still here\n").expect("the old one commands as before");
    held.wait_for_line("still here");
}

#[test]
fn a_hundred_who_say_nothing_do_not_keep_anyone_out() {
    let lab = Lab::new();
    let (held, mut control) = lab.running(ECHO, limits());
    let socket = rekindle_holder::client::inspect(&held.dir);
    let socket = socket.launch.there().expect("a launch note").socket.clone();
    let idle: Vec<_> = (0..100).map(|_| UnixStream::connect(&socket)).collect();
    control.input(1, "prompt", b"one\n").expect("accepted");
    held.wait_for_line("one");
    // Within two seconds the silent ones are shown out.
    let mut second = crate::lab::wait_for("a place at the door", || held.connect(Mode::Control, 2).ok());
    second.input(2, "prompt", b"two\n").expect("accepted");
    held.wait_for_line("two");
    drop(idle);
}

#[test]
fn the_agent_itself_is_refused() {
    let lab = Lab::new();
    // Python speaks to sockets; where there is none, the shell of the agent cannot knock and nothing is shown.
    let Ok(python) = std::process::Command::new("python3").arg("--version").output() else { return };
    assert!(python.status.success());
    let prepared = lab.prepare(&["sh", "-c", "exec python3 knock.py"], limits());
    let socket = prepared.launch.socket.display().to_string();
    let script = format!(
        "import socket\ns = socket.socket(socket.AF_UNIX)\ns.connect({socket:?})\ns.settimeout(10)\n\
         print('[' + repr(s.recv(16)) + ']', flush=True)\ninput()\n"
    );
    std::fs::write(lab.path("knock.py"), script).expect("a script");
    let spawned = rekindle_holder::client::start(&prepared).expect("a holder");
    let holder_id = prepared.launch.holder_id.clone();
    let held = crate::lab::Held { dir: prepared.dir, holder_id, spawned };
    let mut control = held.control(1);
    control.start(crate::lab::env()).expect("the agent starts");
    held.wait_for_line("[b'']");
}

// A squatter cannot prove that it knows the secret, and learns nothing but a word of ours that is of no use to it.
#[test]
fn a_squatter_on_the_socket_is_recognised_and_sent_nothing() {
    let lab = Lab::new();
    let (held, _control) = lab.running(ECHO, limits());
    let inspection = rekindle_holder::client::inspect(&held.dir);
    let launch = inspection.launch.there().expect("a launch note");
    std::fs::remove_file(&launch.socket).expect("a socket");
    let listener = UnixListener::bind(&launch.socket).expect("a squatter");
    let holder_id = held.holder_id.clone();
    let squatter = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a visitor");
        let mut preamble = [0; PREAMBLE_LEN];
        stream.read_exact(&mut preamble).expect("a preamble");
        stream.write_all(&Preamble::OURS.write()).expect("sent");
        let challenge = rekindle_holder::wire::Challenge {
            nonce: "00".into(),
            holder_id,
            fingerprint: "f".into(),
            phase: rekindle_holder::wire::Phase::Running,
            epoch: 1,
        };
        let mut out = Vec::new();
        Event::Challenge(challenge.clone()).frame(Vec::new()).write(&mut out);
        let marks = rekindle_holder::wire::Marks {
            phase: challenge.phase,
            epoch: 9,
            head: 0,
            acked: 0,
            accepted: 0,
            delivered: 0,
            agent: None,
            trouble: None,
        };
        let welcome = rekindle_holder::wire::Welcome { proof: "11".repeat(32), marks };
        Event::Welcome(welcome).frame(Vec::new()).write(&mut out);
        stream.write_all(&out).expect("sent");
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).expect("until the visitor leaves");
        rest
    });
    let error = held.connect(Mode::Control, 9).expect_err("no proof");
    assert!(matches!(error, ConnectError::NotTheHolder { .. }), "{error}");
    let heard = squatter.join().expect("the squatter");
    let secret = std::fs::read(held.dir.secret()).expect("a secret");
    assert!(!heard.windows(32).any(|window| window == secret), "the secret never crosses the wire");
}

#[test]
fn observers_see_what_passes_and_may_command_nothing() {
    let lab = Lab::new();
    let (held, mut control) = lab.running(ECHO, limits());
    let mut observer = held.connect(Mode::Observe, 0).expect("let in");
    control.input(1, "prompt", b"seen\n").expect("accepted");
    wait_for_event(&mut observer, |event| matches!(event, Event::Wake { .. }));
    held.wait_for_line("seen");
    let error = observer.input(2, "prompt", b"no\n").expect_err("not in control");
    assert!(matches!(error, RequestError::NotInControl | RequestError::Refused(_)), "{error}");
}

/// Sits on a socket and says to each visitor that another commands, before it has proven anything.
fn says_stale(listener: UnixListener) {
    std::thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            let refused = Refused { reason: Refusal::Stale, epoch: 99, input: None, expected: None };
            let mut out = Preamble::OURS.write().to_vec();
            Event::Refused(refused).frame(Vec::new()).write(&mut out);
            let _ = stream.write_all(&out);
            let _ = stream.read_to_end(&mut Vec::new());
        }
    });
}

// I4, I9: a stranger can keep us out for a while, and cannot make us step down.
#[test]
fn a_squatter_that_says_stale_is_not_believed_and_a_holder_whose_file_says_so_is() {
    use crate::home::{Home, context};
    let home = Home::new();
    let exec: Arc<dyn Profile> = Arc::new(Exec { prompt_by: PromptBy::Stdin });
    drop(home.launch(ECHO, exec.clone()));
    let store = Arc::new(crate::kills::store(&home.path("home")));
    let holder = inspect_all(&home.path("home/holders")).expect("holders").remove(0);
    let adopt = |epoch| {
        let env = || Ok(Default::default());
        let context = context(store.clone(), exec.clone(), epoch);
        LiveAgent::adopt(context, holder.dir.clone(), env)
    };
    let socket = &holder.launch.there().expect("a launch note").socket;
    std::fs::remove_file(socket).expect("a socket");
    says_stale(UnixListener::bind(socket).expect("a squatter"));
    let error = adopt(5).err().expect("not let in");
    assert!(matches!(error, LiveError::Unconfirmed { claimed: 99 }), "{error}");
    // The holder takes its socket back, and the same supervisor commands under the same epoch.
    let process = &holder.status.there().expect("a status").holder;
    signal_exactly(process, Signal::USR1).expect("signalled");
    let live = wait_for("the holder to be reached", || adopt(5).ok());
    drop(live);

    let _newer = Control::connect(&holder.dir, Mode::Control, "boot_newer", 6, PATIENCE).expect("let in");
    let error = wait_for("the file to say so", || match adopt(5).err().expect("not let in") {
        LiveError::Unconfirmed { .. } => None,
        error => Some(error),
    });
    assert!(matches!(error, LiveError::Superseded { by: 6 }), "{error}");
}
