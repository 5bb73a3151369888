//! The holder of a session's agent, or what is left of it: looked at, never touched.

use std::path::Path;

use rekindle_domain::recovery::AgentPresence;
use rekindle_domain::session::{AgentProcess, SessionState};
use rekindle_holder::client::{LockState, inspect};
use rekindle_holder::dir::HolderDir;
use rekindle_holder::identity::{Identity, Presence, machine_boot};

/// Looks for the recorded holder of a session in the directory of all holders; needs no daemon.
pub fn look_for_holder(holders: &Path, state: &SessionState) -> AgentPresence {
    let Some(agent) = state.agent.as_ref().filter(|agent| !agent.exited) else {
        return AgentPresence::Nobody;
    };
    let dir = HolderDir::new(holders.join(agent.holder_id.to_string()));
    if !dir.path().is_dir() {
        return vanished(agent.process.as_ref());
    }
    match inspect(&dir).lock {
        LockState::Held { .. } => AgentPresence::Lives,
        LockState::Free { .. } | LockState::Missing | LockState::Copied { .. } => AgentPresence::Dead,
        LockState::Unreadable(_) => AgentPresence::Silent,
    }
}

/// Without a directory only the processes themselves can tell.
fn vanished(process: Option<&AgentProcess>) -> AgentPresence {
    let Ok(boot) = machine_boot() else { return AgentPresence::Silent };
    let Some(process) = process else { return AgentPresence::Vanished { rebooted: false } };
    if process.machine_boot != boot {
        return AgentPresence::Vanished { rebooted: true };
    }
    let lives = [process.holder, process.agent].into_iter().any(|one| {
        let Ok(pid) = i32::try_from(one.pid) else { return true };
        let identity = Identity { pid, start_ticks: one.started, machine_boot: boot.clone() };
        !matches!(identity.presence(), Ok(Presence::Gone))
    });
    if lives { AgentPresence::Silent } else { AgentPresence::Vanished { rebooted: false } }
}

/// Tells whether a session has a place to work in.
pub(crate) fn has_directory(state: &SessionState) -> bool {
    Path::new(&state.working_dir).is_dir()
}
