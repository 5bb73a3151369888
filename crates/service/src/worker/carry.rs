//! Carrying out one step after the other: what was decided becomes records, processes and connections.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rekindle_agent::said::Voice;
use rekindle_domain::event::{
    AgentExited, CancelReason, InterruptReason, RunCancelled, RunFailed, RunInterrupted, RunStarted,
    TokenRevoked, UncertainTool, WaitKind,
};
use rekindle_domain::id::{MessageId, RunId};
use rekindle_domain::line::Draft;
use rekindle_domain::recovery::{Circumstances, Found, Held, Step, next_step};
use rekindle_domain::session::SessionState;
use rekindle_domain::time::Moment;
use rekindle_holder::client::harvest;
use rekindle_holder::identity::machine_boot;

use super::observe::{has_directory, observe};
use super::{CANCELLED_WITHIN, Worker};
use crate::agents::{self, Obstacle};
use crate::core::{Core, millis, random};
use crate::crash::crash_point;
use crate::error::{ServiceError, chain};
use crate::feed::{News, Words};
use crate::live::{Live, LiveError, Progress, Unsent, command};
use crate::tokens::{OwnAnswer, Policy};

/// Steps in a row before others get their turn: far more than any session needs.
const MOST_STEPS: usize = 64;

/// How long a holder that does not answer is left alone at most.
const MOST_SILENCE: Duration = Duration::from_secs(60);

/// How long each step of an agent's end may take.
const GRACE: Duration = Duration::from_secs(5);

/// What came of a step.
enum Then {
    /// Ask again.
    Again,
    /// Wait for something to happen, or for a while.
    Rest(Option<Duration>),
}

impl Worker {
    /// Does what is to be done until there is nothing more, or an agent to listen to.
    pub(super) fn next(&mut self, core: &Arc<Core>) {
        let _pass = core.workers.gate.enter();
        for _ in 0..MOST_STEPS {
            match self.one_step(core) {
                Ok(Then::Again) if self.live.is_some() => return self.rest(Some(Duration::ZERO)),
                Ok(Then::Again) => {}
                Ok(Then::Rest(most)) => return self.rest(most),
                Err(error) => {
                    tracing::warn!(session = %self.session, "{}", error.message);
                    self.hold(Some(error.message));
                    return self.rest(Some(Duration::from_secs(5)));
                }
            }
        }
        self.rest(Some(Duration::from_secs(1)));
    }

    fn one_step(&mut self, core: &Arc<Core>) -> Result<Then, ServiceError> {
        let state = core.store.open_session(self.session)?.state;
        let found = observe(core, &state);
        self.see(found);
        let step = next_step(&state, &self.circumstances(core, &state, found));
        tracing::debug!(session = %self.session, ?found, ?step, "next step");
        match step {
            Step::Adopt => self.adopt(core, &state),
            Step::Dismiss => self.dismiss_agent(core, &state),
            Step::Harvest => self.harvest(core, &state),
            Step::Bury { reason } => {
                self.bury(core, &state, reason)?;
                Ok(Then::Again)
            }
            Step::Launch => self.launch(core, &state),
            Step::Cancel => {
                let Some(run) = state.open_run() else { return Ok(Then::Again) };
                core.append(self.session, vec![RunCancelled { run_id: run.run_id, by: None }.into()])?;
                Ok(Then::Again)
            }
            Step::Fail(held) => {
                let error = match held {
                    Held::NoDirectory => format!("the working directory {} is not there", state.working_dir),
                    _ => "the agent ended before it could be given its prompt, again and again".to_owned(),
                };
                self.fail(core, &state, error)?;
                Ok(Then::Again)
            }
            Step::Continue { attempt } => {
                self.begin_continuation(core, &state, attempt)?;
                Ok(Then::Again)
            }
            Step::Begin(message) => {
                self.begin(core, message)?;
                Ok(Then::Again)
            }
            Step::Remove => {
                self.remove(core)?;
                Ok(Then::Rest(None))
            }
            Step::Wait(most) => {
                Ok(Then::Rest(Some(if found == Found::Silent { self.back_off() } else { most })))
            }
            Step::Rest(held) => {
                self.hold(held.map(|held| held.words().to_owned()));
                Ok(Then::Rest(None))
            }
        }
    }

