//! The files of OrbitMesh: snapshots with all messages in them (`session-….json`, perhaps compressed with gzip), and sessions of a
//! snapshot and a log (`<id>.json` beside `<id>.messages.jsonl`). Fields may be written as Go or as JSON has them.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use rekindle_domain::event::Provider;
use rekindle_domain::time::Timestamp;
use serde_json::{Map, Value, json};

use super::NotImported;
use super::history::{Entry, Foreign};

/// Largest file that is read, plain.
const MAX_FILE: u64 = 1 << 30;

const LOG: &str = ".messages.jsonl";

/// Reads every session in a directory, or in its `sessions`; and what could not be read.
pub(super) fn read(directory: &Path) -> (Vec<Foreign>, Vec<NotImported>) {
    let below = directory.join("sessions");
    let directory = if below.is_dir() { &below } else { directory };
    let (mut found, mut skipped) = (Vec::new(), Vec::new());
    let names = match list(directory) {
        Ok(names) => names,
        Err(error) => {
            skipped.push(skip(directory, error.to_string()));
            return (found, skipped);
        }
    };
    for (id, files) in names {
        match read_session(&id, &files) {
            Ok(foreign) => found.push(foreign),
            Err((path, why)) => skipped.push(skip(&path, why)),
        }
    }
    (found, skipped)
}

fn skip(path: &Path, why: String) -> NotImported {
    NotImported { source: path.to_owned(), line: None, why }
}

/// The files of one session.
#[derive(Debug, Default)]
struct Files {
    snapshot: Option<PathBuf>,
    log: Option<PathBuf>,
}

/// Lists the sessions of a directory with their files, by their names.
fn list(directory: &Path) -> io::Result<BTreeMap<String, Files>> {
    let mut sessions: BTreeMap<String, Files> = BTreeMap::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        let Some(name) = path.file_name().and_then(|name| name.to_str()).filter(|_| path.is_file()) else {
            continue;
        };
        let name = name.to_owned();
        if let Some(id) = name.strip_suffix(LOG) {
            sessions.entry(id.to_owned()).or_default().log = Some(path);
        } else if let Some(id) = name.strip_suffix(".json").or_else(|| name.strip_suffix(".json.gz"))
            // The list, and what is no session's own.
            && id != "index"
            && !id.ends_with(".tokens")
        {
            sessions.entry(id.to_owned()).or_default().snapshot = Some(path);
        }
    }
    Ok(sessions)
}

fn read_session(id: &str, files: &Files) -> Result<Foreign, (PathBuf, String)> {
    let mut foreign = Foreign { source_id: id.to_owned(), ..Foreign::default() };
    if let Some(path) = &files.snapshot {
        let at = |why: String| (path.clone(), why);
        let bytes = read_file(path).map_err(|error| at(error.to_string()))?;
        let value: Value = serde_json::from_slice(&bytes).map_err(|error| at(error.to_string()))?;
        let fields = Fields(value.as_object().ok_or_else(|| at("it is not a JSON object".into()))?);
        foreign.source.clone_from(path);
        read_snapshot(&fields, path, &mut foreign).map_err(at)?;
    }
    if let Some(path) = &files.log {
        let at = |why: String| (path.clone(), why);
        let bytes = read_file(path).map_err(|error| at(error.to_string()))?;
        if files.snapshot.is_none() {
            foreign.source.clone_from(path);
        }
        read_log(&bytes, path, &mut foreign);
    }
    Ok(foreign)
}

fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = File::open(path)?;
    let read: Box<dyn Read> = match path.extension().is_some_and(|extension| extension == "gz") {
        true => Box::new(GzDecoder::new(file)),
        false => Box::new(file),
    };
    read.take(MAX_FILE + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("it is larger than {MAX_FILE} bytes"),
        ));
    }
    Ok(bytes)
}

