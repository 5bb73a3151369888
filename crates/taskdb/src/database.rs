//! The database of tasks: rows written in batches with the cursor they bring it to, and asked for.

use std::collections::HashMap;

use rekindle_domain::event::{Dependency, TaskStatus};
use rekindle_domain::id::TaskId;
use rekindle_domain::time::Timestamp;

use crate::columns::{selected, upsert};
use crate::error::DbError;
use crate::migrations::{is_current, migrate};
use crate::project::Owner;
use crate::query::{TaskPage, TaskQuery};
use crate::row::{TaskRow, TransitionRow};
use crate::sql::{Row, Sql, Value};
use crate::stats::{TaskCounts, TaskStats, counts, stats};
use crate::values::{json, parse, plain, read_json, word};

/// Tasks that are asked for by name in one statement.
const AT_ONCE: usize = 200;

/// How far the rows of a stream have come: the last record in them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor {
    /// Its number; 0 before the first.
    pub seq: u64,
    /// Its hash, so that another history is told from this one.
    pub h: String,
    /// What a projection needs to go on behind it, where rows are not enough.
    pub state: Option<String>,
}

/// Rows that are written together, with the cursor they bring their stream to.
#[derive(Debug, Clone)]
pub struct Batch {
    /// The home.
    pub home_id: String,
    /// The stream.
    pub stream: String,
    /// Tasks as they are now.
    pub tasks: Vec<TaskRow>,
    /// Where tasks of these stood, by agent, that are counted there: one less for each.
    pub left: Vec<(String, TaskStatus)>,
    /// Where they stand: one more for each.
    pub entered: Vec<(String, TaskStatus)>,
    /// What happened to them.
    pub transitions: Vec<TransitionRow>,
    /// How far the stream has come with that.
    pub cursor: Cursor,
}

impl Batch {
    /// Makes a batch of rows that were others before, or none: those that are the same are left out.
    pub fn new(
        owner: &Owner,
        stream: &str,
        before: &HashMap<TaskId, TaskRow>,
        rows: HashMap<TaskId, TaskRow>,
        transitions: Vec<TransitionRow>,
        cursor: Cursor,
    ) -> Batch {
        let tasks: Vec<TaskRow> =
            rows.into_values().filter(|row| before.get(&row.task_id) != Some(row)).collect();
        let left = tasks.iter().filter_map(|row| before.get(&row.task_id));
        Batch {
            home_id: owner.home_id.clone(),
            stream: stream.to_owned(),
            left: left.map(|row| (row.agent_name.clone(), row.status)).collect(),
            entered: tasks.iter().map(|row| (row.agent_name.clone(), row.status)).collect(),
            tasks,
            transitions,
            cursor,
        }
    }
}

/// A database of tasks.
pub struct TaskDb {
    pub(crate) sql: Box<dyn Sql>,
}

impl TaskDb {
    /// Opens a database through a connection, and brings its schema up to date.
    pub fn open(mut sql: Box<dyn Sql>) -> Result<TaskDb, DbError> {
        migrate(&mut *sql)?;
        Ok(TaskDb { sql })
    }

    /// Opens a database to look at it, as it is; none if this version would have to bring its schema up to date first.
    pub fn open_to_read(mut sql: Box<dyn Sql>) -> Result<Option<TaskDb>, DbError> {
        Ok(is_current(&mut *sql)?.then_some(TaskDb { sql }))
    }

    /// Returns how far the rows of a stream have come.
    pub fn cursor(&mut self, home_id: &str, stream: &str) -> Result<Option<Cursor>, DbError> {
        let asked = "SELECT seq, h, state FROM cursors WHERE home_id = $1 AND stream = $2";
        let rows = self.sql.query(asked, &[Value::Text(home_id.into()), Value::Text(stream.into())])?;
        rows.first()
            .map(|row| {
                let seq = u64::try_from(row.int(0)?).unwrap_or(0);
                Ok(Cursor { seq, h: row.text(1)?.to_owned(), state: row.maybe_text(2)?.map(str::to_owned) })
            })
            .transpose()
    }

