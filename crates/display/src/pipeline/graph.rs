//! The stages of a pipeline, where each outcome leads, and which way a run went: for people, and for Graphviz.

use std::collections::BTreeMap;
use std::io::{Result, Write};

use rekindle_domain::event::{PipelineConfig, StageConfig};
use rekindle_terminal::output::{BOLD, DIM, columns, plural, shell_word, styled};
use rekindle_terminal::sanitise;
use rekindle_wire::view::PipelineView;

/// Where an outcome of a stage leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edge {
    /// The stage.
    pub from: String,
    /// The outcome.
    pub outcome: String,
    /// A stage, `end` or `fail`.
    pub to: String,
    /// It leads back: another round begins.
    back: bool,
}

const END: &str = "end";
const FAIL: &str = "fail";

/// Returns where each outcome of each stage leads.
pub fn edges(pipeline: &PipelineConfig) -> Vec<Edge> {
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

/// Writes each stage with who works at it, where its outcomes lead, and how often a run went there.
pub fn write_graph(
    out: &mut dyn Write,
    pipeline: &PipelineConfig,
    edges: &[Edge],
    run: Option<&PipelineView>,
) -> Result<()> {
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
pub fn write_dot(out: &mut dyn Write, edges: &[Edge]) -> Result<()> {
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
    use crate::pipeline::samples::{plain, run as sample};

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
        write_graph(&mut out, &pipeline, &edges(&pipeline), Some(&sample())).expect("written");
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
        write_dot(&mut out, &edges(&pipeline())).expect("written");
        let text = plain(&out);
        assert!(
            text.contains("\"review\" -> \"implement\" [label=\"changes_requested\", style=dashed];"),
            "{text}"
        );
        assert_eq!(text.matches("->").count(), 7);
    }
}