/// Takes in a snapshot, with its messages if it has them.
fn read_snapshot(fields: &Fields<'_>, path: &Path, foreign: &mut Foreign) -> Result<(), String> {
    if fields.get("messages").is_none() && fields.get("workingdir").is_none() && fields.get("title").is_none()
    {
        return Err("it is not a session: it has neither messages nor a title nor a directory".into());
    }
    if let Some(id) = fields.text("sessionid").or_else(|| fields.text("id")) {
        foreign.source_id = id;
    }
    let config = fields.object("config");
    let of_config = |name| config.as_ref().and_then(|config| Fields(config).text(name));
    foreign.title = fields.text("title").or_else(|| fields.text("currenttask"));
    foreign.working_dir =
        fields.text("workingdir").or_else(|| of_config("workingdir")).or_else(|| of_config("cwd"));
    foreign.provider = provider(fields);
    foreign.created_at = fields.time("createdat");
    foreign.cursor = fields.text("acpsessionid");
    let run = fields.object("run");
    foreign.is_open = run.as_ref().is_some_and(|run| Fields(run).get("endedat").is_none_or(Value::is_null));
    let messages = fields.get("messages").and_then(Value::as_array);
    for (index, message) in messages.into_iter().flatten().enumerate() {
        match message.as_object().and_then(|message| read_message(&Fields(message))) {
            Some(entry) => foreign.entries.push(entry),
            None => foreign.damaged.push(NotImported {
                source: path.to_owned(),
                line: None,
                why: format!("message {} has no known role and content", index + 1),
            }),
        }
    }
    for (name, kind) in [("metrics", "metrics"), ("metadata", "metadata")] {
        if let Some(value) =
            fields.get(name).filter(|value| value.as_object().is_some_and(|map| !map.is_empty()))
        {
            foreign.entries.push((None, Entry::Other(kind.to_owned(), value.clone())));
        }
    }
    Ok(())
}

fn provider(fields: &Fields<'_>) -> Provider {
    let of = fields.object("provider");
    let of = of.as_ref().map(Fields);
    let text = |name: &str| of.as_ref().and_then(|provider| provider.text(name));
    let profile = text("type").or_else(|| fields.text("providertype")).unwrap_or_default();
    Provider { profile, agent: text("agent"), model: text("model"), command: None }
}

fn read_message(fields: &Fields<'_>) -> Option<(Option<Timestamp>, Entry)> {
    let content = content(fields.get("content")?)?;
    let entry = match fields.text("role")?.as_str() {
        "user" => Entry::User(content),
        "assistant" | "agent" => Entry::Agent(content),
        _ => return None,
    };
    Some((fields.time("timestamp"), entry))
}

/// Returns content as messages of ours have it: a text, or blocks.
fn content(value: &Value) -> Option<Value> {
    let block = |block: &Value| -> Value {
        let fields = block.as_object();
        let text = fields.and_then(|fields| {
            let text = Fields(fields).get("text")?.clone();
            match &text {
                Value::Object(inner) => Fields(inner).text("text"),
                text => text.as_str().map(str::to_owned),
            }
        });
        text.map_or_else(|| block.clone(), |text| json!({"type": "text", "text": text}))
    };
    match value {
        Value::String(_) => Some(value.clone()),
        Value::Array(blocks) => Some(blocks.iter().map(block).collect()),
        _ => None,
    }
}

/// Takes in a log, line by line; what cannot be read is named, and the rest goes on.
fn read_log(bytes: &[u8], path: &Path, foreign: &mut Foreign) {
    for (index, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        if line.trim_ascii().is_empty() {
            continue;
        }
        let damaged = |why: String| NotImported { source: path.to_owned(), line: Some(index + 1), why };
        let value: Value = match serde_json::from_slice(line) {
            Ok(value) => value,
            Err(error) => {
                foreign.damaged.push(damaged(error.to_string()));
                continue;
            }
        };
        let Some(fields) = value.as_object().map(Fields) else {
            foreign.damaged.push(damaged("it is not a JSON object".into()));
            continue;
        };
        let (Some(kind), at) = (fields.text("kind"), fields.time("ts")) else {
            foreign.damaged.push(damaged("it has no kind".into()));
            continue;
        };
        let said = || fields.get("content").and_then(content);
        let entry = match kind.as_str() {
            "message.user" => said().map(Entry::User),
            "message.agent" | "message.assistant" => said().map(Entry::Agent),
            _ => None,
        };
        match kind.as_str() {
            "run.started" | "run.waiting" | "run.resumed" | "run.interrupted" => foreign.is_open = true,
            "run.completed" | "run.failed" | "run.cancelled" => foreign.is_open = false,
            _ => {}
        }
        foreign.entries.push((at, entry.unwrap_or(Entry::Other(kind, value.clone()))));
    }
}

/// The fields of an object, by names without case and underscores.
struct Fields<'a>(&'a Map<String, Value>);

impl Fields<'_> {
    fn get(&self, name: &str) -> Option<&Value> {
        let is =
            |field: &str| field.chars().filter(|c| *c != '_').flat_map(char::to_lowercase).eq(name.chars());
        self.0.iter().find(|(field, _)| is(field)).map(|(_, value)| value)
    }

    fn text(&self, name: &str) -> Option<String> {
        self.get(name)?.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
    }

    fn time(&self, name: &str) -> Option<Timestamp> {
        self.get(name)?.as_str()?.parse().ok()
    }

    fn object(&self, name: &str) -> Option<Map<String, Value>> {
        self.get(name)?.as_object().cloned()
    }
}
