//! `rekindle holders`: the processes that keep agents alive, as the daemon sees them. For those who look into things.

use std::io::Write;

use serde_json::Value;

use super::Context;
use crate::client::read;
use crate::failure::{Exit, Failure};
use crate::output;
use crate::sanitise;

/// List the processes that keep agents alive
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

pub(super) fn run(context: &Context, _: &Args) -> Result<Exit, Failure> {
    let client = context.living_daemon()?;
    let body = client.get_raw("/api/holders")?;
    let mut out = output::stdout();
    if context.json {
        output::json_line(&mut out, &body)?;
        return Ok(Exit::Ok);
    }
    let list: Value = read(&body)?;
    for holder in list["holders"].as_array().map(Vec::as_slice).unwrap_or_default() {
        let word = |name: &str| match &holder[name] {
            Value::Null => "-".to_owned(),
            Value::String(text) => sanitise::line(text),
            other => other.to_string(),
        };
        let words = ["id", "state", "pid", "agent_pid", "session_id", "phase", "trouble"].map(word);
        writeln!(out, "{}", words.join("  "))?;
    }
    out.flush()?;
    Ok(Exit::Ok)
}