    /// Returns how far the rows of every stream of a home have come, without what projections need to go on.
    pub fn cursors(&mut self, home_id: &str) -> Result<Vec<(String, Cursor)>, DbError> {
        let asked = "SELECT stream, seq, h FROM cursors WHERE home_id = $1";
        let rows = self.sql.query(asked, &[Value::Text(home_id.into())])?;
        let read = |row: &Row| {
            let seq = u64::try_from(row.int(1)?).unwrap_or(0);
            Ok((row.text(0)?.to_owned(), Cursor { seq, h: row.text(2)?.to_owned(), state: None }))
        };
        rows.iter().map(read).collect()
    }

    /// Returns how far the rows of the pipeline runs of a home have come, with what their projections need to go on.
    pub fn pipeline_cursors(&mut self, home_id: &str) -> Result<Vec<(String, Cursor)>, DbError> {
        let asked =
            "SELECT stream, seq, h, state FROM cursors WHERE home_id = $1 AND stream LIKE 'pl~_%' ESCAPE '~'";
        let read = |row: &Row| {
            let seq = u64::try_from(row.int(1)?).unwrap_or(0);
            let state = row.maybe_text(3)?.map(str::to_owned);
            Ok((row.text(0)?.to_owned(), Cursor { seq, h: row.text(2)?.to_owned(), state }))
        };
        self.sql.query(asked, &[Value::Text(home_id.into())])?.iter().map(read).collect()
    }

    /// Writes a batch: all of it or nothing.
    pub fn write(&mut self, batch: &Batch) -> Result<(), DbError> {
        let mut rows = batch.tasks.iter().map(TaskRow::values);
        let new = batch.tasks.iter().filter(|row| row.transitions == 1 || !row.after.is_empty());
        let after: Vec<_> = new
            .flat_map(|row| {
                row.after.iter().map(|one| {
                    let condition = Value::Text(one.condition.as_str().into());
                    vec![
                        Value::Text(row.task_id.to_string().into()),
                        Value::Text(one.task_id.to_string().into()),
                        condition,
                    ]
                })
            })
            .collect();
        let mut transitions = batch.transitions.iter().map(|row| transition_values(&batch.home_id, row));
        let mut counts: HashMap<(&str, TaskStatus), i64> = HashMap::new();
        for (agent, status) in &batch.left {
            *counts.entry((agent, *status)).or_default() -= 1;
        }
        for (agent, status) in &batch.entered {
            *counts.entry((agent, *status)).or_default() += 1;
        }
        let counts: Vec<_> = counts
            .into_iter()
            .filter(|(_, change)| *change != 0)
            .map(|((agent, status), change)| {
                let home = Value::Text(batch.home_id.as_str().into());
                vec![home, Value::Text(plain(agent)), Value::Text(status.as_str().into()), Value::Int(change)]
            })
            .collect();
        let cursor = vec![
            Value::Text(batch.home_id.as_str().into()),
            Value::Text(batch.stream.as_str().into()),
            Value::Int(i64::try_from(batch.cursor.seq).unwrap_or(i64::MAX)),
            Value::Text(batch.cursor.h.as_str().into()),
            Value::text(batch.cursor.state.as_deref()),
        ];
        self.in_transaction(|sql| {
            sql.execute_all(&upsert(), &mut rows)?;
            sql.execute_each(INSERT_DEPENDENCY, &after)?;
            sql.execute_all(INSERT_TRANSITION, &mut transitions)?;
            sql.execute_each(COUNT, &counts)?;
            sql.execute_each(SET_CURSOR, &[cursor])
        })
    }

