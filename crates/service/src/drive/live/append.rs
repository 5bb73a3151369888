//! The records that follow from an item of the journal, appended in one list; and what is to be done afterwards.

use std::time::Duration;

use rekindle_agent::blob;
use rekindle_agent::connection::{Ask, Exited, Taken};
use rekindle_agent::replay::compare;
use rekindle_agent::said::{PromptOutcome, Request};
use rekindle_domain::compose::interrupt::{Ending, end_run, end_turn};
use rekindle_domain::compose::wait::{NewWait, open, withdraw};
use rekindle_domain::event::{
    AgentExited, CancelReason, Event, InputKind, InputQueued, InterruptReason, Raw, RunFailed,
    SessionRestored,
};
use rekindle_domain::id::{RunId, WaitId};
use rekindle_domain::line::Draft;
use rekindle_domain::session::Run;
use rekindle_domain::token::sha256_hex;
use rekindle_holder::dir::ExitNote;
use rekindle_holder::identity::machine_boot;
use rekindle_store::commit::{Append, Receipt};

use super::agent_memory::FORKED;
use super::error::{Result, tells_of_shortage};
use super::{LiveAgent, LiveError, Progress};
use crate::drive::sign_in::refusal_text;
use crate::ids::wait_names;
use crate::storage::Sessions;
use crate::test_knobs::crash_point;
use crate::ticks;

/// How long a holder may take from one to the other.
const EXIT_NOTE: Duration = Duration::from_millis(500);

/// Lines of a failed command's errors that are told with its end.
const LAST_ERRORS: usize = 5;

impl LiveAgent {
    /// Appends everything that follows from an item, then does what the log now says.
    pub(super) fn carry_out(&mut self, mut taken: Taken, progress: &mut Progress) -> Result<()> {
        let words = std::mem::take(&mut taken.deltas);
        progress.heartbeat = taken.heartbeat.take().or(progress.heartbeat.take());
        let exit = taken.exited.clone();
        for ask in std::mem::take(&mut taken.asks) {
            self.open_wait(&mut taken, &ask, progress)?;
        }
        for ask in std::mem::take(&mut taken.withdrawn) {
            self.withdraw(&mut taken, &ask)?;
        }
        if let Some(restored) = taken.restored.take() {
            let history = self.history()?;
            let origin = history.origin.as_ref().filter(|_| restored.method == Request::Fork);
            let spoken = origin.map_or(&history.spoken, |origin| &origin.spoken);
            let (turns, cut) = (spoken.turns(), spoken.cut());
            let (verdict, counts) = compare(restored.method, &restored.replay, turns, cut, restored.goes_on);
            let method = match restored.method {
                Request::Fork => FORKED,
                Request::Resume => "resume",
                _ => "load",
            };
            let counts = Raw::from_value(&counts).ok();
            taken.add(SessionRestored { method: method.into(), verdict: verdict.as_str().into(), counts });
            self.record_work_in_load(&mut taken, &restored.replay)?;
        }
        if let Some(replay) = taken.unfinished_load.take() {
            self.record_work_in_load(&mut taken, &replay)?;
        }
        if let Some(refused) = taken.refused.take() {
            match refused.request {
                // The agent does not have it any more: it gets a new session, and is told of the old one.
                Request::Load | Request::Resume => self.cursor = None,
                Request::Fork => self.fork_of = None,
                // The connection knows, and says so before the next prompt.
                Request::Set => {}
                _ => {
                    self.refused = true;
                    progress.refused = Some(refused.failure);
                }
            }
        }
        if let Some(ended) = taken.ended.take() {
            let current = self.store.open_session(self.session)?;
            let cancel = current.state.run.as_ref().and_then(|run| run.cancel);
            let end = match (ended.event(cancel), &ended.outcome) {
                (Some(Event::RunFailed(failed)), PromptOutcome::Failed(failure)) => {
                    let error = refusal_text(failure, &current.state.provider, &self.connection).into();
                    Some(self.with_last_errors(RunFailed { error, ..failed }).into())
                }
                (end, _) => end,
            };
            let run = current.state.open_run().filter(|run| ended.run_id == Some(run.run_id));
            match (end, run) {
                (Some(end), Some(run)) => add_all(&mut taken, end_turn(run, &current.tokens, end)),
                (Some(end), None) => taken.add(end),
                (None, _) => {}
            }
            progress.ended = ended.run_id;
        }
        let mut lines = Vec::new();
        for reply in std::mem::take(&mut taken.replies) {
            self.input_seq += 1;
            taken.add(self.queued(InputKind::Answer, &reply.line, None, None));
            lines.push((self.input_seq, reply.line));
        }
        if let Some(exited) = exit {
            self.exited(&mut taken, &exited)?;
            progress.exited = true;
        }
        if !taken.records.is_empty() {
            self.append(std::mem::take(&mut taken.records))?;
        }
        // Behind the records of the same item: they are of what came before.
        if let Some(listener) = &self.listener {
            words.iter().for_each(|delta| listener(delta));
        }
        for (number, line) in lines {
            self.send(number, "answer", &line)?;
        }
        Ok(())
    }

