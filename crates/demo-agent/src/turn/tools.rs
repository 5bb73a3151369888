//! Steps that are tool calls. Files and commands are real: what a script does twice can be seen to have been done
//! twice.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Component, Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};

use super::{Stop, Turn};
use crate::record::Record;
use crate::sessions::random_id;
use crate::wire::{chunk, lock};

/// Most output of a command that is kept; the rest is read and dropped.
const MOST_OUTPUT: usize = 1 << 20;

/// How often a running command is looked at.
const TICK: Duration = Duration::from_millis(5);

/// How long output may come after its command is gone: children that stay may hold the pipe for ever.
const LATE_OUTPUT: Duration = Duration::from_millis(200);

impl Turn {
    /// Announces a tool call and begins it.
    pub(super) fn begin(&mut self, kind: &str, title: &str, input: Value) -> Result<Value, Stop> {
        let call = self.announce(kind, title, input);
        self.pace()?;
        let call = self.change(call, "in_progress", None);
        self.pace()?;
        Ok(call)
    }

    /// Announces a tool call that is not begun yet.
    pub(super) fn announce(&mut self, kind: &str, title: &str, input: Value) -> Value {
        let call = new_call(kind, title, input);
        let mut update = call.clone();
        update["sessionUpdate"] = json!("tool_call");
        self.send_tool_update(update);
        self.record(Record::Tool { call: call.clone() });
        call
    }

    /// Tells of a tool call, unless that is kept quiet in this session.
    fn send_tool_update(&mut self, update: Value) {
        let quiet = self.shared.sessions.with(&self.job.session, |session| session.quiet);
        if quiet != Some(true) {
            self.update(update);
        }
    }

    /// Asks permission for a command of which nothing was said before, and runs it if that is given.
    pub(super) fn guarded(&mut self, command: &str) -> Result<(), Stop> {
        let call = new_call("execute", "Shell", json!({ "command": command }));
        self.permit(call.clone())?;
        self.record(Record::Tool { call: call.clone() });
        let ended = self.execute(command)?;
        self.command_ended(call, ended);
        Ok(())
    }

    /// Says that a tool call has a new status, and what it has to show for it.
    pub(super) fn change(&mut self, mut call: Value, status: &str, content: Option<Value>) -> Value {
        let mut update = json!({"sessionUpdate": "tool_call_update", "toolCallId": call["toolCallId"]});
        update["status"] = json!(status);
        call["status"] = json!(status);
        if let Some(content) = content {
            update["content"] = json!([content]);
            call["content"] = json!([content]);
        }
        self.send_tool_update(update);
        self.record(Record::Tool { call: call.clone() });
        call
    }

    pub(super) fn tool(&mut self, kind: &str, title: &str) -> Result<(), Stop> {
        let call = self.begin(kind, title, json!({ "title": title }))?;
        self.change(call, "completed", Some(text_content(&format!("{kind} {title}: done"))));
        Ok(())
    }

    /// Marks the tools that ran when an earlier process died.
    pub(super) fn fail_unfinished_tools(&mut self) {
        let is_unfinished = |call: &Value| matches!(call["status"].as_str(), Some("pending" | "in_progress"));
        let newest = |history: &Vec<Record>| {
            let mut unfinished: Vec<Value> = Vec::new();
            for record in history {
                if let Record::Tool { call } = record {
                    unfinished.retain(|other| other["toolCallId"] != call["toolCallId"]);
                    unfinished.extend(Some(call.clone()).filter(is_unfinished));
                }
            }
            unfinished
        };
        let unfinished = self.shared.sessions.with(&self.job.session, |session| newest(&session.history));
        for call in unfinished.unwrap_or_default() {
            self.change(call, "failed", None);
        }
    }

    pub(super) fn write(&mut self, path: &str, text: &str) -> Result<(), Stop> {
        let call = self.begin("edit", &format!("write {path}"), json!({"path": path, "text": text}))?;
        let done = self.session_path(path).and_then(|file| {
            let old = fs::read_to_string(&file).ok();
            fs::write(&file, format!("{text}\n"))?;
            Ok(json!({"type": "diff", "path": file, "oldText": old, "newText": format!("{text}\n")}))
        });
        self.file_done(call, done);
        Ok(())
    }

    pub(super) fn append(&mut self, path: &str, text: &str) -> Result<(), Stop> {
        let call = self.begin("edit", &format!("append to {path}"), json!({"path": path, "text": text}))?;
        let done = self.session_path(path).and_then(|file| {
            let mut file = File::options().append(true).create(true).open(file)?;
            file.write_all(format!("{text}\n").as_bytes())?;
            Ok(text_content(&format!("appended: {text}")))
        });
        self.file_done(call, done);
        Ok(())
    }

