//! Postgres, elsewhere: a connection that is made anew when it breaks.

use bytes::BytesMut;
use postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};
use postgres::{Client, Statement};

use std::collections::HashMap;
use std::error::Error;

use crate::dialect::Dialect;
use crate::error::DbError;
use crate::sql::{Row, Sql, Value};

/// The name of the lock under which the schema is changed: the first bytes of `rekindle`.
const SCHEMA_LOCK: i64 = 0x7265_6b69_6e64_6c65;

/// A connection to Postgres.
pub struct PostgresSql {
    client: Client,
    prepared: HashMap<String, Statement>,
}

impl PostgresSql {
    /// Speaks through a connection.
    pub fn new(client: Client) -> PostgresSql {
        PostgresSql { client, prepared: HashMap::new() }
    }

    fn prepare(&mut self, statement: &str) -> Result<Statement, DbError> {
        if let Some(known) = self.prepared.get(statement) {
            return Ok(known.clone());
        }
        let prepared =
            self.client.prepare(&Dialect::Postgres.write(statement)).map_err(|error| self.told(error))?;
        self.prepared.insert(statement.to_owned(), prepared.clone());
        Ok(prepared)
    }

    /// Says what kind of error it is: one of the connection is mended by another connection.
    fn told(&self, error: postgres::Error) -> DbError {
        if error.as_db_error().is_none() || self.client.is_closed() {
            DbError::Unreachable(error.into())
        } else {
            DbError::Refused(error.into())
        }
    }
}

impl ToSql for Value<'_> {
    fn to_sql(&self, kind: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self {
            Value::Null => Ok(IsNull::Yes),
            Value::Int(number) => number.to_sql(kind, out),
            Value::Text(text) => text.to_sql(kind, out),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

impl<'a> FromSql<'a> for Value<'static> {
    fn from_sql(kind: &Type, raw: &'a [u8]) -> Result<Value<'static>, Box<dyn Error + Sync + Send>> {
        match *kind {
            Type::INT8 => i64::from_sql(kind, raw).map(Value::Int),
            Type::INT4 => i32::from_sql(kind, raw).map(|number| Value::Int(number.into())),
            _ => String::from_sql(kind, raw).map(|text| Value::Text(text.into())),
        }
    }

    fn from_sql_null(_: &Type) -> Result<Value<'static>, Box<dyn Error + Sync + Send>> {
        Ok(Value::Null)
    }

    fn accepts(kind: &Type) -> bool {
        matches!(*kind, Type::INT8 | Type::INT4) || <String as FromSql<'_>>::accepts(kind)
    }
}

impl Sql for PostgresSql {
    fn dialect(&self) -> Dialect {
        Dialect::Postgres
    }

    fn run(&mut self, statements: &str) -> Result<(), DbError> {
        self.client.batch_execute(statements).map_err(|error| self.told(error))
    }

    fn execute_all<'a>(
        &mut self,
        statement: &str,
        values: &mut dyn Iterator<Item = Vec<Value<'a>>>,
    ) -> Result<(), DbError> {
        let prepared = self.prepare(statement)?;
        for values in values {
            let values: Vec<&(dyn ToSql + Sync)> = values.iter().map(|value| value as _).collect();
            self.client.execute(&prepared, &values).map_err(|error| self.told(error))?;
        }
        Ok(())
    }

    fn query(&mut self, statement: &str, values: &[Value<'_>]) -> Result<Vec<Row>, DbError> {
        let prepared = self.prepare(statement)?;
        let values: Vec<&(dyn ToSql + Sync)> = values.iter().map(|value| value as _).collect();
        let rows = self.client.query(&prepared, &values).map_err(|error| self.told(error))?;
        rows.iter()
            .map(|row| {
                let values = (0..row.len()).map(|column| row.try_get(column));
                values
                    .collect::<Result<_, _>>()
                    .map(Row)
                    .map_err(|error| DbError::Nonsense(error.to_string()))
            })
            .collect()
    }

    fn lock_schema(&mut self) -> Result<(), DbError> {
        self.query("SELECT CAST(pg_advisory_xact_lock($1) AS text)", &[Value::Int(SCHEMA_LOCK)]).map(drop)
    }
}
