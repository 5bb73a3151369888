//! Why a chore could not be done: one line, from what was attempted to what was in the way. The chores use no crate for it, nor
//! for much else: whatever they need is built before the first of them can say a word.

use std::error::Error;
use std::fmt;

/// The outcome of a chore, or of a part of one.
pub(crate) type Result<T> = std::result::Result<T, Failure>;

/// Why a chore could not be done.
#[derive(Debug)]
pub(crate) struct Failure(String);

impl Failure {
    /// Returns a failure in these words.
    pub(crate) fn new(message: impl Into<String>) -> Failure {
        Failure(message.into())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<E: Error> From<E> for Failure {
    fn from(error: E) -> Failure {
        let (mut text, mut cause) = (error.to_string(), error.source());
        while let Some(error) = cause {
            text = format!("{text}: {error}");
            cause = error.source();
        }
        Failure(text)
    }
}

/// Fails in these words unless something holds.
pub(crate) fn ensure<M: Into<String>>(holds: bool, message: impl FnOnce() -> M) -> Result<()> {
    if holds { Ok(()) } else { Err(Failure::new(message())) }
}

/// Says what was attempted when something failed.
pub(crate) trait Context<T> {
    /// Puts what was attempted before the reason.
    fn context<M: fmt::Display>(self, attempted: impl FnOnce() -> M) -> Result<T>;
}

impl<T, E: Into<Failure>> Context<T> for std::result::Result<T, E> {
    fn context<M: fmt::Display>(self, attempted: impl FnOnce() -> M) -> Result<T> {
        self.map_err(|error| Failure(format!("{}: {}", attempted(), error.into())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_names_what_was_attempted_and_every_cause() {
        let missing = std::fs::read("no-such-file-here").context(|| "cannot read the list");
        let text = missing.expect_err("there is none").to_string();
        assert!(text.starts_with("cannot read the list: No such file"), "{text}");
        let outer: Result<()> = Err(Failure::new("exit status: 1")).context(|| "it could not be built");
        assert_eq!(outer.expect_err("a failure").to_string(), "it could not be built: exit status: 1");
        assert!(ensure(true, || "never").is_ok());
        assert_eq!(ensure(false, || "always").expect_err("a failure").to_string(), "always");
    }
}
