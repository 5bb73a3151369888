//! `rekindle waits`: who waits for an answer, and to what. Without a daemon the home itself is read.

use crate::completers::ids;
use rekindle_client::completion::IdKind;
use rekindle_client::{Exit, Failure, read};
use rekindle_display::hints::ours;
use rekindle_display::wait_text::write_waits;
use rekindle_wire::token_text::TokenText;
use rekindle_wire::view::{TokenShown, WaitView};
use serde::Serialize;
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

use super::Context;
use super::answer::find;
use crate::offline_session;

/// List questions waiting for your answer
///
/// A question stays open until it is answered, even if the daemon is restarted. One that is `void` has lost its agent: an answer to it
/// becomes a message, with which the session continues.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle waits
  rekindle waits --json | jq -r '.waits[].wait_id'
  rekindle waits --mint wait_01khz0p6r8   # a token that may answer that one")]
pub(crate) struct Args {
    /// Mint a token for a wait: whoever has it may answer that one, once, from elsewhere too. It is shown this once
    #[arg(long, value_name = "WAIT", add = ids(IdKind::Wait))]
    mint: Option<String>,
}

/// All of them, in the shape of a page.
#[derive(Serialize)]
struct All {
    waits: Vec<Box<RawValue>>,
    next: Option<String>,
}

pub(super) fn run(context: &Context, args: &Args) -> Result<Exit, Failure> {
    if let Some(wait) = &args.mint {
        return mint(context, wait);
    }
    let asked = context.ask(|client| client.all("waits", &[]))?;
    let waits: Vec<Box<RawValue>> = match asked {
        Ok(waits) => waits,
        Err(_) => from_home(context)?,
    };
    let read: Result<Vec<WaitView>, _> = waits.iter().map(|wait| read(wait.get().as_bytes())).collect();
    let list = to_raw_value(&All { waits, next: None }).map_err(|error| Failure::failed("output", error))?;
    context.print(&list, |out| write_waits(out, &read?))
}

/// Mints a token for a wait, and says how it is used.
fn mint(context: &Context, name: &str) -> Result<Exit, Failure> {
    let client = context.daemon_or_start()?;
    let waits: Vec<WaitView> = client.all("waits", &[])?;
    let wait = find(Some(name), &waits)?;
    let body = client.post(&format!("/api/waits/{}/token", wait.wait_id), &json!({}))?;
    let TokenShown { token: TokenText(token), expires_at } = read(&body)?;
    context.print(&String::from_utf8_lossy(&body).trim_end(), |out| {
        // The token alone, so that a script can take it.
        writeln!(out, "{token}")?;
        anstream::eprintln!(
            "valid until {expires_at}; use it with: {}",
            ours(format_args!("answer {} OPTION --token TOKEN", wait.wait_id))
        );
        Ok(())
    })
}

/// Reads the waits of a home that no daemon has.
fn from_home(context: &Context) -> Result<Vec<Box<RawValue>>, Failure> {
    // Without one nothing was ever asked of anyone here.
    let Some(home) = context.offline_if_any()? else { return Ok(Vec::new()) };
    let mut waits = Vec::new();
    let surveyed = home.survey(|_, loaded| {
        let Ok(loaded) = loaded else { return };
        let asks = loaded.state.run.as_ref().is_some_and(|run| !run.waits.is_empty());
        if asks {
            let found = offline_session::agent_presence(&home, &loaded.state);
            waits.extend(offline_session::waits(&home, &loaded, found));
        }
    });
    surveyed.map_err(|error| Failure::failed("sessions_unreadable", error))?;
    waits.sort_by_key(|wait| wait.since);
    let written: Result<_, _> = waits.iter().map(to_raw_value).collect();
    written.map_err(|error| Failure::failed("output", error))
}
