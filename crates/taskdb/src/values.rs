//! Values as every database takes them, and as they are read again.

use std::borrow::Cow;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::DbError;
use crate::sql::Value;

/// Returns a text as every database takes it: Postgres has no NUL in texts.
pub(crate) fn plain(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { text.replace('\0', "\u{fffd}").into() } else { text.into() }
}

/// Returns JSON as every database takes it: Postgres has no NUL in it, escaped or not.
pub(crate) fn plain_json<'a>(json: impl Into<Cow<'a, str>>) -> Cow<'a, str> {
    let json = json.into();
    if json.contains("\\u0000") { json.replace("\\u0000", "\\ufffd").into() } else { json }
}

pub(crate) fn json(value: &impl Serialize) -> Value<'static> {
    serde_json::to_string(value).map_or(Value::Null, |text| Value::Text(plain_json(text)))
}

pub(crate) fn read_json<T: DeserializeOwned>(text: &str) -> Result<T, DbError> {
    serde_json::from_str(text)
        .map_err(|error| DbError::Nonsense(format!("JSON that cannot be read: {error}")))
}

/// Reads a word that stands for something.
pub(crate) fn word<T: DeserializeOwned>(text: &str) -> Result<T, DbError> {
    serde_json::from_value(serde_json::Value::String(text.to_owned()))
        .map_err(|_| DbError::Nonsense(format!("{text:?}, which means nothing here")))
}

pub(crate) fn parse<T: std::str::FromStr<Err: std::fmt::Display>>(text: &str) -> Result<T, DbError> {
    text.parse().map_err(|error: T::Err| DbError::Nonsense(error.to_string()))
}
