//! Stalls: a run that goes on while nothing is heard of its agent. That is shown and told; nobody ends a run for it.

use std::time::Duration;

use crate::session::SessionState;
use crate::time::Timestamp;

/// How long an agent may say nothing. A command need not say anything while it works.
const STALL_AFTER: Duration = Duration::from_secs(10 * 60);
const COMMAND_STALL_AFTER: Duration = Duration::from_secs(30 * 60);

/// Returns how long an agent may say nothing: as configured, or as usual for what it is.
pub fn stall_limit(configured: Option<Duration>, is_command: bool) -> Duration {
    configured.unwrap_or(if is_command { COMMAND_STALL_AFTER } else { STALL_AFTER })
}

/// Returns when the run of a session stalls, or has, if nothing more is heard; none while nothing runs, or someone outside is
/// waited for.
pub fn stalls_at(state: &SessionState, configured: Option<Duration>) -> Option<Timestamp> {
    let run = state.open_run().filter(|run| run.waits.is_empty())?;
    let heard = state.agent.as_ref().and_then(|agent| agent.last_output_at).max(Some(run.started_at))?;
    let limit = stall_limit(configured, state.provider.is_command());
    Some(heard.plus_millis(i64::try_from(limit.as_millis()).unwrap_or(i64::MAX)))
}
