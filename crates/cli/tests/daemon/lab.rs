//! A home with a real daemon, spoken to as any program would: HTTP on its socket. Everything ends with its guard.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rekindle_holder::client::{LockState, inspect_all};
use rekindle_holder::identity::{Identity, Presence};
use rekindle_holder::tree::{await_end, signal_exactly};
use rustix::process::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;

pub(crate) const REKINDLE: &str = env!("CARGO_BIN_EXE_rekindle");

/// Nothing here takes this long unless it hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Looks until something is there.
#[track_caller]
pub(crate) fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begin.elapsed() < PATIENCE, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub(crate) struct Lab {
    tmp: TempDir,
    daemon: Option<Child>,
    /// What every command of ours finds in its environment.
    vars: Vec<(&'static str, String)>,
}

/// An answer: its status and body.
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) body: Value,
}

impl Lab {
    /// Makes a home and starts its daemon.
    pub(crate) fn new() -> Lab {
        let mut lab = Lab::without_daemon();
        lab.start();
        lab
    }

    pub(crate) fn without_daemon() -> Lab {
        let tmp = tempfile::Builder::new().prefix("rk").tempdir().expect("a directory");
        for name in ["work", "barriers", "run"] {
            std::fs::create_dir(tmp.path().join(name)).expect("a directory");
        }
        Lab { tmp, daemon: None, vars: Vec::new() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.tmp.path().join(name)
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.path("home")
    }

    /// Returns a command of ours in this home.
    pub(crate) fn rekindle(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(REKINDLE);
        command.arg("--home").arg(self.home()).args(arguments);
        command.env("XDG_RUNTIME_DIR", self.path("run")).env("HOME", self.tmp.path());
        command.env_remove("REKINDLE_HOME").current_dir(self.path("work"));
        command.envs(self.vars.iter().map(|(name, value)| (name, value)));
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
        let line = self.spawn(arguments, env);
        assert!(line.contains("ready"), "the daemon is not ready: {line}{}", self.daemon_log());
    }

    /// Starts a daemon that dies at a named place, which may be before it is ready.
    pub(crate) fn start_to_die(&mut self, place: &str) {
        self.spawn(&[], &[("REKINDLE_CRASH_AT", place)]);
    }

    /// Starts a daemon by another program, which becomes it, and waits until it is ready.
    pub(crate) fn start_by(&mut self, program: &[&str]) {
        let ours = self.rekindle(&["serve", "--background"]);
        let mut command = Command::new(program[0]);
        command.args(&program[1..]).arg(ours.get_program()).args(ours.get_args());
        command.envs(ours.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.env_remove("REKINDLE_HOME").current_dir(self.path("work"));
        let child = self.spawn_daemon(command);
        let line = self.first_line(child);
        assert!(line.contains("ready"), "the daemon is not ready: {line}{}", self.daemon_log());
    }

    /// Starts a daemon and does not wait for it.
    pub(crate) fn start_unready(&mut self) {
        self.daemon = Some(self.begin(&[], &[]));
    }

    /// Starts a daemon and waits for its first line, or its end.
    fn spawn(&mut self, arguments: &[&str], env: &[(&str, &str)]) -> String {
        let child = self.begin(arguments, env);
        self.first_line(child)
    }

    fn first_line(&mut self, mut child: Child) -> String {
        let mut line = String::new();
        let pipe = child.stdout.take().expect("a pipe");
        BufReader::new(pipe).read_line(&mut line).expect("a line");
        self.daemon = Some(child);
        line
    }

    /// Starts a daemon that is the caller's to end.
    pub(crate) fn begin(&self, arguments: &[&str], env: &[(&str, &str)]) -> Child {
        let mut command = self.rekindle(&["serve", "--background"]);
        command.args(arguments).envs(env.iter().copied());
        self.spawn_daemon(command)
    }

    fn spawn_daemon(&self, mut command: Command) -> Child {
        let log = std::fs::OpenOptions::new().create(true).append(true).open(self.path("daemon.log"));
        command.env("REKINDLE_LOG", "debug");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log.expect("a log"));
        command.spawn().expect("a daemon")
    }

    pub(crate) fn daemon_log(&self) -> String {
        std::fs::read_to_string(self.path("daemon.log")).unwrap_or_default()
    }

    pub(crate) fn daemon_pid(&self) -> i32 {
        self.daemon.as_ref().expect("a daemon").id() as i32
    }

    /// Kills the daemon without a word.
    pub(crate) fn kill(&mut self) {
        let mut daemon = self.daemon.take().expect("a daemon");
        daemon.kill().expect("killed");
        daemon.wait().expect("collected");
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
        let daemon = Identity::of(self.daemon_pid()).expect("it lives");
        signal_exactly(&daemon, Signal::TERM).expect("asked");
        self.died();
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
        let mut daemon = self.daemon.take().expect("a daemon");
        wait_for("the daemon to die", || daemon.try_wait().expect("collected"));
    }

    /// Kills the daemon and starts another.
    pub(crate) fn restart(&mut self) {
        self.kill();
        self.start();
    }

    pub(crate) fn connect(&self) -> Option<UnixStream> {
        let place = std::fs::read(self.home().join("daemon.json")).ok()?;
        let place: Value = serde_json::from_slice(&place).ok()?;
        let stream = UnixStream::connect(place["socket"].as_str()?).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        Some(stream)
    }

    /// Asks the daemon; returns the head and the body of its answer, or none if it died over it.
    fn exchange(&self, method: &str, path: &str, headers: &str, body: &Value) -> Option<(String, String)> {
        let mut stream = self.connect()?;
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let head = format!("{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{headers}");
        let request = format!("{head}Content-Length: {}\r\n\r\n{body}", body.len());
        stream.write_all(request.as_bytes()).ok()?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).ok()?;
        let text = String::from_utf8(answer).ok()?;
        let (head, body) = text.split_once("\r\n\r\n")?;
        Some((head.to_owned(), body.to_owned()))
    }

