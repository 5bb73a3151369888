//! `rekindle close`: ends a session for good; its log stays.

use rekindle_client::failure::{Exit, Failure};
use rekindle_display::hints::ours;
use serde_json::json;

use super::Context;
use crate::session_arg::SessionArg;

/// Close a session: its agent is stopped, it takes no more messages, and its log stays
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle close
  rekindle close 01khz0p6r8")]
pub(crate) struct Args {
    #[command(flatten)]
    session: SessionArg,
}

pub(super) fn run(context: &Context, args: &Args) -> Result<Exit, Failure> {
    let client = context.daemon_or_start()?;
    let id = args.session.find_live(context, &client)?;
    client.post(&format!("/api/sessions/{id}/close"), &json!({}))?;
    let goes_on = ours(format_args!("fork {id}"));
    context
        .print(&json!({ "closed": id }), |out| Ok(writeln!(out, "closed {id}; {goes_on} continues from it")?))
}
