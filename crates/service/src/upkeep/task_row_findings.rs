//! The rows of tasks in the eyes of the doctor: whether they say what the logs say, and writing them anew if they do not.

use std::path::{Path, PathBuf};

use rekindle_domain::id::RunName;
use rekindle_domain::time::Timestamp;
use rekindle_store::check::{Code, Finding, Progress, Watcher};
use rekindle_store::home::HomeId;
use rekindle_store::offline::Offline;
use rekindle_taskdb::{DbError, TaskDb};

use crate::error::chain;
use crate::task_rows::{
    CatchUpError, DatabaseChoice, DatabaseSettings, Differences, compare, connect_to_read, connect_to_write,
    owner_of, write_all,
};

/// The database of a home's tasks, and as of when it is looked at.
#[derive(Debug, Clone, Copy)]
pub struct TaskRows<'a> {
    /// Which one it is.
    pub settings: &'a DatabaseSettings,
    /// The time.
    pub now: Timestamp,
}

/// Looks at the rows of a home that nobody has open. Writes nothing.
pub(super) fn inspect_task_rows(
    offline: &Offline,
    rows: TaskRows<'_>,
    watcher: Watcher<'_>,
) -> Option<Finding> {
    let (home, choice) = (offline.layout().home(), &rows.settings.choice);
    let mut db = match connect_to_read(choice, home) {
        Ok(Some(db)) => db,
        // There is none yet, or none of this version: a start makes one.
        Ok(None) => return None,
        Err(error) => return Some(unreadable(choice, home, &error)),
    };
    match differences(offline, rows, &mut db, watcher) {
        Ok(found) => {
            let first = found.first?;
            let of = match found.tasks {
                0 => String::new(),
                1 => " of a task".to_owned(),
                tasks => format!(" of {tasks} tasks"),
            };
            let what = format!("The task database{of} does not match the logs: {first}.");
            let remedy = "Have its rows rewritten from the logs.";
            Some(Finding::new(Code::TaskRowsDiffer, place(choice, home), what, remedy))
        }
        Err(CatchUpError::Database(error)) => Some(unreadable(choice, home, &error)),
        // Whoever reads the logs says what is wrong with them.
        Err(CatchUpError::Log(_)) => None,
    }
}

fn differences(
    offline: &Offline,
    rows: TaskRows<'_>,
    db: &mut TaskDb,
    watcher: Watcher<'_>,
) -> Result<Differences, CatchUpError> {
    let kept = i64::try_from(rows.settings.keep_tasks.as_millis()).unwrap_or(i64::MAX);
    let home_id = HomeId::of(&**offline.disk(), offline.layout()).map_err(CatchUpError::Log)?;
    let mut watch = |done, total| watcher(Progress { what: "tasks", done, total });
    compare(offline, &owner_of(home_id), db, rows.now.plus_millis(-kept), &mut watch)
}

/// Writes the rows of a home anew from its logs. Whoever calls has its lock.
pub(super) fn write_task_rows(offline: &Offline, choice: &DatabaseChoice) -> Result<(), CatchUpError> {
    let home_id = HomeId::of(&**offline.disk(), offline.layout()).map_err(CatchUpError::Log)?;
    let mut db = connect_to_write(choice, offline.layout().home())?;
    let sessions = offline.sessions().map_err(CatchUpError::Log)?;
    let runs = offline.pipelines().map_err(CatchUpError::Log)?.runs;
    let runs: Vec<_> = runs.into_iter().map(RunName::pipeline_id).collect();
    write_all(offline, &owner_of(home_id), &mut db, &sessions, &runs)
}

fn unreadable(choice: &DatabaseChoice, home: &Path, error: &DbError) -> Finding {
    let remedy = match error {
        DbError::Damaged(_) => {
            "Nothing to do: the next daemon keeps it under another name and builds a new one from the logs."
        }
        DbError::Newer { .. } => {
            "Use the newer version that made it, or set [tasks] path in config.toml to another file."
        }
        _ => "Tasks continue without it; make it reachable to list tasks again.",
    };
    let what = format!("The task database cannot be read: {}.", chain(error));
    Finding::new(Code::TaskRowsUnreadable, place(choice, home), what, remedy)
}

/// Returns the path that stands for a database: its file, or the home of what is elsewhere.
fn place(choice: &DatabaseChoice, home: &Path) -> PathBuf {
    choice.file(home).unwrap_or_else(|| home.to_owned())
}