    /// Appends records and takes them in; large payloads are stored first.
    pub(super) fn append(&mut self, mut records: Vec<Draft>) -> Result<Receipt> {
        keep_large(&*self.store, &mut records)?;
        let append = Append::as_needed(self.session, records.clone());
        crash_point("live.append.before");
        let receipt = self.store.append(append)?;
        crash_point("live.append.after");
        for draft in &records {
            self.apply_record(draft);
            if let Some(source) = draft.source {
                self.low = source.3;
                self.unacknowledged.get_or_insert_with(ticks::now);
            }
        }
        Ok(receipt)
    }

    /// Takes in a record that is in the log.
    fn apply_record(&mut self, draft: &Draft) {
        self.note_record(draft);
        if let Some(history) = &mut self.history {
            history.note(&draft.event);
        }
    }

    /// Takes in what a record says of the agent.
    pub(super) fn note_record(&mut self, draft: &Draft) {
        self.connection.note(&draft.event, draft.source);
        self.own.note(&draft.event, self.connection.holder());
    }

    fn open_wait(&self, taken: &mut Taken, ask: &Ask, progress: &mut Progress) -> Result<()> {
        // A question outside of any turn is answered by the connection itself and never comes here.
        let Some(run_id) = ask.run_id else { return Ok(()) };
        let now = self.supervisor.steady.now();
        let (wait_id, resume_token_id, secret) = wait_names(now)?;
        let wait = NewWait {
            run_id,
            wait_id,
            resume_token_id,
            secret,
            kind: ask.kind,
            tool_call_id: ask.tool_call_id.clone(),
            request: ask.request.clone(),
            by: None,
            idempotency_key: None,
            now,
            timeout: self.wait_timeout(),
        };
        add_all(taken, open(self.session, wait));
        progress.waits.push(wait_id);
        Ok(())
    }

    /// Returns how long a question waits for its answer, as the session says now.
    fn wait_timeout(&self) -> Option<Duration> {
        let current = self.store.at_hand(self.session).or_else(|| self.store.open_session(self.session).ok());
        let own = current.and_then(|current| current.state.options.wait_timeout_s);
        own.map(Duration::from_secs).or(self.supervisor.wait_timeout)
    }

    fn withdraw(&self, taken: &mut Taken, ask: &Ask) -> Result<()> {
        let (Some(run_id), Some(wait_id)) = (ask.run_id, ask.wait_id) else { return Ok(()) };
        let tokens = self.store.open_session(self.session)?.tokens;
        add_all(taken, withdraw(run_id, wait_id, &tokens));
        Ok(())
    }

    /// Reads how the agent ended. A holder writes it right behind the last record of its journal, unless it is killed
    /// just then.
    fn exit_note(&self) -> Option<ExitNote> {
        // Of a dead one nothing more comes.
        let within = if self.control.is_some() { EXIT_NOTE } else { Duration::ZERO };
        self.holders.exit(&self.dir, within)
    }

