//! The plan of an agent, in brief: how much of it is done, and what it is at.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::event::Raw;
use crate::text_excerpt::last_line;

/// The progress of an agent's plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlanProgress {
    /// Steps that are done.
    pub done: u32,
    /// Steps in all.
    pub total: u32,
    /// The step that the agent is at, in one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub now: Option<String>,
}

/// A step as agents write it.
#[derive(Deserialize)]
struct Step<'a> {
    #[serde(borrow, default)]
    content: Cow<'a, str>,
    #[serde(borrow, default)]
    status: Cow<'a, str>,
}

impl PlanProgress {
    /// Returns the progress of a plan; none of an empty one, or of what is none.
    pub(super) fn of(entries: &Raw<'_>) -> Option<PlanProgress> {
        let steps: Vec<Step<'_>> = serde_json::from_str(entries.as_json()).ok()?;
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let done = steps.iter().filter(|step| step.status == "completed").count();
        let now = steps.iter().find(|step| step.status == "in_progress");
        let now = now.and_then(|step| last_line(&step.content));
        (!steps.is_empty()).then(|| PlanProgress { done: count(done), total: count(steps.len()), now })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_told_by_what_is_done_and_what_is_being_done() {
        let plan = |json: &'static str| PlanProgress::of(&serde_json::from_str(json).expect("JSON"));
        assert_eq!(plan("[]"), None);
        assert_eq!(plan("{\"not\": \"a plan\"}"), None);
        let steps = r#"[{"content":"look","status":"completed","priority":"high"},
            {"content":"write\n it","status":"in_progress"},{"content":"test","status":"pending"}]"#;
        assert_eq!(plan(steps), Some(PlanProgress { done: 1, total: 3, now: Some("write it".into()) }));
    }
}
