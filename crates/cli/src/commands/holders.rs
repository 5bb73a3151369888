//! `rekindle holders`: the processes that keep agents alive, as the daemon sees them. For those who look into things.

use rekindle_client::{Exit, Failure};
use rekindle_terminal::sanitise;
use serde_json::{Value, json};

use super::Context;

/// List the processes that keep agents alive
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

pub(super) fn run(context: &Context, _: &Args) -> Result<Exit, Failure> {
    let client = context.living_daemon()?;
    let holders: Vec<Value> = client.all("holders", &[])?;
    context.print(&json!({"holders": holders, "next": null}), |out| {
        for holder in &holders {
            let word = |name: &str| match &holder[name] {
                Value::Null => "-".to_owned(),
                Value::String(text) => sanitise::line(text),
                other => other.to_string(),
            };
            let words = ["id", "state", "pid", "agent_pid", "session_id", "phase", "trouble"].map(word);
            writeln!(out, "{}", words.join("  "))?;
        }
        Ok(())
    })
}
