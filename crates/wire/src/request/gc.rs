//! The request that has a home's owner remove what nobody needs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::rules::whole;

/// What is to be collected beside what is there for nothing in any case.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Collect {
    /// Say what would be removed, and remove nothing.
    #[serde(default)]
    pub dry_run: bool,
    /// Files of checkpoints of runs that are older than so many seconds are not kept any more.
    #[serde(default, deserialize_with = "whole", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<u64>")]
    pub checkpoints_older_than_s: Option<u64>,
    /// Files of checkpoints are kept up to so many bytes together; the oldest go first.
    #[serde(default, deserialize_with = "whole", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<u64>")]
    pub checkpoints_max_bytes: Option<u64>,
    /// Results of steps that are older than so many seconds are not kept for other runs any more.
    #[serde(default, deserialize_with = "whole", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<u64>")]
    pub cached_results_older_than_s: Option<u64>,
    /// Results of steps are kept up to so many bytes together, with the files that they left; the oldest go first.
    #[serde(default, deserialize_with = "whole", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<u64>")]
    pub cached_results_max_bytes: Option<u64>,
    /// Also what repairs took away more than so many seconds ago.
    #[serde(default, deserialize_with = "whole", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<u64>")]
    pub repairs_older_than_s: Option<u64>,
    /// Also runs of pipelines that ended more than so many seconds ago.
    #[serde(default, deserialize_with = "whole", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<u64>")]
    pub runs_older_than_s: Option<u64>,
    /// Also journals of dead agents that no session here claims, untouched for more than so many seconds.
    #[serde(default, deserialize_with = "whole", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<u64>")]
    pub orphans_older_than_s: Option<u64>,
}
