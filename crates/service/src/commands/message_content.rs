//! The content of a message, checked before anything is recorded.

use rekindle_domain::event::Raw;
use rekindle_wire::code::Code;
use rekindle_wire::request::{Content, whole_json};
use serde_json::Value;

use crate::error::ServiceError;

/// Checks that a message is something an agent can be told: a text, or blocks.
pub(crate) fn content(content: &Content) -> Result<Raw<'static>, ServiceError> {
    let invalid = |why: &str| ServiceError::new(Code::InvalidContent, why);
    // Read whole: what only looks like JSON, as half a surrogate pair does, would reach an agent that cannot read it.
    let value = whole_json(&content.0).map_err(|error| ServiceError::new(Code::InvalidContent, error))?;
    let blocks = match &value {
        Value::String(text) if !text.is_empty() => &[][..],
        Value::Array(blocks) if !blocks.is_empty() => blocks.as_slice(),
        _ => return Err(invalid("a message is a text, or a list of blocks, and not empty")),
    };
    for block in blocks {
        if !block.is_object() || !block["type"].is_string() {
            return Err(invalid("a block is an object with a type"));
        }
        let (text, is_text) = (&block["text"], block["type"] == "text");
        if !text.is_string() && (is_text || !text.is_null()) {
            return Err(invalid(
                "a block of type text has a text, and no block has anything else by that name",
            ));
        }
    }
    Raw::from_value(&content.0).map_err(|error| ServiceError::new(Code::InvalidContent, error))
}
