//! Notices of the clock: a run of which nothing is heard, and how far one has come that goes on for long.

use std::time::Duration;

use rekindle_domain::session::{PlanProgress, SessionState};
use rekindle_domain::stall::stalls_at;
use rekindle_domain::time::Timestamp;

use super::of_session;
use crate::notice::{Notice, NoticeKind};

/// When the clock makes notices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockRules {
    /// How long an agent may say nothing, if that is configured.
    pub stall_after: Option<Duration>,
    /// How often progress is told.
    pub progress_every: Duration,
}

/// What the clock has told of a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClockWatch {
    /// The stall that was told, by when it began to be one.
    pub stalled_at: Option<Timestamp>,
    /// When progress was told.
    pub progress_at: Option<Timestamp>,
}

/// Returns what the clock tells of a session, and takes in that it did.
pub fn clock_notices(
    state: &SessionState,
    rules: &ClockRules,
    watch: &mut ClockWatch,
    now: Timestamp,
) -> Vec<Notice> {
    let mut notices = Vec::new();
    let Some(run) = state.open_run().filter(|run| run.cancel.is_none()) else { return notices };
    let notice = |kind, at| {
        let mut notice = of_session(state, kind, state.last_seq, at);
        (notice.run_id, notice.task_id) = (Some(run.run_id), run.task_id);
        notice
    };
    let stall = stalls_at(state, rules.stall_after);
    if let Some(at) = stall.filter(|at| *at <= now && watch.stalled_at != Some(*at)) {
        watch.stalled_at = Some(at);
        notices.push(notice(NoticeKind::Stalled, at));
    }
    if progress(state, rules, watch).is_some_and(|at| at <= now) {
        watch.progress_at = Some(now);
        let mut notice = notice(NoticeKind::Progress, now);
        notice.reason = Some(progress_text(run.tool_calls, run.plan.as_ref()));
        notices.push(notice);
    }
    notices
}

/// Returns when the clock has something to tell of a session next, if nothing is heard until then.
pub fn next_clock_notice(state: &SessionState, rules: &ClockRules, watch: &ClockWatch) -> Option<Timestamp> {
    state.open_run().filter(|run| run.cancel.is_none())?;
    let stall = stalls_at(state, rules.stall_after).filter(|at| watch.stalled_at != Some(*at));
    [stall, progress(state, rules, watch)].into_iter().flatten().min()
}

/// Returns when progress is told: there has to be some since it last was.
fn progress(state: &SessionState, rules: &ClockRules, watch: &ClockWatch) -> Option<Timestamp> {
    let every = i64::try_from(rules.progress_every.as_millis()).unwrap_or(i64::MAX);
    let run = state.open_run()?;
    let heard = state.agent.as_ref().and_then(|agent| agent.last_output_at)?;
    let told = watch.progress_at.filter(|told| *told > run.started_at);
    let is_new = told.is_none_or(|told| heard > told);
    is_new.then(|| told.unwrap_or(run.started_at).plus_millis(every))
}

fn progress_text(tool_calls: u32, plan: Option<&PlanProgress>) -> String {
    let calls = match tool_calls {
        1 => "1 tool call".to_owned(),
        calls => format!("{calls} tool calls"),
    };
    match plan {
        Some(PlanProgress { done, total, now: Some(now) }) => {
            format!("{done} of {total} steps done, {calls}, now: {now}")
        }
        Some(PlanProgress { done, total, now: None }) => format!("{done} of {total} steps done, {calls}"),
        None => calls,
    }
}
