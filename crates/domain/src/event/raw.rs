//! JSON kept verbatim: an agent's request, a person's answer, a message's content.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// A JSON value as text, borrowed from its line or owned.
#[derive(Clone)]
pub struct Raw<'a>(Cow<'a, RawValue>);

impl Raw<'_> {
    /// Returns the JSON text of a value.
    pub fn from_value(value: &impl Serialize) -> Result<Raw<'static>, serde_json::Error> {
        serde_json::value::to_raw_value(value).map(|raw| Raw(Cow::Owned(raw)))
    }

    /// Returns a JSON string.
    pub fn text(text: &str) -> Raw<'static> {
        // Writing a string as JSON cannot fail.
        Raw::from_value(&text).unwrap_or_else(|error| unreachable!("a string is always JSON: {error}"))
    }

    /// Returns the JSON text.
    pub fn as_json(&self) -> &str {
        self.0.get()
    }

    /// Returns the text of a message's content: a string, or the text of its blocks.
    pub fn plain_text(&self) -> String {
        if let Ok(text) = serde_json::from_str::<String>(self.as_json()) {
            return text;
        }
        let blocks: Vec<&RawValue> = serde_json::from_str(self.as_json()).unwrap_or_default();
        let blocks = blocks.iter().filter_map(|block| serde_json::from_str::<Block<'_>>(block.get()).ok());
        blocks.map(|block| block.text).collect()
    }

    /// Reads a value into memory of its own; for what outlives the line it is read from.
    pub(super) fn owned<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Raw<'static>, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(|raw| Raw(Cow::Owned(raw)))
    }

    /// Copies what was borrowed.
    pub fn into_owned(self) -> Raw<'static> {
        Raw(Cow::Owned(self.0.into_owned()))
    }
}

/// The text of a block of a message.
#[derive(Deserialize)]
struct Block<'a> {
    #[serde(borrow)]
    text: Cow<'a, str>,
}

impl fmt::Debug for Raw<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_json())
    }
}

impl PartialEq for Raw<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.as_json() == other.as_json()
    }
}

impl Serialize for Raw<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Raw<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <&'a RawValue>::deserialize(deserializer).map(|raw| Raw(Cow::Borrowed(raw)))
    }
}
