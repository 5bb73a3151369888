//! Resume tokens and the answers they let in: what an answer is, who may give it, and what the same one again gets.

use std::collections::BTreeMap;
use std::sync::Arc;

use rekindle_agent::profile::Answer;
use rekindle_agent::said::Choice;
use rekindle_domain::compose::wait::further_token;
use rekindle_domain::event::{Permissions, Raw, TokenScope};
use rekindle_domain::id::{SessionId, TokenId, WaitId};
use rekindle_domain::time::{Moment, Now};
use rekindle_domain::token::{Presented, Rejection, TokenIndex, TokenState, sha256};
use rekindle_store::commit::Current;

use crate::code::Code;
use crate::core::{Core, millis, random, random_bytes};
use crate::directory::Entry;
use crate::error::ServiceError;
use crate::messages::whole_json;
use crate::request::NewAnswer;
use crate::view::{AnswerTaken, TokenShown};
use crate::worker::Command;

/// How long a further token is good.
const FURTHER: i64 = 24 * 3600 * 1000;

/// An answer that has left its caller.
#[derive(Debug, Clone)]
pub(crate) enum OwnAnswer {
    Kind(String),
    OptionId(String),
    Text(String),
    Form(Raw<'static>),
}

impl OwnAnswer {
    /// Takes the one thing that was answered.
    pub(crate) fn from_request(new: &NewAnswer) -> Result<OwnAnswer, ServiceError> {
        let form = new.form.as_ref().map(|form| whole_json(form).and_then(|_| Raw::from_value(form)));
        let form = form.transpose().map_err(|error| ServiceError::new(Code::InvalidAnswer, error))?;
        let mut given = [
            new.option.clone().map(OwnAnswer::Kind),
            new.option_id.clone().map(OwnAnswer::OptionId),
            new.text.clone().map(OwnAnswer::Text),
            form.map(OwnAnswer::Form),
        ]
        .into_iter()
        .flatten();
        match (given.next(), given.next()) {
            (Some(answer), None) => Ok(answer),
            _ => Err(ServiceError::new(
                Code::InvalidAnswer,
                "an answer is exactly one of option, option_id, text and form",
            )),
        }
    }

    pub(crate) fn as_answer(&self) -> Answer<'_> {
        match self {
            OwnAnswer::Kind(kind) => Answer::Kind(kind),
            OwnAnswer::OptionId(id) => Answer::OptionId(id),
            OwnAnswer::Text(text) => Answer::Text(text),
            OwnAnswer::Form(form) => Answer::Form(form),
        }
    }

    /// Names the answer, so that the same one is known again.
    pub(crate) fn hash(&self) -> String {
        rekindle_holder::journal::hex(&self.digest())
    }

    /// Returns the SHA-256 of the answer.
    pub(crate) fn digest(&self) -> [u8; 32] {
        let (sort, value) = match self {
            OwnAnswer::Kind(value) => ("option", value.as_str()),
            OwnAnswer::OptionId(value) => ("option_id", value.as_str()),
            OwnAnswer::Text(value) => ("text", value.as_str()),
            OwnAnswer::Form(value) => ("form", value.as_json()),
        };
        sha256(format!("{sort}:{value}").as_bytes())
    }

    /// Returns the name of the option that was chosen, as the agent offered it.
    pub(crate) fn name_among(&self, options: &[Choice]) -> Option<String> {
        let chosen = options.iter().find(|option| match self {
            OwnAnswer::Kind(kind) => option.kind == *kind,
            OwnAnswer::OptionId(id) => option.option_id == *id,
            OwnAnswer::Text(_) | OwnAnswer::Form(_) => false,
        });
        chosen.map(|option| option.name.clone()).filter(|name| !name.is_empty())
    }

    /// Returns it in the shape in which it was given, for whoever opened the wait.
    pub(crate) fn as_given(&self) -> Raw<'static> {
        let (sort, value) = match self {
            OwnAnswer::Kind(value) => ("option", Raw::text(value)),
            OwnAnswer::OptionId(value) => ("option_id", Raw::text(value)),
            OwnAnswer::Text(value) => ("text", Raw::text(value)),
            OwnAnswer::Form(value) => ("form", value.clone()),
        };
        let given: BTreeMap<&str, Raw<'_>> = BTreeMap::from([(sort, value)]);
        // A map of JSON is JSON.
        Raw::from_value(&given).unwrap_or_else(|_| Raw::text(self.words()))
    }

    /// Returns what a person would read, for an answer that becomes a message.
    pub(crate) fn words(&self) -> &str {
        match self {
            OwnAnswer::Kind(value) | OwnAnswer::OptionId(value) | OwnAnswer::Text(value) => value,
            OwnAnswer::Form(value) => value.as_json(),
        }
    }
}

/// Returns the kind of option that is chosen when a permission is asked for, without asking anyone; none if someone is asked.
pub(crate) fn chosen_by_policy(permissions: Permissions) -> Option<&'static str> {
    match permissions {
        Permissions::Ask => None,
        Permissions::Allow => Some("allow_once"),
        Permissions::Deny => Some("reject_once"),
    }
}

/// What a token is worth.
pub(crate) enum Verdict {
    /// The answer may be given.
    Fresh,
    /// It was given before: this was the result.
    Repeated(AnswerTaken),
}

/// Says that a wait is over.
pub(crate) fn closed(wait: WaitId) -> ServiceError {
    ServiceError::new(Code::WaitClosed, format!("the wait {wait} is not open any more"))
        .hint("rekindle waits")
}

