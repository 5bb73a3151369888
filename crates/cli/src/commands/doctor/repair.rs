//! `rekindle doctor --repair`: what was done, what remains, and how it stands before and after.

use std::io::{IsTerminal, Write};

use rekindle_client::clock::SystemClock;
use rekindle_client::failure::{Exit, Failure};
use rekindle_display::doctor::{self, below, print_findings, summary, to_json};
use rekindle_domain::id::SessionId;
use rekindle_domain::time::Clock;
use rekindle_service::upkeep::{Done, RepairError, RepairOptions, Repaired, repair};
use rekindle_store::check::{Code, Report};
use rekindle_store::disk::Disk;
use rekindle_store::home::HomeError;
use rekindle_store::layout::{Layout, SessionFile, session_file};
use rekindle_terminal::output::{self, BAD, BOLD, DIM, GOOD, plural, styled, wrap};
use rekindle_terminal::sanitise;
use serde_json::json;

use super::Args;
use super::bar::Bar;
use crate::commands::Context;
use crate::session_arg::choose_among;

pub(super) fn run(context: &Context, args: &Args) -> Result<Exit, Failure> {
    let named = sessions(&*context.disk(), &Layout::new(&context.home), &args.set_aside)?;
    let end_orphans = !args.dry_run && (args.yes || confirmed(context)?);
    let asked = RepairOptions {
        dry_run: args.dry_run,
        set_aside: named,
        keep_prefix: args.keep_prefix,
        end_orphans,
        task_rows: super::task_database(),
    };
    let repaired = {
        let mut bar = Bar::new();
        let clock = std::sync::Arc::new(SystemClock) as std::sync::Arc<dyn Clock>;
        repair(&context.disk(), &context.home, &asked, &clock, &mut |progress| bar.show(progress))
            .map_err(refused)?
    };
    let verdict = if repaired.is_whole() { Exit::Ok } else { Exit::Failed };
    let mut body = to_json(&context.home, repaired.now());
    body["dry_run"] = json!(args.dry_run);
    body["done"] = json!(repaired.done);
    body["kept_in"] = json!(repaired.kept_in.as_ref().map(|path| path.display().to_string()));
    body["before"] = counts(&repaired.before);
    body["after"] = json!(repaired.after.as_ref().map(counts));
    super::verdict(verdict, context.print(&body, |out| print_text(out, context, args, &repaired)))
}

fn refused(error: RepairError) -> Failure {
    match error {
        RepairError::Offline(error) => error.into(),
        RepairError::Home(error @ HomeError::Locked { .. }) => Failure::failed("home_in_use", error).hint(
            "run rekindle stop first, agents keep working; then repair, and the next command starts a daemon again. --dry-run works while one is running",
        ),
        RepairError::Home(error) => error.into(),
    }
}

/// Returns the sessions that names mean, whatever is left of them.
fn sessions(disk: &dyn Disk, layout: &Layout, names: &[String]) -> Result<Vec<SessionId>, Failure> {
    let in_sessions = disk.list(&layout.sessions()).unwrap_or_default();
    let aside = disk.list(&layout.damaged()).unwrap_or_default();
    let of_file = in_sessions.iter().filter_map(|entry| match session_file(&entry.name) {
        SessionFile::Log(id)
        | SessionFile::Base(id)
        | SessionFile::Snapshot(id)
        | SessionFile::Tokens(id)
        | SessionFile::History(id)
        | SessionFile::DamageNote(id) => Some(id),
        SessionFile::Index | SessionFile::Temporary | SessionFile::Foreign => None,
    });
    let of_directory = aside.iter().filter_map(|entry| entry.name.rsplit_once('.')?.0.parse().ok());
    let mut known: Vec<SessionId> = of_file.chain(of_directory).collect();
    known.sort_unstable();
    known.dedup();
    names.iter().map(|name| choose_among(name, &known, layout)).collect()
}

