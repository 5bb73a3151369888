//! `rekindle pipeline log`: what happened in a run, step by step or record by record.

use std::io::Write;

use rekindle_client::{Exit, Failure};
use rekindle_display::pipeline::Progress;
use rekindle_display::record_text::RecordPrinter;
use rekindle_domain::line::Line;
use rekindle_terminal::output;

use super::follow::{Followee, follow};
use super::ledger::each_record;
use super::run_arg::RunArg;
use crate::context::Context;

/// Show what happened in a run: the lines that `run` prints, or the records of its ledger
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle pipeline log         # this directory's latest run
  rekindle pipeline log -f      # goes on to its end
  rekindle pipeline log run-20251020-140818-4f9f29a1 --records
  rekindle pipeline log --json | jq -r .kind")]
pub(super) struct Args {
    #[command(flatten)]
    run: RunArg,

    /// Follow it to the end of the run; the exit code is that of `run`
    #[arg(long, short, conflicts_with = "records")]
    follow: bool,

    /// Every record, a line each
    #[arg(long)]
    records: bool,
}

pub(super) fn run(context: &Context, args: &Args) -> Result<Exit, Failure> {
    let client = context.daemon_or_start()?;
    let run = args.run.find(&client)?;
    if args.follow {
        return follow(context, &client, vec![Followee::new(run, 0)]);
    }
    if args.records || context.json {
        let mut printer = RecordPrinter::new(context.json, context.blobs());
        let told = each_record(&client, &run.run_id, 0, |record| printer.print(record));
        printer.flush()?;
        return told.map(|()| Exit::Ok);
    }
    let (mut out, width) = (output::stdout(), output::width());
    let mut progress = Progress::new(String::new());
    let told = each_record(&client, &run.run_id, 0, |record| {
        let line = Line::parse(record.as_bytes());
        let lines = line.ok().and_then(|line| Some(progress.take(line.time(), &line.event().ok()?, width)));
        Ok(lines.unwrap_or_default().iter().try_for_each(|line| writeln!(out, "{line}"))?)
    });
    out.flush()?;
    told.map(|()| Exit::Ok)
}
