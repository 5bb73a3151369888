//! `rekindle notify ls`: the sinks of the configuration, without anything secret.

use rekindle_client::failure::{Exit, Failure};
use rekindle_notify::{Bell, Sink};
use rekindle_terminal::output::{BOLD, DIM, PLAIN, WARN};
use serde_json::json;

use super::{Context, fitting_table, sinks};

/// List the sinks, and what keeps one from delivering
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle notify ls
  rekindle notify ls --json | jq -r '.sinks[].name'")]
pub(super) struct Args {}

pub(super) fn run(context: &Context, _: &Args) -> Result<Exit, Failure> {
    let sinks = sinks()?;
    let described =
        |sink: &Sink| json!({"name": sink.name(), "what": sink.describe(), "problem": sink.problem()});
    let all: Vec<_> = sinks.sinks.iter().map(described).collect();
    let bells: Vec<&str> = sinks.bells.iter().map(Bell::name).collect();
    context.print(&json!({"sinks": all, "bells": bells}), |out| {
        let row = |sink: &Sink| {
            let problem = sink.problem().map(|problem| (WARN, problem)).unwrap_or((DIM, String::new()));
            vec![(BOLD, sink.name().to_owned()), (PLAIN, sink.describe()), problem]
        };
        let bell = |name: &&str| {
            let rings = (DIM, "rings the terminal of rekindle ps --watch".to_owned());
            vec![(BOLD, (*name).to_owned()), (PLAIN, "bell".to_owned()), rings]
        };
        let rows: Vec<_> = sinks.sinks.iter().map(row).chain(bells.iter().map(bell)).collect();
        for line in fitting_table(rows) {
            writeln!(out, "{}", line.trim_end())?;
        }
        if sinks.sinks.is_empty() && sinks.bells.is_empty() {
            writeln!(out, "no notifications are sent: add a sink in [notify.sinks.NAME] of config.toml")?;
        }
        Ok(())
    })
}
