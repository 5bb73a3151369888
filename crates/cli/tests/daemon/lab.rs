//! A home with a real daemon, spoken to as any program would: HTTP on its socket. Everything ends with its guard.

use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rekindle_holder::client::{harvest, inspect_all};
use rekindle_holder::identity::Identity;
use rekindle_lab::{
    Answer, Connection, Daemon, EventStream, HOST, TempHome, daemon_file, is_alive, kill, look_for,
};
pub(crate) use rekindle_lab::{OwnedEvent, PATIENCE, Reply, end_all, wait_for};
use serde_json::{Value, json};

pub(crate) const REKINDLE: &str = env!("CARGO_BIN_EXE_rekindle");

/// The configuration of daemons that tests start. They take no snapshots by themselves: those who count records are about something
/// else.
const CONFIG: &str = "daemon.toml";

/// A session's events, as they come.
pub(crate) struct Events(EventStream);

pub(crate) struct Lab {
    daemon: Option<Daemon>,
    /// What every command of ours finds in its environment.
    vars: Vec<(&'static str, String)>,
    temp: TempHome,
}

impl Lab {
    /// Makes a home and starts its daemon.
    pub(crate) fn new() -> Lab {
        let mut lab = Lab::without_daemon();
        lab.start();
        lab
    }

    pub(crate) fn without_daemon() -> Lab {
        let temp = TempHome::new("rk").expect("a directory");
        std::fs::create_dir(temp.at("barriers")).expect("a directory");
        std::fs::write(temp.at(CONFIG), "[persistence]\nenabled = false\n").expect("a file");
        Lab { daemon: None, vars: Vec::new(), temp }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.temp.at(name)
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.temp.home()
    }

