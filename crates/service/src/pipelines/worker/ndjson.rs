//! Steps of `ndjson` agents: the command that one is sent, and what the event that ended it comes to.

use std::collections::BTreeMap;
use std::path::Path;

use rekindle_agent::ndjson::{Command, Version};
use rekindle_domain::event::{InputValue, StageConfig};
use rekindle_domain::pipeline::artifact::{Artifact, ArtifactError, MOST_ARTIFACTS};
use rekindle_domain::pipeline::outcome::{FAILED, Terminal, of_event};
use rekindle_domain::pipeline::template::payload_field;
use rekindle_domain::pipeline::{Started, StepState};
use rekindle_domain::session::SessionState;
use rekindle_domain::time::Timestamp;
use rekindle_workspace::tree::short_name;
use serde_json::{Map, Value, json};

use super::super::agent_events::{TerminalEvent, artifacts_told, terminal_event};
use super::super::trees::Trees;
use super::payload::{Payload, failed};
use crate::error::{Result, ServiceError};
use crate::storage::Sessions;

/// Artifacts that an error names: the rest are counted.
const NAMED: usize = 5;

/// Returns the command of the next attempt at a step, as it is sent.
pub(super) fn command(
    started: &Started,
    step: &StepState,
    stage: &StageConfig,
    prompt: String,
    now: Timestamp,
) -> String {
    let mut inputs: Map<String, Value> =
        started.task.inputs.iter().map(|(name, value)| (name.clone(), input(value))).collect();
    inputs.insert("goal".into(), started.task.goal.clone().into());
    inputs.insert("prompt".into(), prompt.into());
    let deadline = stage.deadline_ms().and_then(|millis| i64::try_from(millis).ok());
    let command = Command {
        message_id: format!("cmd-{}-{}", step.id, step.attempts + 1),
        task_id: Some(started.task.id.clone()),
        action: step.id.stage.clone(),
        idempotency_key: Some(step.key.to_string()),
        version: Version { snapshot_id: Some(short_name(&step.from)) },
        round: step.id.round,
        outcomes: stage.outcomes.keys().cloned().collect(),
        inputs,
        deadline_at: deadline.map(|millis| now.plus_millis(millis)),
    };
    command.to_json()
}

/// Returns an input as an agent is told it: a file by its path, which it finds where it works.
fn input(value: &InputValue) -> Value {
    match value {
        InputValue::Text(text) => text.clone().into(),
        InputValue::Integer(number) => (*number).into(),
        InputValue::Float(number) => (*number).into(),
        InputValue::File(path) => json!({ "file": path }),
    }
}

/// Returns what the command of a session's latest run came to; none if no event ended it.
pub(super) fn result(
    store: &dyn Sessions,
    trees: &dyn Trees,
    root: &Path,
    stage: &StageConfig,
    session: &SessionState,
) -> Result<Option<(String, Payload)>> {
    let Some(run) = session.run.as_ref().map(|run| run.run_id) else { return Ok(None) };
    let Some(event) = terminal_event(store, session.id, run) else { return Ok(None) };
    let told = store.reader(session.id).and_then(|reader| artifacts_told(&reader, run));
    let told = told.map_err(ServiceError::internal)?;
    let outcomes: Vec<&String> = stage.outcomes.keys().collect();
    let TerminalEvent { event_type, payload } = event;
    let field = |name: &str| payload_field(&payload.to_string(), name).filter(|text| !text.is_empty());
    let (findings, summary) = (field("findings"), field("summary").or_else(|| field("message")));
    let (outcome, mut said) =
        match of_event(&outcomes, &event_type, payload.get("outcome").and_then(Value::as_str)) {
            Terminal::Outcome(name) if name == FAILED => {
                let why = field("error").or_else(|| summary.clone());
                let why = why.unwrap_or_else(|| format!("its agent said {event_type}"));
                let (outcome, said) = failed(summary, why);
                (outcome, Payload { findings: findings.or_else(|| said.findings.clone()), ..said })
            }
            Terminal::Outcome(name) => match artifacts(trees, root, &told) {
                Ok(artifacts) => (name, Payload { findings, summary, artifacts, ..Payload::default() }),
                Err(why) => failed(summary, why),
            },
            Terminal::Unclear(why) => failed(summary, format!("its agent did not report an outcome: {why}")),
            Terminal::Not => failed(summary, format!("{event_type} does not end a command of this stage")),
        };
    said.event = Some(event_type);
    said.payload = Some(payload).filter(|payload| !payload.is_null());
    Ok(Some((outcome, said)))
}

/// Checks artifacts; of one that was told twice the last word counts. Whatever is wrong is told with its name.
fn artifacts(trees: &dyn Trees, root: &Path, told: &[Value]) -> std::result::Result<Vec<Artifact>, String> {
    let (mut by_path, mut errors) = (BTreeMap::new(), Vec::new());
    for told in told {
        match Artifact::parse(told) {
            Ok(artifact) => drop(by_path.insert(artifact.path.clone(), artifact)),
            Err(error) => errors.push(error),
        }
    }
    if by_path.len() > MOST_ARTIFACTS {
        errors.push(ArtifactError::TooMany(by_path.len()));
        by_path.clear();
    }
    let check = |artifact: &Artifact| artifact.check(&trees.sha256(root, &artifact.path)?);
    errors.extend(by_path.values().filter_map(|artifact| check(artifact).err()));
    if errors.is_empty() {
        return Ok(by_path.into_values().collect());
    }
    let named: Vec<String> = errors.iter().take(NAMED).map(ToString::to_string).collect();
    let more = match errors.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    Err(format!("{}{more}", named.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_wrong_artifact_is_named_and_the_last_word_counts() {
        let trees = crate::situations::pipelines::trees::MemoryTrees::new(&[("a", "one"), ("b", "two")]);
        let hash = |text: &str| rekindle_domain::token::sha256_hex(text.as_bytes());
        let told = |path: &str, text: &str| json!({"kind": "artifact", "path": path, "sha256": hash(text)});
        let check = |told: &[Value]| artifacts(&*trees, Path::new("/"), told);
        let found = check(&[told("a", "before"), told("b", "two"), told("a", "one")]).expect("all right");
        let paths: Vec<&str> = found.iter().map(|artifact| artifact.path.as_str()).collect();
        assert_eq!(paths, ["a", "b"]);
        let wrong = check(&[told("a", "two"), told("../a", "one"), told("c", "three"), json!({})]);
        let wrong = wrong.expect_err("all wrong");
        for name in ["artifact_changed", "artifact_outside", "artifact_missing", "artifact_invalid"] {
            assert!(wrong.contains(name), "{name}: {wrong}");
        }
        let many: Vec<Value> = (0..=MOST_ARTIFACTS).map(|n| told(&format!("f{n}"), "x")).collect();
        assert!(check(&many).expect_err("too many").starts_with("artifact_too_many: there are 1001"));
        let outside: Vec<Value> = (0..8).map(|n| told(&format!("../{n}"), "x")).collect();
        assert!(check(&outside).expect_err("outside").ends_with("; and 3 more"));
    }
}
