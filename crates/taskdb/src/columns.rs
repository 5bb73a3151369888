//! The columns of a task's row, in one place: what is written is what is read.

use rekindle_domain::time::Timestamp;

use crate::error::DbError;
use crate::row::TaskRow;
use crate::sql::{Row, Value};
use crate::values::{json, parse, plain, plain_json, read_json, word};

/// How a column is written and read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Plain,
    Time,
    Json,
}

use Kind::{Json, Plain, Time};

/// The columns of `tasks`, in the order of [`TaskRow::values`].
const COLUMNS: [(&str, Kind); 38] = [
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
    ("progress", Json),
    ("files_touched", Json),
    ("result", Plain),
    ("usage", Json),
    ("exit", Plain),
    ("created_at", Time),
    ("updated_at", Time),
    ("started_at", Time),
    ("ended_at", Time),
    ("branch", Plain),
];

/// The column behind them.
const TRANSITIONS: usize = COLUMNS.len();

/// The columns behind that, which follow from the others: statistics are read from an index that has them, without the rows.
const DERIVED: [&str; 4] = ["took_ms", "tokens", "cost_micros", "verdict"];

/// Returns the statement that writes a row, in the place of one that is there.
pub(crate) fn upsert() -> String {
    let names: Vec<&str> =
        COLUMNS.iter().map(|(name, _)| *name).chain(["transitions"]).chain(DERIVED).collect();
    let kinds = COLUMNS.iter().map(|(_, kind)| *kind).chain([Plain; 1 + DERIVED.len()]);
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
    pub(crate) fn values(&self) -> Vec<Value<'_>> {
        let time = |time: Option<Timestamp>| Value::text(time.map(|time| time.to_string()));
        vec![
            Value::Text(self.task_id.as_str().into()),
            Value::Text(self.home_id.as_str().into()),
            Value::Text(self.host.as_str().into()),
            Value::Text(self.kind.as_str().into()),
            Value::text(self.parent_id.as_ref().map(|id| id.as_str())),
            Value::Text(plain(&self.title)),
            Value::Text(plain_json(self.prompt.as_str())),
            Value::Text(plain(&self.working_dir)),
            json(&self.agent),
            Value::Text(plain(&self.agent_name)),
            json(&self.options),
            json(&self.env_names),
            Value::Text(if self.branch.is_some() { "worktree" } else { "none" }.into()),
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
            Value::text(self.session_id.as_ref().map(|id| id.as_str())),
            Value::text(self.run_id.as_ref().map(|id| id.as_str())),
            Value::text(self.resume_prompt.as_deref().map(plain)),
            self.progress.as_ref().map_or(Value::Null, json),
            self.files_touched.as_ref().map_or(Value::Null, json),
            Value::text(self.result.as_deref().map(plain)),
            self.usage.as_ref().map_or(Value::Null, json),
            Value::text(self.exit.as_deref()),
            time(Some(self.created_at)),
            time(Some(self.updated_at)),
            time(self.started_at),
            time(self.ended_at),
            Value::text(self.branch.as_deref().map(plain)),
            Value::Int(self.transitions.into()),
            int(self.took_ms()),
            int(self.usage.and_then(|usage| usage.tokens())),
            self.usage.and_then(|usage| usage.cost).map_or(Value::Null, |cost| Value::Int(micros(cost))),
            Value::text(self.progress.as_ref().and_then(|progress| progress.verdict.as_deref()).map(plain)),
        ]
    }

    /// Returns how long its latest attempt took, if it has ended.
    fn took_ms(&self) -> Option<u64> {
        Some(self.ended_at?.millis_since(self.started_at?))
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
            progress: row.maybe_text(28)?.map(read_json).transpose()?,
            files_touched: row.maybe_text(29)?.map(read_json).transpose()?,
            result: row.maybe_text(30)?.map(str::to_owned),
            usage: row.maybe_text(31)?.map(read_json).transpose()?,
            exit: row.maybe_text(32)?.map(str::to_owned),
            created_at: parse(row.text(33)?)?,
            updated_at: parse(row.text(34)?)?,
            started_at: time(35)?,
            ended_at: time(36)?,
            branch: row.maybe_text(37)?.map(str::to_owned),
            transitions: number(TRANSITIONS)?,
        })
    }
}

fn int(number: Option<u64>) -> Value<'static> {
    number.map_or(Value::Null, |number| Value::Int(i64::try_from(number).unwrap_or(i64::MAX)))
}

/// Returns an amount of money in millionths, so that sums are what they should be.
#[expect(clippy::cast_possible_truncation, reason = "it saturates, and nobody spends that much")]
fn micros(cost: f64) -> i64 {
    (cost * 1e6).round() as i64
}
