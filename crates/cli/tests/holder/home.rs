//! A home that is driven by supervisors which are processes of their own, and what is found in it afterwards.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use rekindle_agent::profile::Profile;
use rekindle_domain::compose::begin::{NewMessage, with_message};
use rekindle_domain::event::{Event, Provider, Raw, SessionCreated};
use rekindle_domain::id::{BootId, MessageId, RunId, SessionId};
use rekindle_domain::line::{Draft, Line};
use rekindle_domain::time::Timestamp;
use rekindle_holder::client::{inspect_all, install_executable};
use rekindle_holder::tree::Tree;
use rekindle_service::boottime::BootClock;
use rekindle_service::live::{
    AgentContext, HolderPaths, Launching, LiveAgent, LiveError, Processes, Supervisor as Lead, UnsentPrompt,
    keep_large,
};
use rekindle_store::Store;
use rekindle_store::commit::Append;
use rekindle_testkit::made::dev_program;
use rustix::process::Signal;
use tempfile::TempDir;

use crate::lab::{end_tree, wait_for, wait_until_gone};

pub(crate) const REKINDLE: &str = env!("CARGO_BIN_EXE_rekindle");

/// The session of those that this process launches.
pub(crate) fn session() -> SessionId {
    SessionId::mint(1, 1)
}

/// A life of a supervisor in this process.
pub(crate) fn supervisor(epoch: u64) -> Lead {
    let steady = BootClock::compare(Timestamp::from_millis(1_800_000_000_000));
    Lead { boot_id: BootId::mint(0, u128::from(epoch)), epoch, steady, wait_timeout: None }
}

/// The context of this session's agent, for one of these lives.
pub(crate) fn context(store: Arc<Store>, profile: Arc<dyn Profile>, epoch: u64) -> AgentContext {
    let (holders, supervisor) = (Arc::new(Processes), supervisor(epoch));
    AgentContext { store, session: session(), holders, profile, supervisor }
}

/// Records a prompt and the run that begins with it, by the first of these lives.
pub(crate) fn begin(store: &Store, prompt: &str) -> (UnsentPrompt, Vec<Draft>) {
    let (message_id, run_id, content) =
        (MessageId::mint(1, 1), RunId::mint(1, 1), Raw::text(prompt).into_owned());
    let message = NewMessage { message_id, content: content.clone(), idempotency_key: None, wait_id: None };
    let mut records = with_message(message, run_id, &supervisor(1).life());
    keep_large(store, &mut records).expect("kept");
    store.append(Append::durable(session(), records.clone())).expect("appended");
    (UnsentPrompt::message(run_id, content), records)
}

/// A home, and an agent that writes down what it is told.
pub(crate) struct Home {
    tmp: TempDir,
}

impl Home {
    pub(crate) fn new() -> Home {
        let tmp = TempDir::new().expect("a directory");
        std::fs::create_dir(tmp.path().join("barriers")).expect("a directory");
        Home { tmp }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.tmp.path().join(name)
    }

    /// Starts a supervisor of a demo agent, which takes over whatever is going on.
    pub(crate) fn drive(&self, arguments: &[&str]) -> Supervisor {
        let places = [("--state", "state"), ("--record", "record"), ("--barriers", "barriers")];
        let places = places.map(|(flag, name)| [flag.to_owned(), self.path(name).display().to_string()]);
        let command: Vec<&str> =
            [REKINDLE, "demo-agent"].into_iter().chain(places.iter().flatten().map(String::as_str)).collect();
        self.command(arguments, &command)
    }

    /// Starts a supervisor of any command.
    pub(crate) fn command(&self, arguments: &[&str], command: &[&str]) -> Supervisor {
        let child = Command::new(dev_program(REKINDLE))
            .arg("--home")
            .arg(self.path("home"))
            .args(["drive", "--cwd"])
            .arg(self.tmp.path())
            .args(if arguments.contains(&"--seconds") { &[][..] } else { &["--seconds", "60"] })
            .args(arguments)
            .arg("--")
            .args(command)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.tmp.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("a supervisor");
        Supervisor(Some(child))
    }

