//! Statistics of tasks: how many there are of each status and agent, and what came of those that ended in the last day.

use std::collections::BTreeMap;

use rekindle_domain::event::TaskStatus;
use rekindle_domain::time::Timestamp;

use crate::error::DbError;
use crate::row::{ADOPTED, INTERRUPTED};
use crate::sql::{Row, Sql, Value};
use crate::values::word;

/// How long ago the last day began, in milliseconds.
const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// What came of tasks in the last day.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Day {
    /// How many ended, by how.
    pub ended: BTreeMap<TaskStatus, u64>,
    /// How long those took that ran, in milliseconds: half of them less than this.
    pub median_ms: Option<u64>,
    /// Nine of ten of them less than this.
    pub p90_ms: Option<u64>,
    /// Tokens that they used, as far as agents tell.
    pub tokens: Option<u64>,
    /// Money that they used, as far as agents tell.
    pub cost: Option<f64>,
    /// How often one was interrupted.
    pub interruptions: u64,
    /// How often one was taken over by another daemon.
    pub adoptions: u64,
    /// How well agents remembered where sessions were brought back, by how many of those that ended.
    pub verdicts: BTreeMap<String, u64>,
}

/// How tasks stand.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TaskStats {
    /// How many there are, by where they stand.
    pub statuses: BTreeMap<TaskStatus, u64>,
    /// The same for each agent.
    pub agents: TaskCounts,
    /// What came of those that ended in the last day.
    pub day: Day,
}

/// How many tasks there are of each agent, by where they stand.
pub type TaskCounts = BTreeMap<String, BTreeMap<TaskStatus, u64>>;

/// Asks how many tasks of a home there are.
pub(crate) fn counts(sql: &mut dyn Sql, home_id: &str) -> Result<TaskCounts, DbError> {
    let counted = "SELECT agent_name, status, tasks FROM counters WHERE home_id = $1 AND tasks > 0";
    let mut counts = TaskCounts::new();
    for row in sql.query(counted, &[Value::Text(home_id.into())])? {
        let (status, tasks) = (word(row.text(1)?)?, u64::try_from(row.int(2)?).unwrap_or(0));
        counts.entry(row.text(0)?.to_owned()).or_default().insert(status, tasks);
    }
    Ok(counts)
}

/// Asks for the statistics of a home.
pub(crate) fn stats(sql: &mut dyn Sql, home_id: &str, now: Timestamp) -> Result<TaskStats, DbError> {
    let agents = counts(sql, home_id)?;
    let mut statuses = BTreeMap::new();
    for (status, tasks) in agents.values().flatten() {
        *statuses.entry(*status).or_default() += tasks;
    }
    Ok(TaskStats { statuses, agents, day: day(sql, home_id, now.plus_millis(-DAY_MS))? })
}

/// Asks what came of tasks since some time: of an index alone, without their rows, and by going through it once. Grouping would sort
/// what is there, which takes longer than anything else.
fn day(sql: &mut dyn Sql, home_id: &str, since: Timestamp) -> Result<Day, DbError> {
    let values = [Value::Text(home_id.into()), Value::Text(since.to_string().into())];
    let mut day = Day::default();
    let count = |row: &Row, column| row.int(column).map(|number| u64::try_from(number).unwrap_or(0));
    let ended = TaskStatus::ALL.into_iter().filter(|status| status.is_ended());
    let counted: String = ended
        .clone()
        .map(|status| format!("SUM(CASE status WHEN '{}' THEN 1 ELSE 0 END), ", status.as_str()))
        .collect();
    let asked = format!(
        "SELECT {counted}CAST(SUM(tokens) AS BIGINT), CAST(SUM(cost_micros) AS BIGINT), @joined(took_ms), @joined(verdict) \
         FROM tasks WHERE home_id = $1 AND ended_at >= @time($2)"
    );
    for row in sql.query(&asked, &values)? {
        let mut column = 0;
        for status in ended.clone() {
            let tasks = count(&row, column)?;
            if tasks > 0 {
                day.ended.insert(status, tasks);
            }
            column += 1;
        }
        day.tokens = row.maybe_int(column)?.map(|tokens| u64::try_from(tokens).unwrap_or(0));
        day.cost = row.maybe_int(column + 1)?.map(|micros| micros as f64 / 1e6);
        let lengths = row.maybe_text(column + 2)?.unwrap_or_default().split(',');
        let mut lengths: Vec<u64> = lengths.filter_map(|length| length.parse().ok()).collect();
        lengths.sort_unstable();
        let at = |part: usize| lengths.get(lengths.len().saturating_sub(1) * part / 10).copied();
        (day.median_ms, day.p90_ms) = (at(5), at(9));
        let verdicts = row.maybe_text(column + 3)?.unwrap_or_default().split(',');
        for verdict in verdicts.filter(|verdict| !verdict.is_empty()) {
            *day.verdicts.entry(verdict.to_owned()).or_default() += 1;
        }
    }
    let marks = "SELECT mark, COUNT(*) FROM task_transitions \
                 WHERE home_id = $1 AND at >= @time($2) AND mark IS NOT NULL GROUP BY mark";
    for row in sql.query(marks, &values)? {
        let number = count(&row, 1)?;
        match row.text(0)? {
            INTERRUPTED => day.interruptions = number,
            ADOPTED => day.adoptions = number,
            _ => {}
        }
    }
    Ok(day)
}
