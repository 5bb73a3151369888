//! `rekindle workspace show`: what is in a snapshot.

use std::io::Write;

use rekindle_client::failure::{Exit, Failure};
use rekindle_service::workspaces::{WorkspaceError, Workspaces};
use rekindle_terminal::output::{self, BOLD, DIM, plural, styled};
use rekindle_terminal::sanitise;
use rekindle_workspace::Manifest;
use rekindle_workspace::manifest::ShownEntry;
use rekindle_workspace::tree::{OwnedNode, WalkedEntry, short_name};
use serde_json::json;

use super::{Context, failure, resolve, workspaces};

/// Show what is in a snapshot
///
/// Every file with its mode and size, every link with where it points to, every empty directory.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle workspace show snap-1a2b3c4d5e6f
  rekindle workspace show snap-1a2b --json")]
pub(super) struct Args {
    /// The snapshot: `snap-` and its first digits, or its whole hash
    snapshot: String,
}

pub(super) fn run(context: &Context, args: &Args) -> Result<Exit, Failure> {
    let workspaces = workspaces(context, false)?;
    let tree = resolve::find(context, &workspaces, &args.snapshot)?.tree;
    let manifest = workspaces.manifest(tree).map_err(failure)?;
    let mut out = output::stdout();
    if context.json {
        write_json(&mut out, &workspaces, &manifest)?;
    } else {
        let facts = format!("{}, {}", plural(manifest.files, "file"), output::size(manifest.bytes));
        writeln!(out, "{}  {}", styled(BOLD, short_name(&tree)), styled(DIM, facts))?;
        for entry in workspaces.walk(tree) {
            let entry = entry.map_err(|error| failure(WorkspaceError::Tree(error)))?;
            writeln!(out, "{}", line(&entry))?;
        }
    }
    out.flush()?;
    Ok(Exit::Ok)
}

/// Writes the object piece by piece: a tree may have millions of entries.
fn write_json(out: &mut impl Write, workspaces: &Workspaces, manifest: &Manifest) -> Result<(), Failure> {
    let mut head = json!(manifest);
    head["snapshot"] = json!(short_name(&manifest.tree));
    let head = head.to_string();
    write!(out, "{},\"entries\":[", head.strip_suffix('}').unwrap_or(&head))?;
    for (index, entry) in workspaces.walk(manifest.tree).enumerate() {
        let entry = entry.map_err(|error| failure(WorkspaceError::Tree(error)))?;
        let comma = if index == 0 { "" } else { "," };
        write!(out, "{comma}{}", json!(ShownEntry::from(&entry)))?;
    }
    Ok(writeln!(out, "]}}")?)
}

fn line(entry: &WalkedEntry) -> String {
    let path = sanitise::line(&String::from_utf8_lossy(&entry.path));
    match &entry.node {
        OwnedNode::File { mode, size, .. } => {
            format!("{:04o} {:>9}  {path}", mode.permissions(), output::size(*size))
        }
        OwnedNode::Link { target } => {
            let target = sanitise::line(&String::from_utf8_lossy(target));
            format!("{:>4} {:>9}  {path} -> {target}", "link", "")
        }
        OwnedNode::Directory { .. } => styled(DIM, format!("{:>4} {:>9}  {path}/", "dir", "")),
    }
}