    /// Returns a command of ours in this home.
    pub(crate) fn rekindle(&self, arguments: &[&str]) -> Command {
        let mut command = self.temp.command(Path::new(REKINDLE));
        command.args(arguments).envs(self.vars.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Returns a command of ours that reads the daemon's configuration.
    pub(crate) fn configured(&self, arguments: &[&str]) -> Command {
        let mut command = self.rekindle(arguments);
        command.env("REKINDLE_CONFIG", self.path(CONFIG));
        command
    }

    /// Writes a command as hints have it: with the home that ours are given.
    pub(crate) fn hint(&self, command: &str) -> String {
        format!("rekindle --home {} {command}", self.home().display())
    }

    /// Has every command of ours find this in its environment from now on.
    pub(crate) fn set(&mut self, name: &'static str, value: impl ToString) {
        self.vars.push((name, value.to_string()));
    }

    /// Has commands of ours read a number of milliseconds, which can be changed while they run, from a file that a
    /// variable names.
    pub(crate) fn set_millis(&mut self, name: &'static str, millis: i64) {
        let file = self.path(name);
        if !file.exists() {
            self.set(name, file.display());
        }
        // In one step: whoever reads it reads one number or the other.
        let new = file.with_extension("new");
        std::fs::write(&new, millis.to_string()).expect("written");
        std::fs::rename(new, file).expect("renamed");
    }

    pub(crate) fn start(&mut self) {
        self.start_with(&[], &[]);
    }

    /// Starts a daemon and waits until it is ready.
    pub(crate) fn start_with(&mut self, arguments: &[&str], env: &[(&str, &str)]) {
        self.start_ready(self.serving(arguments, env));
    }

    /// Starts a daemon by another program, which becomes it, and waits until it is ready.
    pub(crate) fn start_by(&mut self, program: &[&str]) {
        let ours = self.serving(&[], &[]);
        let mut command = Command::new(program[0]);
        command.args(&program[1..]).arg(ours.get_program()).args(ours.get_args());
        command.envs(ours.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.env_remove("REKINDLE_HOME").current_dir(self.path("work"));
        self.start_ready(command);
    }

    fn start_ready(&mut self, command: Command) {
        let started = Daemon::start(command, &self.path("daemon.log"));
        self.replace(started.unwrap_or_else(|error| panic!("{error}")));
    }

    /// Takes another daemon for the lab's own. That the one before ends is not for its guard to see to: it may have to leave.
    fn replace(&mut self, daemon: Daemon) {
        std::mem::forget(self.daemon.replace(daemon));
    }

    /// Starts a daemon that dies at a named place, which may be before it is ready.
    pub(crate) fn start_to_die(&mut self, place: &str) {
        let mut daemon = self.begin(&[], &[("REKINDLE_CRASH_AT", place)]);
        daemon.first_line().expect("a line, or its end");
        self.replace(daemon);
    }

    /// Starts a daemon and does not wait for it.
    pub(crate) fn start_unready(&mut self) {
        self.replace(self.begin(&[], &[]));
    }

    /// Starts a daemon beside the lab's own, and does not wait for it.
    pub(crate) fn begin(&self, arguments: &[&str], env: &[(&str, &str)]) -> Daemon {
        Daemon::spawn(self.serving(arguments, env), &self.path("daemon.log")).expect("a daemon")
    }

    fn serving(&self, arguments: &[&str], env: &[(&str, &str)]) -> Command {
        let mut command = self.configured(&["serve", "--background"]);
        command.args(arguments).env("REKINDLE_LOG", "debug");
        command.envs(env.iter().copied());
        command
    }

    /// Has the next daemon read this as the section `[tasks]` of its configuration.
    pub(crate) fn configure_tasks(&self, section: &str) {
        self.configure(&format!("[tasks]\n{section}"));
    }

    /// Has the next daemon read this in its configuration, beside that it takes no snapshots by itself.
    pub(crate) fn configure(&self, sections: &str) {
        let config = format!("[persistence]\nenabled = false\n{sections}");
        std::fs::write(self.path(CONFIG), config).expect("a file");
    }

    /// Has daemons from now on take snapshots by themselves, as they usually do, or as a section of the configuration says.
    pub(crate) fn take_snapshots(&self, section: &str) {
        std::fs::write(self.path(CONFIG), format!("[persistence]\n{section}")).expect("a file");
    }

    /// Returns what daemons have logged, up to this moment if one lives: lines are written in their order, by a thread of its
    /// own.
    pub(crate) fn daemon_log(&self) -> String {
        let log = || std::fs::read_to_string(self.path("daemon.log")).unwrap_or_default();
        let looks = || log().matches("/healthz").count();
        let before = looks();
        if self.try_get("/healthz").is_some() {
            look_for(PATIENCE, Duration::from_millis(2), || (looks() > before).then_some(()));
        }
        log()
    }

    pub(crate) fn daemon_pid(&self) -> i32 {
        self.daemon.as_ref().expect("a daemon").id() as i32
    }

    /// Kills the daemon without a word.
    pub(crate) fn kill(&mut self) {
        drop(self.daemon.take().expect("a daemon"));
    }

    /// Kills whichever daemon the home describes: one that a command started.
    pub(crate) fn kill_described(&self) {
        assert!(daemon_of(&self.home()).is_some(), "there is none");
        end_daemon(&self.home());
    }

    /// Tells whether the home describes a daemon that lives.
    pub(crate) fn daemon_described(&self) -> bool {
        daemon_of(&self.home()).is_some()
    }

    /// Asks the daemon to leave, and waits for that.
    pub(crate) fn leave(&mut self) {
        self.daemon.take().expect("a daemon").leave().expect("it leaves");
    }

    /// Tells whether the daemon has died.
    pub(crate) fn dead(&mut self) -> bool {
        self.daemon.as_mut().is_none_or(|daemon| daemon.try_wait().expect("collected").is_some())
    }

    /// Starts another daemon if this one has died.
    pub(crate) fn start_if_dead(&mut self) {
        if self.dead() {
            self.daemon = None;
            self.start();
        }
    }

    /// Waits for a daemon that dies by itself.
    pub(crate) fn died(&mut self) {
        self.daemon.take().expect("a daemon").await_end().expect("it dies");
    }

    /// Kills the daemon and starts another.
    pub(crate) fn restart(&mut self) {
        self.kill();
        self.start();
    }

    pub(crate) fn connect(&self) -> Option<Connection> {
        Connection::open(Path::new(daemon_file(&self.home())["socket"].as_str()?)).ok()
    }

    /// Asks the daemon; none if it died over it.
    fn exchange(&self, method: &str, path: &str, headers: &str, body: &str) -> Option<Answer> {
        self.connect()?.ask(method, path, headers, body).ok()
    }

    /// Sends a body as it stands; returns the status and what is said.
    #[track_caller]
    pub(crate) fn raw(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        let answer = self.exchange(method, path, "", body).expect("an answer");
        (answer.status, answer.text())
    }

    /// Asks the daemon; none if it died over it.
    pub(crate) fn try_ask(&self, method: &str, path: &str, headers: &str, body: &Value) -> Option<Reply> {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        self.exchange(method, path, headers, &body).map(Reply::from)
    }

    /// Fetches a page that is no JSON: the head of the answer, and the page.
    #[track_caller]
    pub(crate) fn text(&self, path: &str, headers: &str) -> (String, String) {
        let answer = self.exchange("GET", path, headers, "").expect("an answer");
        assert_eq!(answer.status, 200, "{path}: {}", answer.head);
        let page = answer.text();
        (answer.head, page)
    }

    /// Looks; none if the daemon died over it.
    pub(crate) fn try_get(&self, path: &str) -> Option<Value> {
        self.try_ask("GET", path, "", &Value::Null).map(|reply| reply.body)
    }

    #[track_caller]
    pub(crate) fn ask(&self, method: &str, path: &str, body: &Value) -> Reply {
        self.try_ask(method, path, "", body).expect("an answer")
    }

    #[track_caller]
    pub(crate) fn get(&self, path: &str) -> Value {
        let reply = self.ask("GET", path, &Value::Null);
        assert_eq!(reply.status, 200, "{path}: {}", reply.body);
        reply.body
    }

    #[track_caller]
    pub(crate) fn post(&self, path: &str, body: &Value) -> Value {
        let reply = self.ask("POST", path, body);
        assert!(matches!(reply.status, 200..300), "{path}: {} {}", reply.status, reply.body);
        reply.body
    }

    /// Returns the command of a demo agent that writes down what it is told.
    pub(crate) fn demo(&self, more: &[&str]) -> Vec<String> {
        let places = [("--state", "state"), ("--record", "record"), ("--barriers", "barriers")];
        let places = places.map(|(flag, name)| [flag.to_owned(), self.path(name).display().to_string()]);
        let mut command = vec![REKINDLE.to_owned(), "demo-agent".to_owned()];
        command.extend(places.into_iter().flatten());
        command.extend(more.iter().map(|word| (*word).to_owned()));
        command
    }

    /// Returns the request for a session with the demo agent.
    pub(crate) fn session(&self, prompt: &str) -> Value {
        let agent = json!({"profile": "acp", "command": self.demo(&[])});
        json!({"working_dir": self.path("work"), "agent": agent, "prompt": prompt})
    }

    /// Makes a session and returns its id.
    #[track_caller]
    pub(crate) fn run(&self, prompt: &str) -> String {
        self.create(&self.session(prompt))
    }

    #[track_caller]
    pub(crate) fn create(&self, body: &Value) -> String {
        self.post("/api/sessions", body)["id"].as_str().expect("an id").to_owned()
    }

    pub(crate) fn show(&self, id: &str) -> Value {
        self.get(&format!("/api/sessions/{id}"))
    }

    pub(crate) fn status(&self, id: &str) -> String {
        self.show(id)["status"].as_str().expect("a status").to_owned()
    }

    #[track_caller]
    pub(crate) fn wait_status(&self, id: &str, wanted: &str) -> Value {
        wait_for(&format!("{wanted}\n{}", self.show(id)), || {
            let session = self.show(id);
            (session["status"] == wanted).then_some(session)
        })
    }

    /// Waits until the latest run has ended and what its directory contains then is recorded, and tells how it ended.
    #[track_caller]
    pub(crate) fn wait_end(&self, id: &str) -> String {
        let ended = look_for(PATIENCE, Duration::from_millis(5), || {
            let run = self.show(id)["run"].clone();
            let state = run["state"].as_str().unwrap_or_default().to_owned();
            let is_over =
                !matches!(state.as_str(), "" | "checkpointing" | "running" | "waiting" | "cancelling");
            let checkpoints = &run["checkpoints"];
            let is_owed = !checkpoints["start"].is_null() && checkpoints["end"].is_null();
            (is_over && !is_owed).then_some(state)
        });
        ended.unwrap_or_else(|| panic!("the run does not end: {:#?}", self.kinds(id)))
    }

    /// Returns all records of a session.
    pub(crate) fn log(&self, id: &str) -> Vec<Value> {
        let page = self.get(&format!("/api/sessions/{id}/log?after=0&limit=1000"));
        page["records"].as_array().expect("records").clone()
    }

    pub(crate) fn kinds(&self, id: &str) -> Vec<String> {
        self.log(id).iter().filter_map(|record| Some(record["kind"].as_str()?.to_owned())).collect()
    }

    pub(crate) fn count(&self, id: &str, kind: &str) -> usize {
        self.kinds(id).iter().filter(|one| *one == kind).count()
    }

    /// Counts records of a kind; none if the daemon died over it.
    pub(crate) fn try_count(&self, id: &str, kind: &str) -> Option<usize> {
        let page = self.try_get(&format!("/api/sessions/{id}/log?after=0&limit=1000"))?;
        Some(page["records"].as_array()?.iter().filter(|record| record["kind"] == kind).count())
    }

    /// Returns everything the agent said, as one text.
    pub(crate) fn said(&self, id: &str) -> String {
        let log = self.log(id);
        let said = log.iter().filter(|record| record["kind"] == "message.agent");
        said.filter_map(|record| record["content"].as_str()).collect()
    }

    /// Returns what agents were told, line by line.
    pub(crate) fn record(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.path("record")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Returns how many prompts agents were given that have these words.
    pub(crate) fn prompted(&self, words: &str) -> usize {
        let is = |line: &&String| line.contains("session/prompt") && line.contains(words);
        self.record().iter().filter(is).count()
    }

    /// Returns the agent processes that were ever started.
    pub(crate) fn agents(&self) -> Vec<i32> {
        let pid = |line: &String| line.strip_prefix("pid ").and_then(|pid| pid.trim().parse().ok());
        self.record().iter().filter_map(pid).collect()
    }

    /// Returns those of them that live. Numbers of processes come again: it is one of them only if it keeps this home's record.
    pub(crate) fn living_agents(&self) -> Vec<i32> {
        let record = self.path("record");
        let is_ours = |pid: &i32| {
            let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            command.split(|byte| *byte == 0).any(|word| word == record.as_os_str().as_bytes())
        };
        let lives = |pid: &i32| Identity::of(*pid).is_ok() && is_ours(pid);
        self.agents().into_iter().filter(lives).collect()
    }

    /// Returns the holders of this home that live.
    pub(crate) fn living_holders(&self) -> Vec<Identity> {
        rekindle_lab::living_holders(&self.home()).expect("holders")
    }

    /// Kills the holders of this home without a word.
    pub(crate) fn kill_holders(&self) {
        for holder in self.living_holders() {
            kill(&holder);
        }
    }

    /// Makes what dead holders left look as if the machine was started again since.
    pub(crate) fn as_if_rebooted(&self) {
        let boot = rekindle_holder::identity::machine_boot().expect("it has one");
        for seen in inspect_all(&self.home().join("holders")).expect("holders") {
            for file in [seen.dir.launch(), seen.dir.lock()] {
                // One that was killed while it began may have written neither.
                let Ok(text) = std::fs::read_to_string(&file) else { continue };
                // Written over in place: the lock's own inode is part of what it says.
                std::fs::write(&file, text.replace(&boot, &boot.replace(char::is_alphanumeric, "0")))
                    .expect("written");
            }
        }
    }

    pub(crate) fn is_reached(&self, barrier: &str) -> bool {
        self.path("barriers").join(format!("{barrier}.reached")).exists()
    }

    pub(crate) fn reach(&self, barrier: &str) {
        wait_for(barrier, || self.is_reached(barrier).then_some(()));
    }

    pub(crate) fn pass(&self, barrier: &str) {
        std::fs::write(self.path("barriers").join(format!("{barrier}.go")), "").expect("a barrier");
    }

    /// Follows a session's events from behind an id.
    pub(crate) fn follow(&self, id: &str, last: Option<&str>) -> Events {
        self.events(&format!("/api/sessions/{id}/events"), last)
    }

    /// Follows the events of a path from behind an id.
    pub(crate) fn events(&self, path: &str, last: Option<&str>) -> Events {
        let stream = self.connect().expect("a connection").into_stream();
        Events(EventStream::open(stream, path, HOST, last).expect("asked"))
    }
}

impl Events {
    /// Returns the next event; none when the stream ends. One that is silent for too long has not ended.
    pub(crate) fn next(&mut self) -> Option<OwnedEvent> {
        match self.0.next_event() {
            Ok(event) => Some(event),
            Err(error) if error.kind() == ErrorKind::WouldBlock => panic!("the stream is silent"),
            Err(_) => None,
        }
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        self.daemon = None;
        end_daemon(&self.home());
        end_all(&self.home());
        for seen in inspect_all(&self.home().join("holders")).unwrap_or_default() {
            // As the daemon would: no group and no socket is left.
            let _ = harvest(&seen.dir);
        }
        if std::thread::panicking() {
            eprintln!("{}", self.daemon_log());
        }
    }
}

/// Tells whether some file below a directory has these words.
pub(crate) fn holds(dir: &Path, words: &str) -> bool {
    std::fs::read_dir(dir).into_iter().flatten().flatten().any(|entry| {
        let path = entry.path();
        if path.is_dir() {
            return holds(&path, words);
        }
        // A home has executables in it: looking through them byte by byte takes seconds.
        String::from_utf8_lossy(&std::fs::read(&path).unwrap_or_default()).contains(words)
    })
}

/// Returns the process of the daemon that a home describes, if it lives: a command may have started it.
fn daemon_of(home: &Path) -> Option<Identity> {
    let process: Identity = serde_json::from_value(daemon_file(home)["process"].take()).ok()?;
    is_alive(&process).then_some(process)
}

/// Kills the daemon that a command started in a home.
fn end_daemon(home: &Path) {
    if let Some(daemon) = daemon_of(home) {
        kill(&daemon);
    }
}
