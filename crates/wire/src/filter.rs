//! Filters: which entries of a list are asked for, as the parameters of a query.

use rekindle_domain::event::{TaskKind, TaskStatus};
use rekindle_domain::id::{SessionId, TaskId};
use rekindle_domain::pipeline::RunStatus;
use rekindle_domain::projector::SessionStatus;
use schemars::JsonSchema;
use serde::Deserialize;

/// Which sessions are listed.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "SessionFilter")]
pub struct Filter {
    /// With this status; several, divided by commas.
    #[schemars(extend("pattern" = statuses(), "examples" = ["waiting,running"]))]
    pub status: Option<String>,
    /// With this agent.
    pub agent: Option<String>,
    /// In this directory, or below it: an absolute path.
    pub cwd: Option<String>,
    /// With these words in the title.
    pub q: Option<String>,
    /// Most to be listed; more than 500 never are.
    #[schemars(range(min = 1))]
    pub limit: Option<usize>,
    /// Where the list goes on: `next` of the page before.
    pub cursor: Option<String>,
}

/// What is searched for in the logs of sessions.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SearchFilter {
    /// Up to eight words, each of which has to be in a record; their case does not matter.
    #[schemars(
        required,
        length(min = 1, max = 200),
        extend("pattern" = r"^\s*\S+(\s+\S+){0,7}\s*$", "examples" = ["flaky test"])
    )]
    pub q: Option<String>,
    /// Of sessions in this directory, or below it: an absolute path.
    pub cwd: Option<String>,
    /// Most records to be told; more than 200 never are.
    #[schemars(range(min = 1))]
    pub limit: Option<usize>,
    /// Where the search goes on: `next` of the page before.
    pub cursor: Option<String>,
}

/// Which tasks are listed.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskFilter {
    /// With this status; several, divided by commas.
    #[schemars(extend("pattern" = task_statuses(), "examples" = ["failed,cancelled"]))]
    pub status: Option<String>,
    /// Of this kind.
    pub kind: Option<TaskKind>,
    /// With this label.
    pub label: Option<String>,
    /// With this agent.
    pub agent: Option<String>,
    /// In this directory, or below it: an absolute path.
    pub cwd: Option<String>,
    /// With these words in the title.
    pub q: Option<String>,
    /// Of this session.
    pub session: Option<SessionId>,
    /// Parts of this task.
    pub parent: Option<TaskId>,
    /// Whose id begins with this.
    pub prefix: Option<TaskId>,
    /// Of every home that writes to the same database: 1, or 0.
    #[schemars(extend("enum" = ["1", "0"]))]
    pub all_homes: Option<String>,
    /// Most to be listed; more than 500 never are.
    #[schemars(range(min = 1))]
    pub limit: Option<usize>,
    /// Where the list goes on: `next` of the page before.
    pub cursor: Option<String>,
}

/// Which runs of pipelines are listed.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PipelineFilter {
    /// With this status; several, divided by commas.
    #[schemars(extend("pattern" = run_statuses(), "examples" = ["running,failed"]))]
    pub status: Option<String>,
    /// Of this task of a project.
    pub task: Option<String>,
    /// In this directory, or below it, or asked for there: an absolute path.
    pub cwd: Option<String>,
    /// Whose name begins with this.
    pub prefix: Option<String>,
    /// Most to be listed; more than 500 never are.
    #[schemars(range(min = 1))]
    pub limit: Option<usize>,
    /// Where the list goes on: `next` of the page before.
    pub cursor: Option<String>,
}

/// Which waits are listed.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WaitFilter {
    /// Of this session.
    pub session: Option<SessionId>,
    /// Most to be listed; more than 500 never are.
    #[schemars(range(min = 1))]
    pub limit: Option<usize>,
    /// Where the list goes on: `next` of the page before.
    pub cursor: Option<String>,
}

/// Which holders are listed.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HolderFilter {
    /// Most to be listed; more than 500 never are.
    #[schemars(range(min = 1))]
    pub limit: Option<usize>,
    /// Where the list goes on: `next` of the page before.
    pub cursor: Option<String>,
}

/// Returns what a list of statuses of runs of pipelines looks like.
fn run_statuses() -> String {
    let one = RunStatus::ALL.map(|status| status.as_str()).join("|");
    format!("^({one})(,({one}))*$")
}

/// Returns what a list of statuses of tasks looks like.
fn task_statuses() -> String {
    let one = TaskStatus::ALL.map(|status| status.as_str()).join("|");
    format!("^({one})(,({one}))*$")
}

/// Returns what a list of statuses looks like.
fn statuses() -> String {
    let one = SessionStatus::ALL.map(|status| status.as_str()).join("|");
    format!("^({one})(,({one}))*$")
}
