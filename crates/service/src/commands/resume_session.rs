//! Sessions continued after an interruption, because someone said so.

use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};

use rekindle_domain::compose::begin::continuation;
use rekindle_domain::id::{RunId, SessionId};
use rekindle_domain::line::Draft;
use rekindle_domain::recovery::AgentPresence;
use rekindle_domain::session::SessionState;
use rekindle_store::AppendError;
use rekindle_store::commit::{Append, Expect};
use rekindle_wire::code::Code;
use rekindle_wire::hint::Hint;
use rekindle_wire::request::Resume;
use rekindle_wire::view::{ResumeMethod, Resumed};

use super::Locks;
use crate::drive::agents::Obstacle;
use crate::drive::live::UnsentPrompt;
use crate::drive::worker::{Command, Workers};
use crate::error::{Result, ServiceError};
use crate::ids::{millis, random};
use crate::lock::locked;
use crate::test_knobs::crash_point;

/// How long whoever resumes a session waits until the end of its agent is recorded, and when that is looked for again.
const RECORDED_WITHIN: Duration = Duration::from_secs(5);
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Tries of an append that something else came before.
const TRIES: usize = 16;

/// Continues an interrupted session because someone said so: whatever held it is settled by that. Records that come meanwhile, the
/// checkpoint of the end that nobody was there for among them, are looked at and do not keep it from going on.
pub(crate) fn resume(
    workers: &Arc<Workers>,
    locks: &Locks,
    session: SessionId,
    resume: &Resume,
) -> Result<Resumed> {
    for _ in 1..TRIES {
        match try_resume(workers, locks, session, resume) {
            Err(error) if error.code == Code::Moved => {}
            outcome => return outcome,
        }
    }
    try_resume(workers, locks, session, resume)
}

fn try_resume(workers: &Arc<Workers>, locks: &Locks, session: SessionId, resume: &Resume) -> Result<Resumed> {
    let state = recover_first(workers, session)?;
    let waited = has_no_agent(&state) && workers.agents.environment.missing_env_text(&state).is_some();
    let cut = state.run.as_ref().filter(|_| state.recovery.interruption.is_some() && !state.closed);
    let Some(cut) = cut.filter(|run| run.cancel.is_none()) else {
        // Nothing was cut: but its agent may wait for what is brought here.
        if let Some(run) = state.open_run().filter(|run| waited && run.cancel.is_none()) {
            // Options are recorded whole, and a umask is one of them.
            let _one_at_a_time = locked(&locks.options);
            let state = workers.records.store.open_session(session)?.state;
            if let Some(names) = add_environment(workers, &state, resume)? {
                workers.records.append(session, vec![names])?;
            }
            workers.send(session, Command::Look)?;
            return Ok(Resumed { run_id: run.run_id, method: ResumeMethod::Continue, attempt: run.attempt });
        }
        return Err(match state.closed {
            true => ServiceError::new(Code::SessionClosed, "the session is closed").hint(Hint::StartSession),
            false => ServiceError::new(Code::NothingToResume, "nothing was interrupted here")
                .hint(Hint::SendMessage),
        });
    };
    let names = add_environment(workers, &state, resume)?;
    let run_id = RunId::mint(millis(workers.records.now()), random()?);
    let started = continuation(cut, run_id, &workers.agents.supervisor.life());
    let attempt = started.attempt;
    let expect = Expect::LastSeq(state.last_seq);
    let records = names.into_iter().chain([started.into()]).collect();
    let append = Append { expect, ..Append::durable(session, records) };
    crash_point("resume.before_record");
    workers.records.store.append(append).map_err(|error| match error {
        AppendError::Moved { .. } => ServiceError::moved().hint(Hint::TryAgain),
        error => error.into(),
    })?;
    crash_point("resume.after_record");
    let unsent = UnsentPrompt::continuation(run_id, attempt);
    workers.send(session, Command::Prompt(unsent, Vec::new()))?;
    Ok(Resumed { run_id, method: ResumeMethod::Continue, attempt })
}

/// Returns the state of a session in which everything is recorded that there is to be found: a daemon that has just begun may
/// not have looked at it, and an agent that was killed may not be gone yet.
fn recover_first(workers: &Arc<Workers>, session: SessionId) -> Result<Arc<SessionState>> {
    let begin = Instant::now();
    loop {
        let state = workers.records.store.open_session(session)?.state;
        let found = workers.agents.observe(&state);
        // Whoever does not answer is not taken for dead.
        let unknown = matches!(found, AgentPresence::Nobody | AgentPresence::Silent);
        if state.open_run().is_none() || unknown || begin.elapsed() >= RECORDED_WITHIN {
            return Ok(state);
        }
        let (met, answer) = sync_channel(1);
        workers.send(session, Command::Recover { met })?;
        if answer.recv_timeout(RECORDED_WITHIN) != Ok(false) {
            return Ok(workers.records.store.open_session(session)?.state);
        }
        std::thread::sleep(LOOK_AGAIN);
    }
}

/// Tells whether nobody works in a session: its agent is gone, or has not begun.
fn has_no_agent(state: &SessionState) -> bool {
    state.agent.as_ref().is_none_or(|agent| agent.exited || agent.process.is_none())
}

/// Keeps what a caller brings, if an agent can be launched with it; returns the record of names that are new.
fn add_environment(workers: &Workers, state: &SessionState, resume: &Resume) -> Result<Option<Draft>> {
    let names = workers.agents.environment.remember(state, &resume.env, resume.umask);
    if let Err(Obstacle::Env(missing)) = workers.agents.launching(state) {
        let message = format!("the agent needs {}, which this daemon does not have", missing.join(", "));
        return Err(ServiceError::new(Code::EnvMissing, message).hint(Hint::BringVariables));
    }
    Ok(names)
}
