//! What follows from an item of the journal, appended in one list; and what is to be done afterwards.

use std::time::{Duration, Instant};

use rekindle_agent::blob;
use rekindle_agent::connection::{Ask, Exited, Taken};
use rekindle_agent::replay::compare;
use rekindle_agent::said::{Outcome, Request};
use rekindle_domain::event::{
    AgentExited, CancelReason, Event, InputKind, InputQueued, InterruptReason, Raw, ResumeHow, RunCancelled,
    RunFailed, RunInterrupted, RunResumed, RunWaiting, SessionRestored, StatusDerived, TokenMinted,
    TokenScope,
};
use rekindle_domain::id::RunId;
use rekindle_domain::line::Draft;
use rekindle_domain::projector::status_after;
use rekindle_domain::session::{End, Run};
use rekindle_domain::token::sha256_hex;
use rekindle_holder::dir::{ExitNote, HolderDir, Launch};
use rekindle_holder::identity::machine_boot;
use rekindle_store::Store;
use rekindle_store::commit::{Append, Persist, Receipt};

use super::error::tells_of_shortage;
use super::say::{revocations, withdrawn_with_run};
use super::{Live, LiveError, Progress, new_wait, random};
use crate::crash::crash_point;
use crate::sign_in::refusal;

/// How long a holder may take from one to the other.
const EXIT_NOTE: Duration = Duration::from_millis(500);

/// Lines of a failed command's errors that are told with its end.
const LAST_ERRORS: usize = 5;

