//! `rekindle pipeline graph`: the stages of a pipeline, where each outcome leads, and which way a run went.

use std::collections::BTreeMap;
use std::io::Write;

use rekindle_client::{Exit, Failure};
use rekindle_domain::event::{PipelineConfig, StageConfig};
use rekindle_terminal::output::{BOLD, DIM, columns, plural, shell_word, styled};
use rekindle_terminal::sanitise;
use rekindle_wire::view::PipelineView;
use serde_json::json;

use super::ledger::started_config;
use super::project_dir;
use super::run_arg::RunArg;
use crate::context::Context;

/// Show the stages of a pipeline and where each outcome leads; of a run, also which way it went
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle pipeline graph                                  # the default pipeline of this directory's rekindle.toml
  rekindle pipeline graph -p quick
  rekindle pipeline graph -r run-20251020-140818-4f9f29a1  # with the steps that it took
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
        let written = if args.dot { dot(out, &edges) } else { text(out, &pipeline, &edges, run.as_ref()) };
        Ok(written?)
    })
}

/// Where an outcome of a stage leads.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Edge {
    from: String,
    outcome: String,
    /// A stage, `end` or `fail`.
    to: String,
    /// It leads back: another round begins.
    back: bool,
}

const END: &str = "end";
const FAIL: &str = "fail";

/// Returns where each outcome of each stage leads.
fn edges(pipeline: &PipelineConfig) -> Vec<Edge> {
    let mut edges = Vec::new();
    for (place, stage) in pipeline.stages.iter().enumerate() {
        let next = pipeline.stages.get(place + 1).map_or(END, |next| next.name.as_str());
        let mut add = |outcome: &str, target: &str| {
            let to = if target == "next" { next } else { target };
            let back = pipeline.stage(to).is_some_and(|(to, _)| to <= place);
            let (from, outcome, to) = (stage.name.clone(), outcome.to_owned(), to.to_owned());
            edges.push(Edge { from, outcome, to, back });
        };
        if stage.outcomes.is_empty() {
            add("completed", "next");
        }
        for (outcome, target) in stage.outcomes.iter().filter(|(outcome, _)| *outcome != "failed") {
            add(outcome, target);
        }
        add("failed", stage.on_fail.as_deref().unwrap_or(FAIL));
    }
    edges
}

fn text(
    out: &mut dyn Write,
    pipeline: &PipelineConfig,
    edges: &[Edge],
    run: Option<&PipelineView>,
) -> std::io::Result<()> {
    let mut taken: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for step in run.iter().flat_map(|run| &run.stages) {
        if let Some(outcome) = &step.outcome {
            *taken.entry((&step.name, outcome)).or_default() += 1;
        }
    }
    let width = edges.iter().map(|edge| columns(&edge.outcome)).max().unwrap_or(0);
    for stage in &pipeline.stages {
        let now = run.and_then(|run| run.pending.as_ref()).filter(|pending| pending.stage == stage.name);
        let now = now.map(|pending| format!("  ← now, round {}", pending.round)).unwrap_or_default();
        let (name, who) =
            (styled(BOLD, sanitise::line(&stage.name)), styled(DIM, sanitise::line(&who(stage))));
        writeln!(out, "{name}  {who}{now}")?;
        for edge in edges.iter().filter(|edge| edge.from == stage.name) {
            let pad = " ".repeat(width.saturating_sub(columns(&edge.outcome)));
            let back = if edge.back { ", in another round" } else { "" };
            let count = taken.get(&(stage.name.as_str(), edge.outcome.as_str()));
            let count = count.map(|count| format!("  ({})", plural(*count, "time"))).unwrap_or_default();
            let (outcome, to) = (sanitise::line(&edge.outcome), sanitise::line(&edge.to));
            writeln!(out, "  {outcome}{pad} → {to}{back}{count}")?;
        }
    }
    writeln!(out, "{}", styled(DIM, format_args!("at most {}", plural(pipeline.rounds().into(), "round"))))
}

/// Says who works at a stage, or what checks.
fn who(stage: &StageConfig) -> String {
    let words = stage.check.iter().flatten().map(|word| shell_word(word)).collect::<Vec<_>>().join(" ");
    match &stage.agent {
        Some(agent) if stage.writes => agent.clone(),
        Some(agent) => format!("{agent}, which changes no file"),
        None => words,
    }
}

/// Writes it in the language of Graphviz. Names have neither quotes nor backslashes in them.
fn dot(out: &mut dyn Write, edges: &[Edge]) -> std::io::Result<()> {
    writeln!(out, "digraph pipeline {{")?;
    writeln!(out, "  rankdir=LR; node [shape=box]; {END} [shape=doublecircle]; {FAIL} [shape=octagon];")?;
    for Edge { from, outcome, to, back } in edges {
        let style = if *back { ", style=dashed" } else { "" };
        writeln!(out, "  \"{from}\" -> \"{to}\" [label=\"{outcome}\"{style}];")?;
    }
    writeln!(out, "}}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::pipeline::samples::{plain, run as sample};

    fn pipeline() -> PipelineConfig {
        serde_json::from_str(
            r#"{"max_rounds":3,"stages":[
            {"name":"implement","agent":"builder"},
            {"name":"review","agent":"reviewer","writes":false,"outcomes":{"approved":"next","changes_requested":"implement"}},
            {"name":"verify","check":["cargo","test","a b"],"on_fail":"implement"}]}"#,
        )
        .expect("a pipeline")
    }

    #[test]
    fn every_outcome_leads_somewhere_and_a_run_says_how_often() {
        let (pipeline, mut out) = (pipeline(), Vec::new());
        text(&mut out, &pipeline, &edges(&pipeline), Some(&sample())).expect("written");
        assert_eq!(
            plain(&out),
            "implement  builder
  completed         → review  (1 time)
  failed            → fail
review  reviewer, which changes no file  ← now, round 1
  approved          → verify
  changes_requested → implement, in another round
  failed            → fail
verify  cargo test 'a b'
  completed         → end
  failed            → implement, in another round
at most 3 rounds
"
        );
    }

    #[test]
    fn graphviz_is_told_the_same() {
        let mut out = Vec::new();
        dot(&mut out, &edges(&pipeline())).expect("written");
        let text = plain(&out);
        assert!(
            text.contains("\"review\" -> \"implement\" [label=\"changes_requested\", style=dashed];"),
            "{text}"
        );
        assert_eq!(text.matches("->").count(), 7);
    }
}
