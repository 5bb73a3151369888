//! `rekindle pipeline graph`: the stages of a pipeline, where each outcome leads, and which way a run went.

use rekindle_client::{Exit, Failure};
use rekindle_display::pipeline::{edges, write_dot, write_graph};
use serde_json::json;

use super::ledger::started_config;
use super::project_dir;
use super::run_arg::RunArg;
use crate::context::Context;

/// Show the stages of a pipeline and where each outcome leads; of a run, also which way it went
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle pipeline graph                       # the default pipeline
  rekindle pipeline graph -p quick
  rekindle pipeline graph -r run-20251020-1408  # with the steps that it took
  rekindle pipeline graph --dot | dot -Tsvg > pipeline.svg")]
pub(super) struct Args {
    #[command(flatten)]
    run: RunArg,

    /// Which of the file's pipelines [default: default]
    #[arg(long, short, value_name = "NAME", conflicts_with_all = ["run", "run_option"])]
    pipeline: Option<String>,

    /// Write it for Graphviz
    #[arg(long)]
    dot: bool,
}

pub(super) fn run(context: &Context, args: &Args) -> Result<Exit, Failure> {
    let (pipeline, run) = if args.run.is_given() {
        let client = context.daemon_or_start()?;
        let run = args.run.find(&client)?;
        let config = started_config(&client, &run.run_id)?.unwrap_or_default();
        (config.pipelines.get(&run.pipeline).cloned().unwrap_or_default(), Some(run))
    } else {
        let project = project_dir::find(&project_dir::directory(None)?)?;
        let name = args.pipeline.as_deref().unwrap_or(rekindle_domain::event::DEFAULT_PIPELINE);
        project.check(&[], name)?;
        (project.config.pipelines.get(name).cloned().unwrap_or_default(), None)
    };
    let edges = edges(&pipeline);
    let described: Vec<_> =
        edges.iter().map(|edge| json!({"from": edge.from, "outcome": edge.outcome, "to": edge.to})).collect();
    let json = json!({"stages": pipeline.stages.iter().map(|stage| &stage.name).collect::<Vec<_>>(), "edges": described});
    context.print(&json, |out| {
        let written =
            if args.dot { write_dot(out, &edges) } else { write_graph(out, &pipeline, &edges, run.as_ref()) };
        Ok(written?)
    })
}
