//! Conversations: in memory while this process has them open, on disk as a JSONL file each from their first prompt
//! on. Plain appends, no sync: a killed process loses nothing that was written, and that is what the tests kill.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::STATE_VARIABLE;
use crate::record::Record;
use crate::script::is_name;
use crate::wire::lock;

/// The mode that a session begins in.
pub(crate) const DEFAULT_MODE: &str = "default";
/// The model that a session begins with.
pub(crate) const DEFAULT_MODEL: &str = "demo-small";

const SUFFIX: &str = ".jsonl";

/// Returns where conversations are kept unless a flag says so; `None` if the environment names no place.
pub fn default_state() -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    variable(STATE_VARIABLE).or_else(|| {
        let state = variable("XDG_STATE_HOME").filter(|path| path.is_absolute());
        let state = state.or_else(|| Some(variable("HOME")?.join(".local/state")))?;
        Some(state.join("rekindle-demo-agent"))
    })
}

/// Returns a random id that looks like a UUID.
pub(crate) fn random_id() -> String {
    let mut bytes = [0_u8; 16];
    if File::open("/dev/urandom").and_then(|mut source| source.read_exact(&mut bytes)).is_err() {
        // Without random numbers, time and process are still enough to tell sessions apart.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let unique = (now.as_nanos() << 32) ^ u128::from(std::process::id());
        bytes = unique.to_be_bytes();
    }
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

/// A session that this process has open.
#[derive(Debug, Clone)]
pub(crate) struct Session {
    /// Where its files and commands are.
    pub(crate) cwd: String,
    pub(crate) mode: String,
    pub(crate) model: String,
    /// What the agent knows of the conversation, which may be less than what is on disk.
    pub(crate) history: Vec<Record>,
    /// What need not be asked again.
    pub(crate) allowed: HashSet<String>,
    /// It is on disk no more and must not come back there.
    pub(crate) forgotten: bool,
    /// Tool calls are not told.
    pub(crate) quiet: bool,
}

impl Session {
    /// Returns a session in its first state.
    pub(crate) fn new(cwd: &str, history: Vec<Record>) -> Session {
        let (mode, model) = (DEFAULT_MODE.to_owned(), DEFAULT_MODEL.to_owned());
        let (allowed, forgotten, quiet) = (HashSet::new(), false, false);
        Session { cwd: cwd.to_owned(), mode, model, history, allowed, forgotten, quiet }
    }
}

/// All conversations.
pub(crate) struct Sessions {
    directory: PathBuf,
    open: Mutex<HashMap<String, Session>>,
}

impl Sessions {
    /// Uses a directory, which need not exist yet.
    pub(crate) fn new(directory: &Path) -> Sessions {
        Sessions { directory: directory.to_owned(), open: Mutex::default() }
    }

    /// Has a session open from now on.
    pub(crate) fn insert(&self, id: &str, session: Session) {
        lock(&self.open).insert(id.to_owned(), session);
    }

    /// Lets a session go; tells whether it was open.
    pub(crate) fn close(&self, id: &str) -> bool {
        lock(&self.open).remove(id).is_some()
    }

    /// Does something with an open session.
    pub(crate) fn with<T>(&self, id: &str, action: impl FnOnce(&mut Session) -> T) -> Option<T> {
        lock(&self.open).get_mut(id).map(action)
    }

    /// Keeps a record. The file is made by the first one, which is a prompt: what was never prompted is not kept.
    pub(crate) fn record(&self, id: &str, record: Record) {
        let mut open = lock(&self.open);
        let Some(session) = open.get_mut(id) else { return };
        if !session.forgotten && is_name(id) {
            // The conversation goes on in memory without a disk; a later load will show what is missing.
            let _ = self.append(id, &session.cwd, &record);
        }
        session.history.push(record);
    }

    fn append(&self, id: &str, cwd: &str, record: &Record) -> io::Result<()> {
        let path = self.file(id);
        let mut text = String::new();
        if !path.exists() {
            fs::create_dir_all(&self.directory)?;
            text.push_str(&serde_json::to_string(&Record::Session { cwd: cwd.to_owned() })?);
            text.push('\n');
        }
        text.push_str(&serde_json::to_string(record)?);
        text.push('\n');
        File::options().append(true).create(true).open(path)?.write_all(text.as_bytes())
    }

    /// Reads a conversation; `None` if there is none.
    pub(crate) fn load(&self, id: &str) -> Option<Vec<Record>> {
        if !is_name(id) || self.with(id, |session| session.forgotten) == Some(true) {
            return None;
        }
        let path = self.file(id);
        let bytes = fs::read(&path).ok()?;
        if !bytes.ends_with(b"\n") {
            // Half a record of a killed process: what comes next must not become a part of it.
            let _ = File::options().append(true).open(&path).and_then(|mut file| file.write_all(b"\n"));
        }
        let records = bytes.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok());
        Some(records.collect())
    }

    /// Removes a conversation from the disk for good.
    pub(crate) fn forget(&self, id: &str) {
        self.with(id, |session| session.forgotten = true);
        if is_name(id) {
            let _ = fs::remove_file(self.file(id));
        }
    }

    /// Notes that a conversation is made or loaded now; returns how long ago that was the case before.
    pub(crate) fn opened(&self, id: &str) -> Option<Duration> {
        let path = self.directory.join(format!("{id}.opened")).to_owned();
        let before =
            fs::metadata(&path).and_then(|metadata| metadata.modified()).ok().filter(|_| is_name(id));
        if is_name(id) {
            let _ = fs::create_dir_all(&self.directory).and_then(|()| fs::write(path, ""));
        }
        before.and_then(|before| before.elapsed().ok())
    }

    /// Lists the conversations on disk, sorted by their ids, as `session/list` shows them.
    pub(crate) fn list(&self) -> Vec<Value> {
        let entries = fs::read_dir(&self.directory).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let mut ids: Vec<String> =
            names.filter_map(|name| Some(name.strip_suffix(SUFFIX)?.to_owned())).collect();
        ids.sort();
        ids.into_iter().filter_map(|id| self.row(id)).collect()
    }

    fn row(&self, id: String) -> Option<Value> {
        let (mut cwd, mut title) = (None, None);
        for record in self.load(&id)? {
            match record {
                Record::Session { cwd: found } => cwd = Some(found),
                Record::Title { title: found } => title = Some(found),
                _ => {}
            }
        }
        Some(json!({"sessionId": id, "cwd": cwd?, "title": title}))
    }

    fn file(&self, id: &str) -> PathBuf {
        self.directory.join(format!("{id}{SUFFIX}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(text: &str) -> Record {
        Record::User { message_id: "u".into(), text: text.into() }
    }

    #[test]
    fn a_conversation_is_kept_from_its_first_record_and_read_by_the_next_process() {
        let directory = tempfile::tempdir().expect("a directory");
        let sessions = Sessions::new(&directory.path().join("state"));
        sessions.insert("s1", Session::new("/work", Vec::new()));
        assert_eq!(sessions.load("s1"), None);
        sessions.record("s1", user("one"));
        sessions.record("s1", Record::Title { title: "T".into() });

        let next = Sessions::new(&directory.path().join("state"));
        let history = next.load("s1").expect("it is there");
        assert_eq!(history[1..], [user("one"), Record::Title { title: "T".into() }]);
        let row = json!({"sessionId": "s1", "cwd": "/work", "title": "T"});
        assert_eq!(next.list(), [row]);
        next.forget("s1");
        assert_eq!(next.load("s1"), None);
    }

    #[test]
    fn half_a_record_is_passed_over_and_spoils_nothing_behind_it() {
        let directory = tempfile::tempdir().expect("a directory");
        let sessions = Sessions::new(directory.path());
        sessions.insert("s1", Session::new("/work", Vec::new()));
        sessions.record("s1", user("one"));
        let path = directory.path().join("s1.jsonl");
        let mut text = fs::read_to_string(&path).expect("the file");
        text.push_str("{\"record\":\"ag");
        fs::write(&path, text).expect("the file");
        assert_eq!(sessions.load("s1").expect("it is there").len(), 2);
        sessions.record("s1", user("two"));
        assert_eq!(sessions.load("s1").expect("it is there")[1..], [user("one"), user("two")]);
    }

    #[test]
    fn a_forgotten_session_does_not_come_back() {
        let directory = tempfile::tempdir().expect("a directory");
        let sessions = Sessions::new(directory.path());
        sessions.insert("s1", Session::new("/work", Vec::new()));
        sessions.record("s1", user("one"));
        sessions.forget("s1");
        sessions.record("s1", user("two"));
        assert_eq!(sessions.load("s1"), None);
        assert!(sessions.list().is_empty());
    }

    #[test]
    fn ids_from_outside_name_no_other_files() {
        let directory = tempfile::tempdir().expect("a directory");
        fs::write(directory.path().join("x.jsonl"), "{}\n").expect("a file");
        let sessions = Sessions::new(&directory.path().join("state"));
        for id in ["../x", "", "a/b", "."] {
            assert_eq!(sessions.load(id), None, "{id}");
        }
    }

    #[test]
    fn random_ids_differ_and_look_like_uuids() {
        let (one, two) = (random_id(), random_id());
        assert_ne!(one, two);
        assert_eq!((one.len(), one.matches('-').count()), (36, 4));
        assert!(is_name(&one));
    }
}
