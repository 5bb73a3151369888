//! What the daemon does about waits: it lists, opens, shows and answers them, and makes tokens and links with which others answer.

use std::time::Duration;

use rekindle_domain::id::{SessionId, TokenId, WaitId};
use rekindle_domain::token::Rejection;
use rekindle_notify::AnswerLink;
use rekindle_wire::code::Code;
use rekindle_wire::filter::WaitFilter;
use rekindle_wire::hint::Hint;
use rekindle_wire::request::{NewAnswer, NewWait, ShownToken};
use rekindle_wire::view::{
    AnswerLinkView, AnswerLinks, AnswerTaken, TokenShown, TokenView, WaitList, WaitView,
};

use super::Daemon;
use crate::answer_links::{MintedLinks, token_view};
use crate::commands::resume_tokens::Bearer;
use crate::commands::{resume_tokens, waits};
use crate::error::{Result, ServiceError};
use crate::idempotency::Key;

/// How long questions of agents wait for their answers, where a session does not say, and how long further tokens are good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitSettings {
    /// How long a question waits; for ever without it.
    pub timeout: Option<Duration>,
    /// How long a token is good that somebody has minted for a wait.
    pub token_lifetime: Duration,
}

impl Default for WaitSettings {
    fn default() -> WaitSettings {
        WaitSettings { timeout: None, token_lifetime: Duration::from_secs(24 * 60 * 60) }
    }
}

/// The use that a resume token is shown for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenUse {
    /// Answering this wait.
    Wait(WaitId),
    /// Ending the wait of this session that it is for.
    Session(SessionId),
}

impl Daemon {
    /// Lists open and void waits.
    pub fn waits(&self, filter: &WaitFilter) -> Result<WaitList> {
        self.views.list_waits(filter)
    }

    /// Opens a wait on the run of a session that goes on, for a program that drives it.
    pub fn open_wait(
        &self,
        session: SessionId,
        new: &NewWait,
        key: Option<Key>,
        by: &str,
    ) -> Result<WaitView> {
        let entry = self.entry(session)?;
        waits::open(&self.views, entry.state.id, new, key, by)
    }

    /// Shows one wait, over or not.
    pub fn wait(&self, wait: WaitId) -> Result<WaitView> {
        waits::wait_view(&self.views, wait)
    }

    /// Makes a further token for a wait.
    pub fn mint(&self, wait: WaitId, by: &str) -> Result<TokenShown> {
        let entry = waits::entry_with_wait(&self.views, wait)?;
        resume_tokens::mint(&self.workers.records, &entry, wait, (self.waits.token_lifetime, by))
    }

    /// Makes links that answer a wait, each with one option, in the place of those that the same caller had made before.
    pub fn mint_answer_links(&self, wait: WaitId, by: &str) -> Result<AnswerLinks> {
        let links = self.answer_links.as_ref().ok_or_else(|| {
            let message = "answer links need a base_url in the daemon's configuration";
            ServiceError::new(Code::LinksUnavailable, message).hint(Hint::SetBaseUrl)
        })?;
        let session = waits::entry_with_wait(&self.views, wait)?.state.id;
        let MintedLinks { links, expires_at } = links.mint(session, wait, by)?;
        let shown = |AnswerLink { label, url }| AnswerLinkView { label, url };
        Ok(AnswerLinks { links: links.into_iter().map(shown).collect(), expires_at })
    }

    /// Shows what a resume token is for to whoever has it, and uses nothing up.
    pub fn token_view(&self, wait: WaitId, shown: &ShownToken) -> Result<TokenView> {
        token_view(&self.views, wait, &shown.token.0)
    }

    /// Answers a wait. A caller on our own socket is known; any other brings a token. The answer to a wait whose agent
    /// is gone becomes, once, the message of a new run.
    pub fn answer(&self, wait: WaitId, answer: NewAnswer, by: &str) -> Result<AnswerTaken> {
        waits::answer(&self.views, wait, &answer, by)
    }

    /// Lets in someone who shows nothing but a resume token, for the wait it is for, or for that wait's session; returns the
    /// token's id. Whether it can still be used is told when it is.
    pub fn let_in_by_token(&self, text: &str, way: TokenUse) -> Result<TokenId> {
        let Bearer { id, scope, .. } = resume_tokens::bearer(&self.views, text)?;
        let fits = match way {
            TokenUse::Wait(wait) => scope.wait_id == wait,
            TokenUse::Session(session) => scope.session_id == session,
        };
        if fits { Ok(id) } else { Err(Rejection::Scope.into()) }
    }
}
