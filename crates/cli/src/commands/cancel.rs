//! `rekindle cancel`: ends what a session is doing, is about to do and has queued.

use rekindle_client::failure::{Exit, Failure};
use serde_json::json;

use super::Context;
use crate::session_arg::SessionArg;

/// Cancel what a session is doing, is about to do and has queued
///
/// The session stays, and takes the next message. What was cancelled stays cancelled after a restart.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle cancel
  rekindle cancel 01khz0p6r8")]
pub(crate) struct Args {
    #[command(flatten)]
    session: SessionArg,
}

pub(super) fn run(context: &Context, args: &Args) -> Result<Exit, Failure> {
    let client = context.daemon_or_start()?;
    let id = args.session.find_live(context, &client)?;
    let body = client.post(&format!("/api/sessions/{id}/cancel"), &json!({}))?;
    context.print(&String::from_utf8_lossy(&body).trim_end(), |out| {
        Ok(writeln!(out, "asked {id} to stop; an agent that does not stop is ended within 30 s")?)
    })
}
