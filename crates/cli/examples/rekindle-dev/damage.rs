//! `rekindle-dev damage`: does one named kind of harm to a home and says what it did and where, for trying out `doctor` and for
//! tests.

use std::io::Write;

use rekindle_client::failure::{Exit, Failure};
use rekindle_domain::id::SessionId;
use rekindle_store::home;
use rekindle_store::layout::Layout;
use rekindle_terminal::output;
use rekindle_trial::damage::{Done, Kind, harm};
use serde_json::json;

use super::Context;

/// Damage the home in a named way
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What to do
    #[arg(value_enum)]
    kind: Kind,
    /// To which session; any if it is left out
    #[arg(long, value_name = "ID")]
    session: Option<SessionId>,
    /// The seed of every choice
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

pub(super) fn run(context: &Context, args: &Args) -> Result<Exit, Failure> {
    let layout = Layout::new(&context.home);
    if let Some(owner) = home::owner(&*context.disk(), &layout) {
        let message = format!("the home is in use by {owner}");
        return Err(Failure::usage("home_in_use", message).hint("end it first"));
    }
    let done = harm(&context.home, args.kind, args.session, args.seed)
        .map_err(|error| Failure::failed("not_damaged", error))?;
    let mut out = output::stdout();
    let kind = clap::ValueEnum::to_possible_value(&args.kind);
    let kind = kind.as_ref().map_or("", |kind| kind.get_name());
    if context.json {
        let Done { path, byte, line, what } = done;
        let path = path.to_string_lossy();
        writeln!(out, "{}", json!({"kind": kind, "path": path, "byte": byte, "line": line, "what": what}))?;
    } else {
        writeln!(out, "{kind}: {}: {}", done.path.display(), done.what)?;
    }
    out.flush()?;
    Ok(Exit::Ok)
}
