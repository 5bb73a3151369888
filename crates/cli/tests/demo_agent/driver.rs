//! A small ACP client: starts the agent, sends lines, waits for lines with a deadline, and leaves nobody behind.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};

use rekindle_lab::PATIENCE;
use serde_json::{Value, json};
use tempfile::TempDir;

/// The directories that agents of one test share.
pub(crate) struct World {
    directory: TempDir,
}

impl World {
    pub(crate) fn new() -> World {
        let directory = tempfile::tempdir().expect("a directory");
        for name in ["work", "barriers"] {
            fs::create_dir(directory.path().join(name)).expect("a directory");
        }
        World { directory }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The content of a file of the session, empty if there is none.
    pub(crate) fn file(&self, name: &str) -> String {
        fs::read_to_string(self.path("work").join(name)).unwrap_or_default()
    }

    /// Starts an agent.
    pub(crate) fn spawn(&self, flags: &[&str]) -> Agent {
        let errors = File::options().append(true).create(true).open(self.path("stderr")).expect("a file");
        let mut child = Command::new(env!("CARGO_BIN_EXE_rekindle"))
            .arg("demo-agent")
            .args(flags)
            .env_clear()
            .env("REKINDLE_DEMO_STATE", self.path("state"))
            .env("REKINDLE_DEMO_BARRIERS", self.path("barriers"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(errors)
            .spawn()
            .expect("the agent starts");
        let stdin = child.stdin.take();
        let mut stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            let mut line = Vec::new();
            while stdout.read_until(b'\n', &mut line).is_ok_and(|count| count > 0) {
                if sender.send(std::mem::take(&mut line)).is_err() {
                    break;
                }
            }
        });
        let work = self.path("work");
        Agent { child, stdin, lines, next_id: 0, session: String::new(), work }
    }

    /// Starts an agent and shakes hands.
    pub(crate) fn start(&self, flags: &[&str]) -> Agent {
        let mut agent = self.spawn(flags);
        let reply = agent.call("initialize", json!({"protocolVersion": 1, "clientCapabilities": {}}));
        assert_eq!(reply["result"]["protocolVersion"], 1, "{reply}");
        agent
    }

    /// Starts an agent with a new session.
    pub(crate) fn session(&self, flags: &[&str]) -> Agent {
        let mut agent = self.start(flags);
        let reply = agent.call("session/new", json!({"cwd": agent.work, "mcpServers": []}));
        agent.session = reply["result"]["sessionId"].as_str().expect("a session").to_owned();
        agent
    }
}

/// A running agent; it is killed when the test is over.
pub(crate) struct Agent {
    pub(crate) child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Vec<u8>>,
    next_id: u64,
    pub(crate) session: String,
    work: PathBuf,
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Agent {
    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        self.stdin.as_mut().expect("stdin is open").write_all(bytes).expect("the agent reads");
    }

    pub(crate) fn send(&mut self, message: &Value) {
        self.raw(format!("{message}\n").as_bytes());
    }

