//! What is said to the agent: in the log first, then sent, and sent again only if the holder does not have it.

use rekindle_agent::connection::Ask;
use rekindle_agent::profile::Outgoing;
use rekindle_domain::event::{
    CancelReason, Event, InputKind, MessageUser, Raw, ResumeHow, RunCancelRequested, RunResumed, RunStarted,
    TokenConsumed, TokenRevoked,
};
use rekindle_domain::id::{MessageId, RunId, SessionId, WaitId};
use rekindle_domain::line::{Draft, Line};
use rekindle_holder::client::RequestError;
use rekindle_store::Store;
use rekindle_store::blobs::BlobRef;
use rekindle_store::commit::Append;

use super::append::keep_large;
use super::{Live, LiveError, Supervisor, millis, random};

/// What an input belongs to.
#[derive(Debug, Clone, Copy, Default)]
pub struct Queued {
    /// Its run.
    pub run_id: Option<RunId>,
    /// The wait it answers.
    pub wait_id: Option<WaitId>,
}

impl Live {
    /// Records a prompt and its run; it is sent as soon as the agent takes one.
    pub fn prompt(&mut self, text: &str) -> Result<RunId, LiveError> {
        let (run_id, records) = begun(text, self.supervisor)?;
        self.append(records)?;
        self.prompt = Some((run_id, text.to_owned()));
        Ok(run_id)
    }

    /// Records a prompt and its run for a session that has no agent: the one that is launched next gets it.
    pub fn prompt_ahead(
        store: &Store,
        session: SessionId,
        text: &str,
        supervisor: Supervisor,
    ) -> Result<RunId, LiveError> {
        let (run_id, mut records) = begun(text, supervisor)?;
        keep_large(store, &mut records)?;
        store.append(Append::durable(session, records))?;
        Ok(run_id)
    }

    /// Records an input and sends it.
    pub(super) fn queue_and_send(&mut self, outgoing: Outgoing, of: Queued) -> Result<(), LiveError> {
        self.input_seq += 1;
        let queued = self.queued(outgoing.what, &outgoing.line, of.run_id, of.wait_id);
        self.append(vec![queued.into()])?;
        self.send(self.input_seq, word(outgoing.what), &outgoing.line)?;
        Ok(())
    }

    pub(super) fn say_answer(
        &mut self,
        wait_id: WaitId,
        ask: &Ask,
        outgoing: Outgoing,
        by: &str,
    ) -> Result<(), LiveError> {
        let Some(run_id) = ask.run_id else { return Err(LiveError::NoSuchWait(wait_id)) };
        let state = self.store.open_session(self.session)?.state;
        let wait = state.run.and_then(|run| run.waits.into_iter().find(|wait| wait.wait_id == wait_id));
        let wait = wait.ok_or(LiveError::NoSuchWait(wait_id))?;
        self.input_seq += 1;
        let hash = rekindle_domain::token::sha256_hex(&outgoing.line);
        let answer =
            std::str::from_utf8(&outgoing.line).ok().map(|line| Raw::text(line.trim_end()).into_owned());
        let records: Vec<Draft> = vec![
            TokenConsumed {
                resume_token_id: wait.resume_token_id,
                wait_id,
                answer_hash: Some(hash.into()),
                by: Some(by.to_owned().into()),
            }
            .into(),
            RunResumed { run_id, wait_id, answer, by: Some(by.to_owned().into()), how: ResumeHow::Answered }
                .into(),
            self.queued(InputKind::Answer, &outgoing.line, Some(run_id), Some(wait_id)).into(),
        ];
        self.append(records)?;
        self.send(self.input_seq, "answer", &outgoing.line)?;
        Ok(())
    }

    /// Cancels the run that is going on: recorded before anything else happens, together with what is sent. Asked
    /// again, it does nothing: it is in the log, and on its way.
    pub fn cancel(&mut self, why: CancelReason, by: &str) -> Result<(), LiveError> {
        let run = self.store.open_session(self.session)?.state.run;
        let Some(run) = run.filter(|run| run.end.is_none() && run.cancel.is_none()) else { return Ok(()) };
        let run_id = run.run_id;
        let requested = RunCancelRequested {
            run_id: Some(run_id),
            by: Some(by.to_owned().into()),
            why,
            dropped: Vec::new(),
        };
        let mut records: Vec<Draft> = vec![requested.into()];
        for wait in &run.waits {
            let (wait_id, resume_token_id) = (wait.wait_id, wait.resume_token_id);
            let reason = "cancelled".into();
            records.push(TokenRevoked { resume_token_id, wait_id: Some(wait_id), reason, by: None }.into());
            let (by, how) = (Some(by.to_owned().into()), ResumeHow::Cancelled);
            records.push(RunResumed { run_id, wait_id, answer: None, by, how }.into());
        }
        let mut lines = Vec::new();
        for (_, outgoing) in self.connection.cancel() {
            self.input_seq += 1;
            records.push(self.queued(outgoing.what, &outgoing.line, Some(run_id), None).into());
            lines.push((self.input_seq, outgoing));
        }
        self.append(records)?;
        for (number, outgoing) in lines {
            self.send(number, word(outgoing.what), &outgoing.line)?;
        }
        Ok(())
    }

