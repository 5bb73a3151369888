//! `rekindle notify`: who is told elsewhere what happens, whether that works, and what they were told. Needs no daemon: the sinks are in
//! the configuration, and what was delivered is in the home.

mod log;
mod ls;
mod test;

use std::sync::Arc;

use clap::builder::styling::Style;
use rekindle_client::failure::{Exit, Failure};
use rekindle_daemon::config::Config;
use rekindle_notify::{Machine, Sinks, ThisMachine};
use rekindle_terminal::output;

use super::Context;

/// Columns that a text keeps, however narrow the terminal is.
const LEAST_COLUMNS: usize = 12;

/// Say who is told elsewhere what happens, and try it
///
/// Sinks are in config.toml, as `[notify.sinks.NAME]`; a daemon reads them when it starts.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle notify test      # sends a message through each sink
  rekindle notify test --sink phone
  rekindle notify log       # what was delivered, and what was not
  rekindle notify ls")]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    Test(test::Args),
    Log(log::Args),
    Ls(ls::Args),
}

pub(super) fn run(context: &Context, args: &Args) -> Result<Exit, Failure> {
    match &args.what {
        What::Test(args) => test::run(context, args),
        What::Log(args) => log::run(context, args),
        What::Ls(args) => ls::run(context, args),
    }
}

/// Returns the sinks of the configuration.
fn sinks() -> Result<Sinks, Failure> {
    let machine: Arc<dyn Machine> = Arc::new(ThisMachine);
    Ok(Sinks::new(&Config::read()?.notify, &machine))
}

/// Lays rows out in columns that fit the terminal: what does not fit is cut from the last.
fn fitting_table(mut rows: Vec<Vec<(Style, String)>>) -> Vec<String> {
    let widest = |rows: &[Vec<(Style, String)>]| output::table(rows).1;
    let over = widest(&rows).saturating_sub(output::width() + 2);
    let last =
        rows.iter().filter_map(|row| row.last()).map(|(_, text)| output::columns(text)).max().unwrap_or(0);
    for (_, text) in rows.iter_mut().filter_map(|row| row.last_mut()) {
        *text = output::cut(text, last.saturating_sub(over).max(LEAST_COLUMNS));
    }
    output::table(&rows).0
}
