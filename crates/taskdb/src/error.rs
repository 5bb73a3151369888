//! Errors of a database of tasks.

/// Why a database did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum DbError {
    /// It cannot be reached, or went away.
    #[error("the database cannot be reached")]
    Unreachable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Its file is damaged.
    #[error("the database is damaged")]
    Damaged(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A newer version made it; it is left alone.
    #[error("the database has schema {found}, and this version knows {known}")]
    Newer {
        /// The version of the schema that was found.
        found: i64,
        /// The newest that this code knows.
        known: i64,
    },
    /// It has something that makes no sense here.
    #[error("the database has {0}")]
    Nonsense(String),
    /// It refused a statement.
    #[error("the database refused a statement")]
    Refused(#[source] Box<dyn std::error::Error + Send + Sync>),
}
