//! A project's `rekindle.toml`: read, checked, and everything that is wrong with it told by line and column.

mod spans;
mod string_offset;

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::ops::Range;
use std::path::Path;

use rekindle_agent::known::by_id;
use rekindle_client::failure::Failure;
use rekindle_domain::event::ProjectConfig;
use rekindle_domain::pipeline::validate::{self, Problem};
use rekindle_terminal::sanitise;
use serde::{Deserialize, Serialize};
use toml::de::{DeTable, Deserializer};

use self::string_offset::offset_in_string;

/// What the file is called.
pub(crate) const FILE: &str = "rekindle.toml";

/// The most bytes of a file that anybody would write.
const MOST_BYTES: u64 = 1 << 20;

/// A problem of a file, where a person finds it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Located {
    /// The line, from 1.
    pub(crate) line: usize,
    /// The character in it, from 1.
    pub(crate) column: usize,
    /// The keys that lead there; none if the file cannot be read as far as that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) place: Option<String>,
    /// What it is, and what to do.
    pub(crate) what: String,
}

impl Located {
    fn new(text: &str, byte: usize, place: Option<String>, what: String) -> Located {
        let before = text.get(..byte).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line = before.matches('\n').count() + 1;
        let column = before[line_start..].chars().count() + 1;
        Located { line, column, place, what }
    }

    /// Returns it as compilers write theirs, in one line.
    pub(crate) fn text(&self, file: &Path) -> String {
        let Located { line, column, place, what } = self;
        let place = place.as_ref().map(|place| format!("{place}: ")).unwrap_or_default();
        sanitise::line(&format!("{}:{line}:{column}: {place}{what}", file.display()))
    }
}

/// Reads a file and checks it.
pub(crate) fn read(path: &Path) -> Result<Result<ProjectConfig, Vec<Located>>, Failure> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MOST_BYTES + 1).read_to_end(&mut bytes));
    read.map_err(|error| {
        let message = format!("{} cannot be read: {error}", path.display());
        match error.kind() {
            ErrorKind::NotFound => Failure::usage("manifest_missing", message)
                .hint("`rekindle pipeline init` writes one into this directory"),
            _ => Failure::usage("manifest_unreadable", message),
        }
    })?;
    if bytes.len() as u64 > MOST_BYTES {
        let message = format!("{} is larger than {MOST_BYTES} bytes", path.display());
        return Err(Failure::usage("manifest_unreadable", message));
    }
    Ok(match String::from_utf8(bytes) {
        Ok(text) => check(&text),
        Err(error) => {
            let good = error.utf8_error().valid_up_to();
            let what = "this is no UTF-8; save the file as UTF-8".to_owned();
            Err(vec![Located::new(&String::from_utf8_lossy(error.as_bytes()), good, None, what)])
        }
    })
}

/// Checks the text of a file; returns what it says, or everything that is wrong with it, in the order of its lines.
pub(crate) fn check(text: &str) -> Result<ProjectConfig, Vec<Located>> {
    let (table, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        // What follows an error in its line mostly follows from it.
        let located = errors.iter().map(|error| unreadable(text, error, "put it right as TOML has it"));
        let mut problems: Vec<Located> = located.collect();
        problems.sort_by_key(|problem| (problem.line, problem.column));
        problems.dedup_by_key(|problem| problem.line);
        return Err(problems);
    }
    let config = ProjectConfig::deserialize(Deserializer::from(table.clone()))
        .map_err(|error| vec![unreadable(text, &error, "write what is expected, or leave it out")])?;
    let problems = validate::problems(&config, |name| by_id(name).is_some());
    let locate = |problem: Problem| {
        let span = spans::of(table.get_ref(), &problem.place);
        let byte = byte_of(text, span, problem.offset);
        Located::new(text, byte, Some(problem.place.to_string()), problem.what)
    };
    let mut problems: Vec<Located> = problems.into_iter().map(locate).collect();
    problems.sort_by_key(|problem| (problem.line, problem.column));
    if problems.is_empty() { Ok(config) } else { Err(problems) }
}

/// Returns the byte of the text at which a problem is.
fn byte_of(text: &str, span: Range<usize>, offset: Option<usize>) -> usize {
    let inside = offset.map(|offset| offset_in_string(text.get(span.clone()).unwrap_or_default(), offset));
    span.start + inside.unwrap_or(0)
}

fn unreadable(text: &str, error: &toml::de::Error, remedy: &str) -> Located {
    let byte = error.span().map_or(0, |span| span.start);
    let message: Vec<&str> = error.message().lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    Located::new(text, byte, None, format!("{}; {remedy}", message.join(", ")))
}

#[cfg(test)]
mod tests;
