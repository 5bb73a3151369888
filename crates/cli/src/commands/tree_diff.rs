//! Two trees compared for people and programs: as a unified diff, as counts of lines, as JSON.

use std::io::Write;

use rekindle_client::failure::{Exit, Failure};
use rekindle_domain::blob_id::BlobId;
use rekindle_service::workspaces::{WorkspaceError, Workspaces};
use rekindle_terminal::output::{self, BAD, DIM, GOOD, WARN, plural, styled};
use rekindle_terminal::sanitise;
use rekindle_workspace::compare::{count_lines, quoted, write_unified};
use rekindle_workspace::path_name::PathName;
use rekindle_workspace::tree::short_name;
use rekindle_workspace::{Change, Changed};
use serde_json::{Value, json};

use super::Context;
use crate::workspace_failure::failure;

/// What is said of two trees that are the same.
const UNCHANGED: &str = "no file was changed";

/// Two trees that are compared.
pub(super) struct Compared<'a> {
    pub(super) from: BlobId,
    pub(super) to: BlobId,
    /// Paths that are passed over: nobody knows what became of them.
    pub(super) hides: &'a dyn Fn(&[u8]) -> bool,
    /// What else programs are told: an object.
    pub(super) about: Value,
}

impl Compared<'_> {
    /// Returns two trees of which everything is shown.
    pub(super) fn new(from: BlobId, to: BlobId) -> Compared<'static> {
        Compared { from, to, hides: &|_| false, about: json!({}) }
    }
}

/// Shows what is different between two trees.
pub(super) fn show(
    context: &Context,
    workspaces: &Workspaces,
    compared: &Compared<'_>,
    only_stat: bool,
) -> Result<Exit, Failure> {
    let mut out = output::stdout();
    if context.json {
        let files = changes(workspaces, compared, |changed| described(workspaces, changed))?;
        let mut body = compared.about.clone();
        (body["from"], body["to"], body["files"]) = (json!(compared.from), json!(compared.to), json!(files));
        writeln!(out, "{body}")?;
    } else if only_stat {
        stat(&mut out, workspaces, compared)?;
    } else {
        let told = changes(workspaces, compared, |changed| {
            let mut text = Vec::new();
            write_unified(workspaces.source(), changed, &mut text)?;
            write_coloured(&mut out, &text)
        })?;
        // A program takes no text for no change; a person would wonder.
        if told.is_empty() && output::is_terminal() {
            writeln!(out, "{}", styled(DIM, UNCHANGED))?;
        }
    }
    out.flush()?;
    Ok(Exit::Ok)
}

/// Calls a function with each change but those of directories alone, and returns what it answered.
fn changes<T>(
    workspaces: &Workspaces,
    compared: &Compared<'_>,
    mut each: impl FnMut(&Changed) -> Result<T, Failure>,
) -> Result<Vec<T>, Failure> {
    let mut answers = Vec::new();
    for changed in workspaces.compare(compared.from, compared.to) {
        let changed = changed.map_err(|error| failure(WorkspaceError::Tree(error)))?;
        if !changed.is_directory() && !(compared.hides)(&changed.path) {
            answers.push(each(&changed)?);
        }
    }
    Ok(answers)
}

fn described(workspaces: &Workspaces, changed: &Changed) -> Result<Value, Failure> {
    let lines = count_lines(workspaces.source(), changed)?;
    let mut one = json!(PathName::from(changed.path.as_slice()));
    one["change"] = json!(changed.change);
    one["lines_added"] = json!(lines.map(|lines| lines.added));
    one["lines_removed"] = json!(lines.map(|lines| lines.removed));
    Ok(one)
}

fn stat(out: &mut impl Write, workspaces: &Workspaces, compared: &Compared<'_>) -> Result<(), Failure> {
    let (mut added, mut removed) = (0, 0);
    let told = changes(workspaces, compared, |changed| {
        let (style, word) = match changed.change {
            Change::Added => (GOOD, "added"),
            Change::Deleted => (BAD, "deleted"),
            Change::Modified => (WARN, "modified"),
            Change::TypeChanged => (WARN, "replaced"),
            Change::ModeChanged => (WARN, "mode"),
        };
        let lines = count_lines(workspaces.source(), changed)?;
        let counts = lines.map(|lines| {
            added += lines.added;
            removed += lines.removed;
            format!("  +{} −{}", lines.added, lines.removed)
        });
        let path = sanitise::line(&quoted(b"", &changed.path));
        Ok(writeln!(
            out,
            "{}  {path}{}",
            styled(style, format!("{word:>8}")),
            styled(DIM, counts.unwrap_or_default())
        )?)
    })?;
    let summary = match told.len() as u64 {
        0 if compared.from == compared.to => UNCHANGED.to_owned(),
        0 => {
            format!("no difference between {} and {}", short_name(&compared.from), short_name(&compared.to))
        }
        files => format!("{}, +{added} −{removed} lines", plural(files, "file")),
    };
    Ok(writeln!(out, "{}", styled(DIM, summary))?)
}

/// Writes a diff as people are used to see it, without whatever would command a terminal.
pub(super) fn write_coloured(out: &mut impl Write, text: &[u8]) -> Result<(), Failure> {
    if !output::is_terminal() {
        return Ok(out.write_all(text)?);
    }
    for line in sanitise::block(&String::from_utf8_lossy(text)).split_terminator('\n') {
        let shown = match line.as_bytes().first() {
            Some(b'+') => styled(GOOD, line),
            Some(b'-') => styled(BAD, line),
            Some(b'@') => styled(DIM, line),
            _ => line.to_owned(),
        };
        writeln!(out, "{shown}")?;
    }
    Ok(())
}
