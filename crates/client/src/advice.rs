//! Advice: something that is not as it should be, and what to do about it.

use serde::Serialize;

/// Something to be done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Advice {
    /// For programs.
    pub code: &'static str,
    /// What is the case.
    pub what: String,
    /// What to do.
    pub remedy: String,
}

impl Advice {
    /// Puts it together.
    pub fn new(code: &'static str, what: impl Into<String>, remedy: impl Into<String>) -> Advice {
        Advice { code, what: what.into(), remedy: remedy.into() }
    }
}