    /// Sends what the log has and the holder does not: the supervisor before us died in between.
    pub(super) fn send_again(&mut self) -> Result<(), LiveError> {
        let Some(accepted) = self.control.as_ref().map(|control| control.marks().accepted) else {
            return Ok(());
        };
        if accepted >= self.input_seq {
            return Ok(());
        }
        let holder = self.connection.holder();
        let reader = self.store.reader(self.session).map_err(LiveError::Log)?;
        let mut lines = reader.forward(0);
        let mut missing = Vec::new();
        while let Some(raw) = lines.next().map_err(LiveError::Log)? {
            let Ok(line) = Line::parse(raw.bytes) else { continue };
            if let Ok(Event::InputQueued(queued)) = line.event()
                && queued.holder_id == holder
                && queued.input_seq > accepted
            {
                missing.push((queued.input_seq, queued.what, whole_text(&self.store, &queued.line)?));
            }
        }
        for (number, what, text) in missing {
            self.send(number, word(what), text.as_bytes())?;
        }
        Ok(())
    }

    /// Closes the agent's input if nothing can follow what was sent. The holder remembers whether it was asked before,
    /// and we do not: the supervisor before us may have died in between.
    pub(super) fn close_input(&mut self) -> Result<(), LiveError> {
        let profile = self.connection.profile();
        let said = self.input_seq > 0 || profile.prompt_in_command();
        if self.input_closed || !profile.input_ends_with_prompt() || !said {
            return Ok(());
        }
        match self.control.as_mut().map(|control| control.close_input(self.input_seq)) {
            // An agent that is gone reads no more, and an older holder cannot: it keeps the agent waiting.
            Some(Err(RequestError::Closed | RequestError::TooOld(_))) | None => {}
            Some(outcome) => outcome?,
        }
        self.input_closed = true;
        Ok(())
    }
}

/// Returns the prompt of a run that no input was queued for yet: until then the message is the queue.
pub(super) fn unsent_prompt(
    store: &Store,
    session: SessionId,
    run: RunId,
) -> Result<Option<String>, LiveError> {
    let reader = store.reader(session).map_err(LiveError::Log)?;
    let mut lines = reader.forward(0);
    let (mut wanted, mut sent) = (None, false);
    let mut messages: Vec<(MessageId, Raw<'static>)> = Vec::new();
    while let Some(raw) = lines.next().map_err(LiveError::Log)? {
        let Ok(line) = Line::parse(raw.bytes) else { continue };
        match line.event() {
            Ok(Event::MessageUser(message)) => {
                messages.push((message.message_id, message.content.into_owned()));
            }
            Ok(Event::RunStarted(started)) if started.run_id == run => wanted = started.message_id,
            Ok(Event::InputQueued(queued)) if queued.run_id == Some(run) => {
                sent |= queued.what == InputKind::Prompt;
            }
            _ => {}
        }
    }
    let Some(wanted) = wanted.filter(|_| !sent) else { return Ok(None) };
    let message = messages.into_iter().find(|(id, _)| *id == wanted);
    message.map(|(_, content)| whole_text(store, &content)).transpose()
}

/// Returns a text of the log, fetched from where it is kept if it was too large for the log.
fn whole_text(store: &Store, field: &Raw<'_>) -> Result<String, LiveError> {
    let unreadable = |error: serde_json::Error| LiveError::Log(error.into());
    if let Ok(reference) = serde_json::from_str::<BlobRef>(field.as_json()) {
        return serde_json::from_slice(&store.blobs().get(&reference.blob)?).map_err(unreadable);
    }
    serde_json::from_str(field.as_json()).map_err(unreadable)
}

/// Returns the records of a prompt and the run that begins with it.
fn begun(text: &str, supervisor: Supervisor) -> Result<(RunId, Vec<Draft>), LiveError> {
    let run_id = RunId::mint(millis(), random()?);
    let message_id = MessageId::mint(millis(), random()?);
    let content = Raw::text(text).into_owned();
    let message = MessageUser { message_id, content, idempotency_key: None, queued: false, wait_id: None };
    let started = RunStarted {
        run_id,
        boot_id: supervisor.boot_id,
        machine_boot: rekindle_holder::identity::machine_boot().ok().map(Into::into),
        message_id: Some(message_id),
        attempt: 1,
        continues: None,
        origin_run_id: None,
    };
    Ok((run_id, vec![message.into(), started.into()]))
}

fn word(what: InputKind) -> &'static str {
    match what {
        InputKind::Prompt => "prompt",
        InputKind::Answer => "answer",
        InputKind::Cancel => "cancel",
        _ => "setup",
    }
}