    /// Removes the files of a session whose deletion is recorded and whose agent is gone.
    fn remove(&mut self, core: &Core) -> Result<(), ServiceError> {
        crash_point("delete.before_remove");
        core.store.remove(self.session).map_err(|error| ServiceError::internal(&error))?;
        core.directory.forget(self.session);
        Ok(())
    }

    fn circumstances(&mut self, core: &Core, state: &SessionState, found: Found) -> Circumstances {
        let open = state.open_run().map(|run| run.run_id);
        if self.failed_launches.0 != open {
            self.failed_launches = (open, 0);
        }
        let cut = state.recovery.interruption.as_ref();
        if self.interrupted.map(|(run, _)| run) != cut.map(|cut| cut.run_id) {
            self.interrupted = cut.map(|cut| (cut.run_id, Instant::now()));
        }
        Circumstances {
            boot: core.supervisor.boot_id,
            found,
            has_directory: has_directory(state),
            failed_launches: self.failed_launches.1,
            interrupted_for: self.interrupted.map_or(Duration::ZERO, |(_, since)| since.elapsed()),
        }
    }

    fn back_off(&mut self) -> Duration {
        // Short at first: a holder that ends hangs up a moment before it lets go of its lock.
        self.silent = (self.silent + 1).min(14);
        Duration::from_millis(5 << self.silent).min(MOST_SILENCE)
    }

    fn adopt(&mut self, core: &Arc<Core>, state: &SessionState) -> Result<Then, ServiceError> {
        let Some(agent) = &state.agent else { return Ok(Then::Again) };
        let profile = agents::profile(&state.provider)?;
        let env = agents::environment(core, state);
        let dir = core.holder_dir(agent.holder_id);
        match Live::adopt(core.store.clone(), self.session, dir, profile, core.supervisor, env) {
            Ok(live) => {
                self.silent = 0;
                self.listen(core, live);
                Ok(Then::Again)
            }
            Err(error) => self.not_adopted(core, &error),
        }
    }

    /// A holder that does not let us in may be silent, ending, or another's by now.
    fn not_adopted(&mut self, core: &Core, error: &LiveError) -> Result<Then, ServiceError> {
        if let LiveError::Superseded { by } = error {
            tracing::error!(epoch = by, "another daemon commands the agents of this home");
            core.superseded.store(true, Ordering::Relaxed);
            return Ok(Then::Rest(None));
        }
        tracing::info!(session = %self.session, "the agent's holder does not let us in: {}", chain(error));
        self.see(Found::Silent);
        self.hold(Some(format!("its agent's holder does not answer: {}", chain(error))));
        Ok(Then::Rest(Some(self.back_off())))
    }

    pub(super) fn listen(&mut self, core: &Arc<Core>, mut live: Live) {
        let (feed, session) = (core.feed.clone(), self.session);
        live.listen(Arc::new(move |delta| {
            if !feed.is_followed(session) {
                return;
            }
            let words = Words {
                run_id: delta.run_id.map(|run| run.to_string()),
                message_id: delta.message_id.to_string(),
                kind: if delta.voice == Voice::Thought { "thought" } else { "message" },
                at: delta.at,
                text: delta.text.clone(),
            };
            feed.tell(session, News::Said(Arc::new(words)));
        }));
        self.live = Some(live);
        if let Err(error) = self.note_deadlines(core) {
            tracing::warn!(session = %self.session, "{}", error.message);
        }
        self.see(Found::Lives);
        self.hold(None);
    }

    /// Ends an agent that nobody wants any more. A session that is being removed takes no more records: its agent is
    /// only ended.
    fn dismiss_agent(&mut self, core: &Arc<Core>, state: &SessionState) -> Result<Then, ServiceError> {
        if let (true, Some(agent)) = (state.deleted, &state.agent) {
            let told = command(&core.holder_dir(agent.holder_id), core.supervisor)
                .and_then(|mut control| Ok(control.stop("the session was removed", "daemon", GRACE)?));
            return match told {
                Ok(()) => Ok(Then::Rest(Some(self.back_off()))),
                Err(error) => self.not_adopted(core, &error),
            };
        }
        if self.live.is_none()
            && let Then::Rest(most) = self.adopt(core, state)?
        {
            return Ok(Then::Rest(most));
        }
        if let Some(live) = &mut self.live {
            live.stop("the session was closed", "daemon", GRACE)?;
        }
        Ok(Then::Again)
    }

