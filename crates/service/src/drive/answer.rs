//! Answers to waits: what was given, whether it may be given now, and what the same one again gets.

use std::collections::BTreeMap;

use rekindle_agent::profile::Answer;
use rekindle_agent::said::Choice;
use rekindle_domain::event::{Permissions, Raw};
use rekindle_domain::id::{TokenId, WaitId};
use rekindle_domain::time::{Moment, Now};
use rekindle_domain::token::{Rejection, Token, TokenIndex, TokenState, sha256};
use rekindle_store::commit::Current;
use rekindle_wire::code::Code;
use rekindle_wire::request::{NewAnswer, whole_json};
use rekindle_wire::view::AnswerTaken;

use crate::error::{Result, ServiceError};

/// An answer that has left its caller.
#[derive(Debug, Clone)]
pub(crate) enum ChosenAnswer {
    Kind(String),
    OptionId(String),
    Text(String),
    Form(Raw<'static>),
}

impl ChosenAnswer {
    /// Takes the one thing that was answered.
    pub(crate) fn from_request(new: &NewAnswer) -> Result<ChosenAnswer> {
        let form = new.form.as_ref().map(|form| whole_json(form).and_then(|_| Raw::from_value(form)));
        let form = form.transpose().map_err(|error| ServiceError::new(Code::InvalidAnswer, error))?;
        let mut given = [
            new.option.clone().map(ChosenAnswer::Kind),
            new.option_id.clone().map(ChosenAnswer::OptionId),
            new.text.clone().map(ChosenAnswer::Text),
            form.map(ChosenAnswer::Form),
        ]
        .into_iter()
        .flatten();
        match (given.next(), given.next()) {
            (Some(answer), None) => Ok(answer),
            _ => Err(ServiceError::new(
                Code::InvalidAnswer,
                "an answer needs exactly one of option, option_id, text and form",
            )),
        }
    }

    pub(crate) fn as_answer(&self) -> Answer<'_> {
        match self {
            ChosenAnswer::Kind(kind) => Answer::Kind(kind),
            ChosenAnswer::OptionId(id) => Answer::OptionId(id),
            ChosenAnswer::Text(text) => Answer::Text(text),
            ChosenAnswer::Form(form) => Answer::Form(form),
        }
    }

    /// Returns the option that was chosen by its id.
    pub(crate) fn option_id(&self) -> Option<&str> {
        match self {
            ChosenAnswer::OptionId(id) => Some(id),
            ChosenAnswer::Kind(_) | ChosenAnswer::Text(_) | ChosenAnswer::Form(_) => None,
        }
    }

    /// Names the answer, so that the same one is known again.
    pub(crate) fn hash(&self) -> String {
        rekindle_holder::journal::hex(&self.digest())
    }

    /// Returns the SHA-256 of the answer.
    pub(crate) fn digest(&self) -> [u8; 32] {
        let (sort, value) = self.parts();
        sha256(format!("{sort}:{value}").as_bytes())
    }

    /// Returns in which way it was given, and what.
    fn parts(&self) -> (&'static str, &str) {
        match self {
            ChosenAnswer::Kind(value) => ("option", value),
            ChosenAnswer::OptionId(value) => ("option_id", value),
            ChosenAnswer::Text(value) => ("text", value),
            ChosenAnswer::Form(value) => ("form", value.as_json()),
        }
    }

    /// Returns the name of the option that was chosen, as the agent offered it.
    pub(crate) fn option_name(&self, options: &[Choice]) -> Option<String> {
        let chosen = options.iter().find(|option| match self {
            ChosenAnswer::Kind(kind) => option.kind == *kind,
            ChosenAnswer::OptionId(id) => option.option_id == *id,
            ChosenAnswer::Text(_) | ChosenAnswer::Form(_) => false,
        });
        chosen.map(|option| option.name.clone()).filter(|name| !name.is_empty())
    }

    /// Returns it in the shape in which it was given, for whoever opened the wait.
    pub(crate) fn as_given(&self) -> Raw<'static> {
        let (sort, value) = self.parts();
        let value = match self {
            ChosenAnswer::Form(form) => form.clone(),
            _ => Raw::text(value),
        };
        let given: BTreeMap<&str, Raw<'_>> = BTreeMap::from([(sort, value)]);
        // A map of JSON is JSON.
        Raw::from_value(&given).unwrap_or_else(|_| Raw::text(self.words()))
    }

    /// Returns what a person would read, for an answer that becomes a message.
    pub(crate) fn words(&self) -> &str {
        self.parts().1
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

/// Decides whether a wait may be answered now, with a token that was shown or the wait's own. Returns what came of the same answer
/// if it was given before.
pub(crate) fn check_answer(
    current: &Current,
    wait: WaitId,
    token: Option<TokenId>,
    hash: &str,
    now: Now,
) -> Result<Option<AnswerTaken>> {
    let moment = Moment { now, newest: current.state.updated_at };
    if let Some((id, used)) = consumed_token(&current.tokens, wait) {
        match token {
            Some(shown) => current.tokens.judge_shown(shown, hash, moment)?,
            None => current.tokens.judge(id, hash, moment)?,
        };
        return Ok(Some(AnswerTaken { run_id: used.scope.run_id, resume_token_id: Some(id) }));
    }
    let open = current.state.open_run().and_then(|run| run.wait(wait));
    let open = open.ok_or_else(|| ServiceError::wait_closed(wait))?;
    current.tokens.judge(token.unwrap_or(open.resume_token_id), hash, moment)?;
    if open.deadline_at.is_some_and(|deadline| moment.is_past(deadline)) {
        return Err(Rejection::Expired.into());
    }
    Ok(None)
}

/// Returns the token that a wait was answered with.
pub(crate) fn consumed_token(tokens: &TokenIndex, wait: WaitId) -> Option<(TokenId, &Token)> {
    let used =
        |token: &Token| token.scope.wait_id == wait && matches!(token.state, TokenState::Consumed { .. });
    tokens.tokens.iter().find(|(_, token)| used(token)).map(|(id, token)| (*id, token))
}
