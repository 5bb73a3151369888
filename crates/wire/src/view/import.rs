//! Views of imports.

use rekindle_domain::id::SessionId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A bundle that was taken in.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ImportedStaged {
    /// Its sessions.
    pub sessions: Vec<SessionId>,
    /// Its runs of pipelines, by their names.
    #[serde(default)]
    pub runs: Vec<String>,
}