    /// Sends a body as it stands; returns the status and what is said.
    #[track_caller]
    pub(crate) fn raw(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        let mut stream = self.connect().expect("a daemon");
        let head = format!("{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n");
        let request = format!("{head}Content-Length: {}\r\n\r\n{body}", body.len());
        stream.write_all(request.as_bytes()).expect("asked");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        let status = answer.split(' ').nth(1).and_then(|word| word.parse().ok()).expect("a status");
        (status, answer)
    }

    /// Asks the daemon; none if it died over it.
    pub(crate) fn try_ask(&self, method: &str, path: &str, headers: &str, body: &Value) -> Option<Reply> {
        let (head, body) = self.exchange(method, path, headers, body)?;
        let status = head.split(' ').nth(1)?.parse().ok()?;
        Some(Reply { status, body: serde_json::from_str(&body).unwrap_or(Value::Null) })
    }

    /// Fetches a page that is no JSON: the head of the answer, and the page.
    #[track_caller]
    pub(crate) fn text(&self, path: &str, headers: &str) -> (String, String) {
        let (head, body) = self.exchange("GET", path, headers, &Value::Null).expect("an answer");
        assert!(head.starts_with("HTTP/1.1 200 "), "{path}: {head}");
        (head, body)
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

    /// Waits until the latest run has ended, and tells how.
    #[track_caller]
    pub(crate) fn wait_end(&self, id: &str) -> String {
        let begin = Instant::now();
        loop {
            let state = self.show(id)["run"]["state"].as_str().unwrap_or_default().to_owned();
            if !matches!(state.as_str(), "" | "running" | "waiting" | "cancelling") {
                return state;
            }
            assert!(begin.elapsed() < PATIENCE, "the run does not end: {:#?}", self.kinds(id));
            std::thread::sleep(Duration::from_millis(5));
        }
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

    /// Returns those of them that live.
    pub(crate) fn living_agents(&self) -> Vec<i32> {
        let lives = |pid: &i32| Identity::of(*pid).is_ok();
        self.agents().into_iter().filter(lives).collect()
    }

    /// Returns the holders of this home that live. Whoever removes the directory of a dead one has its lock for a moment.
    pub(crate) fn living_holders(&self) -> Vec<Identity> {
        let found = inspect_all(&self.home().join("holders")).expect("holders");
        let lives = found.into_iter().filter_map(|seen| match seen.lock {
            LockState::Held { note: Some(note), .. } => Some(note.process),
            _ => None,
        });
        lives.filter(|process| !matches!(process.presence(), Ok(Presence::Gone))).collect()
    }

    /// Kills the holders of this home without a word.
    pub(crate) fn kill_holders(&self) {
        for holder in self.living_holders() {
            signal_exactly(&holder, Signal::KILL).expect("killed");
            await_end(&holder, PATIENCE).expect("gone");
        }
    }

    /// Makes what dead holders left look as if the machine was started again since.
    pub(crate) fn as_if_rebooted(&self) {
        let boot = rekindle_holder::identity::machine_boot().expect("it has one");
        for seen in inspect_all(&self.home().join("holders")).expect("holders") {
            for file in [seen.dir.launch(), seen.dir.lock()] {
                let text = std::fs::read_to_string(&file).expect("a description");
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
        let mut stream = self.connect().expect("a connection");
        let last = last.map(|last| format!("Last-Event-ID: {last}\r\n")).unwrap_or_default();
        let request =
            format!("GET /api/sessions/{id}/events HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{last}\r\n");
        stream.write_all(request.as_bytes()).expect("asked");
        Events { lines: BufReader::new(stream) }
    }
}

/// Events as they come.
pub(crate) struct Events {
    lines: BufReader<UnixStream>,
}

/// One event.
#[derive(Debug, Clone)]
pub(crate) struct Heard {
    pub(crate) event: String,
    pub(crate) id: Option<String>,
    pub(crate) data: Value,
}

impl Events {
    /// Returns the next event; none when the connection ends.
    pub(crate) fn next(&mut self) -> Option<Heard> {
        let mut heard = Heard { event: String::new(), id: None, data: Value::Null };
        loop {
            let mut line = String::new();
            if self.lines.read_line(&mut line).ok()? == 0 {
                return None;
            }
            let line = line.trim_end();
            match line.split_once(": ") {
                Some(("event", event)) => heard.event = event.to_owned(),
                Some(("id", id)) => heard.id = Some(id.to_owned()),
                Some(("data", data)) => heard.data = serde_json::from_str(data).unwrap_or(Value::Null),
                _ if line.is_empty() && !heard.event.is_empty() => return Some(heard),
                _ => {}
            }
        }
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        if let Some(mut daemon) = self.daemon.take() {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
        end_daemon(&self.home());
        end_holders(&self.home());
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
        let bytes = std::fs::read(&path).unwrap_or_default();
        bytes.windows(words.len()).any(|window| window == words.as_bytes())
    })
}

/// Returns the process of the daemon that a home describes, if it lives: a command may have started it.
fn daemon_of(home: &Path) -> Option<Identity> {
    let place: Value = serde_json::from_slice(&std::fs::read(home.join("daemon.json")).ok()?).ok()?;
    let process: Identity = serde_json::from_value(place["process"].clone()).ok()?;
    matches!(process.presence(), Ok(Presence::Alive)).then_some(process)
}

/// Kills the daemon that a command started in a home.
pub(crate) fn end_daemon(home: &Path) {
    if let Some(daemon) = daemon_of(home) {
        let _ = signal_exactly(&daemon, Signal::KILL);
        let _ = await_end(&daemon, Duration::from_secs(5));
    }
}

/// Ends every holder of a home, and with it its agent: those that this test started.
pub(crate) fn end_holders(home: &Path) {
    for seen in inspect_all(&home.join("holders")).unwrap_or_default() {
        if let LockState::Held { note: Some(note), .. } = seen.lock {
            let _ = signal_exactly(&note.process, Signal::KILL);
            let _ = await_end(&note.process, Duration::from_secs(5));
        }
        // As the daemon would: nobody of the tree, no group and no socket is left.
        let _ = rekindle_holder::client::harvest(&seen.dir);
    }
}
