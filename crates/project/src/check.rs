//! Checking the text of a file: everything that is wrong with it, where a person finds it.

use std::ops::Range;
use std::path::Path;

use rekindle_agent::known::by_id;
use rekindle_domain::event::ProjectConfig;
use rekindle_domain::pipeline::validate::{self, Problem};
use rekindle_terminal::sanitise;
use serde::{Deserialize, Serialize};
use toml::Spanned;
use toml::de::{DeTable, Deserializer};

use crate::spans;
use crate::string_offset::offset_in_string;

/// A problem of a file, where a person finds it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Located {
    /// The line, from 1.
    pub line: usize,
    /// The character in it, from 1.
    pub column: usize,
    /// The keys that lead there; none if the file cannot be read as far as that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// What it is, and what to do.
    pub what: String,
}

impl Located {
    pub(crate) fn new(text: &str, byte: usize, place: Option<String>, what: String) -> Located {
        let before = text.get(..byte).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line = before.matches('\n').count() + 1;
        let column = before[line_start..].chars().count() + 1;
        Located { line, column, place, what }
    }

    /// Returns it as compilers write theirs, in one line.
    pub fn text(&self, file: &Path) -> String {
        let Located { line, column, place, what } = self;
        let place = place.as_ref().map(|place| format!("{place}: ")).unwrap_or_default();
        sanitise::line(&format!("{}:{line}:{column}: {place}{what}", file.display()))
    }
}

/// Reads the text of a file, whether what it says makes sense or not: for whoever compares it with another one.
pub fn parse(text: &str) -> Result<ProjectConfig, Vec<Located>> {
    table_and_config(text).map(|(_, config)| config)
}

/// Checks the text of a file; returns what it says, or everything that is wrong with it, in the order of its lines.
pub fn check(text: &str) -> Result<ProjectConfig, Vec<Located>> {
    let (table, config) = table_and_config(text)?;
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

/// Reads a text as a document, which knows where everything stands, and as what it says.
fn table_and_config(text: &str) -> Result<(Spanned<DeTable<'_>>, ProjectConfig), Vec<Located>> {
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
    Ok((table, config))
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
