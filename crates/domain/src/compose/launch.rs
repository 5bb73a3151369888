//! An agent is launched, taken over, and gone without a trace: what is recorded of it, and of the run that it has.

use crate::event::{AgentExited, AgentLaunching, Drift, InterruptReason, RunAdopted, RunDrift};
use crate::id::{BootId, HolderId};
use crate::line::Draft;
use crate::session::{Run, SessionState};
use crate::token::TokenIndex;

use super::interrupt::{Ending, end_run};

/// Composes the launch of an agent: `agent.launching`, for the open run if there is one. A run that another life of the daemon
/// began and gave to nobody goes on as the same run: `run.adopted` comes first. `drift` is what a command finds changed, which is given
/// its prompt with its launch.
pub fn launch(
    state: &SessionState,
    holder_id: HolderId,
    argv: Vec<String>,
    boot_id: BootId,
    drift: Option<Drift>,
) -> Vec<Draft> {
    let run = state.open_run();
    let argv = argv.into_iter().map(Into::into).collect();
    let launching = AgentLaunching { holder_id, run_id: run.map(|run| run.run_id), argv };
    let adopted = run.and_then(|run| adopted(run, boot_id, None, 0));
    let drift = drift.zip(run).map(|(drift, run)| RunDrift { run_id: run.run_id, drift }.into());
    adopted.into_iter().chain(drift).chain([launching.into()]).collect()
}

/// Composes the adoption of a living agent whose journal has come to record `head`: `run.adopted` of the open run. One that
/// this life of the daemon began itself is its own already.
pub fn adopt(state: &SessionState, holder_id: HolderId, head: u64, boot_id: BootId) -> Vec<Draft> {
    let logged = state.agent.as_ref().map_or(0, |agent| agent.journal.seq);
    let gap = head.saturating_sub(logged);
    state.open_run().and_then(|run| adopted(run, boot_id, Some(holder_id), gap)).into_iter().collect()
}

fn adopted(run: &Run, boot_id: BootId, holder_id: Option<HolderId>, gap: u64) -> Option<Draft> {
    let run_id = run.run_id;
    (run.boot_id != boot_id).then(|| RunAdopted { run_id, boot_id, holder_id, gap }.into())
}

/// Composes the end of an agent of which nothing is left, its journal neither: the interruption of its run, and `agent.exited`.
/// Without a journal nobody can say whether a prompt that was queued reached the agent; a run that was given to no agent goes on.
pub fn bury(state: &SessionState, tokens: &TokenIndex, reason: InterruptReason) -> Vec<Draft> {
    let Some(agent) = &state.agent else { return Vec::new() };
    let cut = state.open_run().filter(|run| run.prompted || agent.process.is_some()).map(|run| {
        let uncertain = run.begun_tools().cloned().collect();
        let detail = Some("nothing is left of the agent's holder".into());
        end_run(run, tokens, Ending::Interrupted { reason, uncertain, uncertain_turn: true, detail })
    });
    let exited = AgentExited { holder_id: agent.holder_id, code: None, signal: None, stderr_tail: None };
    cut.into_iter().flatten().chain([exited.into()]).collect()
}
