//! Requests about notifications.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A message that says that it is a test, to be sent through a sink at once.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TestSink {
    /// The sink's name in the configuration.
    #[schemars(length(min = 1, max = 200))]
    pub sink: String,
}
