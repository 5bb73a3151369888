//! `rekindle snapshot show`: what a session was when a snapshot of it was taken.

use std::io::Write;

use rekindle_client::clock::SystemClock;
use rekindle_client::{Exit, Failure};
use rekindle_display::record_text::word;
use rekindle_domain::time::Clock;
use rekindle_terminal::output::{self, BOLD, DIM, grouped, plural, styled};
use rekindle_terminal::sanitise;
use rekindle_wire::view::SnapshotDetail;
use rekindle_workspace::tree::short_name;
use serde_json::json;

use super::{Context, LIST, Named, detail_of};

/// Show what a session was when a snapshot was taken
///
/// With --json the whole state is in it.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "rekindle snapshot show [OPTIONS] [SESSION] SNAPSHOT",
    after_help = "Examples:
  rekindle snapshot show 148-1
  rekindle snapshot show 01khz0p6r8 148-1 --json"
)]
pub(super) struct Args {
    /// The snapshot's name, behind the session if it is not this directory's latest
    #[arg(value_name = "SNAPSHOT", required = true, num_args = 1..=2)]
    words: Vec<String>,
}

pub(super) fn run(context: &Context, args: &Args) -> Result<Exit, Failure> {
    let named = Named::read(&args.words)?;
    let &[name] = named.snapshots.as_slice() else {
        return Err(Failure::usage("no_snapshot", "which snapshot is not said".into()).hint(LIST));
    };
    let detail = detail_of(context, &named, name)?;
    context.print(&json!(detail), |out| write(out, &detail))
}

fn write(out: &mut dyn Write, detail: &SnapshotDetail) -> Result<(), Failure> {
    let now = SystemClock.now();
    let SnapshotDetail { name, session_id, seq, .. } = detail;
    let facts = format!(
        "{}, taken {} ({}), {}",
        session_id,
        output::when(detail.created_at, now),
        word(&detail.reason),
        output::size(detail.size_bytes)
    );
    writeln!(out, "{}  {}", styled(BOLD, name), styled(DIM, facts))?;
    let run = detail.run.as_ref().map(|run| format!("{} {}", run.run_id, run.state));
    let usage = &detail.usage;
    let tokens =
        format!("{} tokens read, {} written", grouped(usage.input_tokens), grouped(usage.output_tokens));
    let rows = [
        ("title", Some(detail.title.clone()).filter(|title| !title.is_empty())),
        ("directory", Some(detail.working_dir.clone())),
        ("agent", Some(detail.agent.clone())),
        ("model", detail.model.clone()),
        ("mode", detail.mode.clone()),
        ("its session", detail.cursor.clone()),
        ("run", run),
        ("waits", (detail.waits > 0).then(|| detail.waits.to_string())),
        ("queued", (detail.queued > 0).then(|| plural(detail.queued as u64, "prompt"))),
        ("usage", Some(tokens)),
        ("history", Some(format!("records 1 to {seq} of the log"))),
        ("files", detail.tree.as_ref().map(short_name)),
    ];
    for (what, value) in rows {
        if let Some(value) = value {
            writeln!(out, "  {}  {}", styled(DIM, format!("{what:<11}")), sanitise::line(&value))?;
        }
    }
    Ok(())
}