    fn file_done(&mut self, call: Value, done: io::Result<Value>) {
        match done {
            Ok(content) => self.change(call, "completed", Some(content)),
            Err(error) => self.change(call, "failed", Some(text_content(&error.to_string()))),
        };
    }

    /// Returns the path of a file of the session, and sees to it that its directory is there.
    fn session_path(&self, path: &str) -> io::Result<PathBuf> {
        let plain = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
        if !Path::new(path).components().all(plain) {
            return Err(io::Error::other("the path leads out of the session's directory"));
        }
        let file = self.cwd().join(path);
        file.parent().map_or(Ok(()), fs::create_dir_all)?;
        Ok(file)
    }

    fn cwd(&self) -> PathBuf {
        let cwd = self.shared.sessions.with(&self.job.session, |session| session.cwd.clone());
        cwd.unwrap_or_default().into()
    }

    pub(super) fn shell(&mut self, command: &str) -> Result<(), Stop> {
        let mut call = self.begin("execute", command, json!({ "command": command }))?;
        let ended = self.execute(command)?;
        if let Ok((status, _)) = &ended {
            call["rawOutput"] = json!({ "exitCode": status.code() });
        }
        self.command_ended(call, ended);
        Ok(())
    }

    fn command_ended(&mut self, call: Value, ended: io::Result<(ExitStatus, Vec<u8>)>) {
        let (status, text) = match ended {
            Ok((status, output)) => (
                if status.success() { "completed" } else { "failed" },
                String::from_utf8_lossy(&output).into(),
            ),
            Err(error) => ("failed", error.to_string()),
        };
        self.change(call, status, Some(text_content(&text)));
    }

    /// Runs a command in a process group of its own, so that a cancel ends all of it. When this process is killed
    /// the command runs on, as with most agents.
    fn execute(&mut self, command: &str) -> Result<io::Result<(ExitStatus, Vec<u8>)>, Stop> {
        let cwd = self.cwd();
        let spawn = || {
            let (reader, writer) = io::pipe()?;
            let mut shell = Command::new("/bin/sh");
            shell.args(["-c", command]).current_dir(cwd).process_group(0);
            shell.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer);
            Ok((shell.spawn()?, reader))
        };
        let (mut child, reader) = match spawn() {
            Ok(spawned) => spawned,
            Err(error) => return Ok(Err(error)),
        };
        let output = Arc::new(Mutex::new(Vec::new()));
        let collected = Arc::clone(&output);
        let collecting = std::thread::spawn(move || collect(reader, &collected));
        let status = loop {
            match child.try_wait() {
                Ok(Some(status)) => break status,
                Ok(None) => {}
                Err(error) => return Ok(Err(error)),
            }
            if let Err(stop) = self.pause(TICK) {
                if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
                    let _ = kill_process_group(group, Signal::KILL);
                }
                let _ = child.wait();
                return Err(stop);
            }
        };
        let until = Instant::now() + LATE_OUTPUT;
        while !collecting.is_finished() && Instant::now() < until {
            std::thread::sleep(TICK);
        }
        let output = std::mem::take(&mut *lock(&output));
        Ok(Ok((status, output)))
    }

    /// A message, a tool's update, and the rest of the same message.
    pub(super) fn tool_between(&mut self) -> Result<(), Stop> {
        let call = self.begin("search", "something meanwhile", json!({}))?;
        let message_id = random_id();
        self.update(chunk("agent_message_chunk", &message_id, "before the tool, "));
        self.change(call, "completed", Some(text_content("found")));
        self.update(chunk("agent_message_chunk", &message_id, "after the tool"));
        self.record(Record::Agent { message_id, text: "before the tool, after the tool".to_owned() });
        Ok(())
    }
}

/// Returns a tool call that is not begun yet.
fn new_call(kind: &str, title: &str, input: Value) -> Value {
    let id = format!("call-{}", random_id());
    json!({"toolCallId": id, "title": title, "kind": kind, "status": "pending", "rawInput": input})
}

fn text_content(text: &str) -> Value {
    json!({"type": "content", "content": {"type": "text", "text": text}})
}

fn collect(mut reader: io::PipeReader, output: &Mutex<Vec<u8>>) {
    let mut buffer = [0; 8192];
    while let Ok(count @ 1..) = reader.read(&mut buffer) {
        let mut output = lock(output);
        let room = MOST_OUTPUT.saturating_sub(output.len());
        output.extend_from_slice(&buffer[..count.min(room)]);
    }
}
