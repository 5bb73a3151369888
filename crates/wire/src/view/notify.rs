//! What is told of notifications.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What came of a test of a sink.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SinkTested {
    /// The sink's name.
    pub sink: String,
    /// It took the message.
    pub delivered: bool,
    /// Why it did not.
    pub why: Option<String>,
    /// How long it took, in milliseconds.
    pub took_ms: u64,
}
