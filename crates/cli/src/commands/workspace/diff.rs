//! `rekindle workspace diff`: what is different between two snapshots, or between one and the directory now.

use std::io::Write;
use std::path::PathBuf;

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

use super::{Context, capture_options, directory, failure, workspaces};

/// Show what is different between two snapshots, or between one and the directory now
///
/// As a diff that `git apply` takes. Exits 0 whether or not there is a difference.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle workspace diff snap-1a2b3c4d5e6f              from it to this directory
  rekindle workspace diff snap-1a2b3c4d5e6f snap-77c0    from the first to the second
  rekindle workspace diff snap-1a2b3c4d5e6f --stat       which files, and how many lines")]
pub(super) struct Args {
    /// The snapshot to begin from
    from: String,
    /// The other one [default: the directory as it is now]
    to: Option<String>,
    /// The directory [default: this one]
    #[arg(long, value_name = "DIR", conflicts_with = "to")]
    directory: Option<PathBuf>,
    /// Which files and how many lines, instead of the lines themselves
    #[arg(long)]
    stat: bool,
}

pub(super) fn run(context: &Context, args: &Args) -> Result<Exit, Failure> {
    let workspaces = workspaces(context, false)?;
    let from = workspaces.resolve(&args.from).map_err(failure)?;
    let to = match &args.to {
        Some(name) => workspaces.resolve(name).map_err(failure)?,
        None => {
            let options = capture_options(&directory(args.directory.as_ref()))?;
            workspaces.capture_for_now(options).map_err(failure)?.tree
        }
    };
    show(context, &workspaces, (from, to), args.stat)
}

/// Shows what is different between two trees.
pub(super) fn show(
    context: &Context,
    workspaces: &Workspaces,
    (from, to): (BlobId, BlobId),
    only_stat: bool,
) -> Result<Exit, Failure> {
    let mut out = output::stdout();
    if context.json {
        let files = changes(workspaces, from, to, |changed| described(workspaces, changed))?;
        let body = json!({"from": from, "to": to, "files": files});
        writeln!(out, "{body}")?;
    } else if only_stat {
        stat(&mut out, workspaces, from, to)?;
    } else {
        changes(workspaces, from, to, |changed| {
            let mut text = Vec::new();
            write_unified(workspaces.source(), changed, &mut text)?;
            write_coloured(&mut out, &text)
        })?;
    }
    out.flush()?;
    Ok(Exit::Ok)
}

/// Calls a function with each change but those of directories alone, and returns what it answered.
fn changes<T>(
    workspaces: &Workspaces,
    from: BlobId,
    to: BlobId,
    mut each: impl FnMut(&Changed) -> Result<T, Failure>,
) -> Result<Vec<T>, Failure> {
    let mut answers = Vec::new();
    for changed in workspaces.compare(from, to) {
        let changed = changed.map_err(|error| failure(WorkspaceError::Tree(error)))?;
        if !changed.is_directory() {
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

fn stat(out: &mut impl Write, workspaces: &Workspaces, from: BlobId, to: BlobId) -> Result<(), Failure> {
    let (mut added, mut removed) = (0, 0);
    let told = changes(workspaces, from, to, |changed| {
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
        0 => format!("no difference between {} and {}", short_name(&from), short_name(&to)),
        files => format!("{}, +{added} −{removed} lines", plural(files, "file")),
    };
    Ok(writeln!(out, "{}", styled(DIM, summary))?)
}

/// Writes a diff as people are used to see it, without whatever would command a terminal.
fn write_coloured(out: &mut impl Write, text: &[u8]) -> Result<(), Failure> {
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
