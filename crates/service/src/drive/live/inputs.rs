//! Inputs to the agent: in the log first, then sent, and sent again only if the holder does not have it.

use rekindle_agent::acp::Unoffered;
use rekindle_agent::connection::{Connection, NextSetting, Wanted};
use rekindle_agent::profile::{Answer, Outgoing, Setting};
use rekindle_domain::compose::answer::{self, answer};
use rekindle_domain::compose::begin::prompt;
use rekindle_domain::compose::cancel::{Agent, Cancel, cancel};
use rekindle_domain::compose::interrupt::{Ending, end_run};
use rekindle_domain::event::{CancelReason, Event, InputKind, Raw};
use rekindle_domain::id::{MessageId, RunId, TokenId, WaitId};
use rekindle_domain::line::Draft;
use rekindle_domain::resume_context::restored_files_text;
use rekindle_holder::client::RequestError;
use rekindle_store::commit::Receipt;

use super::agent_memory::History;
use super::error::Result;
use super::prompt::{UnsentPrompt, fetch_payload, wrap_message};
use super::{LiveAgent, LiveError, Progress};
use crate::log_search::{find_last, for_each_line_from};
use crate::test_knobs::crash_point;

impl LiveAgent {
    /// Says what a run has to say. An agent that was not there is told first what happened before, and the log tells
    /// that it was (never silently fresh).
    pub(super) fn send_prompt(&mut self, unsent: &UnsentPrompt) -> Result<()> {
        // A command is told nothing but its prompt, and whoever was prompted before knows the rest.
        let was_there = self.own.prompted.is_some();
        let knows = self.connection.profile().ready_at_start() || was_there;
        let (words, told, drift) = match unsent.own_message().filter(|_| knows) {
            Some(words) => (words.clone(), false, None),
            None => {
                let (store, session) = (self.store.clone(), self.session);
                let History { story, drift, .. } = self.history()?;
                // Who was there has seen what became of its files, or may look.
                let drift = if was_there { None } else { drift.report(unsent.run_id) };
                let words = unsent.prompt_text(&*store, session, story, drift.as_ref())?;
                (words, story.memory().is_nothing() && unsent.needs_past(story), drift)
            }
        };
        let words = self.tell_restored_files(words)?;
        let profile = self.connection.profile();
        let Some(outgoing) = profile.prompt(self.input_seq + 1, self.connection.cursor(), &words) else {
            return Ok(());
        };
        self.input_seq += 1;
        let queued = self.queued(outgoing.what, &outgoing.line, Some(unsent.run_id), None);
        self.append(prompt(queued, told, drift))?;
        self.send(self.input_seq, outgoing.what.as_str(), &outgoing.line)
    }

