//! The one function that joins an event to a state, and says no to what cannot follow.
//!
//! A writer refuses an illegal event before it is written. A reader that meets one reports it and carries
//! on: what is in a log has happened. Each call checks first and changes afterwards, so a refused event
//! leaves the state as it was.

use crate::event::{
    CancelReason, Event, IllegalTransition, InputKind, Restoring, RunCancelRequested, RunInterrupted,
    RunResumed, RunStarted, RunWaiting, ToolCall, ToolUpdate, UncertainTool,
};
use crate::id::{HolderId, RunId};
use crate::time::Timestamp;

use super::{
    Agent, AgentProcess, Checkpoints, End, Interruption, Journal, MAX_MESSAGE_KEYS, MAX_QUEUED,
    MAX_WAIT_KEYS, MessageKey, PlanProgress, Run, SessionState, Wait, WaitKey,
};

/// Most tool calls of one run that are kept as open; an agent that begins more never ended the others.
const MAX_OPEN_TOOLS: usize = 256;

impl SessionState {
    /// Takes in one event as record `seq`; `ts` is when it happened, which is mostly when it was written.
    pub fn apply(&mut self, seq: u64, ts: Timestamp, event: &Event<'_>) -> Result<(), IllegalTransition> {
        self.transition(seq, ts, event)
            .map_err(|why| IllegalTransition { kind: event.name().to_owned(), why })
    }

