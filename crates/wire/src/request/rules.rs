//! Rules of requests: numbers as JSON writes them, and what schemas say of fields that belong together.

use schemars::Schema;
use serde::Deserialize;
use serde::de::Error;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// Reads a whole number however it is written: to JSON, 600 and 600.0 are the same.
pub(super) fn whole<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let Some(number) = Option::<serde_json::Number>::deserialize(deserializer)? else { return Ok(None) };
    // Below 2^64 a float without a fraction is exactly one of ours.
    let float =
        || number.as_f64().filter(|float| float.fract() == 0.0 && (0.0..u64::MAX as f64).contains(float));
    let whole = number.as_u64().or_else(|| float().map(|float| float as u64));
    let wrong = || D::Error::custom(format_args!("{number} is not a whole number from 0 to {}", u64::MAX));
    whole.map(Some).ok_or_else(wrong)
}

/// Reads a number of seconds that is not nothing.
pub(super) fn at_least_a_second<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<u64>, D::Error> {
    match whole(deserializer)? {
        Some(0) => Err(D::Error::custom("timeout_s is at least 1")),
        seconds => Ok(seconds),
    }
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
        ["title", "resume", "on_uncertain", "mode", "model"].map(given).to_vec().into(),
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
