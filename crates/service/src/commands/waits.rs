//! Waits: opened by programs on a run that goes on, shown, and answered: by a known caller, or by a token. The answer to a wait
//! whose agent is gone becomes, once, the message of a new run.

use std::collections::BTreeMap;
use std::time::Duration;

use rekindle_agent::profile::AnswerError;
use rekindle_domain::event::{Raw, WaitKind};
use rekindle_domain::id::{SessionId, WaitId};
use rekindle_domain::token::Presented;
use rekindle_wire::code::Code;
use rekindle_wire::request::{Content, NewAnswer, NewMessage, NewWait, NewWaitKind, whole_json};
use rekindle_wire::token_text::TokenText;
use rekindle_wire::view::{AnswerTaken, MessageTaken, ResumeMethod, Resumed, WaitView};

use super::message_deduplication::find_repeated;
use super::messages::{self, is_void};
use super::resume_tokens;
use crate::drive::answer::ChosenAnswer;
use crate::drive::live::LiveError;
use crate::drive::provider::profile;
use crate::drive::worker::{Answering, Command, Opening};
use crate::error::{Result, ServiceError};
use crate::idempotency::Key;
use crate::show::{SessionEntry, Views, ended_wait, request_of, request_summary};

/// Finds the session that has a wait.
pub(crate) fn entry_with_wait(views: &Views, wait: WaitId) -> Result<SessionEntry> {
    views
        .directory
        .find_by_wait(views.store(), wait)
        .filter(|entry| !entry.state.deleted)
        .ok_or_else(|| ServiceError::no_wait(wait))
}

/// Answers a wait. A caller on our own socket is known; any other brings a token.
pub(crate) fn answer(views: &Views, wait: WaitId, answer: &NewAnswer, by: &str) -> Result<AnswerTaken> {
    let entry = entry_with_wait(views, wait)?;
    let own = ChosenAnswer::from_request(answer)?;
    let token = match &answer.token {
        Some(TokenText(text)) => Some(resume_tokens::validate(views, entry.state.id, wait, text, &own)?),
        None => None,
    };
    if token.is_none()
        && let Some(known) = repeated_answer(views, &entry, wait, &own)?
    {
        return Ok(known);
    }
    let outside =
        entry.state.run.as_ref().and_then(|run| run.wait(wait)).is_some_and(|wait| wait.kind.is_outside());
    if is_void(&entry.state, wait) && token.is_none() {
        // No agent asked this: there is nobody whom the answer could be told.
        return if outside {
            Err(ServiceError::wait_closed(wait))
        } else {
            as_message(views, &entry, wait, &own)
        };
    }
    let taken = views.workers.ask(entry.state.id, |reply| {
        let (answer, by) = (own.clone(), by.to_owned());
        Command::Answer(Box::new(Answering { wait, answer, by, token, reply }))
    });
    // It may just have been found that nobody waits any more.
    let after = entry_with_wait(views, wait).ok();
    let after = after.filter(|after| taken.is_err() && !outside && is_void(&after.state, wait));
    match after.filter(|_| token.is_none() && !is_void(&entry.state, wait)) {
        Some(after) => as_message(views, &after, wait, &own),
        None => taken,
    }
}

