//! The launch of an agent: from a session without one to a session with a living one. Between any two steps a death leaves
//! either no agent or one that is recorded.

use std::collections::BTreeMap;

use rekindle_domain::compose::launch::launch;
use rekindle_domain::event::{AgentStarted, ProcessIdentity};
use rekindle_domain::id::HolderId;
use rekindle_holder::client::Spec;
use rekindle_holder::dir::Limits;
use rekindle_holder::identity::Identity;
use rekindle_store::commit::Append;
use rekindle_store::disk::check_descriptors;

use super::error::{MAX_ARGUMENT, Result};
use super::prompt::UnsentPrompt;
use super::{AgentContext, LiveAgent, LiveError};
use crate::drive::holders::HolderPaths;
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
                    UnsentPrompt::find(store, session, run, &**profile)?.ok_or(LiveError::NoPrompt)?;
                profile.command(&launching.argv, unsent.plain().ok_or(LiveError::NoPrompt)?)
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
        let prepared = holders.prepare(places, spec)?;
        crash_point("launch.after_prepare");
        let holder_id: HolderId = prepared.launch.holder_id.parse().map_err(|_| LiveError::NoAgent)?;
        // The directory stands, nothing runs: whoever finds it later finds that it was never started.
        let records = launch(&state, holder_id, command, supervisor.boot_id);
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
