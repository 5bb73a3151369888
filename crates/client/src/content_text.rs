//! The text in what agents and people say: contents of messages as ACP has them, and what a request asks.

use serde_json::Value;

/// Returns the text of a content: a string, a block, or several blocks.
pub fn value_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => blocks.iter().map(value_text).collect::<Vec<_>>().join("\n"),
        Value::Object(block) => match (block.get("text"), block.get("type")) {
            (Some(Value::String(text)), _) => text.clone(),
            (_, Some(Value::String(kind))) => format!("[{kind}]"),
            _ => value.to_string(),
        },
        other => other.to_string(),
    }
}

/// Finds in an agent's request what it asks.
pub fn asked(request: &Value) -> String {
    // Requests are kept whole: what is asked is in their parameters.
    let request = request.get("params").unwrap_or(request);
    let places = ["/toolCall/title", "/title", "/question", "/message", "/text"];
    places.iter().find_map(|place| request.pointer(place)?.as_str()).unwrap_or_default().to_owned()
}
