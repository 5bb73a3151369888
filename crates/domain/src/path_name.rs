//! Paths in JSON: `path` if it is UTF-8, else `path_b64`, so that every path can be written and read back.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A path of a workspace as JSON has it. One of the two fields is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PathName {
    /// The path, if it is UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The path's bytes in base64, if it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_b64: Option<String>,
}

impl PathName {
    /// Returns the path's bytes; nothing if the JSON had neither field, both, or no base64.
    pub fn bytes(&self) -> Option<Vec<u8>> {
        match (&self.path, &self.path_b64) {
            (Some(path), None) => Some(path.clone().into_bytes()),
            (None, Some(encoded)) => STANDARD.decode(encoded).ok(),
            _ => None,
        }
    }
}

impl From<&[u8]> for PathName {
    fn from(path: &[u8]) -> PathName {
        match std::str::from_utf8(path) {
            Ok(text) => PathName { path: Some(text.to_owned()), path_b64: None },
            Err(_) => PathName { path: None, path_b64: Some(STANDARD.encode(path)) },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_is_written_and_read_back() {
        let cases: &[(&[u8], &str)] = &[
            ("src/grün.rs".as_bytes(), r#"{"path":"src/grün.rs"}"#),
            (b"a\xff", r#"{"path_b64":"Yf8="}"#),
            (b"a\nb\"", r#"{"path":"a\nb\""}"#),
        ];
        for (path, json) in cases {
            let name = PathName::from(*path);
            assert_eq!(serde_json::to_string(&name).expect("JSON"), *json);
            let read: PathName = serde_json::from_str(json).expect("a path");
            assert_eq!(read.bytes().as_deref(), Some(*path));
        }
        for bad in ["{}", r#"{"path":"a","path_b64":"Yf8="}"#, r#"{"path_b64":"?"}"#] {
            assert_eq!(serde_json::from_str::<PathName>(bad).expect("JSON").bytes(), None, "{bad}");
        }
    }
}
