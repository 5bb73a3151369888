//! A task as a row, and its columns in one place: what is written is what is read.

use rekindle_domain::event::{Budget, Dependency, Options, Provider, TaskKind, TaskStatus};
use rekindle_domain::id::{RunId, SessionId, TaskId};
use rekindle_domain::task::transition::Standing;
use rekindle_domain::time::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::DbError;
use crate::sql::{Row, Value};

/// A task as a row.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskRow {
    /// The task.
    pub task_id: TaskId,
    /// Its home.
    pub home_id: String,
    /// The machine of that home.
    pub host: String,
    /// What it is.
    pub kind: TaskKind,
    /// The task that it is a part of.
    pub parent_id: Option<TaskId>,
    /// A short title.
    pub title: String,
    /// What the agent is told, as JSON.
    pub prompt: String,
    /// Where the agent works.
    pub working_dir: String,
    /// Who works.
    pub agent: Provider,
    /// The agent's name, or its command's.
    pub agent_name: String,
    /// Settings of its session.
    pub options: Options,
    /// Names of the agent's variables.
    pub env_names: Vec<String>,
    /// How urgent it is.
    pub priority: i8,
    /// It is not to begin before this time.
    pub not_before: Option<Timestamp>,
    /// When it is too late for it.
    pub deadline_at: Option<Timestamp>,
    /// How often it may be attempted.
    pub max_attempts: u32,
    /// Doing it twice does no harm.
    pub repeatable: bool,
    /// The most that it may use.
    pub budget: Option<Budget>,
    /// Its labels.
    pub labels: Vec<String>,
    /// What it waits for, or waited for.
    pub after: Vec<Dependency>,
    /// Who asked for it.
    pub created_by: Option<String>,
    /// The caller's key, as it is stored.
    pub idempotency_key: Option<String>,
    /// Where it stands.
    pub status: TaskStatus,
    /// Why.
    pub reason: Option<String>,
    /// Attempts that have begun.
    pub attempt: u32,
    /// The session of the latest one.
    pub session_id: Option<SessionId>,
    /// Its run.
    pub run_id: Option<RunId>,
    /// What a retry was really told.
    pub resume_prompt: Option<String>,
    /// When it was asked for.
    pub created_at: Timestamp,
    /// Its newest record.
    pub updated_at: Timestamp,
    /// When its latest attempt began.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// Records of it that count.
    pub transitions: u32,
}

impl TaskRow {
    /// Returns where it stands.
    pub fn standing(&self) -> Standing {
        Standing { status: self.status, attempt: self.attempt, transitions: self.transitions }
    }
}

/// A transition of a task as a row of its history.
#[derive(Debug, Clone, PartialEq)]
pub struct TransitionRow {
    /// The task.
    pub task_id: TaskId,
    /// Its number, from 1 without a gap.
    pub n: u32,
    /// Where the task stood.
    pub from_status: Option<TaskStatus>,
    /// Where it stands.
    pub to_status: TaskStatus,
    /// Why.
    pub reason: Option<String>,
    /// Who.
    pub actor: String,
    /// When.
    pub at: Timestamp,
    /// What else the record says.
    pub metadata: Option<serde_json::Value>,
}

/// How a column is written and read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Plain,
    Time,
    Json,
}

use Kind::{Json, Plain, Time};

/// The columns of `tasks`, in the order of [`TaskRow::values`].
const COLUMNS: [(&str, Kind); 32] = [
    ("task_id", Plain),
    ("home_id", Plain),
    ("host", Plain),
    ("kind", Plain),
    ("parent_id", Plain),
    ("title", Plain),
    ("prompt", Json),
    ("working_dir", Plain),
    ("agent", Json),
    ("agent_name", Plain),
    ("options", Json),
    ("env_names", Json),
    ("isolation", Plain),
    ("priority", Plain),
    ("not_before", Time),
    ("deadline_at", Time),
    ("max_attempts", Plain),
    ("repeatable", Plain),
    ("budget", Json),
    ("labels", Json),
    ("created_by", Plain),
    ("idempotency_key", Plain),
    ("status", Plain),
    ("reason", Plain),
    ("attempt", Plain),
    ("session_id", Plain),
    ("run_id", Plain),
    ("resume_prompt", Plain),
    ("created_at", Time),
    ("updated_at", Time),
    ("started_at", Time),
    ("ended_at", Time),
];

/// The column behind them.
const TRANSITIONS: usize = COLUMNS.len();

/// Returns the statement that writes a row, in the place of one that is there.
pub(crate) fn upsert() -> String {
    let names: Vec<&str> = COLUMNS.iter().map(|(name, _)| *name).chain(["transitions"]).collect();
    let kinds = COLUMNS.iter().map(|(_, kind)| *kind).chain([Plain]);
    let values: Vec<String> = kinds
        .enumerate()
        .map(|(index, kind)| match kind {
            Plain => format!("${}", index + 1),
            Time => format!("@time(${})", index + 1),
            Json => format!("@json(${})", index + 1),
        })
        .collect();
    let changed: Vec<String> = names[1..].iter().map(|name| format!("{name} = excluded.{name}")).collect();
    format!(
        "INSERT INTO tasks ({}) VALUES ({}) ON CONFLICT (task_id) DO UPDATE SET {}",
        names.join(", "),
        values.join(", "),
        changed.join(", ")
    )
}

