//! `rekindle gc`: removes what is there for nothing, and says what it freed.

use std::io::Write;

use rekindle_client::Client;
use rekindle_client::failure::{Exit, Failure};
use rekindle_daemon::config::Config;
use rekindle_display::doctor::below;
use rekindle_domain::age::Age;
use rekindle_service::upkeep::gc;
use rekindle_terminal::output::{self, BAD, BOLD, DIM, plural, styled, wrap};
use rekindle_terminal::sanitise;
use rekindle_wire::code::Code;
use rekindle_wire::request::Collect;
use rekindle_wire::view::{Collected, Left, Space};
use serde_json::json;

use super::Context;

/// Delete what is no longer needed: files of ended agents, unused blobs, old checkpoints and runs
///
/// Directories of dead holders go when everything they say is in a log, blobs when no record names them for a day, copies
/// of the holder's program when nobody runs them (not beside a daemon, which does), files of checkpoints when `keep_days` or
/// `max_bytes` of `[checkpoints]` in the configuration says so, results of steps that runs of pipelines share when those of `[cache]` do,
/// runs of pipelines when they ended longer ago than `keep_days` of `[pipelines]` (90), with the snapshots that were kept for them alone,
/// and never with the sessions of their steps. Everything by proof; what stays is
/// said with the reason, and what takes the room of the home. Files of checkpoints that an open run, a run that was cut, a fork, a kept
/// snapshot or a restore needs stay. If a daemon runs, it does the work. Exits 1 if something could not be removed.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle gc --dry-run
  rekindle gc
  rekindle gc --repairs-older-than 30d
  rekindle gc --runs-older-than 30d --dry-run")]
pub(crate) struct Args {
    /// Show what could be deleted, and delete nothing
    #[arg(long)]
    dry_run: bool,
    /// Also delete what repairs removed longer ago than this, for example 30d
    #[arg(long, value_name = "AGE")]
    repairs_older_than: Option<Age>,
    /// Delete pipeline runs that ended longer ago than this, for example 30d [default: keep_days of pipelines in config.toml, else 90d]
    #[arg(long, value_name = "AGE")]
    runs_older_than: Option<Age>,
    /// Also delete journals of ended agents that belong to no session here and are older than this, for example 30d
    #[arg(long, value_name = "AGE")]
    orphans_older_than: Option<Age>,
}

/// Things of one kind that are shown; JSON has the rest.
const MAX_SHOWN: usize = 20;

pub(super) fn run(context: &Context, args: &Args) -> Result<Exit, Failure> {
    let config = Config::read()?;
    let (retention, runs) = (config.checkpoints.retention(), config.pipelines.retention());
    let cache = config.cache.retention();
    let seconds = |age: &Age| age.0.as_secs();
    let freed = collect(
        context,
        &Collect {
            dry_run: args.dry_run,
            repairs_older_than_s: args.repairs_older_than.as_ref().map(seconds),
            orphans_older_than_s: args.orphans_older_than.as_ref().map(seconds),
            runs_older_than_s: Some(args.runs_older_than.as_ref().map_or(runs.as_secs(), seconds)),
            checkpoints_older_than_s: Some(retention.keep.as_secs()),
            checkpoints_max_bytes: Some(retention.max_bytes),
            cached_results_older_than_s: Some(cache.keep.as_secs()),
            cached_results_max_bytes: Some(cache.max_bytes),
        },
    )?;
    let mut body = json!(freed);
    body["home"] = json!(context.home.to_string_lossy());
    body["dry_run"] = json!(args.dry_run);
    body["bytes"] = json!(freed.bytes());
    context.print(&body, |out| print_text(out, context, args.dry_run, &freed))?;
    Ok(if freed.failed.is_empty() { Exit::Ok } else { Exit::Failed })
}

/// Has a home collected: by the daemon that owns it, which knows what it relies on at this moment, or here if there is none that can be
/// asked.
pub(super) fn collect(context: &Context, asked: &Collect) -> Result<Collected, Failure> {
    if let Ok(Some(client)) = Client::find(&context.home) {
        match client.collect(asked) {
            // One of an earlier version: beside it everything works that it does not rely on just now.
            Err(failure) if failure.code() == Code::NoSuchPath.as_str() => {}
            collected => return collected,
        }
    }
    Ok(gc(&context.disk(), &context.home, asked.into())?)
}

