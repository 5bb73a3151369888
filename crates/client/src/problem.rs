//! A problem: something that is not as it should be, and what to do about it.

use serde::Serialize;

/// Something that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// For programs.
    pub code: &'static str,
    /// What is the case.
    pub what: String,
    /// What to do.
    pub remedy: String,
}

impl Problem {
    /// Puts it together.
    pub fn new(code: &'static str, what: impl Into<String>, remedy: impl Into<String>) -> Problem {
        Problem { code, what: what.into(), remedy: remedy.into() }
    }
}
