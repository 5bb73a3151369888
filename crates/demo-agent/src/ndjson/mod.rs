//! The agent's half of the `ndjson` profile: commands come in, events, log lines, heartbeats and artifacts go out, JSON objects, one a
//! line. The script is in the command's `inputs.prompt`; with a file of answers the work of a key is done once.

mod response_cache;
mod run_script;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Component, Path};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{fs, io};

use serde_json::{Value, json};

use self::response_cache::Answers;
use self::run_script::Work;
use crate::script::Crash;
use crate::sessions::random_id;
use crate::wire::{Wire, open_record, read_lines};
use crate::{Error, Options};

/// A command, as far as it is needed here.
#[derive(Debug, Clone, serde::Deserialize)]
struct Command {
    message_id: String,
    action: String,
    #[serde(default)]
    idempotency_key: Option<String>,
    #[serde(default)]
    outcomes: Vec<String>,
    #[serde(default)]
    inputs: Value,
}

/// What came of a command: the end of the event's type, its payload, the files that were written for it, and the artifacts that were told.
/// Whoever answers from what is kept puts the files back: they may have been made what they were before.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
struct Answer {
    ending: String,
    payload: Value,
    files: BTreeMap<String, String>,
    artifacts: Vec<Value>,
}

/// Takes commands on stdin until it ends, one after the other.
pub(crate) fn serve(options: Options, linger_command: Vec<OsString>) -> Result<(), Error> {
    let cannot = |what: &str| {
        let what = what.to_owned();
        move |source| Error { what, source }
    };
    let wire = Arc::new(Wire::stdout().map_err(cannot("use stdout"))?);
    let record = options
        .record
        .as_ref()
        .map(|path| open_record(path).map_err(cannot(&format!("use {}", path.display()))));
    let record = record.transpose()?;
    let answers =
        options.answers.as_deref().map(Answers::open).transpose().map_err(cannot("read its answers"))?;
    if let Some(every) = options.heartbeat {
        let wire = Arc::clone(&wire);
        let beat = move || loop {
            wire.send(&json!({"kind": "heartbeat", "message_id": message_id("hb"), "status": "healthy"}));
            std::thread::sleep(every.max(Duration::from_millis(1)));
        };
        std::thread::Builder::new()
            .name("heartbeat".into())
            .spawn(beat)
            .map_err(cannot("send heartbeats"))?;
    }
    let (lines, inbox) = channel();
    let reading = std::thread::Builder::new().name("stdin".into());
    reading.spawn(move || read_lines(record, &lines)).map_err(cannot("read stdin"))?;
    std::thread::sleep(options.slow_start);
    let mut agent = Agent { options, linger_command, wire, answers };
    inbox.iter().for_each(|line| agent.handle(&line));
    Ok(())
}

/// The agent between two commands.
struct Agent {
    options: Options,
    /// The command of a child that stays behind.
    linger_command: Vec<OsString>,
    wire: Arc<Wire>,
    answers: Option<Answers>,
}

impl Agent {
    fn handle(&mut self, line: &[u8]) {
        let read = serde_json::from_slice::<Value>(line);
        let Ok(message) = read.map_err(|error| self.log("error", &format!("that is no message: {error}")))
        else {
            return;
        };
        if message["kind"] != "command" {
            return self.log("warn", &format!("{} is no kind that is known here", message["kind"]));
        }
        let command: Command = match serde_json::from_value(message) {
            Ok(command) => command,
            Err(error) => return self.log("error", &format!("that is no command: {error}")),
        };
        let known = self.answers.as_ref().zip(command.idempotency_key.as_deref());
        if let Some(answer) = known.and_then(|(answers, key)| answers.get(key)) {
            self.log("info", "this was done before");
            for (path, content) in &answer.files {
                if let Err(why) = write_below(path, |path| fs::write(path, content)) {
                    self.log("error", &why);
                }
            }
            answer.artifacts.iter().for_each(|artifact| self.wire.send(artifact));
            return self.answer(&command, &answer);
        }
        let (answer, crash) = Work::new(&self.options, &self.linger_command, &self.wire, &command).run();
        // Whoever dies behind this has done it, and before it has not.
        if let (Some(answers), Some(key)) = (&mut self.answers, command.idempotency_key.as_deref())
            && let Err(error) = answers.keep(key, &answer)
        {
            self.log("error", &format!("the answer is not kept: {error}"));
        }
        if crash == Some(Crash::Kept) {
            std::process::exit(1);
        }
        self.answer(&command, &answer);
        if crash.is_some() {
            std::process::exit(1);
        }
    }

    /// Says what came of a command; twice if that is wanted, and the second time it says the contrary.
    fn answer(&self, command: &Command, answer: &Answer) {
        self.wire.send(&event(command, &answer.ending, &answer.payload));
        if self.options.twice {
            self.wire.send(&event(command, &answer.ending, &answer.payload));
            self.wire.send(&event(command, "failed", &json!({"error": "said once more, and otherwise"})));
        }
    }

    fn log(&self, level: &str, message: &str) {
        self.wire.send(&log(level, message));
    }
}

fn event(command: &Command, ending: &str, payload: &Value) -> Value {
    json!({
        "kind": "event",
        "message_id": message_id("evt"),
        "correlation_id": command.message_id,
        "event_type": format!("{}.{ending}", command.action),
        "occurred_at": now(),
        "payload": payload,
    })
}

fn log(level: &str, message: &str) -> Value {
    json!({"kind": "log", "level": level, "message": message})
}

fn message_id(kind: &str) -> String {
    format!("{kind}-{}", random_id())
}

/// Milliseconds since 1970.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Does something with a file below the directory, and sees to it that its own directory is there.
fn write_below(path: &str, act: impl FnOnce(&str) -> io::Result<()>) -> Result<(), String> {
    let plain = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
    if !Path::new(path).components().all(plain) {
        return Err(format!("{path} leads out of the directory"));
    }
    let made = Path::new(path).parent().map_or(Ok(()), fs::create_dir_all);
    made.and_then(|()| act(path)).map_err(|error| format!("{path}: {error}"))
}
