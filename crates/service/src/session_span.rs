//! The span of a session: whatever is logged in it says which session it is about, and a filter can ask for the lines of one session.

use rekindle_domain::id::SessionId;
use tracing::Span;

/// Returns the span of a session. It is of the highest level: a filter that lets a line through lets the session's id through too.
pub fn session_span(session: SessionId) -> Span {
    tracing::error_span!("session", id = %session)
}
