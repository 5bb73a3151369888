//! Who asks: whoever may open our own socket, or the bearer of an access token. What is done is recorded under this name.

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

/// Who a caller on our own socket is: whoever may open it owns the home.
const LOCAL: &str = "local";

/// The name of whoever asks.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    name: Arc<str>,
    is_local: bool,
}

impl Caller {
    /// Makes one; only the guard of the door from elsewhere does.
    pub(crate) fn known_as(name: &str) -> Caller {
        Caller { name: name.into(), is_local: false }
    }

    /// Returns the name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Tells whether it came through our own socket.
    pub(crate) fn is_local(&self) -> bool {
        self.is_local
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = Infallible;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Caller, Infallible> {
        Ok(parts.extensions.get().cloned().unwrap_or_else(|| Caller { name: LOCAL.into(), is_local: true }))
    }
}
