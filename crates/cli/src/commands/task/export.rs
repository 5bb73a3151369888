//! `rekindle task export`: every task with its history, one JSON object a line.

use std::io::Write;

use rekindle_client::{Exit, Failure};
use rekindle_terminal::output;
use serde_json::Value;

use crate::commands::Context;

/// Write every task with its history, one JSON object a line, the newest first
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle task export > tasks.jsonl
  rekindle task export |
    jq -r 'select(.status == \"failed\") | [.id, .reason] | @tsv'")]
pub(super) struct Args {}

pub(super) fn run(context: &Context, _: &Args) -> Result<Exit, Failure> {
    let client = context.daemon_or_start()?;
    let tasks: Vec<Value> = client.all("tasks", &[])?;
    let mut out = output::stdout();
    for mut task in tasks {
        let id = task["id"].as_str().unwrap_or_default().to_owned();
        let history: Value = client.get(&format!("/api/tasks/{id}/transitions"))?;
        task["transitions"] = history["transitions"].clone();
        writeln!(out, "{task}")?;
    }
    out.flush()?;
    Ok(Exit::Ok)
}
