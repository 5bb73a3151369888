//! What is recorded with the outcome of a step.

use rekindle_domain::pipeline::artifact::Artifact;
use rekindle_domain::pipeline::outcome;
use serde::Serialize;

/// What an agent said with an outcome, as templates find it.
#[derive(Debug, Default, Serialize)]
pub(super) struct Payload {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) findings: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) summary: Option<String>,
    /// Why the step failed, where its agent did not say that itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
    /// The type of the event that ended the command of an `ndjson` agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) event: Option<String>,
    /// The payload of that, as it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) payload: Option<serde_json::Value>,
    /// The artifacts that were told and are as they were told.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) artifacts: Vec<Artifact>,
}

/// Returns what is recorded of a step that failed for a reason that its agent did not give as its findings.
pub(super) fn failed(summary: Option<String>, error: String) -> (String, Payload) {
    let error = Some(error);
    (outcome::FAILED.into(), Payload { findings: error.clone(), summary, error, ..Payload::default() })
}