impl Live {
    /// Appends everything that follows from an item, then does what the log now says.
    pub(super) fn carry_out(&mut self, mut taken: Taken, progress: &mut Progress) -> Result<(), LiveError> {
        let mut words = std::mem::take(&mut taken.deltas);
        let exit = taken.exited.clone();
        for ask in std::mem::take(&mut taken.asks) {
            self.open_wait(&mut taken, &ask, progress)?;
        }
        for ask in std::mem::take(&mut taken.withdrawn) {
            self.withdraw(&mut taken, &ask)?;
        }
        if let Some(restored) = taken.restored.take() {
            let (turns, cut) = (self.spoken.turns(), self.spoken.cut());
            let (verdict, counts) = compare(restored.method, &restored.replay, turns, cut, restored.goes_on);
            let method = if restored.method == Request::Resume { "resume" } else { "load" };
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
                // The connection knows, and says so before the next prompt.
                Request::Set => {}
                _ => {
                    self.refused = true;
                    progress.refused = Some(refused.failure);
                }
            }
        }
        if let Some(ended) = taken.ended.take() {
            let state = self.store.open_session(self.session)?.state;
            let cancel = state.run.as_ref().and_then(|run| run.cancel);
            if let Some(run) = state.open_run().filter(|run| ended.run_id == Some(run.run_id)) {
                let tokens = self.store.open_session(self.session)?.tokens;
                withdrawn_with_run(run, &tokens).into_iter().for_each(|draft| taken.add(draft.event));
            }
            match (cancel, ended.run_id) {
                // Nobody answered in time: that is an interruption, whatever the agent calls it.
                (Some(CancelReason::WaitTimeout), Some(run_id)) => {
                    let (reason, uncertain) = (InterruptReason::WaitTimeout, Vec::new());
                    taken.add(RunInterrupted {
                        run_id,
                        reason,
                        uncertain,
                        uncertain_turn: false,
                        detail: None,
                    });
                }
                _ => match (ended.event(cancel), &ended.outcome) {
                    (Some(Event::RunFailed(failed)), Outcome::Failed(failure)) => {
                        let error = refusal(failure, &state.provider, &self.connection).into();
                        taken.add(self.with_last_errors(RunFailed { error, ..failed }));
                    }
                    (Some(event), _) => taken.add(event),
                    (None, _) => {}
                },
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
        match &self.listener {
            Some(listener) => words.iter().for_each(|delta| listener(delta)),
            None => progress.deltas.append(&mut words),
        }
        for (number, line) in lines {
            self.send(number, "answer", &line)?;
        }
        Ok(())
    }

    /// Appends records and takes them in; large payloads are stored first.
    pub(super) fn append(&mut self, mut records: Vec<Draft>) -> Result<Receipt, LiveError> {
        keep_large(&self.store, &mut records)?;
        let persist = if records.iter().any(|draft| must_be_on_disk(&draft.event)) {
            Persist::Disk
        } else {
            Persist::Process
        };
        let append = Append { persist, ..Append::durable(self.session, records.clone()) };
        crash_point("live.append.before");
        let receipt = self.store.append(append)?;
        crash_point("live.append.after");
        for draft in &records {
            self.take_in(draft);
            if let Some(source) = draft.source {
                self.low = source.3;
                self.unacknowledged.get_or_insert_with(Instant::now);
            }
        }
        Ok(receipt)
    }

    /// Takes in a record that is in the log.
    pub(super) fn take_in(&mut self, draft: &Draft) {
        self.connection.note(&draft.event, draft.source);
        self.spoken.note(&draft.event);
        self.story.note(&draft.event);
        self.own.note(&draft.event, self.connection.holder());
    }

    fn open_wait(&self, taken: &mut Taken, ask: &Ask, progress: &mut Progress) -> Result<(), LiveError> {
        // A question outside of any turn is answered by the connection itself and never comes here.
        let Some(run_id) = ask.run_id else { return Ok(()) };
        let (wait_id, resume_token_id) = new_wait()?;
        let now = self.supervisor.steady.now();
        let timeout = self.wait_timeout.map(|timeout| i64::try_from(timeout.as_millis()).unwrap_or(i64::MAX));
        let deadline_at = timeout.map(|timeout| now.plus_millis(timeout));
        taken.add(RunWaiting {
            run_id,
            wait_id,
            wait_kind: ask.kind,
            resume_token_id,
            deadline_at,
            tool_call_id: ask.tool_call_id.clone().map(Into::into),
            request: Some(ask.request.clone()),
            by: None,
            idempotency_key: None,
        });
        taken.add(TokenMinted {
            resume_token_id,
            wait_id,
            // The wait's own secret is shown to nobody: only its hash ever exists.
            secret_hash: sha256_hex(&[random()?.to_le_bytes(), random()?.to_le_bytes()].concat()).into(),
            scope: TokenScope { session_id: self.session, run_id, wait_id },
            expires_at: deadline_at,
            by: None,
        });
        progress.waits.push(wait_id);
        Ok(())
    }

    fn withdraw(&self, taken: &mut Taken, ask: &Ask) -> Result<(), LiveError> {
        let (Some(run_id), Some(wait_id)) = (ask.run_id, ask.wait_id) else { return Ok(()) };
        let tokens = self.store.open_session(self.session)?.tokens;
        for revoked in revocations(&tokens, wait_id, None, "withdrawn") {
            taken.add(revoked.event);
        }
        let how = ResumeHow::Withdrawn;
        let by = Some("agent".into());
        taken.add(RunResumed { run_id, wait_id, answer: None, by, how, granted: None });
        Ok(())
    }

    /// Reads how the agent ended. A holder writes it right behind the last record of its journal, unless it is killed
    /// just then.
    fn exit_note(&self) -> Option<ExitNote> {
        let begin = Instant::now();
        loop {
            match HolderDir::read(&self.dir.exit()) {
                Ok(note) => return Some(note),
                Err(_) if self.control.is_some() && begin.elapsed() < EXIT_NOTE => {
                    std::thread::sleep(Duration::from_millis(1));
                }
                Err(_) => return None,
            }
        }
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
    fn exited(&self, taken: &mut Taken, exited: &Exited) -> Result<(), LiveError> {
        let note = self.exit_note();
        let (code, signal) = match exited {
            Exited::Ended { code, signal } => (*code, *signal),
            Exited::NeverAsked | Exited::NeverStarted { .. } | Exited::Unknown => (None, None),
        };
        let state = self.store.open_session(self.session)?.state;
        let ends = taken.records.iter().any(|draft| ends_run(&draft.event));
        if let Some(run) = state.open_run().filter(|_| !ends) {
            self.end_run(taken, run, exited)?;
        }
        let tail = note.map(|note| note.stderr_tail).filter(|tail| !tail.is_empty());
        let holder_id = self.connection.holder();
        taken.add(AgentExited { holder_id, code, signal, stderr_tail: tail.map(Into::into) });
        Ok(())
    }

    /// Ends the run of an agent that is gone. One whose prompt reached nobody has noticed nothing: the next agent gets
    /// it, unless no other could be started either. One that was to be cancelled is (I13).
    fn end_run(&self, taken: &mut Taken, run: &Run, exited: &Exited) -> Result<(), LiveError> {
        let nobody = matches!(exited, Exited::NeverAsked | Exited::NeverStarted { .. });
        let reached = !nobody && self.connection.may_have_reached(run.run_id);
        let cancelled = run.cancel.filter(|why| *why != CancelReason::WaitTimeout);
        let unfit = matches!(exited, Exited::NeverStarted { error } if !tells_of_shortage(error));
        if !reached && cancelled.is_none() && !unfit {
            return Ok(());
        }
        let run_id = run.run_id;
        let launch: Option<Launch> = HolderDir::read(&self.dir.launch()).ok();
        let tokens = self.store.open_session(self.session)?.tokens;
        withdrawn_with_run(run, &tokens).into_iter().for_each(|draft| taken.add(draft.event));
        if let Some(why) = cancelled {
            let by = if why == CancelReason::User { "user" } else { "daemon" };
            taken.add(RunCancelled { run_id, by: Some(by.into()) });
        } else if let Exited::NeverStarted { error } = exited {
            let program = launch.and_then(|launch| launch.argv.into_iter().next()).unwrap_or_default();
            let error = format!("the agent could not be started: {program}: {error}").into();
            taken.add(RunFailed { run_id, error });
        } else {
            let rebooted =
                launch.zip(machine_boot().ok()).is_some_and(|(then, now)| then.machine_boot != now);
            let reason = match exited {
                _ if run.cancel.is_some() => InterruptReason::WaitTimeout,
                Exited::Ended { .. } => InterruptReason::AgentExit,
                _ if rebooted => InterruptReason::MachineRestart,
                _ => InterruptReason::HolderLost,
            };
            let uncertain = std::mem::take(&mut taken.uncertain);
            // Of what a command has done nothing is known: it is not run again by itself.
            let uncertain_turn = reason == InterruptReason::MachineRestart
                || self.damage.is_some()
                || self.connection.profile().process_is_turn();
            let detail = self.damage.clone().map(Into::into);
            taken.add(RunInterrupted { run_id, reason, uncertain, uncertain_turn, detail });
            taken.add(derived(run, reason));
        }
        for wait in run.waits.iter().filter(|wait| !wait.kind.is_outside()) {
            for revoked in revocations(&tokens, wait.wait_id, None, "interrupted") {
                taken.add(revoked.event);
            }
        }
        Ok(())
    }

    /// Returns the record of an input that has the newest number.
    pub(super) fn queued(
        &self,
        what: InputKind,
        line: &[u8],
        run_id: Option<RunId>,
        wait_id: Option<rekindle_domain::id::WaitId>,
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
pub(crate) fn keep_large(store: &Store, records: &mut [Draft]) -> Result<(), LiveError> {
    for draft in records {
        // Each round makes the largest payload small; a record has few.
        while let Some(text) = blob::oversize(draft) {
            let stored = store.blobs().put(text.as_bytes())?;
            blob::refer(draft, Raw::from_value(&stored).map_err(|error| LiveError::Log(error.into()))?);
        }
    }
    Ok(())
}

/// Returns the record that says what an interruption makes of a session's status; for those who only read the log.
pub(crate) fn derived(run: &Run, reason: InterruptReason) -> StatusDerived<'static> {
    let status = status_after(End::Interrupted { reason, waiting: run.has_asked() });
    StatusDerived { status: status.as_str().into() }
}

/// Tells whether a record must survive a power cut before anything follows from it.
fn must_be_on_disk(event: &Event<'_>) -> bool {
    let name = event.name();
    ["run.", "token.", "session.", "input."].iter().any(|front| name.starts_with(front))
        || matches!(
            event,
            Event::MessageUser(_) | Event::AgentLaunching(_) | Event::AgentStarted(_) | Event::AgentReady(_)
        )
}

fn ends_run(event: &Event<'_>) -> bool {
    matches!(
        event,
        Event::RunCompleted(_) | Event::RunFailed(_) | Event::RunCancelled(_) | Event::RunInterrupted(_)
    )
}
