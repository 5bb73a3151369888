//! The work at a command: the steps of its script, carried out one after the other.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::process::{Command as Process, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::{Signal, getpid, kill_process};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{Answer, Command, event, log, message_id, write_below};
use crate::Options;
use crate::script::{Crash, Prompt, Step, parse, steps_of};
use crate::turn::{reach_barrier, spawn_grandchild};
use crate::wire::{Wire, huge_text, line};

/// How long a barrier waits for its test before it gives up.
const BARRIER_PATIENCE: Duration = Duration::from_secs(60);

/// How often a barrier looks.
const TICK: Duration = Duration::from_millis(2);

/// What stands around the outcome at the end of a message.
const FENCE: &str = "\n\n```json\n";

/// One command that is worked at.
pub(super) struct Work<'a> {
    options: &'a Options,
    linger_command: &'a [OsString],
    wire: &'a Arc<Wire>,
    command: &'a Command,
    /// The outcome and the findings that the script named.
    outcome: Option<(String, String)>,
    /// What was said last.
    summary: String,
    usage: Option<(u64, u64, f64)>,
    /// Paths of files that were written.
    written: Vec<String>,
    artifacts: Vec<Value>,
    /// How the process ends when the work is done.
    crash: Option<Crash>,
}

impl<'a> Work<'a> {
    pub(super) fn new(
        options: &'a Options,
        linger_command: &'a [OsString],
        wire: &'a Arc<Wire>,
        command: &'a Command,
    ) -> Work<'a> {
        Work {
            options,
            linger_command,
            wire,
            command,
            outcome: None,
            summary: String::new(),
            usage: None,
            written: Vec::new(),
            artifacts: Vec::new(),
            crash: None,
        }
    }

    /// Does it; tells whether the process is to end when it is done.
    pub(super) fn run(mut self) -> (Answer, Option<Crash>) {
        let prompt = self.command.inputs["prompt"].as_str().unwrap_or_default().to_owned();
        let steps = steps_of(&prompt).unwrap_or_default();
        if steps.contains(&Step::Crash(Crash::Before)) {
            std::process::exit(1);
        }
        if parse(&prompt) == Prompt::Plain {
            // Whoever asks in plain words is content with whatever is offered first.
            self.outcome = self.command.outcomes.first().map(|name| (name.clone(), String::new()));
        }
        let failed = steps.into_iter().find_map(|step| self.step(step).err());
        let mut payload = json!({"summary": self.summary});
        if let Some((input, output, cost)) = self.usage {
            payload["usage"] = json!({"input_tokens": input, "output_tokens": output, "cost": cost});
        }
        let content = |path: &String| Some((path.clone(), fs::read_to_string(path).ok()?));
        let files = self.written.iter().filter_map(content).collect();
        if let Some(why) = failed {
            payload["error"] = why.into();
            return (
                Answer { ending: "failed".into(), payload, files, artifacts: self.artifacts },
                self.crash,
            );
        }
        if let Some((name, findings)) = self.outcome {
            payload["outcome"] = name.into();
            payload["findings"] = findings.into();
        }
        (Answer { ending: "completed".into(), payload, files, artifacts: self.artifacts }, self.crash)
    }

    fn step(&mut self, step: Step) -> Result<(), String> {
        match step {
            Step::Say(text) => self.say(&text),
            Step::Think(text) => self.log("debug", &text),
            Step::Plan(entries) | Step::PlanAt(entries, _) => {
                self.event("planned", &json!({"steps": entries}))
            }
            Step::Tool { kind, title } => self.event("tool", &json!({"tool": kind, "title": title})),
            Step::Write { path, text } => {
                write_below(&path, |path| fs::write(path, format!("{text}\n")))?;
                self.written.push(path);
            }
            Step::Append { path, text } => {
                write_below(&path, |path| {
                    let mut file = File::options().append(true).create(true).open(path)?;
                    file.write_all(format!("{text}\n").as_bytes())
                })?;
                self.written.push(path);
            }
            Step::Run(command) => self.shell(&command)?,
            Step::Sleep(duration) => std::thread::sleep(duration),
            Step::Words { count, every } => {
                for number in 1..=count {
                    self.log("info", &format!("w{number}"));
                    std::thread::sleep(every);
                }
            }
            Step::Usage { input, output, cost } => {
                let (before_input, before_output, before_cost) = self.usage.unwrap_or_default();
                self.usage = Some((before_input + input, before_output + output, before_cost + cost));
            }
            Step::Event(name) => self.event(&name, &json!({})),
            Step::Heartbeat(status) => {
                self.wire
                    .send(&json!({"kind": "heartbeat", "message_id": message_id("hb"), "status": status}));
            }
            Step::Artifact { path, sha256 } => self.artifact(&path, sha256)?,
            Step::Hang { .. } => loop {
                std::thread::park();
            },
            Step::Crash(crash) => self.crash(crash),
            Step::Noise(bytes) => self.wire.raw(&bytes),
            Step::Huge(bytes) => self.log("info", &huge_text(usize::try_from(bytes).unwrap_or(usize::MAX))),
            Step::Barrier(name) => self.barrier(&name)?,
            Step::Stderr(bytes) => {
                let bytes = usize::try_from(bytes.unwrap_or(u64::MAX)).unwrap_or(usize::MAX);
                for at in (0..bytes).step_by(64) {
                    let _ = io::stderr().write_all(&[b'.'; 64][..(bytes - at).min(64)]);
                }
            }
            Step::Grandchild { seconds, detach } => {
                let child = spawn_grandchild(self.linger_command, seconds, detach);
                let child = child.map_err(|error| format!("no grandchild: {error}"))?;
                self.log("info", &format!("grandchild {}", child.id()));
            }
            Step::Refuse { text, .. } => return Err(text),
            // Titles, modes, questions and what else belongs to sessions: nobody here knows of them.
            other => self.log("debug", &format!("not done here: {other:?}")),
        }
        Ok(())
    }

    /// Says something; a message that ends with an outcome names that.
    fn say(&mut self, text: &str) {
        let (said, block) = text.split_once(FENCE).unwrap_or((text, ""));
        if let Ok(block) = serde_json::from_str::<Value>(block.trim_end_matches('`')) {
            let text = |name: &str| block[name].as_str().unwrap_or_default().to_owned();
            self.outcome = Some((text("outcome"), text("findings")));
        }
        said.clone_into(&mut self.summary);
        self.log("info", said);
    }

    fn log(&self, level: &str, message: &str) {
        self.wire.send(&log(level, message));
    }

    fn event(&self, name: &str, payload: &Value) {
        self.wire.send(&event(self.command, name, payload));
    }

    /// Tells of a file as of something made, with its hash, or with the one that the script claims.
    fn artifact(&mut self, path: &str, sha256: Option<String>) -> Result<(), String> {
        let own = || fs::read(path).map(|content| hex(&Sha256::digest(content)));
        let hash = match sha256 {
            Some(claimed) => claimed,
            None => own().map_err(|error| format!("{path}: {error}"))?,
        };
        let artifact = json!({"kind": "artifact", "path": path, "sha256": hash});
        self.wire.send(&artifact);
        self.artifacts.push(artifact);
        Ok(())
    }

    /// Runs a command of the shell; when this process is killed it runs on, as with most agents.
    fn shell(&self, command: &str) -> Result<(), String> {
        let mut shell = Process::new("/bin/sh");
        let output = shell.args(["-c", command]).stdin(Stdio::null()).output();
        let output = output.map_err(|error| format!("no shell: {error}"))?;
        let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).trim_end().to_owned();
        self.event("ran", &json!({"command": command, "exit_code": output.status.code(), "output": text}));
        Ok(())
    }

    fn crash(&mut self, crash: Crash) {
        match crash {
            Crash::Exit(code) => std::process::exit(code.into()),
            Crash::Signal => {
                let _ = kill_process(getpid(), Signal::KILL);
                // The signal is on its way.
                loop {
                    std::thread::park();
                }
            }
            // Looked for when the command comes in.
            Crash::Before => {}
            Crash::After | Crash::Kept => self.crash = Some(crash),
            Crash::MidLine => {
                let line = line(&event(self.command, "completed", &json!({})));
                let mut out = self.wire.lock_output();
                let _ = out.write_all(&line.as_bytes()[..line.len() / 2]);
                std::process::exit(1);
            }
        }
    }

    fn barrier(&self, name: &str) -> Result<(), String> {
        let go = reach_barrier(self.options, name)?;
        let until = Instant::now() + BARRIER_PATIENCE;
        while !go.exists() {
            if Instant::now() >= until {
                return Err(format!("nobody made {}", go.display()));
            }
            std::thread::sleep(TICK);
        }
        Ok(())
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
