//! Connecting to the database of tasks: a file of the home, or a server elsewhere.

use std::path::{Path, PathBuf};
use std::{fmt, io};

use rekindle_domain::time::Timestamp;
use rekindle_store::layout::Layout;
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

impl DatabaseChoice {
    /// Returns the file of a home's database; none if it is elsewhere.
    pub(crate) fn file(&self, home: &Path) -> Option<PathBuf> {
        match self {
            DatabaseChoice::Sqlite(path) => Some(file(path.as_deref(), home)),
            DatabaseChoice::Postgres { .. } => None,
        }
    }
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
pub(crate) enum NotConnected {
    /// It is tried again.
    ForNow(String),
    /// Trying again would come to nothing else.
    ForGood(String),
}

/// Connects to the database. A file that is damaged, or was found to be, is moved aside, and another begun: the log has everything.
pub(crate) fn connect(
    choice: &DatabaseChoice,
    home: &Path,
    now: Timestamp,
    damage: Option<&String>,
) -> Result<TaskDb, NotConnected> {
    let path = match choice {
        DatabaseChoice::Sqlite(path) => file(path.as_deref(), home),
        DatabaseChoice::Postgres { address, ca_file } => {
            let sql = postgres(address, ca_file.as_deref()).map_err(NotConnected::ForNow)?;
            return TaskDb::open(sql).map_err(|error| OpenError::of(&error).into_reason());
        }
    };
    if let Some(why) = network_file_system::refusal(&path) {
        return Err(NotConnected::ForGood(why));
    }
    let opened = damage.map_or_else(|| open_file(&path), |why| Err(OpenError::Damaged(why.clone())));
    match opened {
        Err(OpenError::Damaged(why)) => {
            let aside = set_aside(&path, now).map_err(|error| NotConnected::ForNow(error.to_string()))?;
            tracing::error!(
                "the task database is damaged ({why}); it is kept as {} and rebuilt from the log",
                aside.display()
            );
            open_file(&path).map_err(OpenError::into_reason)
        }
        outcome => outcome.map_err(OpenError::into_reason),
    }
}

/// Connects to the database of a home that nobody has open, to look at it; none if a start would have to make it first.
pub(crate) fn connect_to_read(choice: &DatabaseChoice, home: &Path) -> Result<Option<TaskDb>, DbError> {
    TaskDb::open_to_read(match choice {
        DatabaseChoice::Sqlite(path) => {
            let path = file(path.as_deref(), home);
            if !path.exists() {
                return Ok(None);
            }
            Box::new(Sqlite::open_to_read(&path)?)
        }
        DatabaseChoice::Postgres { address, ca_file } => {
            postgres(address, ca_file.as_deref()).map_err(|why| DbError::Unreachable(why.into()))?
        }
    })
}

/// Connects to the database of a home whose lock the caller has, to write to it.
pub(crate) fn connect_to_write(choice: &DatabaseChoice, home: &Path) -> Result<TaskDb, DbError> {
    TaskDb::open(match choice {
        DatabaseChoice::Sqlite(path) => Box::new(Sqlite::open(&file(path.as_deref(), home))?),
        DatabaseChoice::Postgres { address, ca_file } => {
            postgres(address, ca_file.as_deref()).map_err(|why| DbError::Unreachable(why.into()))?
        }
    })
}

fn postgres(address: &str, ca_file: Option<&Path>) -> Result<Box<dyn Sql>, String> {
    Ok(Box::new(PostgresSql::new(connect_postgres(address, ca_file)?)))
}

/// Returns the file of a database: the one that was chosen, or that of the home.
fn file(chosen: Option<&Path>, home: &Path) -> PathBuf {
    chosen.map_or_else(|| Layout::new(home).tasks_database(), Path::to_owned)
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
