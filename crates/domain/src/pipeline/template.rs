//! Templates of prompts: `{{task.goal}}`, `{{inputs.spec}}`, `{{round}}`, `{{review.findings}}`. They are read and checked before
//! anything runs, and expanded once: what is put in is never read as a template again.

use std::fmt;

use serde_json::Value;

use super::outcome;
use super::state::{Payload, PipelineState};
use crate::event::{PipelineConfig, TaskConfig};
use crate::id::{StepId, is_plain_name};

/// The most bytes that one value puts in: an agent can read that, and a prompt of a few of them fits into a record.
pub const MAX_VALUE: usize = 64 << 10;

/// Names that begin templates, so that no stage may have them.
pub const RESERVED: [&str; 3] = ["task", "inputs", "round"];

/// A template, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    /// A name, and the byte at which it begins.
    Value(usize, Name),
}

/// What a template names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Name {
    /// `task.id`
    TaskId,
    /// `task.goal`
    TaskGoal,
    /// `inputs.<name>`
    Input(String),
    /// `round`
    Round,
    /// `<stage>.outcome`: what came last of a stage.
    Outcome(String),
    /// `<stage>.findings`: what its agent found, or its check printed.
    Findings(String),
    /// `<stage>.summary`: its agent's last words.
    Summary(String),
    /// `<stage>.diff`: what it changed.
    Diff(String),
}

/// What is wrong with a template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct BadTemplate {
    /// The byte at which it is.
    pub offset: usize,
    /// What it is, and what to do.
    pub what: String,
}

impl Template {
    /// Reads a template.
    pub fn parse(text: &str) -> Result<Template, BadTemplate> {
        let mut parts = Vec::new();
        let mut at = 0;
        while let Some(open) = text[at..].find("{{").map(|found| at + found) {
            let bad = |what: String| BadTemplate { offset: open, what };
            let inside = open + 2;
            let close = text[inside..].find("}}").map(|found| inside + found);
            let close =
                close.ok_or_else(|| bad("{{ without }}: close it, or write fewer than two braces".into()))?;
            let name = text[inside..close].trim();
            parts.push(Part::Text(text[at..open].to_owned()));
            parts.push(Part::Value(open, read_name(name).map_err(bad)?));
            at = close + 2;
        }
        parts.push(Part::Text(text[at..].to_owned()));
        parts.retain(|part| !matches!(part, Part::Text(text) if text.is_empty()));
        Ok(Template { parts })
    }

    /// Returns what it names.
    pub fn names(&self) -> impl Iterator<Item = &Name> {
        self.named().map(|(_, name)| name)
    }

    fn named(&self) -> impl Iterator<Item = (usize, &Name)> {
        self.parts.iter().filter_map(|part| match part {
            Part::Value(offset, name) => Some((*offset, name)),
            Part::Text(_) => None,
        })
    }

    /// Returns the names in it that a pipeline does not have stages for, or that are none of these inputs.
    pub fn unknown(&self, pipeline: &PipelineConfig, is_input: impl Fn(&str) -> bool) -> Vec<BadTemplate> {
        let stages: Vec<&str> = pipeline.stages.iter().map(|stage| stage.name.as_str()).collect();
        let mut problems = Vec::new();
        for (offset, name) in self.named() {
            let what = match name {
                Name::Input(input) if !is_input(input) => {
                    format!("{{{{{name}}}}}: no task has an input {input}; add it to the task's inputs")
                }
                Name::Outcome(stage) | Name::Findings(stage) | Name::Summary(stage) | Name::Diff(stage)
                    if !stages.contains(&stage.as_str()) =>
                {
                    format!(
                        "{{{{{name}}}}}: there is no stage {stage}; there are {}, and task.id, task.goal, inputs.*, round",
                        stages.join(", ")
                    )
                }
                _ => continue,
            };
            problems.push(BadTemplate { offset, what });
        }
        problems
    }

    /// Puts values in; what has none is left out. Long ones are cut, and that is said.
    pub fn expand(&self, value: impl Fn(&Name) -> Option<String>) -> String {
        let mut text = String::new();
        for part in &self.parts {
            match part {
                Part::Text(plain) => text.push_str(plain),
                Part::Value(_, name) => text.push_str(&shortened(value(name).unwrap_or_default())),
            }
        }
        text
    }
}

fn read_name(name: &str) -> Result<Name, String> {
    let unknown = || {
        let shown: String = name.chars().take(64).collect();
        format!(
            "{{{{{shown}}}}} is not a known name: there are task.id, task.goal, inputs.*, round, and outcome, findings, summary and diff of each stage"
        )
    };
    if name == "round" {
        return Ok(Name::Round);
    }
    let (of, what) = name.split_once('.').ok_or_else(unknown)?;
    match (of, what) {
        ("task", "id") => Ok(Name::TaskId),
        ("task", "goal") => Ok(Name::TaskGoal),
        ("task", _) | ("round", _) => Err(unknown()),
        ("inputs", input) if is_plain_name(input) => Ok(Name::Input(input.to_owned())),
        ("inputs", _) => Err(unknown()),
        (stage, _) if !is_plain_name(stage) => Err(unknown()),
        (stage, "outcome") => Ok(Name::Outcome(stage.to_owned())),
        (stage, "findings") => Ok(Name::Findings(stage.to_owned())),
        (stage, "summary") => Ok(Name::Summary(stage.to_owned())),
        (stage, "diff") => Ok(Name::Diff(stage.to_owned())),
        _ => Err(unknown()),
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Name::TaskId => f.write_str("task.id"),
            Name::TaskGoal => f.write_str("task.goal"),
            Name::Input(input) => write!(f, "inputs.{input}"),
            Name::Round => f.write_str("round"),
            Name::Outcome(stage) => write!(f, "{stage}.outcome"),
            Name::Findings(stage) => write!(f, "{stage}.findings"),
            Name::Summary(stage) => write!(f, "{stage}.summary"),
            Name::Diff(stage) => write!(f, "{stage}.diff"),
        }
    }
}

fn shortened(value: String) -> String {
    if value.len() <= MAX_VALUE {
        return value;
    }
    let end = value.floor_char_boundary(MAX_VALUE);
    format!("{}\n[… {} bytes are left out]", &value[..end], value.len() - end)
}

/// Returns the value of a name for the next step of a run, as far as its ledger has it: neither contents of files, nor changes, nor
/// what is in a blob.
pub fn value_in_ledger(state: &PipelineState, step: &StepId, name: &Name) -> Option<String> {
    let task: &TaskConfig = &state.started.as_ref()?.task;
    match name {
        Name::TaskId => Some(task.id.clone()),
        Name::TaskGoal => Some(task.goal.clone()),
        Name::Round => Some(step.round.to_string()),
        Name::Input(input) => task.inputs.get(input)?.to_text(),
        Name::Outcome(stage) => Some(state.latest_result(stage)?.1.outcome.clone()),
        Name::Findings(stage) => field(state.latest_result(stage)?.1.payload.as_ref()?, "findings"),
        Name::Summary(stage) => field(state.latest_result(stage)?.1.payload.as_ref()?, "summary"),
        Name::Diff(_) => None,
    }
}

fn field(payload: &Payload, name: &str) -> Option<String> {
    match payload {
        Payload::Inline(json) => payload_field(json.as_json(), name),
        Payload::Blob(_) => None,
    }
}

/// Returns a field of what an agent said with an outcome, as text.
pub fn payload_field(json: &str, name: &str) -> Option<String> {
    let mut payload: Value = serde_json::from_str(json).ok()?;
    outcome::plain_text(payload.get_mut(name)?.take())
}

#[cfg(test)]
mod tests;
