//! Agents that are there already, or were: adopted, ended, or their end put on record.

use std::sync::Arc;

use rekindle_domain::recovery::AgentPresence;
use rekindle_domain::session::SessionState;
use rekindle_holder::client::ConnectError;

use super::step::StepOutcome;
use super::{STOP_GRACE, Worker, Workers};
use crate::drive::agents::Obstacle;
use crate::drive::connection_state::ConnectionEvent;
use crate::drive::environment::env_missing_text;
use crate::drive::live::{LiveAgent, LiveError, command};
use crate::drive::provider::profile;
use crate::error::{Result, ServiceError, chain};
use crate::test_knobs::crash_point;

/// One that is ending and answers counts as silent so often at most: someone waits for its end, which no message tells, so
/// it is asked again within a third of a second, and also soon after it has hung up over its end.
const MOST_DYING: u32 = 5;

impl Worker {
    pub(super) fn adopt(&mut self, workers: &Arc<Workers>, state: &SessionState) -> Result<StepOutcome> {
        let Some(agent) = &state.agent else { return Ok(StepOutcome::Again) };
        let profile = profile(&state.provider)?;
        // For one that was launched and never started: by the same rules as a launch.
        let env = || match workers.agents.launching(state) {
            Ok(launching) => Ok(launching.env),
            Err(Obstacle::Env(missing)) => Err(LiveError::EnvMissing(missing)),
            Err(Obstacle::Agent(_)) => Ok(workers.agents.environment.of(state)),
        };
        let dir = workers.agents.holder_dir(agent.holder_id);
        self.update_connection(ConnectionEvent::Begins);
        match LiveAgent::adopt(workers.context(self.session, profile), dir, env) {
            Ok(live) => {
                self.back_off.reset();
                self.attach(workers, live);
                Ok(StepOutcome::Again)
            }
            Err(error) => {
                self.update_connection(ConnectionEvent::Fails);
                self.handle_adoption_failure(workers, &error)
            }
        }
    }

    /// A holder that does not let us in may be silent, ending, or another's by now.
    pub(super) fn handle_adoption_failure(
        &mut self,
        workers: &Workers,
        error: &LiveError,
    ) -> Result<StepOutcome> {
        if let LiveError::Superseded { by } = error {
            tracing::error!(epoch = by, "another daemon controls the agents of this home");
            workers.supersede();
            return Ok(StepOutcome::Rest(None));
        }
        if let LiveError::EnvMissing(missing) = error {
            self.set_held(Some(env_missing_text(missing)));
            return Ok(StepOutcome::Rest(Some(self.back_off.next())));
        }
        tracing::info!("the agent's holder refuses the daemon: {}", chain(error));
        self.unanswered = true;
        self.set_presence(AgentPresence::Silent);
        self.set_held(Some(match error {
            LiveError::Connect(ConnectError::NoCommonVersion { low, high }) => format!(
                "its agent's holder is from a different version of Rekindle and speaks versions {low} to {high} of the \
                 protocol: run that version, or wait until the agent ends"
            ),
            _ => format!("its agent's holder does not answer: {}", chain(error)),
        }));
        Ok(StepOutcome::Rest(Some(self.back_off.next())))
    }

    /// Ends an agent that nobody wants any more. A session that is being removed takes no more records: its agent is
    /// only ended.
    pub(super) fn dismiss_agent(
        &mut self,
        workers: &Arc<Workers>,
        state: &SessionState,
    ) -> Result<StepOutcome> {
        if let (true, Some(agent)) = (state.deleted, &state.agent) {
            crash_point("dismiss.before");
            let dir = workers.agents.holder_dir(agent.holder_id);
            let told =
                command(&*workers.agents.holders, &dir, workers.agents.supervisor).and_then(|mut control| {
                    Ok(control.stop("the session was removed", "daemon", *STOP_GRACE)?)
                });
            crash_point("dismiss.after");
            return match told {
                Ok(()) => {
                    self.back_off.expect_soon(MOST_DYING);
                    Ok(StepOutcome::Rest(Some(self.back_off.next())))
                }
                Err(error) => self.handle_adoption_failure(workers, &error),
            };
        }
        if self.live.is_none()
            && let StepOutcome::Rest(most) = self.adopt(workers, state)?
        {
            return Ok(StepOutcome::Rest(most));
        }
        if let Some(live) = &mut self.live {
            live.stop("the session was closed", "daemon", *STOP_GRACE)?;
        }
        Ok(StepOutcome::Again)
    }

    pub(super) fn harvest(&mut self, workers: &Arc<Workers>, state: &SessionState) -> Result<StepOutcome> {
        let Some(agent) = &state.agent else { return Ok(StepOutcome::Again) };
        let dir = workers.agents.holder_dir(agent.holder_id);
        // Nobody of the old tree may be left when the next agent begins.
        let left = workers.agents.holders.harvest(&dir).map_err(ServiceError::internal)?;
        crash_point("harvest.after_tree");
        if !left.tree_gone {
            let pids: Vec<String> = left.left.iter().map(|process| process.pid.to_string()).collect();
            let copied = workers.agents.holders.is_copied(&dir);
            self.set_held(Some(if copied {
                "this home is a copy: the agent belongs to the original home and is left alone".to_owned()
            } else {
                format!("processes of its dead agent are still running: {}", pids.join(", "))
            }));
            return Ok(StepOutcome::Rest(Some(self.back_off.next())));
        }
        if state.deleted {
            self.remove(workers)?;
            return Ok(StepOutcome::Rest(None));
        }
        crash_point("harvest.before_record");
        let profile = profile(&state.provider)?;
        LiveAgent::harvest(workers.context(self.session, profile), dir)?;
        self.note_failed_launch(workers)?;
        Ok(StepOutcome::Again)
    }
}
