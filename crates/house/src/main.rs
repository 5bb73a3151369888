//! `rekindle-house`: checks the house rules, what the compiler cannot check and a reviewer should not have to.
//! Each rule reads the same list of files and reports what is wrong and what to do about it.

mod circles;
mod code;
mod commands;
mod files;
mod layers;
mod links;
mod paths;
mod promises;
mod shape;
mod variables;
mod words;

use std::fmt;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

/// A file of the workspace, read whole.
#[derive(Debug)]
pub(crate) struct SourceFile {
    /// The path below the root, with `/` between its parts.
    path: String,
    text: String,
}

/// One breach of one rule.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Violation {
    path: String,
    /// Counted from 1.
    line: usize,
    /// What is wrong; what to do.
    message: String,
}

impl Violation {
    fn new(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, message: message.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.message)
    }
}

fn main() -> ExitCode {
    // The directory of the workspace is where cargo runs us from, whichever directory the command was given in.
    match report(Path::new("."), &mut io::stdout()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Checks the workspace at `root`, prints a line for each violation, and returns whether there was none.
fn report(root: &Path, out: &mut impl Write) -> io::Result<bool> {
    let files = files::read(root)?;
    let violations = check(&files, &|path| root.join(path).exists());
    for violation in &violations {
        writeln!(out, "{violation}")?;
    }
    match violations.len() {
        0 => writeln!(out, "house rules: {} files, all in order", files.len())?,
        1 => writeln!(out, "house rules: {} files, 1 violation", files.len())?,
        count => writeln!(out, "house rules: {} files, {count} violations", files.len())?,
    }
    Ok(violations.is_empty())
}

/// Applies every rule; the result is sorted by place. What is no file of the list may still be there, and links may lead to it.
fn check(files: &[SourceFile], exists: &dyn Fn(&str) -> bool) -> Vec<Violation> {
    let mut violations = layers::check(files);
    violations.extend(circles::check(files));
    violations.extend(shape::check(files));
    violations.extend(words::check(files));
    violations.extend(commands::check(files));
    violations.extend(promises::check(files));
    violations.extend(links::check(files, exists));
    violations.extend(variables::check(files));
    violations.sort();
    violations
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes a file for the tests of the rules.
    pub(super) fn file(path: &str, text: &str) -> SourceFile {
        SourceFile { path: path.to_owned(), text: text.to_owned() }
    }

    /// Returns `file:line` of each violation.
    pub(super) fn places(violations: &[Violation]) -> Vec<String> {
        violations.iter().map(|violation| format!("{}:{}", violation.path, violation.line)).collect()
    }

    #[test]
    fn a_violation_is_one_line_with_its_place() {
        let violation = Violation::new("crates/domain/src/lib.rs", 3, "this is wrong; do that");
        assert_eq!(violation.to_string(), "crates/domain/src/lib.rs:3: this is wrong; do that");
    }

    #[test]
    fn all_rules_are_applied_and_sorted_by_place() {
        let files = [
            file("xtask/src/main.rs", "fn main() {}\n"),
            file("crates/domain/Cargo.toml", "[dependencies]\nrekindle-store.workspace = true\n"),
            file("crates/domain/src/lib.rs", "//! Decides.\nuse std::fs;\nf(\"REKINDLE_X\");\n"),
            file("README.md", "[nowhere](none.md)\n"),
        ];
        let found = check(&files, &|_| false);
        let expected = [
            "README.md:1",
            "crates/domain/Cargo.toml:2",
            "crates/domain/src/lib.rs:2",
            "crates/domain/src/lib.rs:3",
            "docs/promises.md:1",
            "xtask/src/main.rs:1",
        ];
        assert_eq!(places(&found), expected);
    }
}
