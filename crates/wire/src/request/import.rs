//! The request that takes in an imported bundle.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A bundle that is staged in the home.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ImportStaged {
    /// What it is staged as.
    #[schemars(extend("pattern" = "^[0-9a-f]{32}$"))]
    pub staged: String,
}
