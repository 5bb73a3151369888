//! Carrying out one step after the other: what was decided becomes records, processes and connections.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rekindle_domain::event::{
    AgentExited, Event, InterruptReason, RunCancelled, RunFailed, RunInterrupted, TokenRevoked, UncertainTool,
};
use rekindle_domain::id::{MessageId, RunId};
use rekindle_domain::line::Draft;
use rekindle_domain::recovery::{Circumstances, Found, Held, Step, next_step};
use rekindle_domain::session::SessionState;
use rekindle_holder::client::{ConnectError, harvest, remove};
use rekindle_store::AppendError;

use super::observe::{has_directory, observe};
use super::{GRACE, Worker};
use crate::agents::{self, Obstacle};
use crate::core::{Core, millis, random};
use crate::crash::crash_point;
use crate::error::{ServiceError, chain};
use crate::link::Turn;
use crate::live::prompt::find_back;
use crate::live::{Live, LiveError, command, derived, run_started};
use crate::upkeep::launched;

/// Steps in a row before others get their turn: far more than any session needs.
const MOST_STEPS: usize = 64;

/// How long a holder that does not answer is left alone at most.
const MOST_SILENCE: Duration = Duration::from_secs(60);

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
                Ok(Then::Again) if self.live.is_some() => {
                    // Of one that was taken over the run may have ended, or be cancelled, since before we were here.
                    if let Err(error) = self.mind_the_run(core) {
                        tracing::warn!(session = %self.session, "{}", error.message);
                    }
                    return self.rest(Some(Duration::ZERO));
                }
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
        let current = core.store.open_session(self.session)?;
        let state = current.state;
        let found = observe(core, &state);
        self.see(found);
        if let Some(damage) = &current.damage {
            // What is done could not be recorded: an agent that lives works on, and its journal keeps what it says.
            let why = format!("its log is damaged {damage}: nothing can be added to it");
            tracing::error!(session = %self.session, "{why}");
            self.hold(Some(why));
            core.directory.touch(self.session);
            return Ok(Then::Rest(None));
        }
        let step = next_step(&state, &self.circumstances(&state, found));
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
                    _ => {
                        format!("the agent ended before it could be given its prompt{}", self.last_end(core))
                    }
                };
                self.fail(core, &state, error)?;
                Ok(Then::Again)
            }
            Step::Continue { .. } => {
                self.begin_continuation(core, &state)?;
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
        self.remove_holders(core);
        crash_point("delete.after_holders");
        core.store.remove(self.session).map_err(|error| ServiceError::internal(&error))?;
        crash_point("delete.after_remove");
        core.directory.forget(self.session);
        core.last_words.forget(self.session);
        Ok(())
    }

    /// Removes what its dead holders left: whoever deletes a session means what its agents said too. The log, which names
    /// them, goes after them.
    fn remove_holders(&self, core: &Core) {
        let launched = core.store.reader(self.session).and_then(|reader| launched(&reader));
        for holder in launched.unwrap_or_default() {
            let dir = core.holder_dir(holder);
            if dir.path().exists()
                && let Err(error) = remove(&dir)
            {
                tracing::warn!(session = %self.session, %holder, "what a holder left stays: {error}");
            }
        }
    }

    fn circumstances(&mut self, state: &SessionState, found: Found) -> Circumstances {
        let open = state.open_run().map(|run| run.run_id);
        if self.failed_launches.0 != open {
            self.failed_launches = (open, 0);
        }
        let cut = state.recovery.interruption.as_ref();
        if self.interrupted.map(|(run, _)| run) != cut.map(|cut| cut.run_id) {
            self.interrupted = cut.map(|cut| (cut.run_id, Instant::now()));
        }
        Circumstances {
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
        // For one that was launched and never started: by the same rules as a launch.
        let env = || match agents::launching(core, state) {
            Ok(launching) => Ok(launching.env),
            Err(Obstacle::Env(missing)) => Err(LiveError::EnvMissing(missing)),
            Err(Obstacle::Agent(_)) => Ok(agents::environment(core, state)),
        };
        let dir = core.holder_dir(agent.holder_id);
        self.turn(Turn::Begins);
        match Live::adopt(core.store.clone(), self.session, dir, profile, core.supervisor, env) {
            Ok(live) => {
                self.silent = 0;
                self.listen(core, live);
                Ok(Then::Again)
            }
            Err(error) => {
                self.turn(Turn::Fails);
                self.not_adopted(core, &error)
            }
        }
    }

    /// A holder that does not let us in may be silent, ending, or another's by now.
    fn not_adopted(&mut self, core: &Core, error: &LiveError) -> Result<Then, ServiceError> {
        if let LiveError::Superseded { by } = error {
            tracing::error!(epoch = by, "another daemon commands the agents of this home");
            core.superseded.store(true, Ordering::Relaxed);
            return Ok(Then::Rest(None));
        }
        if let LiveError::EnvMissing(missing) = error {
            self.hold(Some(agents::env_missing(missing)));
            return Ok(Then::Rest(Some(self.back_off())));
        }
        tracing::info!(session = %self.session, "the agent's holder does not let us in: {}", chain(error));
        self.see(Found::Silent);
        self.hold(Some(match error {
            LiveError::Connect(ConnectError::NoCommonVersion { low, high }) => format!(
                "its agent's holder is of another version of rekindle and speaks versions {low} to {high} of its protocol: \
                 run that version, or wait until the agent ends"
            ),
            _ => format!("its agent's holder does not answer: {}", chain(error)),
        }));
        Ok(Then::Rest(Some(self.back_off())))
    }

    /// Ends an agent that nobody wants any more. A session that is being removed takes no more records: its agent is
    /// only ended.
    fn dismiss_agent(&mut self, core: &Arc<Core>, state: &SessionState) -> Result<Then, ServiceError> {
        if let (true, Some(agent)) = (state.deleted, &state.agent) {
            crash_point("dismiss.before");
            let told = command(&core.holder_dir(agent.holder_id), core.supervisor)
                .and_then(|mut control| Ok(control.stop("the session was removed", "daemon", GRACE)?));
            crash_point("dismiss.after");
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
        crash_point("harvest.after_tree");
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
        Live::harvest(core.store.clone(), self.session, dir, profile, core.supervisor)?;
        self.note_failed_launch(core)?;
        Ok(Then::Again)
    }

    /// An agent is gone and its run is still open: it was launched for nothing.
    pub(super) fn note_failed_launch(&mut self, core: &Core) -> Result<(), ServiceError> {
        let state = core.store.open_session(self.session)?.state;
        if let Some(run) = state.open_run() {
            let before = if self.failed_launches.0 == Some(run.run_id) { self.failed_launches.1 } else { 0 };
            self.failed_launches = (Some(run.run_id), before + 1);
        }
        Ok(())
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
            records.push(derived(run, reason).into());
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
                self.hold(Some(agents::env_missing(&missing)));
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
        self.turn(Turn::Begins);
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
            // No other try would come to anything else.
            Err(
                error @ (LiveError::ArgumentTooLong { .. } | LiveError::Append(AppendError::TooLarge { .. })),
            ) => {
                self.turn(Turn::Fails);
                self.fail(core, state, format!("the agent could not be launched: {}", chain(&error)))?;
                Ok(Then::Again)
            }
            Err(error @ (LiveError::Append(_) | LiveError::Session(_))) => Err(error.into()),
            Err(error) => {
                self.turn(Turn::Fails);
                tracing::warn!(session = %self.session, "launch failed: {}", chain(&error));
                let after = core.store.open_session(self.session)?.state;
                // Whatever there is of it is found, read and counted by the next step.
                if after.agent.as_ref().is_none_or(|agent| agent.exited) {
                    self.note_failed_launch(core)?;
                    if self.failed_launches.1 >= rekindle_domain::recovery::MOST_LAUNCHES {
                        self.fail(
                            core,
                            state,
                            format!("the agent could not be launched: {}", chain(&error)),
                        )?;
                    }
                }
                Ok(Then::Again)
            }
        }
    }

    /// Returns how the last agent ended, for people.
    fn last_end(&self, core: &Core) -> String {
        let Ok(reader) = core.store.reader(self.session) else { return String::new() };
        let end = find_back(&reader, |event| match event {
            Event::AgentExited(end) => {
                let how = match (end.code, end.signal) {
                    (Some(code), _) => format!(", with exit code {code}"),
                    (None, Some(signal)) => format!(", by signal {signal}"),
                    (None, None) => String::new(),
                };
                let said = end.stderr_tail.as_deref().map(str::trim).filter(|said| !said.is_empty());
                Some(format!("{how}{}", said.map(|said| format!(": {said}")).unwrap_or_default()))
            }
            _ => None,
        });
        end.ok().flatten().unwrap_or_default()
    }

    /// Ends the open run as failed.
    pub(super) fn fail(
        &mut self,
        core: &Core,
        state: &SessionState,
        error: String,
    ) -> Result<(), ServiceError> {
        if let Some(run) = state.open_run() {
            core.append(self.session, vec![RunFailed { run_id: run.run_id, error: error.into() }.into()])?;
        }
        Ok(())
    }

    /// Begins a run that continues the one that was cut.
    fn begin_continuation(&mut self, core: &Core, state: &SessionState) -> Result<(), ServiceError> {
        let run_id = RunId::mint(millis(core.now()), random()?);
        let started = run_started(run_id, core.supervisor, None, state.run.as_ref());
        crash_point("resume.before_start");
        core.append(self.session, vec![started.into()])?;
        crash_point("resume.after_start");
        Ok(())
    }

    /// Gives the oldest prompt of the queue its turn.
    pub(super) fn begin(&mut self, core: &Core, message: MessageId) -> Result<(), ServiceError> {
        let run_id = RunId::mint(millis(core.now()), random()?);
        let started = run_started(run_id, core.supervisor, Some(message), None);
        core.append(self.session, vec![started.into()])?;
        Ok(())
    }
}
