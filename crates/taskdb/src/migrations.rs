//! Migrations: how the schema came to be what it is, one step after the other. A step that was ever released is never changed.

use crate::error::DbError;
use crate::sql::{Sql, Value};

/// The steps, in order; the number of the last is the version of the schema.
const STEPS: &[&str] = &[TASKS];

const TASKS: &str = "
CREATE TABLE tasks (
    task_id TEXT PRIMARY KEY,
    home_id TEXT NOT NULL,
    host TEXT NOT NULL,
    kind TEXT NOT NULL,
    parent_id TEXT,
    title TEXT NOT NULL,
    prompt @JSON NOT NULL,
    working_dir TEXT NOT NULL,
    agent @JSON NOT NULL,
    agent_name TEXT NOT NULL,
    options @JSON NOT NULL,
    env_names @JSON NOT NULL,
    isolation TEXT NOT NULL,
    branch TEXT,
    priority BIGINT NOT NULL,
    not_before @TIME,
    deadline_at @TIME,
    max_attempts BIGINT NOT NULL,
    repeatable BIGINT NOT NULL,
    budget @JSON,
    labels @JSON NOT NULL,
    created_by TEXT,
    idempotency_key TEXT,
    status TEXT NOT NULL,
    reason TEXT,
    attempt BIGINT NOT NULL,
    session_id TEXT,
    run_id TEXT,
    resume_prompt TEXT,
    progress @JSON,
    files_touched @JSON,
    result TEXT,
    usage @JSON,
    exit TEXT,
    created_at @TIME NOT NULL,
    updated_at @TIME NOT NULL,
    started_at @TIME,
    ended_at @TIME,
    transitions BIGINT NOT NULL,
    took_ms BIGINT,
    tokens BIGINT,
    cost_micros BIGINT,
    verdict TEXT
);
CREATE INDEX tasks_by_home ON tasks (home_id, task_id);
CREATE INDEX tasks_by_status ON tasks (home_id, status, task_id);
CREATE INDEX tasks_by_agent ON tasks (home_id, agent_name, task_id);
CREATE INDEX tasks_by_session ON tasks (session_id) WHERE session_id IS NOT NULL;
CREATE INDEX tasks_by_parent ON tasks (parent_id, task_id) WHERE parent_id IS NOT NULL;
CREATE INDEX tasks_by_end ON tasks (home_id, ended_at, status, took_ms, tokens, cost_micros, verdict);
CREATE TABLE task_transitions (
    task_id TEXT NOT NULL,
    n BIGINT NOT NULL,
    home_id TEXT NOT NULL,
    from_status TEXT,
    to_status TEXT NOT NULL,
    reason TEXT,
    actor TEXT NOT NULL,
    at @TIME NOT NULL,
    metadata @JSON,
    mark TEXT,
    PRIMARY KEY (task_id, n)
);
CREATE INDEX task_transitions_by_time ON task_transitions (at);
CREATE INDEX task_transitions_by_mark ON task_transitions (home_id, at, mark) WHERE mark IS NOT NULL;
CREATE TABLE task_dependencies (
    task_id TEXT NOT NULL,
    after TEXT NOT NULL,
    condition TEXT NOT NULL,
    PRIMARY KEY (task_id, after)
);
CREATE INDEX task_dependencies_by_task ON task_dependencies (after);
CREATE TABLE counters (
    home_id TEXT NOT NULL,
    agent_name TEXT NOT NULL,
    status TEXT NOT NULL,
    tasks BIGINT NOT NULL,
    PRIMARY KEY (home_id, agent_name, status)
);
CREATE TABLE cursors (
    home_id TEXT NOT NULL,
    stream TEXT NOT NULL,
    seq BIGINT NOT NULL,
    h TEXT NOT NULL,
    state TEXT,
    PRIMARY KEY (home_id, stream)
);
";

/// Tells whether the schema is this version's. One that a newer version made is refused.
pub(crate) fn is_current(sql: &mut dyn Sql) -> Result<bool, DbError> {
    let known = STEPS.len() as i64;
    let rows = match sql.query("SELECT version FROM rekindle_schema", &[]) {
        Ok(rows) => rows,
        // One that nobody has begun to write has no such table.
        Err(DbError::Refused(_)) => return Ok(false),
        Err(error) => return Err(error),
    };
    match rows.first().map(|row| row.int(0)).transpose()? {
        Some(found) if found > known => Err(DbError::Newer { found, known }),
        found => Ok(found == Some(known)),
    }
}

/// Brings the schema up to date. One that a newer version made is refused and left alone.
pub(crate) fn migrate(sql: &mut dyn Sql) -> Result<(), DbError> {
    sql.begin()?;
    let migrated = steps(sql);
    match migrated {
        Ok(()) => sql.commit(),
        Err(error) => {
            sql.roll_back();
            Err(error)
        }
    }
}

fn steps(sql: &mut dyn Sql) -> Result<(), DbError> {
    sql.lock_schema()?;
    sql.run("CREATE TABLE IF NOT EXISTS rekindle_schema (version BIGINT NOT NULL)")?;
    let known = STEPS.len() as i64;
    let found = match sql.query("SELECT version FROM rekindle_schema", &[])?.first() {
        Some(row) => row.int(0)?,
        None => {
            sql.execute_each("INSERT INTO rekindle_schema (version) VALUES ($1)", &[vec![Value::Int(0)]])?;
            0
        }
    };
    if found > known {
        return Err(DbError::Newer { found, known });
    }
    for step in STEPS.iter().skip(usize::try_from(found).unwrap_or(0)) {
        let written = sql.dialect().write(step).into_owned();
        sql.run(&written)?;
    }
    sql.execute_each("UPDATE rekindle_schema SET version = $1", &[vec![Value::Int(known)]])
}
