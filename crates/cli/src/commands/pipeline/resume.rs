//! `rekindle pipeline resume`: a run goes on where it was. What it goes on with is told first.

use std::io::Write;

use rekindle_client::{Exit, Failure, read};
use rekindle_domain::blob_id::BlobId;
use rekindle_domain::event::OnDrift;
use rekindle_domain::pipeline::RunStatus;
use rekindle_terminal::output::{DIM, plural, styled};
use rekindle_terminal::{output, sanitise};
use rekindle_wire::request::ResumePipeline;
use rekindle_wire::view::{PipelineResumed, PipelineView};

use super::follow::{Followee, follow};
use super::ledger::started_config;
use super::run::environment;
use super::run_arg::{RunArg, path};
use super::trust;
use super::words::{cut_text, pending_text};
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
  rekindle pipeline resume                                         # this directory's latest run
  rekindle pipeline resume run-20251020-140818-4f9f29a1
  rekindle pipeline resume -r 20251020-1408 --on-drift restore     # take back what changed since
  rekindle pipeline resume --force                                 # one that failed or was aborted

Exit codes:
  0  completed             3  rests: resume it    5    no daemon
  1  failed or aborted     4  asks a person       130  left with Ctrl-C
  2  wrong usage")]
pub(super) struct Args {
    #[command(flatten)]
    run: RunArg,

    /// What becomes of files that are not as the run expects them
    #[arg(long, value_parser = one_of::<OnDrift>(ON_DRIFT), value_name = "POLICY")]
    on_drift: Option<OnDrift>,

    /// Go on though it failed or was aborted; a step that failed is done again, in a round of its own
    #[arg(long)]
    force: bool,

    /// Go on with what the run was started with, though rekindle.toml says something else by now
    #[arg(long)]
    accept_config: bool,

    /// Use no results of earlier runs
    #[arg(long)]
    no_cache: bool,

    /// Trust the configuration with this hash in its directory from now on
    #[arg(long, value_name = "HASH")]
    trust: Option<BlobId>,

    /// Hand agents a variable of ours, or one with a value
    #[arg(long, value_name = "NAME[=VALUE]")]
    env: Vec<String>,

    /// Do not follow: return when it goes on
    #[arg(long, short)]
    detach: bool,
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
        report(&mut out, &run)?;
        out.flush()?;
    }
    let config = started_config(&client, &run.run_id)?;
    let mut body = ResumePipeline {
        on_drift: args.on_drift,
        force: args.force,
        accept_config: args.accept_config,
        config: None,
        trust: args.trust,
        no_cache: args.no_cache,
        env: environment(context, config.as_ref(), &args.env)?,
        umask: umask_for(context),
    };
    let place = format!("{}/resume", path(&run.run_id));
    let answer = match (client.post_once(&place, &body), &config) {
        // It came in a bundle, or too much was trusted since.
        (Err(refused), Some(config)) if refused.code() == trust::UNTRUSTED && args.trust.is_none() => {
            body.trust = Some(trust::ask_for_run(context, &run, config)?);
            client.post_once(&place, &body)
        }
        (answer, _) => answer,
    }?;
    let resumed: PipelineResumed = read(&answer)?;
    if args.detach && context.json {
        return context.acknowledge(&answer, "");
    }
    for change in &resumed.config_changes {
        let change = sanitise::line(change);
        anstream::eprintln!(
            "note: {change} is another thing in rekindle.toml by now; the run goes by what it was started with"
        );
    }
    if !resumed.resumed {
        anstream::eprintln!("it is complete: there is nothing to do");
        return Ok(Exit::Ok);
    }
    if args.detach {
        anstream::eprintln!("{} goes on", run.run_id);
        return Ok(Exit::Ok);
    }
    let known = run.last_seq;
    follow(context, &client, vec![Followee::new(run, known)])
}

/// Writes what a run goes on with.
pub(super) fn report(out: &mut dyn Write, run: &PipelineView) -> std::io::Result<()> {
    let mut line = |name: &str, text: &str| {
        writeln!(out, "{} {}", styled(DIM, format_args!("{name:<10}")), sanitise::line(text))
    };
    line("run", &run.run_id)?;
    line("task", &format!("{}: {}", run.task_id, run.goal))?;
    line("snapshot", &format!("{} (pinned)", run.snapshot_id))?;
    let why = run.reason.as_deref().map(|why| format!(": {why}")).unwrap_or_default();
    line("status", &format!("{}{why}", run.status.as_str()))?;
    let stage = run.current_stage.as_deref().unwrap_or("none yet");
    line("stage", &format!("{stage}, round {} of at most {}", run.round, run.max_rounds.max(run.round)))?;
    let counts = run.counts;
    let events = counts.events.max(counts.terminal_events);
    line(
        "ledger",
        &format!(
            "{}, {}, {}",
            plural(counts.commands, "command"),
            plural(events, "event"),
            plural(counts.heartbeats, "heartbeat")
        ),
    )?;
    line("pending", &pending(run))
}

/// Says what is pending: that nothing is does not make a run complete.
fn pending(run: &PipelineView) -> String {
    match (&run.pending, run.status) {
        (Some(pending), _) => {
            let cut = run.stages.last().and_then(|step| step.cut);
            let cut = cut.map(|cut| format!(" ({})", cut_text(cut))).unwrap_or_default();
            format!("1 step: {} {}{cut}", pending.step_id, pending_text(pending.why))
        }
        (None, RunStatus::Running) => "no step; what follows is about to be seen".into(),
        (None, RunStatus::Completed) => "nothing".into(),
        (None, RunStatus::Failed | RunStatus::Aborted) => {
            "nothing: it has ended; --force has it go on".into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::pipeline::samples::run;

    fn shown(run: &PipelineView) -> String {
        let mut out = Vec::new();
        report(&mut out, run).expect("written");
        anstream::adapter::strip_bytes(&out).into_vec().iter().map(|byte| char::from(*byte)).collect()
    }

    #[test]
    fn a_report_says_what_a_run_goes_on_with() {
        assert_eq!(
            shown(&run()),
            "run        run-20251020-140818-4f9f29a1\n\
             task       T-0042: Make the parser accept comments\n\
             snapshot   snap-d0ab7e60b764 (pinned)\n\
             status     running\n\
             stage      review, round 1 of at most 3\n\
             ledger     2 commands, 1 event, 3 heartbeats\n\
             pending    1 step: review-1 was cut (its agent is gone)\n"
        );
    }

    #[test]
    fn nothing_pending_is_not_complete() {
        let pending = |status| pending(&PipelineView { status, pending: None, ..run() });
        assert_eq!(pending(RunStatus::Completed), "nothing");
        assert!(pending(RunStatus::Running).starts_with("no step"));
        assert!(pending(RunStatus::Aborted).contains("--force"));
    }
}
