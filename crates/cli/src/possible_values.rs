//! Possible values of an argument: the words it takes, each with its meaning.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Reads one of some words, as the value is written in JSON too.
pub(crate) fn one_of<T>(words: &'static [(&str, &str)]) -> impl TypedValueParser<Value = T>
where
    T: DeserializeOwned + Clone + Send + Sync + 'static,
{
    let words = words.iter().map(|(word, meaning)| PossibleValue::new(*word).help(*meaning));
    PossibleValuesParser::new(words).try_map(|word| serde_json::from_value(Value::String(word)))
}