/// Nobody waits for it any more: it begins a run.
fn as_message(views: &Views, entry: &SessionEntry, wait: WaitId, own: &ChosenAnswer) -> Result<AnswerTaken> {
    // Words may be anything now; an option is one of those that were offered.
    let mut words = own.words().to_owned();
    let mut about = None;
    if let Some(request) = request_of(views.store(), &entry.state, wait) {
        let profile = profile(&entry.state.provider)?;
        if let Err(error @ AnswerError::NoSuchOption { .. }) = profile.answer(&request, own.as_answer()) {
            return Err(LiveError::from(error).into());
        }
        if let Some(asked) = profile.asked(request.as_json()) {
            words = own.option_name(&asked.options).unwrap_or(words);
            about = asked.tool.map(|tool| tool.call.label()).filter(|label| !label.is_empty());
        }
        about = about.or_else(|| request_summary(&request));
    }
    let asked = about.map(|about| format!(" ({about})")).unwrap_or_default();
    let text = format!(
        "You were interrupted while you waited for an answer to your question{asked}. The answer is: {words}\n\n\
         Go on from there and finish the request. Do not repeat what is finished."
    );
    let text = serde_json::value::to_raw_value(&text);
    let text = text.map_err(ServiceError::internal)?;
    let new = NewMessage { content: Content(text), env: BTreeMap::new(), umask: None };
    let taken =
        messages::message(&views.workers, entry.state.id, &new, Some(&key_of(wait, own)), Some(wait))?;
    let run_id = taken.run_id.ok_or_else(|| ServiceError::wait_closed(wait))?;
    Ok(AnswerTaken { run_id, resume_token_id: None })
}

/// Returns the key under which an answer becomes a message: the same answer again is known, another one is not taken.
fn key_of(wait: WaitId, own: &ChosenAnswer) -> Key {
    Key { key: format!("answer to {wait}"), body: own.digest() }
}

/// Returns what became of an answer to a wait whose agent was gone, if it was given before.
fn repeated_answer(
    views: &Views,
    entry: &SessionEntry,
    wait: WaitId,
    own: &ChosenAnswer,
) -> Result<Option<AnswerTaken>> {
    match find_repeated(&views.workers, &entry.state, Some(&key_of(wait, own))) {
        Ok(Some(MessageTaken { run_id: Some(run_id), .. })) => {
            Ok(Some(AnswerTaken { run_id, resume_token_id: None }))
        }
        Ok(_) => Ok(None),
        // It was given another answer.
        Err(error) if error.code == Code::KeyReused => Err(ServiceError::wait_closed(wait)),
        Err(error) => Err(error),
    }
}

/// Ends the wait of a session that a token is for.
pub(crate) fn resume(
    views: &Views,
    entry: &SessionEntry,
    token: TokenText,
    given: Option<NewAnswer>,
    by: &str,
) -> Result<Resumed> {
    let Some(mut given) = given else {
        return Err(ServiceError::new(Code::InvalidAnswer, "a token needs the answer to its wait"));
    };
    let shown: Presented = token.0.parse()?;
    let wait = resume_tokens::owner(views, &shown)?.1.wait_id;
    let own = ChosenAnswer::from_request(&given)?;
    resume_tokens::validate(views, entry.state.id, wait, &token.0, &own)?;
    given.token = Some(token);
    let taken = answer(views, wait, &given, by)?;
    let attempt = entry.state.run.as_ref().map_or(1, |run| run.attempt);
    Ok(Resumed { run_id: taken.run_id, method: ResumeMethod::Answer, attempt })
}

/// Opens a wait on the run of a session that goes on.
pub(crate) fn open(
    views: &Views,
    session: SessionId,
    new: &NewWait,
    key: Option<Key>,
    by: &str,
) -> Result<WaitView> {
    let invalid = |error| ServiceError::new(Code::InvalidContent, error);
    whole_json(&new.request).map_err(invalid)?;
    let request = Raw::from_value(&new.request).map_err(invalid)?;
    let kind = match new.kind {
        NewWaitKind::ToolResult => WaitKind::ToolResult,
        NewWaitKind::External => WaitKind::External,
    };
    let timeout = new.timeout_s.map(Duration::from_secs);
    let opened = views.workers.ask(session, |reply| {
        Command::OpenWait(Box::new(Opening { kind, request, timeout, key, by: by.to_owned(), reply }))
    });
    wait_view(views, opened?)
}

/// Shows a wait: open, void, or over, with its answer.
pub(crate) fn wait_view(views: &Views, wait: WaitId) -> Result<WaitView> {
    let entry = entry_with_wait(views, wait)?;
    let shown = views.wait_of(&entry, wait).or_else(|| ended_wait(views.store(), entry.state.id, wait));
    shown.ok_or_else(|| ServiceError::no_wait(wait))
}