/// Returns what a statement selects to read rows.
pub(crate) fn selected() -> String {
    let columns = COLUMNS.iter().map(|(name, kind)| match kind {
        Plain => (*name).to_owned(),
        Time => format!("@text_of_time({name})"),
        Json => format!("@text_of_json({name})"),
    });
    columns.chain(["transitions".to_owned()]).collect::<Vec<_>>().join(", ")
}

impl TaskRow {
    /// Returns the values of its columns.
    pub(crate) fn values(&self) -> Vec<Value> {
        let time = |time: Option<Timestamp>| Value::text(time.map(|time| time.to_string()));
        vec![
            Value::Text(self.task_id.to_string()),
            Value::Text(self.home_id.clone()),
            Value::Text(self.host.clone()),
            Value::Text(self.kind.as_str().into()),
            Value::text(self.parent_id.map(|id| id.to_string())),
            Value::Text(plain(&self.title)),
            Value::Text(plain_json(&self.prompt)),
            Value::Text(plain(&self.working_dir)),
            json(&self.agent),
            Value::Text(plain(&self.agent_name)),
            json(&self.options),
            json(&self.env_names),
            Value::Text("none".into()),
            Value::Int(self.priority.into()),
            time(self.not_before),
            time(self.deadline_at),
            Value::Int(self.max_attempts.into()),
            Value::Int(self.repeatable.into()),
            self.budget.as_ref().map_or(Value::Null, json),
            json(&self.labels),
            Value::text(self.created_by.as_deref().map(plain)),
            Value::text(self.idempotency_key.as_deref()),
            Value::Text(self.status.as_str().into()),
            Value::text(self.reason.as_deref().map(plain)),
            Value::Int(self.attempt.into()),
            Value::text(self.session_id.map(|id| id.to_string())),
            Value::text(self.run_id.map(|id| id.to_string())),
            Value::text(self.resume_prompt.as_deref().map(plain)),
            time(Some(self.created_at)),
            time(Some(self.updated_at)),
            time(self.started_at),
            time(self.ended_at),
            Value::Int(self.transitions.into()),
        ]
    }

    /// Reads a row that was selected by [`selected`]; what it waits for is in another table.
    pub(crate) fn read(row: &Row) -> Result<TaskRow, DbError> {
        let time = |column| row.maybe_text(column).and_then(|text| text.map(parse).transpose());
        let number = |column| row.int(column).map(|number| u32::try_from(number).unwrap_or(u32::MAX));
        let id_like = |column| row.maybe_text(column);
        Ok(TaskRow {
            task_id: parse(row.text(0)?)?,
            home_id: row.text(1)?.to_owned(),
            host: row.text(2)?.to_owned(),
            kind: word(row.text(3)?)?,
            parent_id: id_like(4)?.map(parse).transpose()?,
            title: row.text(5)?.to_owned(),
            prompt: row.text(6)?.to_owned(),
            working_dir: row.text(7)?.to_owned(),
            agent: read_json(row.text(8)?)?,
            agent_name: row.text(9)?.to_owned(),
            options: read_json(row.text(10)?)?,
            env_names: read_json(row.text(11)?)?,
            priority: i8::try_from(row.int(13)?).unwrap_or_default(),
            not_before: time(14)?,
            deadline_at: time(15)?,
            max_attempts: number(16)?,
            repeatable: row.int(17)? != 0,
            budget: row.maybe_text(18)?.map(read_json).transpose()?,
            labels: read_json(row.text(19)?)?,
            after: Vec::new(),
            created_by: row.maybe_text(20)?.map(str::to_owned),
            idempotency_key: row.maybe_text(21)?.map(str::to_owned),
            status: word(row.text(22)?)?,
            reason: row.maybe_text(23)?.map(str::to_owned),
            attempt: number(24)?,
            session_id: id_like(25)?.map(parse).transpose()?,
            run_id: id_like(26)?.map(parse).transpose()?,
            resume_prompt: row.maybe_text(27)?.map(str::to_owned),
            created_at: parse(row.text(28)?)?,
            updated_at: parse(row.text(29)?)?,
            started_at: time(30)?,
            ended_at: time(31)?,
            transitions: number(TRANSITIONS)?,
        })
    }
}

/// Returns a text as every database takes it: Postgres has no NUL in texts.
pub(crate) fn plain(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

/// Returns JSON as every database takes it: Postgres has no NUL in it, escaped or not.
fn plain_json(json: &str) -> String {
    if json.contains("\\u0000") { json.replace("\\u0000", "\\ufffd") } else { json.to_owned() }
}

pub(crate) fn json(value: &impl Serialize) -> Value {
    serde_json::to_string(value).map_or(Value::Null, |text| Value::Text(plain_json(&text)))
}

pub(crate) fn read_json<T: DeserializeOwned>(text: &str) -> Result<T, DbError> {
    serde_json::from_str(text)
        .map_err(|error| DbError::Nonsense(format!("JSON that cannot be read: {error}")))
}

/// Reads a word that stands for something.
pub(crate) fn word<T: DeserializeOwned>(text: &str) -> Result<T, DbError> {
    serde_json::from_value(serde_json::Value::String(text.to_owned()))
        .map_err(|_| DbError::Nonsense(format!("{text:?}, which means nothing here")))
}

pub(crate) fn parse<T: std::str::FromStr<Err: std::fmt::Display>>(text: &str) -> Result<T, DbError> {
    text.parse().map_err(|error: T::Err| DbError::Nonsense(error.to_string()))
}
