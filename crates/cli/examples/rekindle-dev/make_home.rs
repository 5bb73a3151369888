//! `rekindle-dev make-home`: a home of any size with sessions as they really look, made fast.

use std::io::Write;
use std::sync::Arc;

use rekindle_client::clock::id_millis;
use rekindle_client::failure::{Exit, Failure};
use rekindle_terminal::output::{self, plural};
use rekindle_testkit::made::{Wanted, fill};
use rekindle_testkit::tapped::{Tapped, Unsynced};
use serde_json::json;

use super::Context;

/// Make a home with sessions in it, or add some to one
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How many sessions
    #[arg(long, default_value_t = 20)]
    sessions: u64,
    /// About how many records each
    #[arg(long, default_value_t = 40)]
    records: u64,
    /// The seed of everything but the times
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Leave no session unfinished or interrupted
    #[arg(long)]
    finished: bool,
}

pub(super) fn run(context: &Context, args: &Args) -> Result<Exit, Failure> {
    let (store, boot) = super::open(context, Arc::new(Tapped(Unsynced)))?;
    let &Args { sessions, records, seed, finished } = args;
    let wanted = Wanted { sessions, records, seed, finished };
    let sessions =
        fill(&store, boot, id_millis(), &wanted).map_err(|error| Failure::failed("not_made", error))?;
    let place = store.layout().home().to_owned();
    drop(store);
    let mut out = output::stdout();
    if context.json {
        writeln!(out, "{}", json!({"home": place.to_string_lossy(), "sessions": sessions.len()}))?;
    } else {
        writeln!(out, "{} in {}", plural(sessions.len() as u64, "session"), place.display())?;
    }
    out.flush()?;
    Ok(Exit::Ok)
}
