//! The text of a resume token, with its secret: it goes over the wire as it is, and into no log.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A resume token with its secret, `rt_….<secret>`. For debugging it shows which one, and not the secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct TokenText(pub String);

impl fmt::Debug for TokenText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.split_once('.') {
            Some((id, _)) if id.len() <= 64 => write!(f, "{id}.<secret>"),
            _ => f.write_str("<secret>"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_written_and_not_shown() {
        let token = TokenText(format!("rt_1.{}", "07".repeat(32)));
        assert_eq!(format!("{token:?} {:?}", TokenText("0707".into())), "rt_1.<secret> <secret>");
        assert_eq!(serde_json::to_value(&token).expect("a text"), token.0.as_str());
    }
}
