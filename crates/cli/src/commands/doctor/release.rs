//! `rekindle doctor --release SESSION`: has a session tried again that made the daemon crash, through the daemon if one runs.

use rekindle_client::failure::{Exit, Failure};
use rekindle_store::crash_report;
use rekindle_store::home::lock_for_upkeep;
use serde_json::json;

use crate::commands::Context;
use crate::session_arg::{find_live, find_offline};

pub(super) fn run(context: &Context, name: &str) -> Result<Exit, Failure> {
    if let Some(client) = context.daemon()? {
        let session = find_live(Some(name), context, &client)?;
        let body = client.post(&format!("/api/sessions/{session}/release"), &json!({}))?;
        return context.acknowledge(body, format_args!("{session} is released and is tried again"));
    }
    let home = context.offline()?;
    let (session, layout) = (find_offline(name, &home)?, home.layout());
    let disk = context.disk();
    // Nobody may be deciding by the reports at this moment.
    let _lock = lock_for_upkeep(&*disk, layout, std::process::id())?;
    let released = crash_report::remove(&*disk, layout, session).map_err(|error| {
        let path = layout.crash_report(session);
        let error = anyhow::Error::new(error).context(format!("cannot remove {}", path.display()));
        Failure::failed("release", error).hint("make the directory writable and try again")
    })?;
    let text = match released {
        true => format!("{session} is released: the next daemon tries it again"),
        false => format!("{session} was not quarantined; there is nothing to release"),
    };
    context.acknowledge(json!({"session_id": session, "released": released}).to_string(), text)
}
