//! What is asked of a database: statements with values, and rows of values. Two databases do it; everything else is the same for both.

use std::borrow::Cow;

use crate::dialect::Dialect;
use crate::error::DbError;

/// A value of a row, or of a statement.
#[derive(Debug, Clone, PartialEq)]
pub enum Value<'a> {
    /// Nothing.
    Null,
    /// A whole number.
    Int(i64),
    /// A text; times and JSON are texts on their way.
    Text(Cow<'a, str>),
}

impl<'a> Value<'a> {
    /// Returns a text, or nothing.
    pub(crate) fn text(text: Option<impl Into<Cow<'a, str>>>) -> Value<'a> {
        text.map_or(Value::Null, |text| Value::Text(text.into()))
    }
}

impl Value<'_> {
    /// Returns the same in memory of its own.
    pub fn into_owned(self) -> Value<'static> {
        match self {
            Value::Null => Value::Null,
            Value::Int(number) => Value::Int(number),
            Value::Text(text) => Value::Text(text.into_owned().into()),
        }
    }
}

/// A row of an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Row(pub(crate) Vec<Value<'static>>);

impl Row {
    /// Returns a whole number; nothing counts for none.
    pub(crate) fn int(&self, column: usize) -> Result<i64, DbError> {
        Ok(self.maybe_int(column)?.unwrap_or(0))
    }

    /// Returns a number, if there is one.
    pub(crate) fn maybe_int(&self, column: usize) -> Result<Option<i64>, DbError> {
        match self.0.get(column) {
            Some(Value::Int(number)) => Ok(Some(*number)),
            Some(Value::Null) => Ok(None),
            other => {
                Err(DbError::Nonsense(format!("{other:?} in column {column}, where a number is expected")))
            }
        }
    }

    /// Returns a text, if there is one.
    pub(crate) fn maybe_text(&self, column: usize) -> Result<Option<&str>, DbError> {
        match self.0.get(column) {
            Some(Value::Text(text)) => Ok(Some(text)),
            Some(Value::Null) => Ok(None),
            other => {
                Err(DbError::Nonsense(format!("{other:?} in column {column}, where a text is expected")))
            }
        }
    }

    /// Returns a text.
    pub(crate) fn text(&self, column: usize) -> Result<&str, DbError> {
        let nothing = || DbError::Nonsense(format!("nothing in column {column}"));
        self.maybe_text(column)?.ok_or_else(nothing)
    }
}

/// A connection to a database. Statements are written as in [`Dialect`], with parameters `$1`, `$2`, … in this order.
pub trait Sql: Send {
    /// Returns how statements are written for it.
    fn dialect(&self) -> Dialect;

    /// Carries out statements without values, one after the other.
    fn run(&mut self, statements: &str) -> Result<(), DbError>;

    /// Carries out one statement for each list of values. They are made one after the other: thousands of short texts at once cost
    /// more than what is done with them.
    fn execute_all<'a>(
        &mut self,
        statement: &str,
        values: &mut dyn Iterator<Item = Vec<Value<'a>>>,
    ) -> Result<(), DbError>;

    /// The same for lists that are there.
    fn execute_each(&mut self, statement: &str, values: &[Vec<Value<'_>>]) -> Result<(), DbError> {
        self.execute_all(statement, &mut values.iter().cloned())
    }

    /// Asks for rows.
    fn query(&mut self, statement: &str, values: &[Value<'_>]) -> Result<Vec<Row>, DbError>;

    /// Begins a transaction; one daemon at a time may change the schema in it.
    fn begin(&mut self) -> Result<(), DbError> {
        self.run("BEGIN")
    }

    /// Ends a transaction: everything in it counts, and is on disk.
    fn commit(&mut self) -> Result<(), DbError> {
        self.run("COMMIT")
    }

    /// Takes back what a transaction did. It is over when the connection is.
    fn roll_back(&mut self) {
        let _ = self.run("ROLLBACK");
    }

    /// Has nobody else change the schema until the transaction ends.
    fn lock_schema(&mut self) -> Result<(), DbError>;
}
