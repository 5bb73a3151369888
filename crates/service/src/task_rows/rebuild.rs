//! All rows of a home written anew.

use rekindle_domain::id::{PipelineId, SessionId};
use rekindle_taskdb::TaskDb;
use rekindle_taskdb::project::Owner;

use super::catch_up::{CatchUpError, catch_up};
use super::catch_up_pipelines::catch_up_pipeline;
use super::catch_up_sessions::{Reached, UnknownTask, catch_up_session};
use super::log_source::Logs;

/// Writes the rows of a home anew, of everything that its logs have.
pub(crate) fn write_all(
    logs: &dyn Logs,
    owner: &Owner,
    db: &mut TaskDb,
    sessions: &[SessionId],
    runs: &[PipelineId],
) -> Result<(), CatchUpError> {
    db.forget(&owner.home_id)?;
    catch_up(logs, owner, db)?;
    for session in sessions {
        let unknown = UnknownTask::PassOver;
        while catch_up_session(logs, owner, db, *session, u64::MAX, unknown)? == Reached::More {}
    }
    for run in runs {
        while catch_up_pipeline(logs, owner, db, *run, u64::MAX)? == Reached::More {}
    }
    Ok(())
}
