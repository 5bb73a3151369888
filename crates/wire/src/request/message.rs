//! Messages to a session, and what they are made of.

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;

use super::Umask;
use super::rules::{given, possible_variables};

/// What is said to an agent: text, or blocks as its protocol has them.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Content(pub Box<RawValue>);

impl Content {
    /// Makes one of a text.
    pub fn text(text: &str) -> Content {
        Content(serde_json::value::to_raw_value(text).expect("a text is JSON"))
    }
}

impl JsonSchema for Content {
    fn schema_name() -> Cow<'static, str> {
        "Content".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "What is said to an agent: a text, or blocks as its protocol has them. Not empty.",
            "anyOf": [
                {"type": "string", "minLength": 1},
                {"type": "array", "minItems": 1, "items": generator.subschema_for::<Block>()},
            ],
            "examples": ["fix the failing test", [{"type": "text", "text": "fix the failing test"}]],
        })
    }
}

/// What every block of a message has, for the description of it.
#[derive(JsonSchema)]
#[schemars(transform = text_has_text)]
#[expect(dead_code, reason = "it is described, and read as any JSON")]
struct Block {
    /// What it is: `text`, `image`, or what else the agent takes.
    #[schemars(rename = "type")]
    kind: String,
    /// The words of a block of type `text`.
    #[schemars(default)]
    text: Option<String>,
}

/// A block of type `text` has a text.
fn text_has_text(schema: &mut Schema) {
    schema.insert("if".into(), json!({"properties": {"type": {"const": "text"}}}));
    schema.insert("then".into(), given("text"));
}

/// A message to a session.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewMessage {
    /// The message.
    pub content: Content,
    /// The caller's environment, for an agent that has to be launched.
    #[serde(default)]
    #[schemars(transform = possible_variables)]
    pub env: BTreeMap<String, String>,
    /// The caller's umask: files that the agent makes are made with it. Without it the daemon's own at its start counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub umask: Option<Umask>,
}

impl NewMessage {
    /// Makes one that brings nothing but itself.
    pub fn new(content: Content) -> NewMessage {
        NewMessage { content, env: BTreeMap::new(), umask: None }
    }
}
