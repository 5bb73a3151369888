//! Filters: which entries of a list are asked for, as the parameters of a query.

use rekindle_domain::id::SessionId;
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

/// Returns what a list of statuses looks like.
fn statuses() -> String {
    let one = SessionStatus::ALL.map(|status| status.as_str()).join("|");
    format!("^({one})(,({one}))*$")
}