    /// Makes a home with one session, owned by this process.
    pub(crate) fn own(&self) -> Arc<Store> {
        let store = Arc::new(crate::kills::store(&self.path("home")));
        let created = SessionCreated {
            parent: None,
            title: "t".into(),
            working_dir: self.path("").display().to_string().into(),
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
        store.create(session()).expect("a session");
        store.append(Append::durable(session(), vec![created.into()])).expect("appended");
        store
    }

    /// Launches a command for a new session, with this process as its supervisor.
    pub(crate) fn launch(&self, command: &[&str], profile: Arc<dyn Profile>) -> (LiveAgent, Arc<Store>) {
        let holder = Path::new(env!("CARGO_BIN_EXE_rekindle-holder"));
        let store = self.own();
        (self.launch_in(holder, store.clone(), command, profile).expect("launched"), store)
    }

    /// Launches a command in a holder of this executable.
    pub(crate) fn launch_in(
        &self,
        holder: &Path,
        store: Arc<Store>,
        command: &[&str],
        profile: Arc<dyn Profile>,
    ) -> Result<LiveAgent, LiveError> {
        let executable = install_executable(holder, &self.path("home/bin")).expect("a private copy");
        std::fs::create_dir_all(self.path("run")).expect("a directory");
        let (holders, runtime) = (self.path("home/holders"), self.path("run"));
        let places = HolderPaths { holders, runtime, executable, scopes: None };
        let argv = command.iter().map(|word| (*word).to_owned()).collect();
        let launching = Launching {
            agent: None,
            argv,
            env: crate::lab::env(),
            umask: None,
            limits: crate::lab::limits(),
        };
        LiveAgent::launch(context(store, profile, 1), &places, launching)
    }

    /// Runs a supervisor to its end.
    pub(crate) fn finish(&self, arguments: &[&str]) {
        self.drive(arguments).succeed();
    }

    /// The records of the home's only session: kind and text.
    pub(crate) fn log(&self) -> Vec<(String, String)> {
        let Ok(sessions) = std::fs::read_dir(self.path("home/sessions")) else { return Vec::new() };
        let mut files = sessions.flatten().map(|entry| entry.path());
        let log = files.find(|path| path.to_string_lossy().ends_with(".messages.jsonl"));
        let bytes = log.map(|path| std::fs::read(path).expect("a log")).unwrap_or_default();
        // A line that is just being written is no line yet.
        let whole = bytes.split_inclusive(|byte| *byte == b'\n').filter_map(|line| line.strip_suffix(b"\n"));
        whole
            .map(|line| {
                let parsed = Line::parse(line).expect("a whole line");
                (parsed.kind.to_owned(), String::from_utf8_lossy(line).into_owned())
            })
            .collect()
    }

    pub(crate) fn count(&self, kind: &str) -> usize {
        self.log().iter().filter(|(of, _)| of == kind).count()
    }

    /// The first record of a kind.
    pub(crate) fn find(&self, kind: &str) -> String {
        let found = self.log().into_iter().find(|(of, _)| of == kind);
        found.unwrap_or_else(|| panic!("no {kind} in {:#?}", self.log())).1
    }

    /// Everything that the journals of this home's holders say.
    pub(crate) fn journals(&self) -> String {
        let holders = inspect_all(&self.path("home/holders")).unwrap_or_default();
        let segments = holders.iter().flat_map(|holder| std::fs::read_dir(holder.dir.journal()));
        let text =
            |path: PathBuf| String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()).into_owned();
        segments.flatten().flatten().map(|entry| text(entry.path())).collect()
    }

    /// What the agent said, in whole messages.
    pub(crate) fn said(&self) -> Vec<String> {
        let text = |line: &String| {
            let line = Line::parse(line.as_bytes()).expect("a line");
            match line.event().expect("an event") {
                Event::MessageAgent(message) => {
                    serde_json::from_str::<String>(message.content.as_json()).ok()
                }
                _ => None,
            }
        };
        self.log().iter().filter_map(|(_, line)| text(line)).collect()
    }

    /// What the agent was told, line by line; its pid stands before.
    pub(crate) fn record(&self) -> Vec<String> {
        let record = std::fs::read_to_string(self.path("record")).unwrap_or_default();
        record.lines().map(str::to_owned).collect()
    }

    pub(crate) fn told(&self, method: &str) -> usize {
        let method = format!("\"method\":\"{method}\"");
        self.record().iter().filter(|line| line.contains(&method)).count()
    }

    pub(crate) fn processes(&self) -> usize {
        self.record().iter().filter(|line| line.starts_with("pid ")).count()
    }

    pub(crate) fn reach(&self, barrier: &str) {
        let path = self.path("barriers").join(format!("{barrier}.reached"));
        wait_for(barrier, || path.exists().then_some(()));
    }

    pub(crate) fn pass(&self, barrier: &str) {
        std::fs::write(self.path("barriers").join(format!("{barrier}.go")), "").expect("a file");
    }

    /// Everything that any holder of this home has of an agent's tree.
    pub(crate) fn trees(&self) -> Vec<Tree> {
        let holders = inspect_all(&self.path("home/holders")).unwrap_or_default();
        let mark = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
        let marks = holders.iter().filter_map(|holder| mark(holder.dir.path()));
        marks.map(|mark| Tree { mark, ..Tree::default() }).collect()
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        for holder in inspect_all(&self.path("home/holders")).unwrap_or_default() {
            if let Some(status) = holder.status.there() {
                let _ = rekindle_holder::tree::signal_exactly(&status.holder, Signal::KILL);
                wait_until_gone(&status.holder);
            }
            end_tree(&holder.dir, &holder.holder_id);
        }
    }
}

/// A supervisor; a test that fails leaves none running.
pub(crate) struct Supervisor(Option<Child>);

impl Supervisor {
    pub(crate) fn pid(&self) -> i32 {
        self.0.as_ref().map_or(0, |child| child.id() as i32)
    }

    pub(crate) fn finish(mut self) -> std::process::Output {
        self.0.take().expect("it was not finished before").wait_with_output().expect("our child")
    }

    /// Waits for its end, which must be a good one.
    pub(crate) fn succeed(self) {
        let output = self.finish();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            child.kill().expect("our child");
            child.wait().expect("our child");
        }
    }
}

pub(crate) fn kill(supervisor: Supervisor) {
    drop(supervisor);
}
