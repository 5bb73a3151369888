//! `rekindle pipeline resume`: a run goes on where it was. What it goes on with is told first.

use std::io::Write;

use rekindle_client::{Exit, Failure, read};
use rekindle_display::pipeline::write_report;
use rekindle_domain::event::OnDrift;
use rekindle_terminal::{output, sanitise};
use rekindle_wire::request::ResumePipeline;
use rekindle_wire::view::PipelineResumed;

use super::execution_args::ExecutionArgs;
use super::follow::{Followee, follow};
use super::ledger::started_config;
use super::run_arg::{RunArg, path};
use super::trust;
use crate::context::Context;
use crate::env_arg::umask_for;
use crate::possible_values::one_of;

/// Have a run go on where it was, and follow it to the end
///
/// Finished steps are read from its ledger and never done again; a step whose agent lives is taken over, one that was cut begins again or goes
/// on, as --on-cut of the run says. A daemon does that by itself when it starts; this is for runs that rest: files are not as expected, a step
/// was cancelled or was cut too often, or it was to ask. There is nothing to do for a run that is complete, and that is no failure.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle pipeline resume                      # this directory's latest run
  rekindle pipeline resume run-20251020-140818-4f9f29a1
  rekindle pipeline resume --on-drift restore   # takes back what changed since
  rekindle pipeline resume --force              # one that failed or was aborted

Exit codes:
  0  completed             3  rests: resume it    5    no daemon
  1  failed or aborted     4  asks a person       130  left with Ctrl-C
  2  wrong usage")]
pub(super) struct Args {
    #[command(flatten)]
    run: RunArg,

    /// What to do with files that are not as the run expects them
    #[arg(long, value_parser = one_of::<OnDrift>(ON_DRIFT), value_name = "POLICY")]
    on_drift: Option<OnDrift>,

    /// Continue even though it failed or was aborted; a failed step is done again, in a round of its own
    #[arg(long)]
    force: bool,

    /// Continue with the configuration that the run was started with, even if rekindle.toml has changed
    #[arg(long)]
    accept_config: bool,

    #[command(flatten)]
    execution: ExecutionArgs,
}

/// What becomes of files that are not as expected.
const ON_DRIFT: &[(&str, &str)] = &[
    ("stop", "Nothing goes on until somebody decides (the default)"),
    ("restore", "They are made what is expected"),
    ("accept", "They are taken as they are"),
];

pub(super) fn run(context: &Context, args: &Args) -> Result<Exit, Failure> {
    let mut client = context.daemon_or_start()?;
    let run = args.run.find(&client)?;
    if !context.json {
        let mut out = output::stdout();
        write_report(&mut out, &run)?;
        out.flush()?;
    }
    let config = started_config(&client, &run.run_id)?;
    let mut body = ResumePipeline {
        on_drift: args.on_drift,
        force: args.force,
        accept_config: args.accept_config,
        config: None,
        trust: args.execution.trust,
        no_cache: args.execution.no_cache,
        env: args.execution.environment(context, config.as_ref())?,
        umask: umask_for(context),
    };
    let place = format!("{}/resume", path(&run.run_id));
    let answer = match (client.post_once(&place, &body), &config) {
        // It came in a bundle, or too much was trusted since.
        (Err(refused), Some(config))
            if refused.code() == trust::UNTRUSTED && args.execution.trust.is_none() =>
        {
            body.trust = Some(trust::ask_for_run(context, &run, config)?);
            client.post_once(&place, &body)
        }
        (answer, _) => answer,
    }?;
    let resumed: PipelineResumed = read(&answer)?;
    if args.execution.detach && context.json {
        return context.acknowledge(&answer, "");
    }
    for change in &resumed.config_changes {
        let change = sanitise::line(change);
        anstream::eprintln!(
            "note: {change} has changed in rekindle.toml; the run uses what it was started with"
        );
    }
    if !resumed.resumed {
        anstream::eprintln!("it is complete: there is nothing to do");
        return Ok(Exit::Ok);
    }
    if args.execution.detach {
        anstream::eprintln!("{} continues", run.run_id);
        return Ok(Exit::Ok);
    }
    let known = run.last_seq;
    follow(context, &client, vec![Followee::new(run, known)])
}
