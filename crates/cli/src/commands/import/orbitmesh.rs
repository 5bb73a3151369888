//! Sessions that another program left in files become sessions here.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use rekindle_agent::known::by_id;
use rekindle_client::clock::{SystemClock, opener};
use rekindle_client::failure::{Exit, Failure};
use rekindle_domain::event::Provider;
use rekindle_domain::time::Clock;
use rekindle_service::importers::{ImportOptions, Imported, ImportedSession, import_orbitmesh};
use rekindle_terminal::output::{self, BAD, BOLD, DIM, plural, styled};
use rekindle_terminal::sanitise;
use serde_json::json;

use super::Args;
use crate::commands::Context;

pub(super) fn run(context: &Context, args: &Args) -> Result<Exit, Failure> {
    let Args { path: directory, dry_run, .. } = args;
    if !directory.is_dir() {
        let message = format!("{} is not a directory", directory.display());
        return Err(Failure::usage("no_directory", message).hint("name the directory with the files"));
    }
    let options = ImportOptions {
        working_dir: args.cwd.as_deref().map(whole_path).transpose()?,
        provider: args.agent.as_deref().map(provider).transpose()?,
        dry_run: *dry_run,
    };
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let outcome = import_orbitmesh(&context.disk(), &context.home, opener()?, &clock, directory, &options);
    let outcome = outcome.map_err(|error| {
        let failure = Failure::from(error);
        match failure.code() {
            "home_in_use" => failure.hint(
                "run rekindle stop, which ends the daemon while agents keep working; then import again",
            ),
            _ => failure,
        }
    })?;
    let mut body = json!(outcome);
    body["dry_run"] = json!(dry_run);
    context.print(&body, |out| print_text(out, *dry_run, &outcome))?;
    Ok(if outcome.skipped.is_empty() { Exit::Ok } else { Exit::Failed })
}

fn provider(name: &str) -> Result<Provider, Failure> {
    if by_id(name).is_none() {
        let message = format!("there is no agent called {name:?}");
        return Err(Failure::usage("agent_unknown", message).hint("rekindle agents lists them"));
    }
    Ok(Provider { profile: "acp".into(), agent: Some(name.into()), ..Provider::default() })
}

fn whole_path(path: &Path) -> Result<String, Failure> {
    let bad = |why: String| Failure::usage("no_directory", format!("{}: {why}", path.display()));
    let whole = std::fs::canonicalize(path).map_err(|error| bad(error.to_string()))?;
    whole.into_os_string().into_string().map_err(|_| bad("its path is not valid UTF-8".into()))
}

fn print_text(out: &mut dyn Write, dry_run: bool, outcome: &Imported) -> Result<(), Failure> {
    let now = SystemClock.now();
    let line = |session: &ImportedSession| {
        let facts = format!(
            "{}, begun {}, in {}",
            plural(session.messages as u64, "message"),
            output::when(session.created_at, now),
            session.working_dir
        );
        let title = sanitise::line(&session.title);
        format!("{}  {title}  {}", styled(BOLD, session.session_id), styled(DIM, sanitise::line(&facts)))
    };
    for session in &outcome.imported {
        writeln!(out, "{}", line(session))?;
    }
    for session in &outcome.known {
        writeln!(out, "{}  {}", line(session), styled(DIM, "already exists here"))?;
    }
    for skipped in &outcome.skipped {
        let place = match skipped.line {
            Some(line) => format!("{}, line {line}", skipped.source.display()),
            None => skipped.source.display().to_string(),
        };
        writeln!(out, "{}  {}", styled(BAD, sanitise::line(&place)), sanitise::line(&skipped.why))?;
    }
    let count = plural(outcome.imported.len() as u64, "session");
    let (verb, rest) = if dry_run { ("would be imported", "nothing was written") } else { ("imported", "") };
    let rest = if rest.is_empty() { String::new() } else { format!("; {rest}") };
    writeln!(out, "{count} {verb}{rest}")?;
    Ok(())
}