    /// A command that failed usually says why where nobody listens.
    fn with_last_errors(&self, failed: RunFailed<'static>) -> RunFailed<'static> {
        let tail = self
            .exit_note()
            .filter(|_| self.connection.profile().process_is_turn())
            .map(|note| note.stderr_tail);
        let lines: Vec<&str> =
            tail.iter().flat_map(|tail| tail.lines()).filter(|line| !line.trim().is_empty()).collect();
        if lines.is_empty() {
            return failed;
        }
        let last = lines[lines.len().saturating_sub(LAST_ERRORS)..].join("\n");
        RunFailed { error: format!("{}: {last}", failed.error).into(), ..failed }
    }

    /// The agent is gone: so are its run and everything that waited for an answer.
    fn exited(&self, taken: &mut Taken, exited: &Exited) -> Result<()> {
        let note = self.exit_note();
        let (code, signal) = match exited {
            Exited::Ended { code, signal } => (*code, *signal),
            Exited::NeverAsked | Exited::NeverStarted { .. } | Exited::Unknown => (None, None),
        };
        let state = self.store.open_session(self.session)?.state;
        let ends = taken.records.iter().any(|draft| ends_run(&draft.event));
        if let Some(run) = state.open_run().filter(|_| !ends) {
            self.end_with_agent(taken, run, exited)?;
        }
        let tail = note.map(|note| note.stderr_tail).filter(|tail| !tail.is_empty());
        let holder_id = self.connection.holder();
        taken.add(AgentExited { holder_id, code, signal, stderr_tail: tail.map(Into::into) });
        Ok(())
    }

    /// Ends the run of an agent that is gone. One whose prompt reached nobody has noticed nothing: the next agent gets
    /// it, unless no other could be started either. One that was to be cancelled is (I13).
    fn end_with_agent(&self, taken: &mut Taken, run: &Run, exited: &Exited) -> Result<()> {
        let nobody = matches!(exited, Exited::NeverAsked | Exited::NeverStarted { .. });
        let reached = !nobody && self.connection.may_have_reached(run.run_id);
        let cancelled = run.cancel.filter(|why| *why != CancelReason::WaitTimeout);
        let unfit = matches!(exited, Exited::NeverStarted { error } if !tells_of_shortage(error));
        if !reached && cancelled.is_none() && !unfit {
            return Ok(());
        }
        let launch = self.holders.launch(&self.dir).ok();
        let ending = if let Exited::NeverStarted { error } = exited {
            let program = launch.and_then(|launch| launch.argv.into_iter().next());
            let program = program.unwrap_or_else(|| "the agent".into());
            Ending::Failed { error: format!("{program} could not be started: {error}") }
        } else {
            let rebooted =
                launch.zip(machine_boot().ok()).is_some_and(|(then, now)| then.machine_boot != now);
            let reason = match exited {
                Exited::Ended { .. } => InterruptReason::AgentExit,
                _ if rebooted => InterruptReason::MachineRestart,
                _ => InterruptReason::HolderLost,
            };
            let uncertain = std::mem::take(&mut taken.uncertain);
            // Of what one has done that tells of no tools nothing is known: it is not run again by itself.
            let uncertain_turn = reason == InterruptReason::MachineRestart
                || self.damage.is_some()
                || !self.connection.capabilities().cursor;
            Ending::Interrupted { reason, uncertain, uncertain_turn, detail: self.damage.clone() }
        };
        let tokens = self.store.open_session(self.session)?.tokens;
        add_all(taken, end_run(run, &tokens, ending));
        Ok(())
    }

    /// Returns the record of an input that has the newest number.
    pub(super) fn queued(
        &self,
        what: InputKind,
        line: &[u8],
        run_id: Option<RunId>,
        wait_id: Option<WaitId>,
    ) -> InputQueued<'static> {
        InputQueued {
            run_id,
            holder_id: self.connection.holder(),
            input_seq: self.input_seq,
            what,
            wait_id,
            line: Raw::text(&String::from_utf8_lossy(line)).into_owned(),
            sha256: sha256_hex(line).into(),
        }
    }
}

/// Stores large payloads apart, and puts references in their places.
pub fn keep_large(store: &dyn Sessions, records: &mut [Draft]) -> Result<()> {
    for draft in records {
        // Each round makes the largest payload small; a record has few.
        while let Some(text) = blob::oversize(draft) {
            let stored = store.blobs().put(text.as_bytes())?;
            blob::replace_with_reference(
                draft,
                Raw::from_value(&stored).map_err(|error| LiveError::Log(error.into()))?,
            );
        }
    }
    Ok(())
}

/// Adds a list that was composed to the records of an item.
fn add_all(taken: &mut Taken, records: Vec<Draft>) {
    records.into_iter().for_each(|draft| taken.add(draft.event));
}

fn ends_run(event: &Event<'_>) -> bool {
    matches!(
        event,
        Event::RunCompleted(_) | Event::RunFailed(_) | Event::RunCancelled(_) | Event::RunInterrupted(_)
    )
}