    /// Returns the rows of some tasks.
    pub fn tasks(&mut self, ids: &[TaskId]) -> Result<Vec<TaskRow>, DbError> {
        let mut found = Vec::with_capacity(ids.len());
        for ids in ids.chunks(AT_ONCE) {
            let names: Vec<String> = (1..=ids.len()).map(|n| format!("${n}")).collect();
            let asked = format!("SELECT {} FROM tasks WHERE task_id IN ({})", selected(), names.join(", "));
            let values: Vec<Value> = ids.iter().map(|id| Value::Text(id.to_string().into())).collect();
            for row in self.sql.query(&asked, &values)? {
                found.push(TaskRow::read(&row)?);
            }
        }
        self.add_dependencies(&mut found)?;
        Ok(found)
    }

    /// Returns a page of tasks.
    pub fn list(&mut self, query: &TaskQuery) -> Result<TaskPage, DbError> {
        let (conditions, values) = query.conditions();
        let asked = format!(
            "SELECT {} FROM tasks WHERE {conditions} ORDER BY task_id DESC LIMIT {}",
            selected(),
            query.limit + 1
        );
        let rows = self.sql.query(&asked, &values)?;
        let mut tasks = rows.iter().map(TaskRow::read).collect::<Result<Vec<_>, _>>()?;
        let more = tasks.len() > query.limit;
        tasks.truncate(query.limit);
        let next = tasks.last().map(|task| task.task_id).filter(|_| more);
        self.add_dependencies(&mut tasks)?;
        Ok(TaskPage { tasks, next })
    }

    /// Returns the history of a task.
    pub fn transitions(&mut self, task: TaskId) -> Result<Vec<TransitionRow>, DbError> {
        let asked = format!("SELECT {TRANSITION} FROM task_transitions WHERE task_id = $1 ORDER BY n");
        let rows = self.sql.query(&asked, &[Value::Text(task.to_string().into())])?;
        rows.iter().map(|row| read_transition(task, row)).collect()
    }

    /// Returns the next tasks of a home behind one, each with its history, the oldest first.
    pub fn tasks_behind(
        &mut self,
        home_id: &str,
        behind: Option<TaskId>,
        limit: usize,
    ) -> Result<Vec<(TaskRow, Vec<TransitionRow>)>, DbError> {
        let behind = behind.map(|task| task.to_string()).unwrap_or_default();
        let asked = format!(
            "SELECT {} FROM tasks WHERE home_id = $1 AND task_id > $2 ORDER BY task_id LIMIT {limit}",
            selected()
        );
        let rows = self.sql.query(&asked, &[Value::Text(home_id.into()), Value::Text(behind.into())])?;
        let mut tasks = rows.iter().map(TaskRow::read).collect::<Result<Vec<_>, _>>()?;
        self.add_dependencies(&mut tasks)?;
        let (Some(first), Some(last)) = (tasks.first(), tasks.last()) else { return Ok(Vec::new()) };
        let asked = format!(
            "SELECT {TRANSITION}, task_id FROM task_transitions WHERE task_id BETWEEN $1 AND $2 ORDER BY task_id, n"
        );
        let range =
            [Value::Text(first.task_id.to_string().into()), Value::Text(last.task_id.to_string().into())];
        let mut histories: HashMap<TaskId, Vec<TransitionRow>> = HashMap::new();
        for row in self.sql.query(&asked, &range)? {
            let task = parse(row.text(7)?)?;
            histories.entry(task).or_default().push(read_transition(task, &row)?);
        }
        let with_history = |row: TaskRow| {
            let history = histories.remove(&row.task_id).unwrap_or_default();
            (row, history)
        };
        Ok(tasks.into_iter().map(with_history).collect())
    }

    /// Returns how many tasks of a home there are.
    pub fn counts(&mut self, home_id: &str) -> Result<TaskCounts, DbError> {
        counts(&mut *self.sql, home_id)
    }

    /// Returns the statistics of a home.
    pub fn stats(&mut self, home_id: &str, now: Timestamp) -> Result<TaskStats, DbError> {
        stats(&mut *self.sql, home_id, now)
    }