fn print_text(
    out: &mut dyn Write,
    context: &Context,
    dry_run: bool,
    freed: &Collected,
) -> Result<(), Failure> {
    let width = output::width();
    let shown = |path: &str| sanitise::line(&below(&context.home, std::path::Path::new(path)));
    for gone in freed.gone.iter().take(MAX_SHOWN) {
        writeln!(out, "  {} {}", styled(BOLD, shown(&gone.path)), styled(DIM, output::size(gone.bytes)))?;
        writeln!(out, "{}", wrap(&sanitise::line(&gone.why), width, "    ", "    "))?;
    }
    if let Some(more) = freed.gone.len().checked_sub(MAX_SHOWN).filter(|more| *more > 0) {
        writeln!(out, "  {}", styled(DIM, format!("and {more} more; --json lists them")))?;
    }
    for (word, style, list) in [("stays", DIM, &freed.left), ("failed", BAD, &freed.failed)] {
        for (left, others) in by_reason(list) {
            let more = if others == 0 { String::new() } else { format!(" and {others} more") };
            writeln!(out, "  {} {}{more}", styled(style, word), shown(&left.path))?;
            writeln!(out, "{}", wrap(&sanitise::line(&left.why), width, "    ", "    "))?;
        }
    }
    if freed.expired_checkpoints > 0 {
        let count = plural(freed.expired_checkpoints, "checkpoint");
        let text =
            format!("the files of {count} of runs are no longer kept: [checkpoints] says how long they are");
        writeln!(out, "{}", wrap(&text, width, "  ", "  "))?;
    }
    let count = plural(freed.gone.len() as u64, "thing");
    let text = match (freed.gone.is_empty(), dry_run) {
        (true, _) => "nothing to remove".to_owned(),
        (false, true) => format!("would remove {count}, {}", output::size(freed.bytes())),
        (false, false) => format!("removed {count}, {}", output::size(freed.bytes())),
    };
    writeln!(out, "{text}")?;
    Ok(writeln!(out, "{}", wrap(&space_text(&freed.space), width, "", ""))?)
}

/// Says what takes the room of a home, before anything was removed.
fn space_text(space: &Space) -> String {
    let checkpoints = space.checkpoints.unwrap_or(0);
    let parts = [
        ("sessions", space.sessions),
        ("kept snapshots", space.kept_snapshots),
        ("checkpoints", checkpoints),
        ("other blobs", space.blobs.saturating_sub(checkpoints)),
        ("workspaces", space.workspaces),
        ("holders", space.holders),
        ("imports", space.imports),
        ("write-ahead log", space.wal),
        ("other", space.other),
    ];
    let told = parts.iter().filter(|(_, bytes)| *bytes > 0);
    let told: Vec<String> = told.map(|(name, bytes)| format!("{name} {}", output::size(*bytes))).collect();
    format!("space used before: {}", if told.is_empty() { "none".into() } else { told.join(", ") })
}

/// Returns the first thing for each reason, and how many more have it: a hundred dead agents are one line.
fn by_reason(list: &[Left]) -> Vec<(&Left, usize)> {
    let mut reasons: Vec<(&Left, usize)> = Vec::new();
    for left in list {
        match reasons.iter_mut().find(|(first, _)| first.why == left.why) {
            Some((_, others)) => *others += 1,
            None => reasons.push((left, 0)),
        }
    }
    reasons
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stays_for_the_same_reason_is_told_once() {
        let left = |path: &str, why: &str| Left { kind: "holder".into(), path: path.into(), why: why.into() };
        let list = [left("a", "young"), left("b", "damaged"), left("c", "young"), left("d", "young")];
        let told: Vec<(String, usize)> =
            by_reason(&list).into_iter().map(|(first, more)| (first.path.clone(), more)).collect();
        assert_eq!(told, [("a".into(), 2), ("b".into(), 0)]);
    }

    #[test]
    fn room_is_told_by_what_takes_it() {
        assert_eq!(space_text(&Space::default()), "space used before: none");
        let space = Space { sessions: 2048, checkpoints: Some(1024), blobs: 3072, ..Space::default() };
        let text = space_text(&space);
        assert_eq!(text, "space used before: sessions 2.0 KiB, checkpoints 1.0 KiB, other blobs 2.0 KiB");
    }
}
