//! The launch of an agent: from a session without one to a session with a living one. Between any two steps a death leaves
//! either no agent or one that is recorded.
//!
//! And command of its holder. Before a holder has proven itself its word is anybody's: a stranger on its socket must not make a
//! supervisor step down.

use std::collections::BTreeMap;

use rekindle_domain::compose::launch::launch;
use rekindle_domain::event::{AgentStarted, Drift, ProcessIdentity};
use rekindle_domain::id::HolderId;
use rekindle_domain::session::SessionState;
use rekindle_holder::client::{ConnectError, Spec};
use rekindle_holder::dir::{EpochNote, HolderDir, Limits};
use rekindle_holder::identity::Identity;
use rekindle_holder::wire::Refusal;
use rekindle_store::commit::Append;
use rekindle_store::disk::check_descriptors;

use super::agent_memory::History;
use super::error::{MAX_ARGUMENT, Result};
use super::prompt::UnsentPrompt;
use super::{AgentContext, LiveAgent, LiveError, STEP, Supervisor};
use crate::drive::holders::{Control, HolderPaths, Holders};
use crate::test_knobs::crash_point;

/// What is to be launched.
#[derive(Debug, Clone)]
pub struct Launching {
    /// The agent's name in the table of known ones.
    pub agent: Option<String>,
    /// Its command.
    pub argv: Vec<String>,
    /// Its environment.
    pub env: BTreeMap<String, String>,
    /// Its umask; without one it has its holder's, which lets nobody else read what it makes.
    pub umask: Option<u32>,
    /// Bounds of its holder.
    pub limits: Limits,
}

impl LiveAgent {
    /// Launches an agent for a session; its own session is brought back if one is known. If the prompt is part of
    /// the command, a run must be open.
    pub fn launch(context: AgentContext, places: &HolderPaths, launching: Launching) -> Result<LiveAgent> {
        check_descriptors().map_err(LiveError::Descriptors)?;
        let AgentContext { store, session, holders, profile, supervisor } = &context;
        let session = *session;
        let state = store.open_session(session)?.state;
        let command = match state.open_run() {
            Some(run) if profile.prompt_in_command() => {
                let unsent =
                    UnsentPrompt::find(&**store, session, run, &**profile)?.ok_or(LiveError::NoPrompt)?;
                profile.command(&launching.argv, unsent.own_message().ok_or(LiveError::NoPrompt)?)
            }
            None if profile.prompt_in_command() => return Err(LiveError::NoPrompt),
            _ => launching.argv,
        };
        if let Some(bytes) = command.iter().map(String::len).find(|bytes| *bytes > MAX_ARGUMENT) {
            return Err(LiveError::ArgumentTooLong { bytes });
        }
        let spec = Spec {
            session_id: session.to_string(),
            attempt: 1,
            agent: launching.agent.clone(),
            profile: profile.name().into(),
            argv: command.clone(),
            cwd: state.working_dir.clone().into(),
            env_names: launching.env.keys().cloned().collect(),
            umask: launching.umask,
            limits: launching.limits,
        };
        let drift = command_drift(&context, &state)?;
        let prepared = holders.prepare(places, spec)?;
        crash_point("launch.after_prepare");
        let holder_id: HolderId = prepared.launch.holder_id.parse().map_err(|_| LiveError::NoAgent)?;
        // The directory stands, nothing runs: whoever finds it later finds that it was never started.
        let records = launch(&state, holder_id, command, supervisor.boot_id, drift);
        store.append(Append::durable(session, records))?;
        crash_point("launch.after_record");
        holders.start(places, &prepared)?;
        crash_point("launch.after_spawn");
        LiveAgent::adopt(context, prepared.dir, || Ok(launching.env))
    }

    /// Records that the agent runs, and which processes are meant.
    pub(super) fn record_start(&mut self, agent: &Identity) -> Result<()> {
        let launch = self.holders.launch(&self.dir)?;
        let lock = self.holders.lock(&self.dir)?;
        let process = |identity: &Identity| ProcessIdentity {
            pid: identity.pid.unsigned_abs(),
            started: identity.start_ticks,
        };
        let started = AgentStarted {
            holder_id: self.connection.holder(),
            machine_boot: agent.machine_boot.clone().into(),
            holder: process(&lock.process),
            agent: process(agent),
            argv: launch.argv.into_iter().map(Into::into).collect(),
        };
        self.append(vec![started.into()])?;
        Ok(())
    }
}

/// Returns what a command finds changed that is run again because it was cut: it is given its prompt with its launch, or at once.
fn command_drift(context: &AgentContext, state: &SessionState) -> Result<Option<Drift>> {
    let again = state.open_run().filter(|run| run.continues.is_some() && context.profile.process_is_turn());
    let Some(run) = again else { return Ok(None) };
    Ok(History::read(&*context.store, context.session)?.drift.report(run.run_id))
}

/// Commands a holder under the supervisor's epoch.
pub(crate) fn command(
    holders: &dyn Holders,
    dir: &HolderDir,
    supervisor: Supervisor,
) -> Result<Box<dyn Control>> {
    let instance = supervisor.boot_id.to_string();
    match holders.connect(dir, &instance, supervisor.epoch, STEP) {
        Err(ConnectError::Refused(no)) if no.reason == Refusal::Stale => {
            Err(verdict(holders.epoch(dir).as_ref(), &instance, supervisor.epoch, no.epoch))
        }
        outcome => Ok(outcome?),
    }
}

/// Believes that another commands only if the holder's own file says so too.
fn verdict(note: Option<&EpochNote>, instance: &str, epoch: u64, claimed: u64) -> LiveError {
    let outranks = |note: &&EpochNote| note.epoch > epoch || note.epoch == epoch && note.instance != instance;
    match note.filter(outranks) {
        Some(note) => LiveError::Superseded { by: note.epoch },
        None => LiveError::Unconfirmed { claimed },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_file_that_outranks_us_makes_us_the_old_one() {
        let said = |epoch, instance: &str| {
            let note = EpochNote { epoch, instance: instance.into() };
            matches!(verdict(Some(&note), "boot_us", 7, 99), LiveError::Superseded { by } if by == epoch)
        };
        assert!(said(8, "boot_other") && said(8, "boot_us"), "a higher epoch");
        assert!(said(7, "boot_other"), "the same one of another");
        assert!(!said(7, "boot_us") && !said(6, "boot_other"), "our own, and an older one");
        assert!(matches!(verdict(None, "boot_us", 7, 99), LiveError::Unconfirmed { claimed: 99 }));
    }
}
