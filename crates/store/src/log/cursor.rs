//! A place in a log, between two records: where reading begins, and where it can go on later.

use std::fmt;

/// A place in a log. What it counts is the store's affair: bytes of the file today.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Cursor(u64);

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {}", self.0)
    }
}

impl Cursor {
    /// The beginning of every log.
    pub const START: Cursor = Cursor(0);

    /// Returns the place as a number, for whoever gives it away and gets it back.
    pub fn to_number(self) -> u64 {
        self.0
    }

    /// Returns the place that a number stands for. One that nobody was given is no beginning of a record, and whoever reads from there
    /// passes over the rest of a line.
    pub const fn from_number(number: u64) -> Cursor {
        Cursor(number)
    }

    pub(crate) fn at(offset: u64) -> Cursor {
        Cursor(offset)
    }

    pub(crate) fn offset(self) -> u64 {
        self.0
    }
}