    fn add_dependencies(&mut self, tasks: &mut [TaskRow]) -> Result<(), DbError> {
        for tasks in tasks.chunks_mut(AT_ONCE) {
            let names: Vec<String> = (1..=tasks.len()).map(|n| format!("${n}")).collect();
            let asked = format!(
                "SELECT task_id, after, condition FROM task_dependencies WHERE task_id IN ({}) ORDER BY task_id, after",
                names.join(", ")
            );
            let values: Vec<Value> =
                tasks.iter().map(|row| Value::Text(row.task_id.to_string().into())).collect();
            let mut found: HashMap<TaskId, Vec<Dependency>> = HashMap::new();
            for row in self.sql.query(&asked, &values)? {
                let one = Dependency { task_id: parse(row.text(1)?)?, condition: word(row.text(2)?)? };
                found.entry(parse(row.text(0)?)?).or_default().push(one);
            }
            for row in tasks {
                row.after = found.remove(&row.task_id).unwrap_or_default();
            }
        }
        Ok(())
    }

    pub(crate) fn in_transaction<T>(
        &mut self,
        work: impl FnOnce(&mut dyn Sql) -> Result<T, DbError>,
    ) -> Result<T, DbError> {
        self.sql.begin()?;
        match work(&mut *self.sql) {
            Ok(done) => self.sql.commit().map(|()| done),
            Err(error) => {
                self.sql.roll_back();
                Err(error)
            }
        }
    }
}

const INSERT_DEPENDENCY: &str =
    "INSERT INTO task_dependencies (task_id, after, condition) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING";

const INSERT_TRANSITION: &str = "INSERT INTO task_transitions \
    (task_id, n, home_id, from_status, to_status, reason, actor, at, metadata, mark) \
    VALUES ($1, $2, $3, $4, $5, $6, $7, @time($8), @json($9), $10) ON CONFLICT DO NOTHING";

pub(crate) const COUNT: &str = "INSERT INTO counters (home_id, agent_name, status, tasks) VALUES ($1, $2, $3, $4) \
    ON CONFLICT (home_id, agent_name, status) DO UPDATE SET tasks = counters.tasks + excluded.tasks";

const SET_CURSOR: &str = "INSERT INTO cursors (home_id, stream, seq, h, state) VALUES ($1, $2, $3, $4, $5) \
    ON CONFLICT (home_id, stream) DO UPDATE SET seq = excluded.seq, h = excluded.h, state = excluded.state";

fn transition_values<'a>(home_id: &'a str, row: &'a TransitionRow) -> Vec<Value<'a>> {
    vec![
        Value::Text(row.task_id.as_str().into()),
        Value::Int(row.n.into()),
        Value::Text(home_id.into()),
        Value::text(row.from_status.map(|status| status.as_str())),
        Value::Text(row.to_status.as_str().into()),
        Value::text(row.reason.as_deref().map(plain)),
        Value::Text(plain(&row.actor)),
        Value::Text(row.at.to_string().into()),
        row.metadata.as_ref().map_or(Value::Null, json),
        Value::text(row.mark()),
    ]
}

/// The columns of a line of a history, as they are read.
const TRANSITION: &str =
    "n, from_status, to_status, reason, actor, @text_of_time(at), @text_of_json(metadata)";

fn read_transition(task_id: TaskId, row: &Row) -> Result<TransitionRow, DbError> {
    Ok(TransitionRow {
        task_id,
        n: u32::try_from(row.int(0)?).unwrap_or(u32::MAX),
        from_status: row.maybe_text(1)?.map(word).transpose()?,
        to_status: word(row.text(2)?)?,
        reason: row.maybe_text(3)?.map(str::to_owned),
        actor: row.text(4)?.to_owned(),
        at: parse(row.text(5)?)?,
        metadata: row.maybe_text(6)?.map(read_json).transpose()?,
    })
}