/// Asks whether agents that no session knows are to be ended, where there are any and someone to ask.
fn confirmed(context: &Context) -> Result<bool, Failure> {
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return Ok(false);
    }
    let report = super::examine_home(context)?;
    let mut orphans = report.findings.iter().filter(|finding| finding.code == Code::HolderOrphan).peekable();
    if orphans.peek().is_none() {
        return Ok(false);
    }
    for orphan in orphans {
        anstream::eprintln!("{}", wrap(&sanitise::line(&orphan.what), output::width(), "", "  "));
    }
    anstream::eprint!(
        "End the agents that no session here knows? Their output stays in the journals. [y/N] "
    );
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

fn counts(report: &Report) -> serde_json::Value {
    let mut counts = doctor::counts(report);
    counts["kinds"] = report.kinds.iter().map(|(code, count)| (code.as_str(), json!(count))).collect();
    counts
}

fn print_text(
    out: &mut dyn Write,
    context: &Context,
    args: &Args,
    repaired: &Repaired,
) -> Result<(), Failure> {
    print_findings(out, &context.home, repaired.now())?;
    if !repaired.done.is_empty() {
        writeln!(out, "{}\n", styled(BOLD, if args.dry_run { "would be done" } else { "done" }))?;
    }
    for done in &repaired.done {
        print_done(out, context, args.dry_run, done)?;
    }
    if repaired.after.is_some() {
        writeln!(out, "before  {}", summary(&repaired.before))?;
        writeln!(out, "after   {}", summary(repaired.now()))?;
    } else {
        writeln!(out, "{}", summary(&repaired.before))?;
    }
    if let Some(path) = &repaired.kept_in {
        let what = format!("What was removed or changed is kept in {}", path.display());
        writeln!(out, "{}", wrap(&sanitise::line(&what), output::width(), "", ""))?;
    }
    if repaired.done.is_empty() {
        writeln!(out, "{}", styled(DIM, "there is nothing here to repair"))?;
    }
    let orphans = repaired.now().kinds.get(&Code::HolderOrphan).copied().unwrap_or(0);
    if orphans > 0 && !args.dry_run && !args.yes {
        let what = format!("{} left alone: --yes ends what no session knows", plural(orphans, "agent"));
        writeln!(out, "{}", styled(DIM, what))?;
    }
    Ok(())
}

fn print_done(out: &mut dyn Write, context: &Context, dry_run: bool, done: &Done) -> Result<(), Failure> {
    let width = output::width();
    let action = action_text(done.action, dry_run);
    let mark = if done.error.is_some() { styled(BAD, "failed") } else { styled(GOOD, action) };
    writeln!(out, "  {mark} {}", styled(DIM, done.code))?;
    writeln!(out, "    {}", styled(BOLD, sanitise::line(&below(&context.home, &done.path))))?;
    writeln!(out, "{}", wrap(&sanitise::line(&done.what), width, "    ", "    "))?;
    if let Some(error) = &done.error {
        writeln!(out, "{}", wrap(&sanitise::line(error), width, "    because ", "      "))?;
    }
    if let Some(kept) = &done.kept {
        let kept = below(&context.home, std::path::Path::new(kept));
        writeln!(out, "{}", wrap(&sanitise::line(&kept), width, "    → kept in ", "      "))?;
    }
    Ok(writeln!(out)?)
}

/// Says what was done, or would be.
fn action_text(action: &'static str, dry_run: bool) -> &'static str {
    let (did, would) = match action {
        "permissions" => ("permissions corrected", "correct permissions"),
        "moved" => ("taken away", "take away"),
        "recovered" => ("recovered", "recover, as every start does"),
        "cut" => ("cut and recorded", "cut and record"),
        "set_aside" => ("set aside", "set aside"),
        "prefix_kept" => ("good beginning kept", "keep the good beginning"),
        "ended" => ("agent ended", "end the agent, if you say so"),
        other => (other, other),
    };
    if dry_run { would } else { did }
}
