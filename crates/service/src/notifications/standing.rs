//! How things stand with what notices are about, as far as that is known without waiting for anybody.

use std::sync::Arc;

use rekindle_domain::id::SessionId;
use rekindle_domain::projector::HolderProof;
use rekindle_domain::session::SessionState;
use rekindle_domain::task::TasksState;
use rekindle_domain::time::{Clock, Timestamp};
use rekindle_notify::derive::{Standing, pipeline_of, still_holds, still_holds_of_run};
use rekindle_notify::{Notice, NoticeKind};
use rekindle_store::Store;

use crate::feed::Attendance;
use crate::show::{Directory, LogDetails};

/// Tells what is known of a session's holder.
pub(crate) type HolderLook = dyn Fn(SessionId) -> HolderProof + Send + Sync;

/// What notifications know of the daemon around them.
pub(super) struct Surroundings {
    pub(super) store: Arc<Store>,
    pub(super) directory: Arc<Directory>,
    pub(super) log_details: Arc<LogDetails>,
    pub(super) attendance: Arc<Attendance>,
    pub(super) holder: Box<HolderLook>,
    pub(super) clock: Arc<dyn Clock>,
}

impl Surroundings {
    /// Tells whether what a notice says is still so; none while nobody knows, right after a start.
    pub(super) fn still_holds(&self, notice: &Notice) -> Option<bool> {
        if let Some(run) = pipeline_of(notice) {
            // One that nobody has open rests.
            let state = self.store.pipeline(run);
            return Some(state.is_none_or(|state| still_holds_of_run(notice, &state.fold)));
        }
        let session = notice.session_id.and_then(|id| Some((self.state(id)?, (self.holder)(id))));
        let is_unknown = notice.session_id.is_some() && session.is_none();
        if is_unknown && !self.directory.is_surveyed() {
            return None;
        }
        let tasks = self.tasks();
        let is_of_tasks = notice.kind == NoticeKind::QueueEmpty
            || notice.kind == NoticeKind::Waiting && notice.question.is_none();
        if is_of_tasks && tasks.is_none() {
            return None;
        }
        let session = session.as_ref().map(|(state, holder)| (&**state, *holder));
        Some(still_holds(notice, &Standing { session, tasks: tasks.as_ref() }))
    }

    /// Tells whether somebody looks at what a notice is about, or did when it was recorded.
    pub(super) fn is_attended(&self, notice: &Notice, recorded_at: Timestamp) -> bool {
        notice.session_id.is_some_and(|id| self.attendance.was_attended(id, recorded_at))
    }

    /// Returns a session as it is, or as it was when somebody last looked.
    fn state(&self, session: SessionId) -> Option<Arc<SessionState>> {
        let current = self.store.at_hand(session).map(|current| current.state);
        current.or_else(|| self.directory.peek(session).map(|entry| entry.state))
    }

    /// Returns the tasks that have not ended, if anybody has read them.
    fn tasks(&self) -> Option<TasksState> {
        let tasks = self.store.tasks_at_hand()?;
        tasks.damage.is_none().then_some(tasks.fold)
    }
}
