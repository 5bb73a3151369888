//! Requests that are answered with an error, and their codes in JSON-RPC and in the protocol.

use serde_json::Value;

pub(super) const PARSE_ERROR: i64 = -32700;
pub(super) const INVALID_REQUEST: i64 = -32600;
pub(super) const METHOD_NOT_FOUND: i64 = -32601;
pub(super) const INVALID_PARAMS: i64 = -32602;
pub(super) const INTERNAL_ERROR: i64 = -32603;
pub(super) const AUTH_REQUIRED: i64 = -32000;
pub(super) const NOT_FOUND: i64 = -32002;

/// A request that is answered with an error.
pub(super) struct Refusal(pub(super) i64, pub(super) String);

impl Refusal {
    pub(super) fn new(code: i64, message: impl Into<String>) -> Refusal {
        Refusal(code, message.into())
    }

    pub(super) fn no_session(id: &str) -> Refusal {
        Refusal::new(NOT_FOUND, format!("session not found: {id}"))
    }
}

/// An answer; `None` if a turn will give it.
pub(super) type Answer = Result<Option<Value>, Refusal>;

pub(super) fn text<'a>(params: &'a Value, name: &str) -> Result<&'a str, Refusal> {
    params[name].as_str().ok_or_else(|| Refusal::new(INVALID_PARAMS, format!("`{name}` is not a string")))
}
