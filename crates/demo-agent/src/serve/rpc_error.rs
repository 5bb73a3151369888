//! JSON-RPC errors: what a request is refused with, and the codes of JSON-RPC and of the protocol.

use serde_json::Value;

pub(super) const PARSE_ERROR: i64 = -32700;
pub(super) const INVALID_REQUEST: i64 = -32600;
pub(super) const METHOD_NOT_FOUND: i64 = -32601;
pub(super) const INVALID_PARAMS: i64 = -32602;
pub(crate) const INTERNAL_ERROR: i64 = -32603;
pub(super) const AUTH_REQUIRED: i64 = -32000;
pub(super) const NOT_FOUND: i64 = -32002;

/// A request that is answered with an error.
pub(super) struct RpcError(pub(super) i64, pub(super) String);

impl RpcError {
    pub(super) fn new(code: i64, message: impl Into<String>) -> RpcError {
        RpcError(code, message.into())
    }

    pub(super) fn no_session(id: &str) -> RpcError {
        RpcError::new(NOT_FOUND, format!("session not found: {id}"))
    }
}

/// An answer; `None` if a turn will give it.
pub(super) type Answer = Result<Option<Value>, RpcError>;

pub(super) fn text<'a>(params: &'a Value, name: &str) -> Result<&'a str, RpcError> {
    params[name].as_str().ok_or_else(|| RpcError::new(INVALID_PARAMS, format!("`{name}` is not a string")))
}
