//! Resume tokens: whose one is that a caller shows, what it is good for, and further ones for an open wait.

use std::time::Duration;

use rekindle_domain::compose::wait::further_token;
use rekindle_domain::event::TokenScope;
use rekindle_domain::id::{SessionId, TokenId, WaitId};
use rekindle_domain::time::Moment;
use rekindle_domain::token::{Presented, Rejection};
use rekindle_wire::token_text::TokenText;
use rekindle_wire::view::TokenShown;

use crate::drive::answer::ChosenAnswer;
use crate::drive::worker::Command;
use crate::error::{Result, ServiceError};
use crate::ids::{millis, random, random_bytes};
use crate::records::Records;
use crate::show::{SessionEntry, Views};

/// The bearer of a resume token: someone who has its secret.
pub(crate) struct Bearer {
    /// The session that the token is of.
    pub(crate) entry: SessionEntry,
    /// The token.
    pub(crate) id: TokenId,
    /// What it is for.
    pub(crate) scope: TokenScope,
}

/// Finds the session whose token a caller shows, and what it is good for.
pub(crate) fn owner(views: &Views, shown: &Presented) -> Result<(SessionEntry, TokenScope)> {
    let owner = views.directory.find_by_token(views.store(), shown.id);
    let found = owner.and_then(|owner| Some((owner.tokens.tokens.get(&shown.id)?.scope.clone(), owner)));
    found.map(|(scope, owner)| (owner, scope)).ok_or_else(|| ServiceError::from(Rejection::Unknown))
}

/// Tells whose token it is that a caller shows and nothing else, and what it is for. Whoever does not have its secret is told
/// that it is unknown, whatever there is.
pub(crate) fn bearer(views: &Views, text: &str) -> Result<Bearer> {
    let shown: Presented = text.parse()?;
    let (entry, _) = owner(views, &shown)?;
    let scope = entry.tokens.scope_of(&shown).filter(|_| !entry.state.deleted).cloned();
    let scope = scope.ok_or_else(|| ServiceError::from(Rejection::Unknown))?;
    Ok(Bearer { entry, id: shown.id, scope })
}

/// Checks a token that a caller shows for a wait of a session and an answer to it; whoever shows none is known otherwise. That it
/// is good for something else is told only to whoever has its secret.
pub(crate) fn validate(
    views: &Views,
    session_id: SessionId,
    wait_id: WaitId,
    text: &str,
    answer: &ChosenAnswer,
) -> Result<TokenId> {
    let shown: Presented = text.parse()?;
    let (owner, own) = owner(views, &shown)?;
    let option_id = answer.option_id().map(Into::into);
    let wanted = TokenScope { session_id, wait_id, option_id, run_id: own.run_id };
    let moment = Moment { now: views.workers.records.time(), newest: owner.state.updated_at };
    owner.tokens.validate(&shown, &wanted, &answer.hash(), moment).map_err(|error| {
        if error == Rejection::Expired {
            // The log says so too, from the first time that it is noticed.
            let _ = views.workers.send(owner.state.id, Command::Expire);
        }
        ServiceError::from(error)
    })?;
    Ok(shown.id)
}

/// Mints a further token for an open wait, good for so long. Only its hash is kept.
pub(crate) fn mint(
    records: &Records,
    entry: &SessionEntry,
    wait: WaitId,
    (lifetime, by): (Duration, &str),
) -> Result<TokenShown> {
    let now = records.time().steady;
    let id = TokenId::mint(millis(now), random()?);
    let (token, presented) = Presented::mint(id, random_bytes()?);
    let expires_at = now.plus_millis(i64::try_from(lifetime.as_millis()).unwrap_or(i64::MAX));
    let minted = further_token(&entry.state, wait, &presented, expires_at, by)
        .ok_or_else(|| ServiceError::wait_closed(wait))?;
    // Right after a start it may not have been opened by anyone.
    records.store.open_session(entry.state.id)?;
    records.append(entry.state.id, vec![minted.into()])?;
    Ok(TokenShown { token: TokenText(token), expires_at })
}
