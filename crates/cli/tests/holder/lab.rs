//! A place to keep holders in: directories of their own, agents that are plain shell, and nothing left behind.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use rekindle_holder::client::{
    Control, Executable, Follower, Prepared, Spawned, Spec, inspect, install_executable, prepare, start,
};
use rekindle_holder::dir::{ExitNote, HolderDir, Limits};
use rekindle_holder::identity::{Identity, Presence};
use rekindle_holder::journal::Item;
use rekindle_holder::tree::Tree;
use rekindle_holder::wire::{Event, Mode};
use rekindle_lab::marked;
pub(crate) use rekindle_lab::{PATIENCE, wait_for};
use tempfile::TempDir;

pub(crate) struct Lab {
    tmp: TempDir,
    executable: Executable,
}

/// Bounds for tests: a machine with little room must not pause everything.
pub(crate) fn limits() -> Limits {
    Limits { free_bytes: 0, grace_ms: 300, ..Limits::default() }
}

impl Lab {
    pub(crate) fn new() -> Lab {
        let tmp = TempDir::new().expect("a directory");
        let source = Path::new(env!("CARGO_BIN_EXE_rekindle-holder"));
        let executable = install_executable(source, &tmp.path().join("bin")).expect("a private copy");
        Lab { tmp, executable }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.tmp.path().join(name)
    }

    pub(crate) fn prepare(&self, argv: &[&str], limits: Limits) -> Prepared {
        let spec = Spec {
            session_id: "sess_test".into(),
            attempt: 1,
            agent: None,
            profile: "exec".into(),
            argv: argv.iter().map(|word| (*word).to_owned()).collect(),
            cwd: self.tmp.path().into(),
            env_names: vec!["PATH".into()],
            umask: None,
            limits,
        };
        let runtime = self.path("run");
        std::fs::create_dir_all(&runtime).expect("a runtime directory");
        prepare(&self.path("holders"), &runtime, &self.executable, spec).expect("a holder's directory")
    }

    /// Starts a holder without an agent.
    pub(crate) fn holder(&self, argv: &[&str], limits: Limits) -> Held {
        let prepared = self.prepare(argv, limits);
        let spawned = start(&prepared).expect("a holder");
        Held { dir: prepared.dir.clone(), holder_id: prepared.launch.holder_id.clone(), spawned }
    }

    /// Starts a holder and its agent, and commands it under epoch 1.
    pub(crate) fn running(&self, argv: &[&str], limits: Limits) -> (Held, Control) {
        let held = self.holder(argv, limits);
        let mut control = held.control(1);
        control.start(env()).expect("the agent starts");
        (held, control)
    }

    /// An agent that is a shell script.
    pub(crate) fn shell(&self, script: &str, limits: Limits) -> (Held, Control) {
        self.running(&["sh", "-c", script], limits)
    }
}

pub(crate) fn env() -> BTreeMap<String, String> {
    [("PATH".to_owned(), std::env::var("PATH").unwrap_or_default())].into()
}

pub(crate) struct Held {
    pub(crate) dir: HolderDir,
    pub(crate) holder_id: String,
    pub(crate) spawned: Spawned,
}

impl Held {
    /// Commands as the supervisor of an epoch.
    pub(crate) fn control(&self, epoch: u64) -> Control {
        self.connect(Mode::Control, epoch).expect("let in")
    }

    pub(crate) fn connect(
        &self,
        mode: Mode,
        epoch: u64,
    ) -> Result<Control, rekindle_holder::client::ConnectError> {
        Control::connect(&self.dir, mode, &format!("boot_{epoch}"), epoch, PATIENCE)
    }

    pub(crate) fn pid(&self) -> i32 {
        self.spawned.child.id() as i32
    }

    /// Everything of the agent that is there now.
    pub(crate) fn tree(&self) -> Vec<Identity> {
        marked(&self.holder_id).members().expect("processes can be listed")
    }

    /// Waits until the holder has ended and returns what it wrote of the end.
    pub(crate) fn ended(&mut self) -> ExitNote {
        self.wait();
        HolderDir::read(&self.dir.exit()).expect("an exit note")
    }

    pub(crate) fn wait(&mut self) {
        let child = &mut self.spawned.child;
        wait_for("the holder's end", || child.try_wait().expect("our child").map(drop));
    }

    pub(crate) fn kill(&mut self) {
        self.spawned.child.kill().expect("our child");
        self.spawned.child.wait().expect("our child");
    }

    /// The lines of the agent that are in the journal so far.
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut follower = Follower::new(&self.dir, 1);
        let mut lines = Vec::new();
        while let Some(item) = follower.next_item().expect("a journal") {
            lines.extend(text(&item));
        }
        lines.extend(follower.finish().iter().filter_map(text));
        lines
    }

    /// Waits until a line of the agent is in the journal.
    pub(crate) fn wait_for_line(&self, wanted: &str) {
        wait_for(wanted, || self.lines().iter().any(|line| line == wanted).then_some(()));
    }
}

impl Drop for Held {
    /// A test that fails leaves nobody behind either.
    fn drop(&mut self) {
        let _ = self.spawned.child.kill();
        let _ = self.spawned.child.wait();
        end_tree(&self.dir, &self.holder_id);
    }
}

/// Ends everything of a dead holder's agent, and its control group.
pub(crate) fn end_tree(dir: &HolderDir, holder_id: &str) {
    let cgroup = inspect(dir).status.there().and_then(|status| status.cgroup.clone());
    let tree = Tree { cgroup: cgroup.clone(), ..marked(holder_id) };
    let deadline = Instant::now() + PATIENCE;
    while tree.signal(rustix::process::Signal::KILL).is_ok_and(|left| !left.is_empty())
        && Instant::now() < deadline
    {
        std::thread::yield_now();
    }
    let _ = cgroup.map(std::fs::remove_dir);
}

fn text(item: &Item<'_>) -> Option<String> {
    match item {
        Item::Line { bytes, .. } => Some(String::from_utf8_lossy(bytes).into_owned()),
        _ => None,
    }
}

/// Waits for an event of a holder.
pub(crate) fn wait_for_event(control: &mut Control, mut wanted: impl FnMut(&Event) -> bool) -> Event {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        assert!(!left.is_zero(), "waited in vain for an event");
        if let Some(event) = control.next_event(left).expect("the connection lives")
            && wanted(&event)
        {
            return event;
        }
    }
}

/// Waits until a process is gone.
pub(crate) fn wait_until_gone(process: &Identity) {
    wait_for("a process to be gone", || {
        (process.presence().expect("readable") == Presence::Gone).then_some(())
    });
}
