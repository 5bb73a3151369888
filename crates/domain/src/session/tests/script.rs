//! Events for tests as short text: a kind and its fields, ids by their number, what a case does not care for
//! filled in. `run.waiting wait=2 deadline=60` is the wait `wait_2` with the token `rt_2`, until second 60.

use serde_json::{Map, Value, json};

use crate::event::{DirtyPolicy, Event, SessionWorktree};
use crate::id::HolderId;
use crate::line::{Draft, Source};
use crate::time::{Now, Timestamp};

/// Short names of fields that hold an id, and the id's prefix.
const IDS: [(&str, &str, &str); 11] = [
    ("run", "run_id", "run"),
    ("continues", "continues", "run"),
    ("origin", "origin_run_id", "run"),
    ("boot", "boot_id", "boot"),
    ("wait", "wait_id", "wait"),
    ("token", "resume_token_id", "rt"),
    ("holder", "holder_id", "h"),
    ("msg", "message_id", "msg"),
    ("tool", "tool_call_id", "tool"),
    ("scope_session", "scope_session", "sess"),
    ("scope_wait", "scope_wait", "wait"),
];

/// What a record of any kind says unless a case says otherwise; fields a kind does not have are ignored.
const DEFAULTS: &str = r#"{"run_id":"run_1","boot_id":"boot_a","holder_id":"h_1","tool_call_id":"tool_1",
    "working_dir":"/repo","root":"/repo","provider":{"type":"acp"},"content":"hello","title":"a title","line":"x","sha256":"0",
    "machine_boot":"m1","holder":{"pid":10,"started":100},"agent":{"pid":11,"started":101},
    "wait_kind":"permission","how":"answered","reason":"agent_exit","why":"user","what":"prompt",
    "scope_session":"sess_1","secret_hash":"00","status":"pending","mode_id":"plan","entries":[]}"#;

/// Returns the time where both clocks say the same.
pub(crate) fn now(wall: Timestamp) -> Now {
    Now { wall, steady: wall }
}

/// Returns a point in time, in seconds from the beginning of every log in the tests.
pub(crate) fn at(second: i64) -> Timestamp {
    Timestamp::from_millis(1_771_668_000_000 + second * 1000)
}

/// Returns a worktree that a session may want.
pub(crate) fn worktree() -> SessionWorktree {
    SessionWorktree {
        origin: "/repo".into(),
        repository: "/repo/.git".into(),
        directory: "/trees/repo-1".into(),
        branch: "rekindle/one".into(),
        base: None,
        dirty: DirtyPolicy::Refuse,
    }
}

/// Returns the event that a short text stands for.
pub(crate) fn draft(text: &str) -> Draft {
    let mut words = text.split_whitespace();
    let kind = words.next().expect("a kind").to_owned();
    let mut fields: Map<String, Value> = serde_json::from_str(DEFAULTS).expect("an object");
    let (mut journal, mut happened) = (None, None);
    for word in words {
        let (key, value) = word.split_once('=').unwrap_or_else(|| panic!("{word} is not key=value"));
        if let Some((_, field, prefix)) = IDS.iter().find(|(name, ..)| *name == key) {
            let id = if value == "null" { Value::Null } else { json!(format!("{prefix}_{value}")) };
            fields.insert((*field).into(), id);
        } else if matches!(key, "deadline" | "expires") {
            fields.insert(format!("{key}_at"), json!(at(value.parse().expect("a second"))));
        } else if key == "src" {
            journal = Some(value.parse().expect("the number of a journal record"));
        } else if key == "at" && value.parse::<i64>().is_ok() {
            happened = Some(at(value.parse().expect("a second")));
        } else {
            fields.insert(key.into(), serde_json::from_str(value).unwrap_or_else(|_| json!(value)));
        }
    }
    fill_names(&kind, &mut fields);
    let source = journal.map(|seq| Source(holder(&fields), seq, 0, seq + 1));
    // An event borrows from its text; the few texts of a test may live as long as the test.
    let text: &'static str = Value::Object(fields).to_string().leak();
    let event = Event::read(kind.leak(), text).unwrap_or_else(|error| panic!("{text}: {error}"));
    Draft { event, source, at: happened }
}

/// Gives a message, a wait and its token their names, and a token its scope.
fn fill_names(kind: &str, fields: &mut Map<String, Value>) {
    if kind.starts_with("message.") {
        fields.entry("message_id").or_insert(json!("msg_1"));
    }
    if kind.starts_with("token.") || matches!(kind, "run.waiting" | "run.resumed") {
        let wait = fields.entry("wait_id").or_insert(json!("wait_1")).clone();
        let number = wait.as_str().and_then(|id| id.strip_prefix("wait_")).expect("a wait id").to_owned();
        fields.entry("resume_token_id").or_insert(json!(format!("rt_{number}")));
        let scope_wait = fields.get("scope_wait").unwrap_or(&wait);
        let mut scope = json!({
            "session_id": fields["scope_session"], "run_id": fields["run_id"], "wait_id": scope_wait,
        });
        if let Some(option) = fields.get("scope_option") {
            scope["option_id"] = option.clone();
        }
        fields.insert("scope".into(), scope);
    }
}

fn holder(fields: &Map<String, Value>) -> HolderId {
    fields["holder_id"].as_str().and_then(|id| id.parse().ok()).expect("a holder id")
}
