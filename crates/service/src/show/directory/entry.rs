//! An entry of the directory: what is known of a session, and whether that is all there is to know.

use std::sync::Arc;

use rekindle_domain::id::SessionId;
use rekindle_domain::projector::{SessionStatus, status_after};
use rekindle_domain::session::{End, SessionState};
use rekindle_domain::token::TokenIndex;
use rekindle_store::commit::Current;
use rekindle_store::log::Damage;
use rekindle_store::{LoadError, Loaded};
use rekindle_wire::view::{Health, HealthState};

use crate::error::{chain, unloadable};
use crate::session_span::session_span;
use crate::show::page_key::PageKey;
use crate::storage::Catalog;

/// An entry of the directory: what is known of a session.
#[derive(Debug, Clone)]
pub(crate) struct SessionEntry {
    pub(crate) state: Arc<SessionState>,
    pub(crate) tokens: Arc<TokenIndex>,
    /// Where its log is damaged.
    pub(crate) damage: Option<Arc<Damage>>,
    /// Why it cannot be loaded, or is not loaded yet: it is shown as far as it can be read, and left alone.
    pub(crate) trouble: Option<Arc<Health>>,
    /// Its log was read from the beginning: what is known of it is not only what caches say.
    pub(super) examined: bool,
}

impl SessionEntry {
    /// Returns what a session's files say; none if it has none any more.
    pub(super) fn new(
        store: &dyn Catalog,
        session: SessionId,
        loaded: Result<Loaded, LoadError>,
    ) -> Option<SessionEntry> {
        match loaded {
            Ok(loaded) => Some(SessionEntry::of(loaded)),
            // Removed while it was looked at.
            Err(LoadError::NotFound(_)) => None,
            // It hides no other, and is not hidden itself (I10, I12); doctor says more.
            Err(error) => {
                if !matches!(error, LoadError::Unread { .. }) {
                    session_span(session).in_scope(|| tracing::error!("cannot be loaded: {}", chain(&error)));
                }
                let trouble = Some(Arc::new(unloadable(&error)));
                let shown = SessionEntry::of(store.stand_in(session, &error));
                Some(SessionEntry { trouble, examined: true, ..shown })
            }
        }
    }

    fn of(loaded: Loaded) -> SessionEntry {
        SessionEntry {
            state: Arc::new(loaded.state),
            tokens: Arc::new(loaded.tokens),
            damage: loaded.damage.map(Arc::new),
            trouble: None,
            examined: loaded.read_from == 0,
        }
    }

    /// Returns what the committer has of a session: whoever opened it has read it.
    pub(crate) fn current(current: Current) -> SessionEntry {
        let (state, tokens, damage) = (current.state, current.tokens, current.damage);
        SessionEntry { state, tokens, damage, trouble: None, examined: true }
    }

    /// Returns its place in lists: when it was made, which never changes.
    pub(crate) fn place(&self) -> PageKey<SessionId> {
        PageKey { at: self.state.created_at, id: self.state.id }
    }

    /// Tells whether anything can be done in it: its log can be added to, as far as is known.
    pub(crate) fn is_usable(&self) -> bool {
        self.damage.is_none() && self.trouble.is_none()
    }

    /// Tells whether somebody has to do something in it.
    pub(crate) fn needs_worker(&self) -> bool {
        self.is_usable() && self.state.is_unfinished()
    }

    /// Tells whether its log is still to be read: what is known of it is how it began.
    pub(crate) fn is_unread(&self) -> bool {
        self.trouble.as_ref().is_some_and(|trouble| trouble.state == HealthState::Reading)
    }

    /// Tells whether it is idle by its log alone, whatever the time and whoever lives.
    pub(super) fn is_quiet(&self) -> bool {
        let ended = |end: Option<End>| end.is_some_and(|end| status_after(end) == SessionStatus::Idle);
        !self.state.is_unfinished() && self.state.run.as_ref().is_none_or(|run| ended(run.end))
    }

    pub(super) fn lacks_tokens(&self) -> bool {
        self.state.token_records > 0 && self.tokens.tokens.is_empty()
    }
}
