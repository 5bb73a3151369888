//! What is removed from a database: everything of a home or of a session, so that it is written again, and what ended long ago.

use rekindle_domain::id::{PipelineId, SessionId};
use rekindle_domain::time::Timestamp;

use crate::database::{COUNT, TaskDb};
use crate::error::DbError;
use crate::project_pipeline::task_of_run;
use crate::sql::{Sql, Value};

impl TaskDb {
    /// Forgets everything of a home: its rows are written again from its stream.
    pub fn forget(&mut self, home_id: &str) -> Result<(), DbError> {
        let home = [vec![Value::Text(home_id.into())]];
        self.in_transaction(|sql| {
            sql.execute_each(
                "DELETE FROM task_dependencies WHERE task_id IN (SELECT task_id FROM tasks WHERE home_id = $1)",
                &home,
            )?;
            for table in ["tasks", "task_transitions", "counters", "cursors"] {
                sql.execute_each(&format!("DELETE FROM {table} WHERE home_id = $1"), &home)?;
            }
            Ok(())
        })
    }

    /// Forgets what the records of a session said: the rows of its runs, and how far tasks in it have come.
    pub fn forget_session(&mut self, home_id: &str, session: SessionId) -> Result<(), DbError> {
        let names = vec![Value::Text(home_id.into()), Value::Text(session.to_string().into())];
        let named = std::slice::from_ref(&names);
        let which = "home_id = $1 AND session_id = $2 AND kind = 'run'";
        self.in_transaction(|sql| {
            uncount(sql, home_id, which, &names)?;
            sql.execute_each(
                &format!("DELETE FROM task_transitions WHERE task_id IN (SELECT task_id FROM tasks WHERE {which})"),
                named,
            )?;
            sql.execute_each(&format!("DELETE FROM tasks WHERE {which}"), named)?;
            sql.execute_each(
                "UPDATE tasks SET progress = NULL, files_touched = NULL, result = NULL, usage = NULL, exit = NULL, \
                 tokens = NULL, cost_micros = NULL, verdict = NULL \
                 WHERE home_id = $1 AND session_id = $2",
                named,
            )?;
            sql.execute_each("DELETE FROM cursors WHERE home_id = $1 AND stream = $2", named)
        })
    }

    /// Forgets what the records of a pipeline run said: its row. Those of its steps are what their sessions said.
    pub fn forget_pipeline(&mut self, home_id: &str, run: PipelineId) -> Result<(), DbError> {
        let text = |text: String| Value::Text(text.into());
        let stream = vec![text(home_id.to_owned()), text(run.to_string())];
        self.in_transaction(|sql| {
            if let Some(task) = task_of_run(run) {
                let names = vec![text(home_id.to_owned()), text(task.to_string())];
                let which = "home_id = $1 AND task_id = $2 AND kind = 'pipeline'";
                uncount(sql, home_id, which, &names)?;
                let named = std::slice::from_ref(&names);
                sql.execute_each("DELETE FROM task_transitions WHERE home_id = $1 AND task_id = $2", named)?;
                sql.execute_each(&format!("DELETE FROM tasks WHERE {which}"), named)?;
            }
            sql.execute_each("DELETE FROM cursors WHERE home_id = $1 AND stream = $2", &[stream])
        })
    }

    /// Removes tasks of a home that ended before some time, and their history before another; returns how many tasks went.
    pub fn remove_ended(
        &mut self,
        home_id: &str,
        tasks_before: Timestamp,
        history_before: Timestamp,
    ) -> Result<u64, DbError> {
        let tasks = vec![Value::Text(home_id.into()), Value::Text(tasks_before.to_string().into())];
        let which = "home_id = $1 AND ended_at < @time($2)";
        self.in_transaction(|sql| {
            let gone = uncount(sql, home_id, which, &tasks)?;
            sql.execute_each(
                "DELETE FROM task_dependencies WHERE task_id IN \
                 (SELECT task_id FROM tasks WHERE home_id = $1 AND ended_at < @time($2))",
                std::slice::from_ref(&tasks),
            )?;
            sql.execute_each(
                "DELETE FROM tasks WHERE home_id = $1 AND ended_at < @time($2)",
                std::slice::from_ref(&tasks),
            )?;
            let history = vec![Value::Text(home_id.into()), Value::Text(history_before.to_string().into())];
            sql.execute_each(
                "DELETE FROM task_transitions WHERE home_id = $1 AND at < @time($2) \
                 AND task_id NOT IN (SELECT task_id FROM tasks WHERE home_id = $1)",
                &[history],
            )?;
            Ok(gone)
        })
    }
}

/// Takes rows that are about to go out of the counts; returns how many they are.
fn uncount(sql: &mut dyn Sql, home_id: &str, which: &str, values: &[Value<'_>]) -> Result<u64, DbError> {
    let counted =
        format!("SELECT agent_name, status, COUNT(*) FROM tasks WHERE {which} GROUP BY agent_name, status");
    let gone = sql.query(&counted, values)?;
    let counts: Vec<Vec<Value<'static>>> = gone
        .iter()
        .map(|row| {
            let (agent, status) = (row.text(0)?.to_owned(), row.text(1)?.to_owned());
            let home = Value::Text(home_id.to_owned().into());
            Ok(vec![home, Value::Text(agent.into()), Value::Text(status.into()), Value::Int(-row.int(2)?)])
        })
        .collect::<Result<_, DbError>>()?;
    sql.execute_each(COUNT, &counts)?;
    gone.iter().map(|row| Ok(u64::try_from(row.int(2)?).unwrap_or(0))).sum()
}