    pub(crate) fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Sends a request and returns its id.
    pub(crate) fn request(&mut self, method: &str, params: Value) -> u64 {
        self.next_id += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params}));
        self.next_id
    }

    pub(crate) fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    pub(crate) fn cancel(&mut self) {
        self.notify("session/cancel", json!({"sessionId": self.session}));
    }

    /// Sends a prompt and returns its id.
    pub(crate) fn prompt(&mut self, text: &str) -> u64 {
        let prompt = json!([{"type": "text", "text": text}]);
        self.request("session/prompt", json!({"sessionId": self.session, "prompt": prompt}))
    }

    /// Sends a request and waits for its answer, passing over everything before it.
    pub(crate) fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params);
        self.reply(id).1
    }

    /// Loads a session in its own directory.
    pub(crate) fn load(&mut self, session: &str) -> (Vec<Value>, Value) {
        session.clone_into(&mut self.session);
        let params = json!({"sessionId": session, "cwd": self.work, "mcpServers": []});
        let id = self.request("session/load", params);
        self.reply(id)
    }

    /// Runs a whole turn: what came before its answer, and the answer.
    pub(crate) fn turn(&mut self, text: &str) -> (Vec<Value>, Value) {
        let id = self.prompt(text);
        self.reply(id)
    }

    /// Answers a permission request.
    pub(crate) fn choose(&mut self, request: &Value, option: &str) {
        let outcome = json!({"outcome": "selected", "optionId": option});
        self.send(&json!({"jsonrpc": "2.0", "id": request["id"], "result": {"outcome": outcome}}));
    }

    /// Waits for the next line, as it is; `None` at the end of stdout.
    pub(crate) fn line(&mut self) -> Option<Vec<u8>> {
        match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => Some(line),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("the agent said nothing for {PATIENCE:?}"),
        }
    }

    /// Waits for the next message.
    pub(crate) fn message(&mut self) -> Value {
        let line = self.line().expect("the agent is still there");
        serde_json::from_slice(&line).unwrap_or_else(|error| panic!("{error}: {}", line.escape_ascii()))
    }

    /// Waits for a message; returns it and what came before.
    pub(crate) fn until(&mut self, wanted: impl Fn(&Value) -> bool) -> (Vec<Value>, Value) {
        let mut before = Vec::new();
        loop {
            let message = self.message();
            if wanted(&message) {
                return (before, message);
            }
            before.push(message);
        }
    }

    pub(crate) fn reply(&mut self, id: u64) -> (Vec<Value>, Value) {
        self.until(|message| message["id"] == id && message.get("method").is_none())
    }

    /// Waits for a request or a notification.
    pub(crate) fn asked(&mut self, method: &str) -> Value {
        self.until(|message| message["method"] == method).1
    }

    /// Waits until the agent has said something.
    pub(crate) fn heard(&mut self, text: &str) -> String {
        let said = |message: &Value| {
            let said = message["params"]["update"]["content"]["text"].as_str();
            said.is_some_and(|said| said.contains(text))
        };
        self.until(said).1["params"]["update"]["content"]["text"].as_str().expect("a text").to_owned()
    }

    /// Reads stdout to its end.
    pub(crate) fn rest(&mut self) -> Vec<Vec<u8>> {
        std::iter::from_fn(|| self.line()).collect()
    }

    /// Waits until the process has ended.
    pub(crate) fn ended(&mut self) -> ExitStatus {
        let mut status = None;
        wait_for("the agent ends", || {
            status = self.child.try_wait().expect("it is our child");
            status.is_some()
        });
        status.expect("it has ended")
    }

    pub(crate) fn kill_nine(mut self) {
        self.child.kill().expect("it can be killed");
        self.child.wait().expect("it is gone");
    }
}

/// Looks again and again, with a deadline, at what cannot tell us.
pub(crate) fn wait_for(what: &str, mut reached: impl FnMut() -> bool) {
    rekindle_lab::wait_for(what, || reached().then_some(()));
}

/// Sends a signal by name.
pub(crate) fn signal(name: &str, pid: u32) {
    let sent = Command::new("/bin/sh").args(["-c", &format!("kill -{name} {pid}")]).status();
    assert!(sent.expect("a shell").success(), "the process is there");
}

/// The updates of a kind.
pub(crate) fn updates<'a>(messages: &'a [Value], kind: &str) -> Vec<&'a Value> {
    let all = messages.iter().map(|message| &message["params"]["update"]);
    all.filter(|update| update["sessionUpdate"] == kind).collect()
}

/// What the parts of messages of a kind say together.
pub(crate) fn text_of(messages: &[Value], kind: &str) -> String {
    let texts = updates(messages, kind).into_iter().map(|update| update["content"]["text"].as_str());
    texts.map(|text| text.expect("a text")).collect()
}

/// What the agent said.
pub(crate) fn said(messages: &[Value]) -> String {
    text_of(messages, "agent_message_chunk")
}