    fn harvest(&mut self, core: &Arc<Core>, state: &SessionState) -> Result<Then, ServiceError> {
        let Some(agent) = &state.agent else { return Ok(Then::Again) };
        let dir = core.holder_dir(agent.holder_id);
        // Nobody of the old tree may be left when the next agent begins.
        let left = harvest(&dir).map_err(|error| ServiceError::internal(&error))?;
        if !left.tree_gone {
            let pids: Vec<String> = left.left.iter().map(|process| process.pid.to_string()).collect();
            self.hold(Some(format!("processes of its dead agent are still there: {}", pids.join(", "))));
            return Ok(Then::Rest(Some(self.back_off())));
        }
        if state.deleted {
            self.remove(core)?;
            return Ok(Then::Rest(None));
        }
        crash_point("harvest.before_record");
        let profile = agents::profile(&state.provider)?;
        let prompted = state.run.as_ref().is_some_and(|run| run.prompted);
        Live::harvest(core.store.clone(), self.session, dir, profile, core.supervisor)?;
        let after = core.store.open_session(self.session)?.state;
        if after.open_run().is_some() && !prompted {
            self.failed_launches.1 += 1;
        }
        Ok(Then::Again)
    }

    /// Everything of the agent is gone, its journal too.
    fn bury(
        &mut self,
        core: &Core,
        state: &SessionState,
        reason: InterruptReason,
    ) -> Result<(), ServiceError> {
        let Some(agent) = &state.agent else { return Ok(()) };
        let mut records: Vec<Draft> = Vec::new();
        // Without a journal nobody can say whether a prompt that was queued reached the agent.
        if let Some(run) = state.open_run().filter(|run| run.prompted || agent.process.is_some()) {
            let tool = |tool: &rekindle_domain::session::OpenTool| UncertainTool {
                tool_call_id: tool.tool_call_id.clone(),
                title: tool.title.clone(),
                kind: tool.kind.clone(),
            };
            let (run_id, uncertain) = (run.run_id, run.tools.iter().map(tool).collect());
            let detail = Some("nothing is left of the agent's holder".into());
            records.push(RunInterrupted { run_id, reason, uncertain, uncertain_turn: true, detail }.into());
            for wait in &run.waits {
                let (resume_token_id, wait_id) = (wait.resume_token_id, Some(wait.wait_id));
                let reason = "interrupted".into();
                records.push(TokenRevoked { resume_token_id, wait_id, reason, by: None }.into());
            }
        }
        let holder_id = agent.holder_id;
        records.push(AgentExited { holder_id, code: None, signal: None, stderr_tail: None }.into());
        core.append(self.session, records)?;
        Ok(())
    }

    fn launch(&mut self, core: &Arc<Core>, state: &SessionState) -> Result<Then, ServiceError> {
        let launching = match agents::launching(core, state) {
            Ok(launching) => launching,
            Err(Obstacle::Env(missing)) => {
                let names = missing.join(", ");
                self.hold(Some(format!(
                    "its agent needs {names}, which only you have: resume it, or send a message"
                )));
                return Ok(Then::Rest(None));
            }
            Err(Obstacle::Agent(error)) => {
                let hint = error.hint.map(|hint| format!("; {hint}")).unwrap_or_default();
                self.fail(core, state, format!("{}{hint}", error.message))?;
                return Ok(Then::Again);
            }
        };
        crash_point("start.before_launch");
        let profile = agents::profile(&state.provider)?;
        match Live::launch(
            core.store.clone(),
            self.session,
            &core.places,
            launching,
            profile,
            core.supervisor,
        ) {
            Ok(live) => {
                crash_point("start.after_launch");
                self.listen(core, live);
                Ok(Then::Again)
            }
            Err(error @ (LiveError::Append(_) | LiveError::Session(_))) => Err(error.into()),
            Err(error) => {
                // Whatever there is of it is found and read by the next step.
                self.failed_launches.1 += 1;
                tracing::warn!(session = %self.session, "launch failed: {}", chain(&error));
                if self.failed_launches.1 >= rekindle_domain::recovery::MOST_LAUNCHES {
                    self.fail(core, state, format!("the agent could not be launched: {}", chain(&error)))?;
                }
                Ok(Then::Again)
            }
        }
    }

