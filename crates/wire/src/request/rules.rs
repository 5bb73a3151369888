//! Rules of requests: numbers as JSON writes them, and what schemas say of fields that belong together.

use rekindle_domain::whole_number::positive;
pub(super) use rekindle_domain::whole_number::whole;
use schemars::Schema;
use serde::Deserialize;
use serde::de::{DeserializeOwned, Error};
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// Reads a number of seconds that is not nothing.
pub(super) fn at_least_a_second<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<u64>, D::Error> {
    match whole(deserializer)? {
        Some(0) => Err(D::Error::custom("timeout_s is at least 1")),
        seconds => Ok(seconds),
    }
}

/// Reads the number of a record, which is not 0.
pub(super) fn number_of_record<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    positive(deserializer)?.ok_or_else(|| D::Error::custom("expected a record number"))
}

/// Reads an object that may be left out: the fields of a list would be taken by their order.
pub(super) fn object<'de, D: serde::Deserializer<'de>, T: DeserializeOwned>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    let Some(raw) = Option::<Box<RawValue>>::deserialize(deserializer)? else { return Ok(None) };
    if !raw.get().starts_with('{') {
        return Err(D::Error::custom("an object is expected"));
    }
    serde_json::from_str(raw.get()).map(Some).map_err(D::Error::custom)
}

/// Says that a field is there and is not null.
pub(super) fn given(name: &str) -> Value {
    json!({"required": [name], "properties": {name: {"not": {"type": "null"}}}})
}

/// Names and values are what a process can have.
pub(super) fn possible_variables(schema: &mut Schema) {
    schema.insert("propertyNames".into(), json!({"pattern": "^[^=\\u0000]+$"}));
    schema.insert("additionalProperties".into(), json!({"type": "string", "pattern": "^[^\\u0000]*$"}));
}

/// A change names something.
pub(super) fn at_least_one(schema: &mut Schema) {
    schema.insert(
        "anyOf".into(),
        [
            "title",
            "resume",
            "on_uncertain",
            "permissions",
            "wait_timeout_s",
            "checkpoints",
            "mode",
            "model",
            "persistence",
        ]
        .map(given)
        .to_vec()
        .into(),
    );
}

/// An answer is one thing.
pub(super) fn exactly_one(schema: &mut Schema) {
    schema.insert("oneOf".into(), ["option", "option_id", "text", "form"].map(given).to_vec().into());
}

/// A token comes with the answer to its wait, and an answer with the token.
pub(super) fn answer_with_token(schema: &mut Schema) {
    let neither = json!({"properties": {"token": {"type": "null"}, "answer": {"type": "null"}}});
    let both = json!({"allOf": [given("token"), given("answer")]});
    schema.insert("anyOf".into(), json!([neither, both]));
}

/// Reads JSON that is passed on as it is: whoever gets it can read it too.
pub fn whole_json(raw: &RawValue) -> serde_json::Result<Value> {
    serde_json::from_str(raw.get())
}
