//! JSON objects taken apart without copying: each member stays the text it was.
//!
//! What an agent sends is typed only where we look, and only when we look; the rest is kept as it stands.

use std::borrow::Cow;
use std::fmt;

use rekindle_domain::event::Raw;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The members of a JSON object, in their order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Object<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

/// A string that borrows where it has no escapes.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'a> Object<'a> {
    /// Takes a JSON text apart; anything but an object is none.
    pub(crate) fn parse(json: &'a str) -> Option<Object<'a>> {
        serde_json::from_str(json).ok()
    }

    /// Takes a member's value apart; absent and anything but an object is empty.
    pub(crate) fn object(&self, name: &str) -> Object<'a> {
        self.raw(name).and_then(|raw| Object::parse(raw.get())).unwrap_or_default()
    }

    /// Returns a member's JSON text; `null` counts as absent.
    pub(crate) fn raw(&self, name: &str) -> Option<&'a RawValue> {
        // Of members that come twice the last one counts, as in most parsers.
        let found = self.0.iter().rev().find(|(key, _)| key == name);
        found.map(|(_, raw)| *raw).filter(|raw| raw.get() != "null")
    }

    /// Returns a member that is a string.
    pub(crate) fn text(&self, name: &str) -> Option<Cow<'a, str>> {
        text(self.raw(name)?)
    }

    /// Returns a member that is a whole number.
    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        serde_json::from_str(self.raw(name)?.get()).ok()
    }

    /// Returns the elements of a member that is a list; absent and anything else is empty.
    pub(crate) fn list(&self, name: &str) -> Vec<&'a RawValue> {
        self.raw(name).and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
    }

    /// Tells whether it has no members but these.
    pub(crate) fn has_only(&self, names: &[&str]) -> bool {
        self.0.iter().all(|(key, _)| names.contains(&key.as_ref()))
    }

    /// Writes the object again with another value for a member; the others stay verbatim.
    pub(crate) fn with(&self, name: &str, json: &str) -> String {
        let member = |(key, raw): (&str, &RawValue)| {
            format!("{}:{}", Raw::text(key).as_json(), if key == name { json } else { raw.get() })
        };
        let members: Vec<String> = self.members().map(|(key, raw)| member((key, raw))).collect();
        format!("{{{}}}", members.join(","))
    }

    /// Returns the members.
    pub(crate) fn members(&self) -> impl Iterator<Item = (&str, &'a RawValue)> {
        self.0.iter().map(|(key, raw)| (key.as_ref(), *raw))
    }
}

/// Reads a value as what it is wanted as, if it is that.
pub(crate) fn parse_text<T: serde::de::DeserializeOwned>(raw: &RawValue) -> Option<T> {
    serde_json::from_str(raw.get()).ok()
}

/// Returns a value that is a string.
pub(crate) fn text(raw: &RawValue) -> Option<Cow<'_, str>> {
    serde_json::from_str::<Text<'_>>(raw.get()).ok().map(|text| text.0)
}

/// Copies a value verbatim.
pub(crate) fn to_raw(raw: &RawValue) -> Raw<'static> {
    parse_raw(raw.get()).unwrap_or_else(|| Raw::text(raw.get()))
}

/// Copies a JSON text verbatim, if it is one.
pub(crate) fn parse_raw(json: &str) -> Option<Raw<'static>> {
    serde_json::from_str::<Raw<'_>>(json).ok().map(Raw::into_owned)
}

/// Cuts a text to at most `limit` bytes, at a character's boundary, and marks the cut.
pub(crate) fn cut(text: &str, limit: usize) -> Cow<'_, str> {
    if text.len() <= limit {
        return Cow::Borrowed(text);
    }
    let end = (0..=limit).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    Cow::Owned(format!("{}… ({} bytes)", &text[..end], text.len()))
}

/// Like [`cut`], of a text that may be owned already.
pub(crate) fn short(text: Cow<'_, str>, limit: usize) -> Cow<'_, str> {
    if text.len() <= limit { text } else { cut(&text, limit).into_owned().into() }
}

impl<'de: 'a, 'a> Deserialize<'de> for Object<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Object<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some((Text(key), value)) = map.next_entry::<Text<'de>, &'de RawValue>()? {
                    members.push((key, value));
                }
                Ok(Object(members))
            }
        }
        deserializer.deserialize_map(Members)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_keep_their_text_and_null_is_absent() {
        let json = r#"{"a":1.50,"b":null,"cé":"x\ny","list":[1,{"z":2}],"a":2,"o":{"in":true}}"#;
        let object = Object::parse(json).expect("an object");
        assert_eq!(object.raw("a").map(RawValue::get), Some("2"), "the last one counts");
        assert!(object.raw("b").is_none());
        assert_eq!(object.text("c\u{e9}").as_deref(), Some("x\ny"));
        assert_eq!(object.list("list").len(), 2);
        assert!(object.object("o").has_only(&["in"]) && !object.has_only(&["a"]));
        assert_eq!(object.number("a"), Some(2));
        assert!(Object::parse("[1]").is_none() && Object::parse("{").is_none());
    }

    #[test]
    fn texts_are_cut_between_characters() {
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!(cut("aéb", 2), "a… (4 bytes)");
    }
}