    /// Ends the open run as failed.
    fn fail(&mut self, core: &Core, state: &SessionState, error: String) -> Result<(), ServiceError> {
        if let Some(run) = state.open_run() {
            core.append(self.session, vec![RunFailed { run_id: run.run_id, error: error.into() }.into()])?;
        }
        Ok(())
    }

    pub(super) fn begin_continuation(
        &mut self,
        core: &Core,
        state: &SessionState,
        attempt: u32,
    ) -> Result<Option<RunId>, ServiceError> {
        let Some(cut) = &state.run else { return Ok(None) };
        let run_id = RunId::mint(millis(core.now()), random()?);
        let started = RunStarted {
            run_id,
            boot_id: core.supervisor.boot_id,
            machine_boot: machine_boot().ok().map(Into::into),
            message_id: None,
            attempt,
            continues: Some(cut.run_id),
            origin_run_id: Some(cut.origin_run_id),
        };
        crash_point("resume.before_start");
        core.append(self.session, vec![started.into()])?;
        crash_point("resume.after_start");
        Ok(Some(run_id))
    }

    /// Gives the oldest prompt of the queue its turn.
    fn begin(&mut self, core: &Core, message: MessageId) -> Result<RunId, ServiceError> {
        let run_id = RunId::mint(millis(core.now()), random()?);
        let started = RunStarted {
            run_id,
            boot_id: core.supervisor.boot_id,
            machine_boot: machine_boot().ok().map(Into::into),
            message_id: Some(message),
            attempt: 1,
            continues: None,
            origin_run_id: None,
        };
        core.append(self.session, vec![started.into()])?;
        Ok(run_id)
    }

    /// Whoever has spoken with the holder may have been told news with the answer: nobody would be woken for these.
    fn listen_again(&mut self) {
        self.rest(Some(Duration::ZERO));
    }

    /// Listens to the agent, and does what follows.
    pub(super) fn live_step(&mut self, core: &Arc<Core>) {
        self.rest_until = None;
        let Some(live) = &mut self.live else { return };
        match live.step() {
            Ok(progress) => {
                if let Err(error) = self.follow_up(core, &progress) {
                    tracing::warn!(session = %self.session, "{}", error.message);
                }
            }
            Err(error) => {
                tracing::warn!(session = %self.session, "lost the agent: {}", chain(&error));
                self.live = None;
                let refused = matches!(error, LiveError::Append(_));
                if refused {
                    self.hold(Some(chain(&error)));
                }
                self.rest(Some(if refused { Duration::from_secs(1) } else { Duration::ZERO }));
            }
        }
    }

    fn follow_up(&mut self, core: &Arc<Core>, progress: &Progress) -> Result<(), ServiceError> {
        if progress.exited || progress.lost {
            // Whether it is dead is told by its lock, and by nothing else.
            self.live = None;
            self.rest(Some(Duration::ZERO));
            return Ok(());
        }
        if progress.more {
            self.listen_again();
        }
        if let Some(refused) = &progress.refused {
            let state = core.store.open_session(self.session)?.state;
            let login = state.provider.agent.as_deref().and_then(rekindle_agent::known::by_id);
            let login = login.map(|known| known.login).filter(|login| !login.is_empty());
            let advice = match login.filter(|_| refused.is_auth_required()) {
                Some(login) => format!("; sign in with: {login}"),
                None => String::new(),
            };
            self.fail(core, &state, format!("the agent refused: {refused}{advice}"))?;
            if let Some(live) = &mut self.live {
                live.stop("the agent makes no session", "daemon", GRACE)?;
            }
            self.listen_again();
            return Ok(());
        }
        for wait in &progress.waits {
            self.answer_by_policy(core, *wait)?;
        }
        if !progress.waits.is_empty() {
            self.note_deadlines(core)?;
        }
        self.mind_the_deadline(core)?;
        if progress.ended.is_some()
            && let Err(error) = core.store.snapshot(self.session)
        {
            tracing::debug!(session = %self.session, "no snapshot: {}", chain(&error));
        }
        if progress.ended.is_some() || self.cancelled.is_some() { self.mind_the_run(core) } else { Ok(()) }
    }