    /// Puts before a prompt which files were put back since the agent last looked, if any were. A command has not seen them.
    fn tell_restored_files(&self, words: Raw<'static>) -> Result<Raw<'static>> {
        let state = self.store.open_session(self.session)?.state;
        let restored = state.restored_files.as_deref();
        let restored = restored.filter(|_| !self.connection.profile().ready_at_start());
        Ok(match restored {
            Some(files) => wrap_message(&restored_files_text(files), &words, ""),
            None => words,
        })
    }

    /// Records an input and sends it.
    pub(super) fn queue_and_send(
        &mut self,
        outgoing: Outgoing,
        run_id: Option<RunId>,
        wait_id: Option<WaitId>,
    ) -> Result<()> {
        self.input_seq += 1;
        let queued = self.queued(outgoing.what, &outgoing.line, run_id, wait_id);
        self.append(vec![queued.into()])?;
        self.send(self.input_seq, outgoing.what.as_str(), &outgoing.line)
    }

    /// Asks for a setting of the agent's session, for a run or without one. The log tells what came of it.
    pub(super) fn send_setting(&mut self, setting: Setting<'_>, run_id: Option<RunId>) -> Result<()> {
        let Some(cursor) = self.connection.cursor().map(str::to_owned) else { return Ok(()) };
        let outgoing = self.connection.profile().set(self.input_seq + 1, &cursor, setting);
        outgoing.map_or(Ok(()), |outgoing| self.queue_and_send(outgoing, run_id, None))
    }

    /// Ends a run of which nothing was said: the agent does not work as it was asked to.
    fn fail_unsent_run(&mut self, why: String, progress: &mut Progress) -> Result<()> {
        let Some(unsent) = self.prompt.take() else { return Ok(()) };
        let run_id = unsent.run_id;
        let current = self.store.open_session(self.session)?;
        let run = current.state.open_run().filter(|run| run.run_id == run_id);
        if let Some(run) = run {
            self.append(end_run(run, &current.tokens, Ending::Failed { error: why }))?;
        }
        progress.ended = Some(run_id);
        Ok(())
    }

    /// Says what is to be said next to an agent that takes prompts: settings, each of which is awaited, then the prompt.
    pub(super) fn send_settings_and_prompt(&mut self, progress: &mut Progress) -> Result<()> {
        let run = self.prompt.as_ref().map(|unsent| unsent.run_id);
        match self.next_setting(run)? {
            NextSetting::Settled => self.prompt.take().map_or(Ok(()), |unsent| self.send_prompt(&unsent)),
            NextSetting::Awaited => Ok(()),
            NextSetting::Ask(setting) => self.send_setting(setting, run),
            NextSetting::Refused(why) => self.fail_unsent_run(why, progress),
        }
    }

    /// Tells what is to be done about the settings that the session asks for.
    pub(super) fn next_setting(&mut self, run: Option<RunId>) -> Result<NextSetting> {
        let wanted = self.wanted.clone();
        self.find_offer(&wanted)?;
        Ok(self.connection.next_setting(&wanted, run))
    }

    /// Tells why the agent cannot work in another mode or with another model, as far as that is known.
    pub(crate) fn why_unoffered(&mut self, wanted: &Wanted) -> Option<Unoffered> {
        // Without the log nothing is known.
        let _ = self.find_offer(wanted);
        self.connection.check(wanted).err()
    }

    /// Looks once for what an agent before this one offered, if this one has not said it and somebody wants to know: some do not
    /// say it again when they bring a session back.
    fn find_offer(&mut self, wanted: &Wanted) -> Result<()> {
        if *wanted == Wanted::default() || self.looked_for_offer || !self.connection.lacks_options() {
            return Ok(());
        }
        let connection = &mut self.connection;
        find_last(&self.store.reader(self.session)?, |line| {
            // What is no record was refused by the store.
            Connection::is_offer(line).then(|| drop(connection.note_line(line)))
        })?;
        self.looked_for_offer = true;
        Ok(())
    }

    /// Answers a wait; `hash` names the answer, so that the same one is known again.
    pub fn answer(
        &mut self,
        wait_id: WaitId,
        given: Answer<'_>,
        by: &str,
        token: Option<TokenId>,
        hash: &str,
    ) -> Result<()> {
        let gone = LiveError::NoSuchWait(wait_id);
        let Some(ask) = self.connection.asks().find(|ask| ask.wait_id == Some(wait_id)) else {
            return Err(gone);
        };
        let (key, run_id, granted) = (ask.key, ask.run_id, ask.grants(given));
        let (Some(outgoing), Some(run_id)) = (self.connection.answer(key, given).transpose()?, run_id) else {
            return Err(gone);
        };
        let current = self.store.open_session(self.session)?;
        let wait = current.state.run.as_ref().and_then(|run| run.wait(wait_id));
        let wait = wait.ok_or(gone)?;
        self.input_seq += 1;
        let line = std::str::from_utf8(&outgoing.line).ok();
        let line = line.map(|line| Raw::text(line.trim_end()).into_owned());
        let given = answer::Answer { by, token, hash: hash.to_owned(), answer: line, granted };
        let told = self.queued(InputKind::Answer, &outgoing.line, Some(run_id), Some(wait_id));
        self.append(answer(run_id, wait, &current.tokens, given, Some(told)))?;
        crash_point("live.answer.after_record");
        let sent = self.send(self.input_seq, "answer", &outgoing.line);
        self.note_send_failure(sent);
        Ok(())
    }

    /// Cancels the run that is going on: recorded before anything else happens, together with what is sent. Asked
    /// again, it does nothing: it is in the log, and on its way. Returns what was recorded, if anything was.
    pub fn cancel(
        &mut self,
        why: CancelReason,
        by: &str,
        dropped: Vec<MessageId>,
        behind: Vec<Draft>,
    ) -> Result<Option<Receipt>> {
        let current = self.store.open_session(self.session)?;
        let run = current.state.open_run().filter(|run| run.cancel.is_none());
        let Some(run) = run else { return Ok(None) };
        let run_id = run.run_id;
        // What was not said yet is never said.
        let unsaid = self.prompt.take_if(|unsent| unsent.run_id == run_id).is_some();
        let is_command = self.connection.profile().process_is_turn();
        let (mut told, mut lines) = (Vec::new(), Vec::new());
        for (_, outgoing) in self.connection.cancel() {
            self.input_seq += 1;
            told.push(self.queued(outgoing.what, &outgoing.line, Some(run_id), None));
            lines.push((self.input_seq, outgoing));
        }
        let agent = Agent::Present { unsaid, is_command, told };
        let asked = Cancel { why, by, dropped, agent, behind };
        let records = cancel(&current.state, &current.tokens, asked);
        let receipt = self.append(records)?;
        crash_point("live.cancel.after_record");
        for (number, outgoing) in lines {
            let sent = self.send(number, outgoing.what.as_str(), &outgoing.line);
            if self.note_send_failure(sent) {
                return Ok(Some(receipt));
            }
        }
        self.cancel_load()?;
        Ok(Some(receipt))
    }

    /// What is in the log happens: whoever asked for it is not told that it could not be sent just now. The next step
    /// fails by it, and whoever takes the agent over again sends what its holder does not have. Tells whether it is so.
    pub(super) fn note_send_failure(&mut self, sent: Result<()>) -> bool {
        self.unsendable = sent.err();
        self.unsendable.is_some()
    }

    /// Tells the agent of a cancel that was recorded when it could not be met, once.
    pub(super) fn send_cancel(&mut self, run_id: RunId) -> Result<()> {
        let run_id = Some(run_id);
        for ask in std::mem::take(&mut self.own.unanswered) {
            if let Ok(outgoing) = self.connection.profile().answer(&ask.request, Answer::Cancelled) {
                self.queue_and_send(outgoing, run_id, ask.wait_id)?;
            }
        }
        for (_, outgoing) in self.connection.cancel() {
            self.queue_and_send(outgoing, run_id, None)?;
        }
        Ok(())
    }

    /// Sends what the log has and the holder does not: the supervisor before us died in between.
    pub(super) fn resend_inputs(&mut self) -> Result<()> {
        let Some(accepted) = self.control.as_ref().map(|control| control.marks().accepted) else {
            return Ok(());
        };
        if accepted >= self.input_seq {
            return Ok(());
        }
        let holder = self.connection.holder();
        let mut missing = Vec::new();
        for_each_line_from(&self.store.reader(self.session)?, self.launched, |line| {
            if let Ok(Event::InputQueued(queued)) = line.event()
                && queued.holder_id == holder
                && queued.input_seq > accepted
            {
                missing.push((queued.input_seq, queued.what, queued.line.into_owned()));
            }
        })?;
        for (number, what, line) in missing {
            let line = fetch_payload(&*self.store, &line)?;
            let text: String = serde_json::from_str(line.as_json()).map_err(std::io::Error::from)?;
            self.send(number, what.as_str(), text.as_bytes())?;
        }
        Ok(())
    }

    /// Closes the agent's input if nothing can follow what was sent. The holder remembers whether it was asked before,
    /// and we do not: the supervisor before us may have died in between.
    pub(super) fn close_input(&mut self) -> Result<()> {
        let profile = self.connection.profile();
        let said = self.input_seq > 0 || profile.prompt_in_command();
        if self.input_closed || !profile.input_ends_with_prompt() || !said {
            return Ok(());
        }
        crash_point("live.close_input.before");
        match self.control.as_mut().map(|control| control.close_input(self.input_seq)) {
            // An agent that is gone reads no more, and an older holder cannot: it keeps the agent waiting.
            Some(Err(RequestError::Closed | RequestError::TooOld(_))) | None => {}
            Some(outcome) => outcome?,
        }
        self.input_closed = true;
        crash_point("live.close_input.after");
        Ok(())
    }
}
