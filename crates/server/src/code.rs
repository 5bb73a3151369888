//! The codes of the server itself, in one table, with the status that each stands for. Those of the daemon's services
//! are in theirs.

use std::borrow::Cow;

use axum::http::StatusCode;
use rekindle_service::code::Code;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value};

macro_rules! codes {
    ($($name:ident = $word:literal, $status:ident: $meaning:literal;)*) => {
        /// Why a request was refused before the daemon was asked.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum OwnCode {
            $(#[doc = $meaning] $name,)*
        }

        impl OwnCode {
            /// All of them.
            pub const ALL: &[OwnCode] = &[$(OwnCode::$name,)*];

            /// Returns the word.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(OwnCode::$name => $word,)*
                }
            }

            /// Returns the status.
            pub fn status(self) -> StatusCode {
                match self {
                    $(OwnCode::$name => StatusCode::$status,)*
                }
            }

            /// Returns what it means, for people.
            pub fn meaning(self) -> &'static str {
                match self {
                    $(OwnCode::$name => $meaning,)*
                }
            }
        }
    };
}

codes! {
    InvalidBody = "invalid_body", BAD_REQUEST: "the body is no JSON object of this shape; the message says where";
    InvalidIdempotencyKey = "invalid_idempotency_key", BAD_REQUEST: "the Idempotency-Key is not 1 to 255 visible ASCII characters";
    InvalidLastEventId = "invalid_last_event_id", BAD_REQUEST: "the Last-Event-ID is no id of an event";
    InvalidQuery = "invalid_query", BAD_REQUEST: "a parameter is unknown, or its value makes no sense";
    TlsExpected = "tls_expected", BAD_REQUEST: "this port speaks TLS";
    TokenMissing = "token_missing", UNAUTHORIZED: "over TCP an access token is needed";
    TokenUnknown = "token_unknown", UNAUTHORIZED: "the token is unknown, or its secret is wrong";
    HostNotAllowed = "host_not_allowed", FORBIDDEN: "over TCP: the request is not for this host";
    OriginNotAllowed = "origin_not_allowed", FORBIDDEN: "over TCP: requests from other pages are not taken";
    NoSuchPath = "no_such_path", NOT_FOUND: "there is nothing at this path";
    BlobUnknown = "blob_unknown", NOT_FOUND: "there is no such payload";
    SessionUnknown = "session_unknown", NOT_FOUND: "there is no such session";
    WaitUnknown = "wait_unknown", NOT_FOUND: "there is no such wait";
    NoSuchMethod = "no_such_method", METHOD_NOT_ALLOWED: "the path does not take this method; Allow says which it takes";
    TooSlow = "too_slow", REQUEST_TIMEOUT: "the body did not come in time";
    TooLarge = "too_large", PAYLOAD_TOO_LARGE: "the request, or the record it makes, is too large";
    Internal = "internal", INTERNAL_SERVER_ERROR: "something is broken; the daemon's log says more";
    NotReady = "not_ready", SERVICE_UNAVAILABLE: "the sessions are being listed, or cannot be";
    ShuttingDown = "shutting_down", SERVICE_UNAVAILABLE: "the daemon is leaving";
    TooManyConnections = "too_many_connections", SERVICE_UNAVAILABLE: "there are too many connections";
}

/// The code of an error that the framework wrote, which has whatever status the framework gave it.
pub(crate) const REFUSED: &str = "refused";

/// Stands for the codes of all errors.
pub(crate) struct AnyCode;

impl JsonSchema for AnyCode {
    fn schema_name() -> Cow<'static, str> {
        "ErrorCode".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let mut codes: Map<String, Value> = OwnCode::ALL
            .iter()
            .map(|code| (code.as_str(), code.meaning()))
            .chain(Code::ALL.iter().map(|code| (code.as_str(), code.meaning())))
            .map(|(word, meaning)| (word.to_owned(), meaning.into()))
            .collect();
        codes.insert(
            REFUSED.to_owned(),
            "the request is no HTTP that is taken here; the status says why".into(),
        );
        let words: Vec<&String> = codes.keys().collect();
        json_schema!({
            "type": "string",
            "description": "A stable word for programs. Words may be added.",
            "enum": words,
            "x-meanings": codes,
        })
    }
}
