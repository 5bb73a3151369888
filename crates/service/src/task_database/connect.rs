//! Connecting to the database of tasks: a file of the home, or a server elsewhere.

use std::path::{Path, PathBuf};
use std::{fmt, io};

use rekindle_domain::time::Timestamp;
use rekindle_taskdb::{DbError, PostgresSql, Sql, Sqlite, TaskDb};

use super::network_file_system;
use super::postgres_client::connect_postgres;
use crate::error::chain;

/// Which database has the tasks.
#[derive(Clone, PartialEq, Eq)]
pub enum DatabaseChoice {
    /// SQLite, in a file; in the home without a path.
    Sqlite(Option<PathBuf>),
    /// Postgres, elsewhere.
    Postgres {
        /// Its address, which has a password in it and is shown to nobody.
        address: String,
        /// The certificates of whom to trust; whom the system trusts without it.
        ca_file: Option<PathBuf>,
    },
}

impl Default for DatabaseChoice {
    fn default() -> DatabaseChoice {
        DatabaseChoice::Sqlite(None)
    }
}

impl fmt::Debug for DatabaseChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DatabaseChoice::Sqlite(path) => f.debug_tuple("Sqlite").field(path).finish(),
            DatabaseChoice::Postgres { .. } => f.write_str("Postgres(…)"),
        }
    }
}

/// Why there is no connection.
pub(super) enum NotConnected {
    /// It is tried again.
    ForNow(String),
    /// Trying again would come to nothing else.
    ForGood(String),
}

/// Connects to the database. A file that is damaged is moved aside, and another begun: the log has everything.
pub(super) fn connect(choice: &DatabaseChoice, home: &Path, now: Timestamp) -> Result<TaskDb, NotConnected> {
    match choice {
        DatabaseChoice::Sqlite(path) => {
            let path = path.clone().unwrap_or_else(|| super::usual_place(home));
            if let Some(why) = network_file_system::refusal(&path) {
                return Err(NotConnected::ForGood(why));
            }
            match open_file(&path) {
                Err(OpenError::Damaged(why)) => {
                    let aside =
                        set_aside(&path, now).map_err(|error| NotConnected::ForNow(error.to_string()))?;
                    tracing::error!(
                        "the database of tasks is damaged ({why}); it is kept as {}, and made anew from the log",
                        aside.display()
                    );
                    open_file(&path).map_err(OpenError::into_reason)
                }
                outcome => outcome.map_err(OpenError::into_reason),
            }
        }
        DatabaseChoice::Postgres { address, ca_file } => {
            let client = connect_postgres(address, ca_file.as_deref()).map_err(NotConnected::ForNow)?;
            let sql: Box<dyn Sql> = Box::new(PostgresSql::new(client));
            TaskDb::open(sql).map_err(|error| OpenError::of(&error).into_reason())
        }
    }
}

enum OpenError {
    Damaged(String),
    ForNow(String),
    ForGood(String),
}

impl OpenError {
    fn of(error: &DbError) -> OpenError {
        match error {
            DbError::Damaged(_) => OpenError::Damaged(chain(error)),
            DbError::Newer { .. } => OpenError::ForGood(chain(error)),
            _ => OpenError::ForNow(chain(error)),
        }
    }

    fn into_reason(self) -> NotConnected {
        match self {
            OpenError::ForGood(why) => NotConnected::ForGood(why),
            OpenError::Damaged(why) | OpenError::ForNow(why) => NotConnected::ForNow(why),
        }
    }
}

fn open_file(path: &Path) -> Result<TaskDb, OpenError> {
    let opened = Sqlite::open(path).and_then(|sql| TaskDb::open(Box::new(sql)));
    opened.map_err(|error| match OpenError::of(&error) {
        OpenError::ForNow(why) => OpenError::ForNow(format!("{}: {why}", path.display())),
        other => other,
    })
}

/// Moves a damaged file out of the way, with what belongs to it.
fn set_aside(path: &Path, now: Timestamp) -> io::Result<PathBuf> {
    let with = |end: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(end);
        PathBuf::from(name)
    };
    let aside = with(&format!(".damaged-{}", now.as_millis()));
    std::fs::rename(path, &aside)?;
    for end in ["-wal", "-shm"] {
        match std::fs::remove_file(with(end)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(aside)
}
