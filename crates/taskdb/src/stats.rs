//! Statistics of tasks: how many there are of each status and agent, and what came of those that ended in the last day.

use std::collections::BTreeMap;

use rekindle_domain::event::TaskStatus;
use rekindle_domain::time::Timestamp;

use crate::error::DbError;
use crate::sql::{Row, Sql, Value};
use crate::values::{parse, word};

/// How long ago the last day began, in milliseconds.
const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// What came of tasks in the last day.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Day {
    /// How many ended, by how.
    pub ended: BTreeMap<TaskStatus, u64>,
    /// How long those took that ran, in milliseconds: half of them less than this.
    pub median_ms: Option<u64>,
    /// Nine of ten of them less than this.
    pub p90_ms: Option<u64>,
}

/// How tasks stand.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskStats {
    /// How many there are, by where they stand.
    pub statuses: BTreeMap<TaskStatus, u64>,
    /// The same for each agent.
    pub agents: BTreeMap<String, BTreeMap<TaskStatus, u64>>,
    /// What came of those that ended in the last day.
    pub day: Day,
}

/// Asks for the statistics of a home.
pub(crate) fn stats(sql: &mut dyn Sql, home_id: &str, now: Timestamp) -> Result<TaskStats, DbError> {
    let mut stats = TaskStats::default();
    let counted = "SELECT agent_name, status, tasks FROM counters WHERE home_id = $1 AND tasks > 0";
    for row in sql.query(counted, &[Value::Text(home_id.to_owned())])? {
        let (status, tasks) = (word(row.text(1)?)?, u64::try_from(row.int(2)?).unwrap_or(0));
        *stats.statuses.entry(status).or_default() += tasks;
        *stats.agents.entry(row.text(0)?.to_owned()).or_default().entry(status).or_default() += tasks;
    }
    let ended = "SELECT status, @text_of_time(started_at), @text_of_time(ended_at) FROM tasks \
                 WHERE ended_at >= @time($1) AND home_id = $2";
    let since = Value::Text(now.plus_millis(-DAY_MS).to_string());
    let rows = sql.query(ended, &[since, Value::Text(home_id.to_owned())])?;
    stats.day = day(&rows)?;
    Ok(stats)
}

fn day(rows: &[Row]) -> Result<Day, DbError> {
    let (mut day, mut lengths) = (Day::default(), Vec::with_capacity(rows.len()));
    for row in rows {
        *day.ended.entry(word(row.text(0)?)?).or_default() += 1;
        if let Some(started) = row.maybe_text(1)? {
            lengths.push(parse::<Timestamp>(row.text(2)?)?.millis_since(parse(started)?));
        }
    }
    lengths.sort_unstable();
    let at = |part: usize| lengths.get(lengths.len().saturating_sub(1) * part / 10).copied();
    (day.median_ms, day.p90_ms) = (at(5), at(9));
    Ok(day)
}
