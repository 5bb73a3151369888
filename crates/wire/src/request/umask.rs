//! The umask that a caller brings.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error;
use serde::{Deserialize, Serialize, Serializer};

/// A umask, written as shells write it: up to four octal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Umask(pub u32);

impl std::str::FromStr for Umask {
    type Err = String;

    fn from_str(text: &str) -> Result<Umask, String> {
        let digits = (1..=4).contains(&text.len()) && text.bytes().all(|byte| matches!(byte, b'0'..=b'7'));
        let umask = u32::from_str_radix(text, 8).ok().filter(|umask| digits && *umask <= 0o777);
        umask
            .map(Umask)
            .ok_or_else(|| format!("{text:?} is not a umask: write three octal digits, such as 022"))
    }
}

impl std::fmt::Display for Umask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:04o}", self.0)
    }
}

impl<'de> Deserialize<'de> for Umask {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Umask, D::Error> {
        Cow::<'de, str>::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

impl Serialize for Umask {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl JsonSchema for Umask {
    fn schema_name() -> Cow<'static, str> {
        "Umask".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A umask, as shells write it: octal digits. Files that the agent makes are made with it.",
            "type": "string", "pattern": "^0?[0-7]{1,3}$", "examples": ["0022"],
        })
    }
}