    /// Looks after the open run: one that is to be cancelled ends in time, and after one that has ended comes the next.
    pub(super) fn mind_the_run(&mut self, core: &Arc<Core>) -> Result<(), ServiceError> {
        if self.live.is_none() {
            return Ok(());
        }
        let state = core.store.open_session(self.session)?.state;
        match state.open_run() {
            Some(run) if run.cancel.is_some() => {
                let since = match self.cancelled {
                    Some((known, since)) if known == run.run_id => since,
                    _ => Instant::now(),
                };
                self.cancelled = Some((run.run_id, since));
                if since.elapsed() >= CANCELLED_WITHIN
                    && let Some(live) = &mut self.live
                {
                    tracing::warn!(session = %self.session, "a cancelled turn does not end: ending the agent");
                    live.stop("a cancelled turn did not end", "daemon", GRACE)?;
                    self.cancelled = None;
                    self.listen_again();
                }
            }
            Some(_) => self.cancelled = None,
            None => {
                self.cancelled = None;
                self.next_in_line(core, &state)?;
            }
        }
        Ok(())
    }

    /// Finds out which open question has to be answered first.
    fn note_deadlines(&mut self, core: &Core) -> Result<(), ServiceError> {
        let state = core.store.open_session(self.session)?.state;
        let waits = state.open_run().map(|run| run.waits.as_slice()).unwrap_or_default();
        self.deadline = waits.iter().filter_map(|wait| wait.deadline_at).min();
        Ok(())
    }

    /// Cancels what has waited long enough; nothing does while the clock is behind the newest record.
    fn mind_the_deadline(&mut self, core: &Core) -> Result<(), ServiceError> {
        let Some(deadline) = self.deadline.filter(|deadline| core.now() >= *deadline) else { return Ok(()) };
        self.note_deadlines(core)?;
        let state = core.store.open_session(self.session)?.state;
        let moment = Moment { wall: core.now(), newest: state.updated_at };
        if self.deadline == Some(deadline)
            && moment.is_past(deadline)
            && let Some(live) = &mut self.live
        {
            live.cancel(CancelReason::WaitTimeout, "deadline", Vec::new(), Vec::new())?;
            self.cancelled = state.open_run().map(|run| (run.run_id, Instant::now()));
            self.deadline = None;
            self.listen_again();
        }
        Ok(())
    }

    /// Gives a living agent the next prompt.
    fn next_in_line(&mut self, core: &Arc<Core>, state: &SessionState) -> Result<(), ServiceError> {
        if let Some(message) = state.queue.first().copied().filter(|_| !state.closed) {
            self.begin(core, message)?;
            let state = core.store.open_session(self.session)?.state;
            if let (Some(live), Some(run)) = (&mut self.live, state.open_run())
                && let Some(unsent) = Unsent::find(&core.store, self.session, run)?
            {
                live.say(unsent, &[]);
                self.listen_again();
            }
        }
        Ok(())
    }

    fn answer_by_policy(
        &mut self,
        core: &Arc<Core>,
        wait: rekindle_domain::id::WaitId,
    ) -> Result<(), ServiceError> {
        let state = core.store.open_session(self.session)?.state;
        let policy = Policy::of(&state.options);
        let asked = state.open_run().and_then(|run| run.wait(wait)).map(|wait| wait.kind);
        let (Some(kind), Some(WaitKind::Permission)) = (policy.option(), asked) else { return Ok(()) };
        let answer = OwnAnswer::Kind(kind.into());
        let hash = answer.hash();
        if let Some(live) = &mut self.live {
            live.answer(wait, answer.as_answer(), "policy", None, &hash)?;
            self.listen_again();
        }
        Ok(())
    }
}