/// Finds the session whose token a caller shows, and what it is good for.
pub(crate) fn owner(core: &Core, shown: &Presented) -> Result<(Entry, TokenScope), ServiceError> {
    let owner = core.directory.with_token(&core.store, shown.id);
    let found = owner.and_then(|owner| Some((owner.tokens.tokens.get(&shown.id)?.scope, owner)));
    found.map(|(scope, owner)| (owner, scope)).ok_or_else(|| rejected(&Rejection::Unknown))
}

/// Tells whose token it is that a caller shows and nothing else, and what it is for. Whoever does not have its secret is told
/// that it is unknown, whatever there is.
pub(crate) fn bearer(core: &Core, text: &str) -> Result<(TokenId, TokenScope), ServiceError> {
    let unknown = || rejected(&Rejection::Unknown);
    let shown: Presented = text.parse().map_err(|error: Rejection| rejected(&error))?;
    let (owner, _) = owner(core, &shown)?;
    if owner.state.deleted {
        return Err(unknown());
    }
    Ok((shown.id, owner.tokens.scope_of(&shown).ok_or_else(unknown)?))
}

/// Checks a token that a caller shows for a wait of a session; whoever shows none is known otherwise. That it is good for
/// something else is told only to whoever has its secret.
pub(crate) fn show(
    core: &Arc<Core>,
    session_id: SessionId,
    wait_id: WaitId,
    text: &str,
    hash: &str,
) -> Result<TokenId, ServiceError> {
    let shown: Presented = text.parse().map_err(|error: Rejection| rejected(&error))?;
    let (owner, own) = owner(core, &shown)?;
    let scope = TokenScope { session_id, wait_id, ..own };
    let moment = Moment { now: core.time(), newest: owner.state.updated_at };
    owner.tokens.validate(&shown, &scope, hash, moment).map_err(|error| {
        if error == Rejection::Expired {
            // The log says so too, from the first time that it is noticed.
            let _ = core.workers.tell(core, owner.state.id, Command::Expire);
        }
        rejected(&error)
    })?;
    Ok(shown.id)
}

/// Decides whether a wait may be answered now, with a token that was shown or the wait's own.
pub(crate) fn judge(
    current: &Current,
    wait: WaitId,
    token: Option<TokenId>,
    hash: &str,
    now: Now,
) -> Result<Verdict, ServiceError> {
    let moment = Moment { now, newest: current.state.updated_at };
    let open = current.state.open_run().and_then(|run| run.wait(wait));
    let used =
        current.tokens.tokens.iter().find(|(_, token)| {
            token.scope.wait_id == wait && matches!(token.state, TokenState::Consumed { .. })
        });
    if let Some((id, consumed)) = used {
        return match &consumed.state {
            TokenState::Consumed { answer_hash: Some(first), .. } if first == hash => {
                let run_id = consumed.scope.run_id;
                Ok(Verdict::Repeated(AnswerTaken { run_id, resume_token_id: Some(*id) }))
            }
            _ => Err(rejected(&Rejection::Consumed)),
        };
    }
    let Some(open) = open else { return Err(closed(wait)) };
    let id = token.unwrap_or(open.resume_token_id);
    let known = current.tokens.tokens.get(&id).ok_or_else(|| rejected(&Rejection::Unknown))?;
    match &known.state {
        TokenState::Revoked { reason, .. } => Err(rejected(&Rejection::Revoked(reason.clone()))),
        TokenState::Expired { .. } => Err(rejected(&Rejection::Expired)),
        _ if !current.tokens.is_active(id, moment) => Err(rejected(&Rejection::Expired)),
        _ if open.deadline_at.is_some_and(|deadline| moment.is_past(deadline)) => {
            Err(rejected(&Rejection::Expired))
        }
        _ => Ok(Verdict::Fresh),
    }
}

/// Returns the token that a wait was answered with.
pub(crate) fn consumed(tokens: &TokenIndex, wait: WaitId) -> Option<TokenId> {
    let used = |token: &rekindle_domain::token::Token| {
        token.scope.wait_id == wait && matches!(token.state, TokenState::Consumed { .. })
    };
    tokens.tokens.iter().find(|(_, token)| used(token)).map(|(id, _)| *id)
}

/// Says no, each with its code.
pub(crate) fn rejected(why: &Rejection) -> ServiceError {
    let code = match why {
        Rejection::Unknown => Code::TokenUnknown,
        Rejection::Scope => Code::TokenScope,
        Rejection::Consumed => Code::TokenConsumed,
        Rejection::Expired => Code::TokenExpired,
        Rejection::Revoked(_) => Code::TokenRevoked,
    };
    ServiceError::new(code, why)
}

/// Mints a further token for an open wait. Only its hash is kept.
pub(crate) fn mint(core: &Core, entry: &Entry, wait: WaitId, by: &str) -> Result<TokenShown, ServiceError> {
    let now = core.time().steady;
    let id = TokenId::mint(millis(now), random()?);
    let (token, presented) = Presented::mint(id, random_bytes()?);
    let expires_at = now.plus_millis(FURTHER);
    let minted = further_token(&entry.state, wait, &presented, expires_at, by).ok_or_else(|| closed(wait))?;
    // Right after a start it may not have been opened by anyone.
    core.store.open_session(entry.state.id)?;
    core.append(entry.state.id, vec![minted.into()])?;
    Ok(TokenShown { token, expires_at })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rejection_keeps_its_word() {
        let revoked = Rejection::Revoked("cancelled".into());
        for why in [Rejection::Unknown, Rejection::Scope, Rejection::Consumed, Rejection::Expired, revoked] {
            assert_eq!(rejected(&why).code.as_str(), why.code());
        }
    }
}
