//! The prompt of a run, what it has to say to its agent while nothing of it is queued: the message, or the words that
//! continue a turn that was cut. Until an input is queued the log's own records are the queue, so that this is found again
//! after any death.

use rekindle_agent::profile::Profile;
use rekindle_domain::event::{Drift, Event, Raw};
use rekindle_domain::id::{MessageId, RunId, SessionId};
use rekindle_domain::resume_context::ConversationHistory;
use rekindle_domain::session::Run;
use rekindle_store::blobs::BlobRef;

use super::LiveError;
use super::error::Result;
use crate::log_search::find_last_event;
use crate::storage::Sessions;

/// A prompt that is to be said.
#[derive(Debug, Clone)]
pub struct UnsentPrompt {
    pub(crate) run_id: RunId,
    what: What,
}

#[derive(Debug, Clone)]
enum What {
    Message(Raw<'static>),
    Continuation { attempt: u32 },
}

impl UnsentPrompt {
    /// A message that was just recorded.
    pub fn message(run_id: RunId, content: Raw<'static>) -> UnsentPrompt {
        UnsentPrompt { run_id, what: What::Message(content) }
    }

    /// A turn that was just begun to continue another.
    pub(crate) fn continuation(run_id: RunId, attempt: u32) -> UnsentPrompt {
        UnsentPrompt { run_id, what: What::Continuation { attempt } }
    }

    /// Finds what an open run has to say to an agent, in the log. A command that is run again knows nothing of the first
    /// time: it gets the same request.
    pub(crate) fn find(
        store: &dyn Sessions,
        session: SessionId,
        run: &Run,
        profile: &dyn Profile,
    ) -> Result<Option<UnsentPrompt>> {
        let again = run.continues.filter(|_| run.message_id.is_none() && profile.process_is_turn());
        let message = match again {
            Some(cut) => first_message(store, session, cut)?,
            None => run.message_id,
        };
        let what = match message {
            Some(message) => What::Message(message_content(store, session, message)?),
            None if run.continues.is_some() => What::Continuation { attempt: run.attempt },
            None => return Ok(None),
        };
        Ok(Some(UnsentPrompt { run_id: run.run_id, what }))
    }

    /// Tells whether this is what a run has still to say.
    pub(crate) fn is_due(&self, run: &Run) -> bool {
        self.run_id == run.run_id && !run.prompted && run.cancel.is_none()
    }

    /// Tells whether an agent that was not there has to be told what happened before.
    pub(super) fn needs_past(&self, story: &ConversationHistory) -> bool {
        matches!(self.what, What::Continuation { .. }) || story.has_past()
    }

    /// Returns the words for a command that is told nothing else; none if there are none of its own.
    pub(super) fn own_message(&self) -> Option<&Raw<'static>> {
        match &self.what {
            What::Message(content) => Some(content),
            What::Continuation { .. } => None,
        }
    }

    /// Returns the words for an agent, together with what it lacks of the story and what drifted since the last turn. A turn that was cut is continued with its
    /// request, whole, unless the agent is known to have it.
    pub(super) fn prompt_text(
        &self,
        store: &dyn Sessions,
        session: SessionId,
        story: &ConversationHistory,
        drift: Option<&Drift>,
    ) -> Result<Raw<'static>> {
        match &self.what {
            What::Continuation { attempt } => {
                let told = story.continuation(*attempt, drift);
                if !told.with_request {
                    return Ok(Raw::text(&format!("{}{}", told.before, told.after)));
                }
                let message = first_message(store, session, self.run_id)?.ok_or(LiveError::NoPrompt)?;
                Ok(wrap_message(&told.before, &message_content(store, session, message)?, told.after))
            }
            What::Message(content) => match story.preface(drift) {
                Some(text) => Ok(wrap_message(&text, content, "")),
                None => Ok(content.clone()),
            },
        }
    }
}

/// Puts texts before and behind a message: around its words, or around its blocks.
pub(super) fn wrap_message(before: &str, content: &Raw<'_>, after: &str) -> Raw<'static> {
    let block = |text: &str| serde_json::json!({"type": "text", "text": text});
    let joined = match serde_json::from_str::<serde_json::Value>(content.as_json()) {
        Ok(serde_json::Value::String(words)) if after.is_empty() => {
            Raw::from_value(&format!("{before}{words}"))
        }
        Ok(serde_json::Value::String(words)) => Raw::from_value(&format!("{before}{words}\n\n{after}")),
        Ok(serde_json::Value::Array(mut blocks)) => {
            blocks.insert(0, block(before));
            blocks.extend((!after.is_empty()).then(|| block(after)));
            Raw::from_value(&blocks)
        }
        _ => return content.clone().into_owned(),
    };
    joined.unwrap_or_else(|_| content.clone().into_owned())
}

/// Returns the message that a run began with, or the run that it continues.
fn first_message(store: &dyn Sessions, session: SessionId, run: RunId) -> Result<Option<MessageId>> {
    let mut wanted = run;
    // From the newest back: whatever a run continues began before it.
    let found = find_last_event(&store.reader(session)?, |event| match event {
        Event::RunStarted(started) if started.run_id == wanted => {
            wanted = started.continues.unwrap_or(wanted);
            started.message_id
        }
        _ => None,
    });
    Ok(found?)
}

/// Returns the content of a message, fetched from where it is kept if it was too large for the log.
fn message_content(store: &dyn Sessions, session: SessionId, wanted: MessageId) -> Result<Raw<'static>> {
    let found = find_last_event(&store.reader(session)?, |event| match event {
        Event::MessageUser(message) if message.message_id == wanted => {
            Some(message.content.clone().into_owned())
        }
        _ => None,
    })?;
    fetch_payload(store, &found.ok_or(LiveError::NoPrompt)?)
}

/// Returns a field of a record, fetched from where it is kept if it was too large for the log.
pub(crate) fn fetch_payload(store: &dyn Sessions, field: &Raw<'_>) -> Result<Raw<'static>> {
    let Ok(reference) = serde_json::from_str::<BlobRef>(field.as_json()) else {
        return Ok(field.clone().into_owned());
    };
    let bytes = store.blobs().get(&reference.blob)?;
    let read = serde_json::from_slice::<Raw<'_>>(&bytes).map(Raw::into_owned);
    read.map_err(|error| LiveError::Log(error.into()))
}
