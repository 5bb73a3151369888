//! Sessions whose log is damaged. Nothing can be recorded of them any more, so nothing is done in them either; but their
//! agents can be ended, and their files set aside.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rekindle_holder::client::{Inspection, LockState};
use rekindle_holder::dir::HolderDir;
use rekindle_wire::code::Code;
use rekindle_wire::hint::Hint;

use super::{GRACE, STOP_GRACE, Worker, Workers};
use crate::drive::holders::Holders;
use crate::drive::live::command;
use crate::error::{Result, ServiceError, chain};
use crate::test_knobs::crash_point;

/// How long agents get to end: every step of it takes its grace at most.
const ENDED_WITHIN: Duration = GRACE.saturating_mul(3);

impl Worker {
    /// Ends the session's agents and moves its files to where nobody takes them for a session; nothing is removed.
    pub(super) fn set_aside(&mut self, workers: &Arc<Workers>, by: &str) -> Result<PathBuf> {
        if workers.records.store.open_session(self.session)?.damage.is_none() {
            return Err(ServiceError::new(Code::NotDamaged, "its log is not damaged"));
        }
        self.end_unrecorded(workers, "the session is set aside", by)?;
        crash_point("aside.before");
        let path = workers.records.store.set_aside(self.session).map_err(ServiceError::internal)?;
        crash_point("aside.after");
        tracing::warn!(path = %path.display(), "a damaged session was set aside");
        workers.watcher.removed(self.session);
        Ok(path)
    }

    /// Ends every agent of the session without a record, and returns when they are gone. Which ones there are is asked of
    /// the holders: a damaged log may not know.
    pub(super) fn end_unrecorded(&mut self, workers: &Workers, why: &str, by: &str) -> Result<()> {
        self.live = None;
        let begin = Instant::now();
        for holder in self.holders(workers)? {
            let dir = workers.agents.holder_dir(holder.holder_id.parse().map_err(|error| {
                ServiceError::new(Code::AgentUnreachable, format!("{}: {error}", holder.holder_id))
            })?);
            if matches!(holder.lock, LockState::Held { .. }) {
                crash_point("aside.before_stop");
                command(&*workers.agents.holders, &dir, workers.agents.supervisor)
                    .and_then(|mut control| Ok(control.stop(why, by, *STOP_GRACE)?))
                    .map_err(|error| unended(&dir, &chain(&error)))?;
                crash_point("aside.after_stop");
            }
            await_death(&*workers.agents.holders, &dir, begin)?;
        }
        Ok(())
    }

    /// Returns the holders of this session's agents, living ones and what is left of others; never those of a copy.
    fn holders(&self, workers: &Workers) -> Result<Vec<Inspection>> {
        let all = workers.agents.holders.list(&workers.agents.places.holders);
        let all = all.map_err(ServiceError::internal)?;
        let session = self.session.to_string();
        let ours = |one: &Inspection| {
            one.launch.there().is_some_and(|launch| launch.session_id == session)
                && !matches!(one.lock, LockState::Copied { .. })
        };
        Ok(all.into_iter().filter(ours).collect())
    }
}

/// Waits until a holder has let go of its lock and everything it started is gone.
fn await_death(holders: &dyn Holders, dir: &HolderDir, begin: Instant) -> Result<()> {
    loop {
        let why = match holders.harvest(dir) {
            Ok(left) if left.tree_gone => return Ok(()),
            Ok(_) => "some of its processes do not end".to_owned(),
            Err(error) => chain(&error),
        };
        if begin.elapsed() >= ENDED_WITHIN {
            return Err(unended(dir, &why));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn unended(dir: &HolderDir, why: &str) -> ServiceError {
    let message = format!("its agent cannot be ended ({}): {why}", dir.path().display());
    ServiceError::new(Code::AgentUnreachable, message).hint(Hint::ExamineHome)
}