    fn transition(&mut self, seq: u64, ts: Timestamp, event: &Event<'_>) -> Result<(), String> {
        if self.deleted {
            return Err("the session is deleted".into());
        }
        if !self.is_created() && !matches!(event, Event::SessionCreated(_)) {
            return Err("a log begins with session.created".into());
        }
        match event {
            Event::SessionCreated(created) => {
                // A log of the earlier layout gets its beginning later: what stood beside it alone.
                let nameless = self.is_nameless();
                if self.is_created() && !nameless {
                    return Err("the session exists already".into());
                }
                if let Some(from) = &created.forked_from
                    && from.seq.checked_add(1) != Some(seq)
                {
                    return Err(format!("a fork at record {} does not begin with record {seq}", from.seq));
                }
                self.forked_from = created.forked_from.as_deref().copied();
                let restoring = created.restoring.clone();
                self.restoring = restoring.map(|restoring| Restoring { seq: Some(seq), ..restoring });
                self.worktree.clone_from(&created.worktree);
                self.parent.clone_from(&created.parent);
                self.title = created.title.as_ref().into();
                self.working_dir = created.working_dir.as_ref().into();
                self.provider = created.provider.clone();
                self.options = created.options.clone();
                self.env_names.clone_from(&created.env_names);
                self.key = created.key.as_ref().map(ToString::to_string);
                self.created_by_key = created.idempotency_key.as_ref().map(ToString::to_string);
                let known = if nameless { self.created_at } else { ts };
                self.created_at = created.created_at.unwrap_or(known);
            }
            Event::SessionUpdated(updated) => {
                if let Some(title) = &updated.title {
                    self.title = title.as_ref().into();
                }
                set(&mut self.provider, updated.provider.as_ref());
                set(&mut self.options, updated.options.as_ref());
                set(&mut self.env_names, updated.env_names.as_ref());
                if let Some(working_dir) = &updated.working_dir {
                    self.working_dir = working_dir.as_ref().into();
                }
                if let Some(imported) = &updated.imported {
                    self.leave_elsewhere(imported.transcript);
                }
            }
            Event::SessionFilesRestoring(wanted) => self.begin_to_restore_files(seq, wanted)?,
            Event::SessionFilesRestored(restored) => self.note_restored_files(restored)?,
            Event::SessionWorktreeAdded(added) => self.note_worktree(added)?,
            Event::SessionWorktreeMerged(merged) => self.note_merge(merged)?,
            Event::SessionWorktreeRemoved(removed) => self.note_removal(removed)?,
            Event::SessionClosed(closed) => {
                if self.closed {
                    return Err("the session is closed already".into());
                }
                (self.closed, self.replaced_by) = (true, closed.replaced_by);
            }
            Event::SessionDeleted(_) => self.deleted = true,
            Event::MessageUser(message) => {
                self.refuse_if_closed()?;
                if message.queued {
                    if self.queue.len() >= MAX_QUEUED {
                        return Err(format!("{MAX_QUEUED} prompts are queued already"));
                    }
                    self.queue.push(message.message_id);
                }
                if let Some(key) = &message.idempotency_key {
                    if self.message_keys.len() >= MAX_MESSAGE_KEYS {
                        self.message_keys.pop_front();
                    }
                    self.message_keys.push_back(MessageKey::new(key, seq));
                }
            }
            Event::RunStarted(started) => self.start_run(ts, started)?,
            Event::RunCancelRequested(request) => self.request_cancel(request)?,
            Event::RunWaiting(waiting) => self.begin_wait(seq, ts, waiting)?,
            Event::RunResumed(resumed) => self.end_wait(resumed)?,
            Event::RunAdopted(adopted) => {
                self.running(adopted.run_id)?.boot_id = adopted.boot_id;
                self.recovery.last_boot_seen = Some(adopted.boot_id);
            }
            Event::RunCompleted(completed) => {
                self.end_run(completed.run_id, ts, End::Completed)?;
                // It was told with its prompt, and has read that.
                self.restored_files = None;
                if let Some(usage) = completed.usage {
                    self.usage.count_tokens(usage.input_tokens, usage.output_tokens);
                    self.usage.count_cost(usage.cost);
                }
            }
            Event::RunFailed(failed) => self.end_run(failed.run_id, ts, End::Failed)?,
            Event::RunCancelled(cancelled) => self.end_run(cancelled.run_id, ts, End::Cancelled)?,
            Event::RunInterrupted(interrupted) => self.interrupt(ts, interrupted)?,
            Event::RunCheckpoint(checkpoint) => self.note_checkpoint(seq, checkpoint)?,
            Event::RunDrift(found) => {
                let run = self.running(found.run_id)?;
                if run.prompted {
                    return Err(format!("the prompt of {} was given to an agent before", found.run_id));
                }
                run.drift = Some(Box::new(found.drift.brief()));
            }
            Event::RunBudget(budget) => self.running(budget.run_id)?.budget = Some(budget.notice),
            Event::AgentLaunching(launching) => {
                // The conversation may go on in the next process: what was learnt of it stays.
                let previous = self.agent.take();
                self.agent = Some(Agent {
                    holder_id: launching.holder_id,
                    cursor: previous.as_ref().and_then(|agent| agent.cursor.clone()),
                    opened_at: previous.as_ref().and_then(|agent| agent.opened_at),
                    info: previous.as_ref().and_then(|agent| agent.info.clone()),
                    capabilities: previous.and_then(|agent| agent.capabilities),
                    journal: Journal::default(),
                    last_output_at: None,
                    input_seq: 0,
                    launch_seq: seq,
                    process: None,
                    exited: false,
                });
            }
            Event::AgentStarted(started) => {
                self.launched(started.holder_id)?.process = Some(AgentProcess {
                    machine_boot: started.machine_boot.as_ref().into(),
                    holder: started.holder,
                    agent: started.agent,
                });
            }
            Event::AgentReady(ready) => {
                let agent = self.launched(ready.holder_id)?;
                let same = ready.cursor.is_some() && agent.cursor.as_deref() == ready.cursor.as_deref();
                self.usage.begin_agent(same);
                let agent = self.launched(ready.holder_id)?;
                let keep = |raw: &crate::event::Raw<'_>| {
                    serde_json::value::RawValue::from_string(raw.as_json().to_owned()).ok()
                };
                agent.info = ready.info.as_ref().and_then(keep);
                agent.capabilities = ready.capabilities.as_ref().and_then(keep);
                agent.cursor = ready.cursor.as_ref().map(|cursor| cursor.as_ref().into());
                agent.opened_at = Some(ts);
            }
            Event::AgentExited(exited) => self.launched(exited.holder_id)?.exited = true,
            Event::InputQueued(input) => {
                let agent = self.launched(input.holder_id)?;
                if input.input_seq <= agent.input_seq {
                    return Err(format!(
                        "input {} of holder {} is taken: the newest is {}",
                        input.input_seq, input.holder_id, agent.input_seq
                    ));
                }
                agent.input_seq = input.input_seq;
                if let (InputKind::Prompt, Some(run)) = (input.what, self.open_run_mut()) {
                    run.prompted = true;
                    // From here on its agent changes what the run before left.
                    self.owed_end = None;
                }
            }
            Event::PlanUpdated(plan) => {
                if let Some(run) = self.open_run_mut() {
                    run.plan = PlanProgress::of(&plan.entries);
                }
            }
            Event::ToolCall(call) => self.begin_tool(call),
            Event::ToolUpdate(update) => self.update_tool(update),
            Event::UsageUpdated(usage) => {
                self.usage.count_tokens(usage.input_tokens, usage.output_tokens);
                self.usage.count_cost(usage.cost);
                self.usage.set_context(usage.raw.as_ref());
            }
            Event::TokenMinted(_)
            | Event::TokenConsumed(_)
            | Event::TokenRevoked(_)
            | Event::TokenExpired(_) => self.token_records += 1,
            Event::MessageAgent(_)
            | Event::MessageThought(_)
            | Event::ModeUpdated(_)
            | Event::AgentNotice(_)
            | Event::SessionRestored(_)
            | Event::SnapshotCreated(_)
            | Event::SnapshotFailed(_)
            | Event::SnapshotRestored(_)
            | Event::LogRepaired(_)
            | Event::StatusDerived(_)
            | Event::Unknown { .. } => {}
            Event::TaskCreated(_)
            | Event::TaskClaimed(_)
            | Event::TaskWaiting(_)
            | Event::TaskResumed(_)
            | Event::TaskRequeued(_)
            | Event::TaskChanged(_)
            | Event::TaskCancelRequested(_)
            | Event::TaskRetried(_)
            | Event::TaskEnded(_) => return Err("it belongs into the stream of tasks".into()),
            Event::PipelineStarted(_)
            | Event::StepIntended(_)
            | Event::StepBegan(_)
            | Event::StepFinished(_)
            | Event::StepInterrupted(_)
            | Event::PipelineDrift(_)
            | Event::PipelineCompleted(_)
            | Event::PipelineFailed(_)
            | Event::PipelineAborted(_)
            | Event::PipelineReopened(_)
            | Event::PipelineImported(_)
            | Event::PipelineBudget(_) => return Err("it belongs into the ledger of a pipeline run".into()),
        }
        Ok(())
    }

    fn start_run(&mut self, ts: Timestamp, started: &RunStarted<'_>) -> Result<(), String> {
        self.refuse_if_closed()?;
        if self.restoring.is_some() {
            return Err("its files are being restored".into());
        }
        if let Some(open) = self.open_run() {
            return Err(format!("{} has not ended", open.run_id));
        }
        if self.run.as_ref().is_some_and(|run| run.run_id == started.run_id) {
            return Err(format!("{} was started before", started.run_id));
        }
        if let Some(message) = started.message_id {
            self.queue.retain(|queued| *queued != message);
        }
        self.recovery.last_boot_seen = Some(started.boot_id);
        self.recovery.interruption = None;
        self.usage.begin_run(started.continues.is_some() || self.continues_task(started));
        self.owed_end = self.run.as_ref().and_then(Run::owed_end).or(self.owed_end);
        self.run = Some(Run {
            run_id: started.run_id,
            boot_id: started.boot_id,
            machine_boot: started.machine_boot.as_ref().map(|boot| boot.as_ref().into()),
            message_id: started.message_id,
            started_at: ts,
            ended_at: None,
            end: None,
            attempt: started.attempt,
            continues: started.continues,
            origin_run_id: started.origin_run_id.unwrap_or(started.run_id),
            task_id: started.task_id,
            waits: Vec::new(),
            cancel: None,
            prompted: false,
            checkpoints: Checkpoints::default(),
            drift: None,
            tool_calls: 0,
            plan: None,
            budget: None,
            tools: Vec::new(),
        });
        Ok(())
    }

    fn request_cancel(&mut self, request: &RunCancelRequested<'_>) -> Result<(), String> {
        if let Some(id) = request.run_id {
            let run = self.run.as_mut().filter(|run| run.run_id == id);
            let run = run.ok_or_else(|| format!("{id} is not the latest run"))?;
            match run.end {
                // A continuation may be owed: the cancel takes it back. A user's own cancel is not
                // weakened by a later reason (I13).
                None | Some(End::Interrupted { .. }) => {
                    if !matches!(run.cancel, Some(CancelReason::User | CancelReason::StopAll)) {
                        run.cancel = Some(request.why);
                    }
                }
                Some(End::Completed | End::Failed | End::Cancelled) => {
                    return Err(format!("{id} has ended"));
                }
            }
        } else if let Some(open) = self.open_run() {
            return Err(format!("{} is open and must be named", open.run_id));
        }
        match request.why {
            CancelReason::User | CancelReason::StopAll => self.queue.clear(),
            CancelReason::NewMessage
            | CancelReason::WaitTimeout
            | CancelReason::Imported
            | CancelReason::Deadline
            | CancelReason::Budget
            | CancelReason::Unknown => {
                self.queue.retain(|queued| !request.dropped.contains(queued));
            }
        }
        Ok(())
    }

    fn begin_wait(&mut self, seq: u64, ts: Timestamp, waiting: &RunWaiting<'_>) -> Result<(), String> {
        let run = self.running(waiting.run_id)?;
        if run.wait(waiting.wait_id).is_some() {
            return Err(format!("{} is open already", waiting.wait_id));
        }
        run.waits.push(Wait {
            wait_id: waiting.wait_id,
            kind: waiting.wait_kind,
            since_seq: seq,
            since: ts,
            resume_token_id: waiting.resume_token_id,
            deadline_at: waiting.deadline_at,
            tool_call_id: waiting.tool_call_id.as_deref().map(Into::into),
        });
        if let Some(key) = &waiting.idempotency_key {
            if self.wait_keys.len() >= MAX_WAIT_KEYS {
                self.wait_keys.remove(0);
            }
            self.wait_keys.push(WaitKey { key: key.to_string(), wait_id: waiting.wait_id });
        }
        Ok(())
    }

    fn end_wait(&mut self, resumed: &RunResumed<'_>) -> Result<(), String> {
        let run = self.running(resumed.run_id)?;
        let at = run.waits.iter().position(|wait| wait.wait_id == resumed.wait_id);
        let wait = run.waits.remove(at.ok_or_else(|| format!("{} is not open", resumed.wait_id))?);
        // What was refused does not begin; some agents say nothing more of it.
        if let Some(asked) = wait.tool_call_id.filter(|_| resumed.granted == Some(false)) {
            run.tools.retain(|tool| tool.tool_call_id != asked);
        }
        Ok(())
    }

    /// Tells whether a run is the next attempt at the task of the run before it.
    fn continues_task(&self, started: &RunStarted<'_>) -> bool {
        let before = self.run.as_ref().and_then(|run| run.task_id);
        before.is_some() && before == started.task_id
    }

    fn end_run(&mut self, id: RunId, ts: Timestamp, end: End) -> Result<(), String> {
        let run = self.running(id)?;
        let took_ms = ts.millis_since(run.started_at);
        run.end = Some(end);
        run.ended_at = Some(ts);
        if !matches!(end, End::Interrupted { .. }) {
            run.waits.clear();
        }
        run.tools.clear();
        self.usage.end_run(took_ms);
        Ok(())
    }

    fn interrupt(&mut self, ts: Timestamp, interrupted: &RunInterrupted<'_>) -> Result<(), String> {
        let waiting = !self.running(interrupted.run_id)?.waits.is_empty();
        self.end_run(interrupted.run_id, ts, End::Interrupted { reason: interrupted.reason, waiting })?;
        self.recovery.interruption = Some(Interruption {
            run_id: interrupted.run_id,
            reason: interrupted.reason,
            at: ts,
            uncertain: interrupted.uncertain.clone(),
            uncertain_turn: interrupted.uncertain_turn,
        });
        Ok(())
    }

    /// Counts tool calls of the latest run, of one that has just ended too; of one that has just begun there are none.
    pub(super) fn count_tool_calls(&mut self, calls: u32) {
        if let Some(run) = self.run.as_mut().filter(|run| run.end.is_some()) {
            run.tool_calls = run.tool_calls.saturating_add(calls);
        }
    }

    fn begin_tool(&mut self, call: &ToolCall<'_>) {
        let ended = call.status.as_deref().is_some_and(is_over);
        let Some(run) = self.open_run_mut() else { return };
        run.tool_calls = run.tool_calls.saturating_add(1);
        run.tools.retain(|tool| tool.tool_call_id != call.tool_call_id);
        if !ended && run.tools.len() < MAX_OPEN_TOOLS {
            run.tools.push(UncertainTool {
                tool_call_id: call.tool_call_id.as_ref().into(),
                title: call.title.as_ref().into(),
                kind: call.tool_kind.as_ref().map(|kind| kind.as_ref().into()),
                input: call.input.as_ref().map(|input| input.as_ref().into()),
            });
        }
    }

    fn update_tool(&mut self, update: &ToolUpdate<'_>) {
        let ended = update.status.as_deref().is_some_and(is_over);
        let Some(run) = self.open_run_mut() else { return };
        if ended {
            run.tools.retain(|tool| tool.tool_call_id != update.tool_call_id);
        } else if let Some(tool) = run.tools.iter_mut().find(|tool| tool.tool_call_id == update.tool_call_id)
        {
            if let Some(title) = &update.title {
                tool.title = title.as_ref().into();
            }
            if let Some(input) = &update.input {
                tool.input = Some(input.as_ref().into());
            }
        }
    }

    /// Forgets what means something only where the session came from: its agent's own session there, and the keys of callers.
    fn leave_elsewhere(&mut self, has_transcript: bool) {
        if let Some(agent) = self.agent.as_mut().filter(|_| !has_transcript) {
            (agent.cursor, agent.opened_at) = (None, None);
        }
        self.created_by_key = None;
        self.message_keys.clear();
        self.wait_keys.clear();
        // The repository is there too.
        self.worktree = None;
    }

    pub(super) fn refuse_if_closed(&self) -> Result<(), String> {
        if self.closed { Err("the session is closed".into()) } else { Ok(()) }
    }

    fn open_run_mut(&mut self) -> Option<&mut Run> {
        self.run.as_mut().filter(|run| run.end.is_none())
    }

    pub(super) fn running(&mut self, id: RunId) -> Result<&mut Run, String> {
        let run = self.run.as_mut().ok_or("no run was started")?;
        if run.run_id != id {
            return Err(format!("the latest run is {}, not {id}", run.run_id));
        }
        if run.end.is_some() { Err(format!("{id} has ended")) } else { Ok(run) }
    }

    fn launched(&mut self, holder: HolderId) -> Result<&mut Agent, String> {
        let agent = self.agent.as_mut().ok_or("no agent was launched")?;
        if agent.holder_id == holder {
            Ok(agent)
        } else {
            Err(format!("the latest holder is {}, not {holder}", agent.holder_id))
        }
    }
}

/// Sets a property, if it has changed.
fn set<T: Clone>(property: &mut T, new: Option<&T>) {
    if let Some(new) = new {
        property.clone_from(new);
    }
}

/// The protocol's words for a tool call that is over.
fn is_over(status: &str) -> bool {
    matches!(status, "completed" | "failed" | "cancelled")
}
