//! What may be wrong in a log: bytes that a crash left at its end, and places that cannot be right.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use super::cursor::Cursor;

/// Bytes at the end that never became records: a crash in the middle of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Torn {
    /// Where they begin: the end of the last whole list.
    pub offset: u64,
    /// How many there are.
    pub len: u64,
    /// Whole records are among them, of a list whose end is missing.
    pub half_list: bool,
}

impl Torn {
    /// Returns where the last whole list ends.
    pub fn begin(&self) -> Cursor {
        Cursor::at(self.offset)
    }
}

/// A place in a log that cannot be right.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize)]
pub struct Damage {
    /// The byte where it begins.
    pub offset: u64,
    /// What is wrong.
    pub detail: String,
}

impl Damage {
    /// Returns where it begins.
    pub fn begin(&self) -> Cursor {
        Cursor::at(self.offset)
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at byte {}: {}", self.offset, self.detail)
    }
}
