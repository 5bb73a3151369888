//! The records of tasks become rows of Postgres: a real server, which is started for this and syncs as any other. Raw: pgbench
//! with the same statements in the same batches, their values written into them.

use std::cell::Cell;
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};
use postgres::{Client, NoTls};
use rekindle_taskdb::{PostgresSql, TaskDb, Value};
use rekindle_testkit::postgres_server::{PostgresServer, find_program};

use super::statement_recorder::Done;
use super::tasks_log::{Source, TARGET};
use crate::measure::interleave;
use crate::table::{Row, Unit};

/// Measures it, if Postgres is on this machine; says so if not.
pub(super) fn row(source: &Source, tasks: usize, rounds: usize) -> anyhow::Result<Row> {
    let what = format!("records of {tasks} tasks become rows, Postgres");
    let Some(pgbench) = find_program("pgbench").filter(|_| PostgresServer::is_installed()) else {
        return Ok(Row::not_measured(what, "Postgres is not on this machine"));
    };
    let server = Databases { server: PostgresServer::start_synced(), count: Cell::new(0) };
    let written = source.record(Box::new(PostgresSql::new(server.connect(&server.make()?)?)))?;
    let script = server.server.socket_directory().join("same.sql");
    std::fs::write(&script, as_script(&written)?).context("cannot write a script")?;
    drop(written);
    let [figures] = interleave(
        &what,
        rounds,
        || server.raw(&pgbench, &script, source.records()),
        || source.project(server.tables(&server.make()?)?),
    )?;
    Ok(Row::compared(what, Unit::PerSecond, &figures, TARGET))
}

/// A server, and databases that are made in it one after the other.
struct Databases {
    server: PostgresServer,
    count: Cell<u32>,
}

impl Databases {
    fn connect(&self, database: &str) -> anyhow::Result<Client> {
        Client::connect(&self.server.address_of(database), NoTls).context("cannot connect to Postgres")
    }

    /// Makes an empty database.
    fn make(&self) -> anyhow::Result<String> {
        self.count.set(self.count.get() + 1);
        let name = format!("tasks_{}", self.count.get());
        self.connect("postgres")?.batch_execute(&format!("CREATE DATABASE {name}"))?;
        Ok(name)
    }

    /// Opens a database with tables in it.
    fn tables(&self, database: &str) -> anyhow::Result<TaskDb> {
        Ok(TaskDb::open(Box::new(PostgresSql::new(self.connect(database)?)))?)
    }

    /// Has pgbench run the script once; returns how many records a second became rows.
    fn raw(&self, pgbench: &Path, script: &Path, records: usize) -> anyhow::Result<[f64; 1]> {
        let database = self.make()?;
        drop(self.tables(&database)?);
        let mut command = Command::new(pgbench);
        command.arg("-h").arg(self.server.socket_directory()).args(["-U", "rekindle", "-n", "-t", "1", "-f"]);
        let ran = command.arg(script).arg(&database).stdin(Stdio::null()).output()?;
        let (told, complaint) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
        ensure!(ran.status.success() && told.contains("1/1"), "pgbench failed: {told}{complaint}");
        // It counts from the first statement to the last; its own start and the connection are not in this.
        let took = told.lines().find_map(|line| line.strip_prefix("latency average = ")?.strip_suffix(" ms"));
        let millis: f64 = took.context("pgbench does not say how long it took")?.parse()?;
        Ok([records as f64 / (millis / 1000.0)])
    }
}

/// Writes statements with their values in them. Those of a transaction are sent together, which is the least that they can take;
/// pgbench also takes long to read a script of many.
fn as_script(written: &[Done]) -> anyhow::Result<String> {
    const AND: &str = " \\;\n";
    let mut script = String::new();
    for done in written {
        match done {
            Done::Begun => script.push_str(&format!("BEGIN{AND}")),
            Done::Committed => script.push_str("COMMIT;\n"),
            Done::Each(statement, lists) => {
                for values in lists {
                    filled_in(statement, values, &mut script)?;
                    script.push_str(AND);
                }
            }
        }
    }
    Ok(script)
}

/// Writes a statement with values in the places of `$1`, `$2`, ….
fn filled_in(statement: &str, values: &[Value], out: &mut String) -> anyhow::Result<()> {
    let mut parts = statement.split('$');
    out.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let digits = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
        let (number, rest) = part.split_at(digits);
        let value = values.get(number.parse::<usize>()?.wrapping_sub(1)).context("a value is missing")?;
        match value {
            Value::Null => out.push_str("NULL"),
            Value::Int(number) => write!(out, "{number}")?,
            Value::Text(text) => write!(out, "'{}'", text.replace('\'', "''"))?,
        }
        out.push_str(rest);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_into_statements() {
        let values = [Value::Text("it's".into()), Value::Int(-3), Value::Null];
        let mut out = String::new();
        filled_in("INSERT ($1, CAST($2 AS text), $3)", &values, &mut out).expect("filled in");
        assert_eq!(out, "INSERT ('it''s', CAST(-3 AS text), NULL)");
    }
}
