//! SQLite, in a file of the home: one connection that nobody else shares.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, ErrorCode, OpenFlags, ToSql, params_from_iter};

use crate::dialect::Dialect;
use crate::error::DbError;
use crate::sql::{Row, Sql, Value};

/// A database in a file.
pub struct Sqlite(Connection);

impl Sqlite {
    /// Opens a file, making it if there is none. Nobody else opens it meanwhile; whoever was killed left nothing half done.
    pub fn open(path: &Path) -> Result<Sqlite, DbError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags).map_err(told)?;
        let mut sqlite = Sqlite(connection);
        // A copy of what is in the log anyway: a power cut may cost its last rows, which are written again.
        let set = "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; \
                   PRAGMA temp_store = MEMORY; PRAGMA cache_size = -4096";
        sqlite.0.busy_timeout(Duration::from_secs(5)).map_err(told)?;
        sqlite.run(set)?;
        Ok(sqlite)
    }

    /// Opens a file that is there, to look at it: nothing in it is changed, nor beside it unless whoever wrote it was killed.
    pub fn open_to_read(path: &Path) -> Result<Sqlite, DbError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut log = path.as_os_str().to_owned();
        log.push("-wal");
        let is_whole = Path::new(&log).metadata().map_or(true, |log| log.len() == 0);
        let opened = if is_whole {
            Connection::open_with_flags(immutable(path), flags | OpenFlags::SQLITE_OPEN_URI)
        } else {
            Connection::open_with_flags(path, flags)
        };
        opened.map(Sqlite).map_err(told)
    }

    /// Opens a database that is gone when it is closed, in a file if it grows large.
    pub fn temporary() -> Result<Sqlite, DbError> {
        let mut sqlite = Sqlite(Connection::open("").map_err(told)?);
        sqlite.run("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -16384")?;
        Ok(sqlite)
    }
}

/// Returns the address of a file that nobody changes while it is read, with whatever bytes there are in its path.
fn immutable(path: &Path) -> String {
    let mut address = String::from("file:");
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'.' | b'_' | b'-' => {
                address.push(char::from(*byte))
            }
            other => address.push_str(&format!("%{other:02X}")),
        }
    }
    address + "?immutable=1"
}

impl ToSql for Value<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Value::Null => ValueRef::Null,
            Value::Int(number) => ValueRef::Integer(*number),
            Value::Text(text) => ValueRef::Text(text.as_bytes()),
        }))
    }
}

impl Sql for Sqlite {
    fn dialect(&self) -> Dialect {
        Dialect::Sqlite
    }

    fn run(&mut self, statements: &str) -> Result<(), DbError> {
        self.0.execute_batch(statements).map_err(told)
    }

    fn execute_all<'a>(
        &mut self,
        statement: &str,
        values: &mut dyn Iterator<Item = Vec<Value<'a>>>,
    ) -> Result<(), DbError> {
        let written = Dialect::Sqlite.write(statement);
        let mut prepared = self.0.prepare_cached(&written).map_err(told)?;
        for values in values {
            prepared.execute(params_from_iter(values)).map_err(told)?;
        }
        Ok(())
    }

    fn query(&mut self, statement: &str, values: &[Value<'_>]) -> Result<Vec<Row>, DbError> {
        let written = Dialect::Sqlite.write(statement);
        let mut prepared = self.0.prepare_cached(&written).map_err(told)?;
        let columns = prepared.column_count();
        let mut rows = prepared.query(params_from_iter(values)).map_err(told)?;
        let mut found = Vec::new();
        while let Some(row) = rows.next().map_err(told)? {
            let values = (0..columns).map(|column| {
                Ok(match row.get_ref(column).map_err(told)? {
                    ValueRef::Null | ValueRef::Blob(_) => Value::Null,
                    ValueRef::Integer(number) => Value::Int(number),
                    ValueRef::Real(number) => Value::Text(number.to_string().into()),
                    ValueRef::Text(text) => Value::Text(String::from_utf8_lossy(text).into_owned().into()),
                })
            });
            found.push(Row(values.collect::<Result<_, DbError>>()?));
        }
        Ok(found)
    }

    fn begin(&mut self) -> Result<(), DbError> {
        self.run("BEGIN IMMEDIATE")
    }

    fn lock_schema(&mut self) -> Result<(), DbError> {
        // Nobody else has the file.
        Ok(())
    }
}

/// Says what kind of error it is: damage is mended by beginning anew, anything else by trying again.
fn told(error: rusqlite::Error) -> DbError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => DbError::Damaged(error.into()),
        Some(
            ErrorCode::CannotOpen
            | ErrorCode::SystemIoFailure
            | ErrorCode::DiskFull
            | ErrorCode::DatabaseBusy,
        )
        | Some(ErrorCode::DatabaseLocked | ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
            DbError::Unreachable(error.into())
        }
        _ => DbError::Refused(error.into()),
    }
}
