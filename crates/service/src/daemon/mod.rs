//! The daemon: its services behind one door. The door contains no persistence and no rules: it finds the session and
//! hands the request to the service that knows what to do.

mod notification_sinks;
mod open;
mod pipelines;
mod recovery;
mod shutdown;
mod waits;
mod worktrees;

pub use crate::drive::checkpoints::CheckpointSettings;
pub use crate::feed::{Following, Since};
pub use open::OpenDaemonError;
use recovery::Recovery;
use rekindle_store::Store;
pub use rekindle_store::blobs::BlobId;
use rekindle_store::crash_report::{AtWork, at_work};
use rekindle_store::disk::{RealDisk, SharedDisk};
pub use waits::{TokenUse, WaitSettings};

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rekindle_domain::event::CancelReason;
use rekindle_domain::id::{RunId, SessionId, StreamId, TaskId};
use rekindle_domain::kept_snapshot::{Policy, SnapshotName};
use rekindle_domain::message_outcome::MessageOutcome;
use rekindle_domain::task::compose::user;
use rekindle_holder::client::Scopes;
use rekindle_notify::BaseUrl;
use rekindle_wire::code::Code;
use rekindle_wire::filter::{Filter, HolderFilter, SearchFilter, TaskFilter};
use rekindle_wire::hint::Hint;
use rekindle_wire::request::{
    CancelTask, Change, Collect, NewFilesRestore, NewFork, NewMessage, NewRewind, NewSession,
    NewSnapshotRestore, NewTask, Resume, RetryTask,
};
use rekindle_wire::view::{
    About, Collected, FilesRestoring, Forked, HolderList, ImportedStaged, KeyedSession, MessageTaken,
    RestoredSession, Resumed, RewindPlan, Rewound, RunDiff, SearchPage, SessionList, SessionView,
    SnapshotDetail, SnapshotList, SnapshotView, TaskList, TaskStatsView, TaskView, TransitionList,
};

use crate::access::Access;
use crate::answer_links::AnswerLinks;
use crate::bundles::import;
use crate::commands::keyed_session::{self, Made};
use crate::commands::waits::resume as answer_by_token;
use crate::commands::{
    Locks, cancel_run, fork, messages, restore_snapshot, resume_session, rewind, sessions, snapshots,
    update_session,
};
use crate::drive::environment;
pub use crate::drive::worker::IdleAgentPolicy;
use crate::drive::worker::{Command, Workers};
use crate::error::{Result, ServiceError};
use crate::feed::{self, Anywhere, Feed, Subscription};
use crate::idempotency::Key;
use crate::metrics::{Counted, Format, Metrics};
use crate::notifications::Notifications;
pub use crate::notifications::{NotificationSettings, Target};
use crate::pipelines::Pipelines;
pub use crate::pipelines::{FollowPipeline, PipelineFollowing, PipelineTold};
use crate::search;
use crate::show::log::{self, LogPage};
use crate::show::{SessionEntry, Views, find_run_checkpoints, run_diff};
use crate::snapshots::Snapshots;
pub use crate::task_rows::{DatabaseChoice, DatabaseSettings};
use crate::tasks::Tasks;
pub use crate::tasks::{BudgetSettings, TaskSettings};
use crate::test_knobs::crash_point;
use crate::upkeep::CollectionPolicy;
use crate::workspaces::Workspaces;
pub use crate::workspaces::session_worktree::prepare::Preparation;

/// Records of a log that are told at once.
const MOST_RECORDS: usize = 1000;

/// What a daemon is made of.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Its home.
    pub home: PathBuf,
    /// The holder's executable, as installed beside ours.
    pub holder: PathBuf,
    /// Where sockets live.
    pub runtime: PathBuf,
    /// The daemon's own environment, from which an agent's is built.
    pub env: BTreeMap<String, String>,
    /// Files with further variables of agents, by the names of these.
    pub env_files: BTreeMap<String, PathBuf>,
    /// The umask of agents whose callers bring none: ours before we made it one that keeps others out.
    pub umask: u32,
    /// Who gives each holder a scope of its own, if anyone does.
    pub scopes: Option<Scopes>,
    /// How directories of sessions are captured.
    pub checkpoints: CheckpointSettings,
    /// How snapshots of sessions are kept.
    pub persistence: Policy,
    /// How the home is collected by itself, if it is.
    pub collection: Option<CollectionPolicy>,
    /// When agents are ended that have nothing to do.
    pub idle_agents: IdleAgentPolicy,
    /// How tasks are scheduled.
    pub tasks: TaskSettings,
    /// Where worktrees of sessions are made.
    pub worktrees: PathBuf,
    /// How worktrees of sessions are prepared.
    pub worktree_preparation: Preparation,
    /// How long questions wait, and tokens for them are good.
    pub waits: WaitSettings,
    /// The address of this daemon that answer links begin with; without one there are none.
    pub base_url: Option<BaseUrl>,
    /// Who is told elsewhere what becomes of sessions.
    pub notifications: NotificationSettings,
}

/// What came of a request for a session.
#[derive(Debug)]
pub enum Created {
    /// It was made, now or by the same request before.
    New(SessionView),
    /// The session that has the key that was named.
    Known(KeyedSession),
}

/// The daemon.
pub struct Daemon {
    home: PathBuf,
    store: Arc<Store>,
    workers: Arc<Workers>,
    views: Arc<Views>,
    feed: Arc<Feed>,
    recovery: Arc<Recovery>,
    metrics: Arc<Metrics>,
    access: Arc<Access>,
    workspaces: Arc<Workspaces>,
    snapshots: Arc<Snapshots>,
    tasks: Arc<Tasks>,
    pipelines: Arc<Pipelines>,
    waits: WaitSettings,
    answer_links: Option<Arc<AnswerLinks>>,
    notifications: Option<Arc<Notifications>>,
    locks: Locks,
}

impl Daemon {
    /// Begins to look at the sessions and to recover what was going on; returns at once.
    pub fn recover(&self) {
        recovery::begin(&self.recovery);
        if let Err(error) = self.snapshots.begin() {
            tracing::error!("no automatic snapshots are taken: {error}");
        }
        if let Err(error) = self.tasks.begin_thread() {
            tracing::error!("no tasks are started: {error}");
        }
        if let Err(error) = self.pipelines.begin_thread() {
            tracing::error!("no pipeline runs continue: {error}");
        }
        if let Some(Err(error)) =
            self.notifications.as_ref().map(|notifications| notifications.begin_threads())
        {
            tracing::error!("no notifications are sent: {error}");
        }
    }

    /// Says who it is.
    pub fn about(&self) -> About {
        About {
            version: env!("CARGO_PKG_VERSION").into(),
            pid: std::process::id(),
            boot_id: self.workers.agents.supervisor.boot_id.to_string(),
            epoch: self.workers.agents.supervisor.epoch,
            home: self.home.display().to_string(),
            home_id: self.store.home_id().to_string(),
            listed: self.views.directory.is_surveyed(),
            recovered: self.recovery.recovered.load(Ordering::Relaxed),
        }
    }

    /// Returns why the sessions cannot be listed, if they cannot; that is tried again and again.
    pub fn unlisted(&self) -> Option<String> {
        self.views.directory.unlisted()
    }

    /// Tells whether another daemon has taken over.
    pub fn is_superseded(&self) -> bool {
        self.workers.is_superseded()
    }

    /// Makes a session, and begins its first run if there is a prompt; or goes on in the one that has the key that is named.
    pub fn create(&self, new: NewSession, key: Option<&Key>) -> Result<Created> {
        match keyed_session::create(&self.views, &self.locks, new, key)? {
            Made::New(session) => self.session(session).map(Created::New).map_err(|error| match error.code {
                Code::SessionUnknown => sessions::made_and_removed(session),
                _ => error,
            }),
            Made::Known(session, message) => {
                Ok(Created::Known(KeyedSession { session: self.session(session)?, message }))
            }
        }
    }

    /// Makes a session that goes on from a point of another.
    pub fn fork(&self, id: SessionId, new: NewFork, key: Option<&Key>) -> Result<Forked> {
        let fork = fork::fork(&self.views, &self.locks, id, new, key)?;
        let session = self.session(fork).map_err(|error| match error.code {
            Code::SessionUnknown => sessions::made_and_removed(fork),
            _ => error,
        })?;
        fork::forked(self.views.store(), session)
    }

    /// Says what a rewind of a session would do.
    pub fn plan_rewind(&self, id: SessionId, new: &NewRewind) -> Result<RewindPlan> {
        self.entry(id)?;
        rewind::plan(&self.views, id, new)
    }

    /// Takes a session back to before a run: another takes its place.
    pub fn rewind(&self, id: SessionId, new: &NewRewind, key: Option<&Key>, by: &str) -> Result<Rewound> {
        self.entry(id)?;
        let successor = rewind::rewind(&self.views, &self.locks, id, new, (key, by))?;
        let session = self.session(successor)?;
        let Forked { session, files, verdict, notice } = fork::forked(self.views.store(), session)?;
        Ok(Rewound { session, replaces: id, files, verdict, notice })
    }

    /// Has the files of a session put back to before a run, while the session goes on.
    pub fn restore_files(&self, id: SessionId, new: &NewFilesRestore, by: &str) -> Result<FilesRestoring> {
        self.entry(id)?;
        rewind::restore_files(&self.views, id, new, by)
    }

    /// Has a session go on from a kept snapshot, beside it or in its place.
    pub fn restore_snapshot(
        &self,
        (id, name): (SessionId, SnapshotName),
        new: &NewSnapshotRestore,
        key: Option<&Key>,
        by: &str,
    ) -> Result<RestoredSession> {
        self.entry(id)?;
        let tools = (&*self.views, &self.locks, &*self.snapshots);
        let made = restore_snapshot::restore(tools, (id, name), new, (key, by))?;
        let forked = fork::forked(self.views.store(), self.session(made)?)?;
        Ok(restore_snapshot::restored(forked, new.in_place, name, id))
    }

    /// Takes in the sessions and runs of a bundle that was staged in the home.
    pub fn import_staged(&self, staged: &str) -> Result<ImportedStaged> {
        let disk: SharedDisk = Arc::new(RealDisk);
        let taken =
            import::import_staged(&disk, &self.store, staged).map_err(|error| match error.code() {
                "import_unknown" => ServiceError::caused_by(Code::ImportUnknown, error),
                "session_exists" => ServiceError::caused_by(Code::SessionExists, error),
                "run_exists" => ServiceError::caused_by(Code::RunExists, error),
                _ => ServiceError::caused_by(Code::Storage, error),
            })?;
        crash_point("import.taken_in");
        for session in &taken.sessions {
            self.views.directory.mark_stale(*session);
        }
        // Nothing was appended to them, so nobody else tells whoever writes rows.
        let sessions = taken.sessions.iter().map(|session| StreamId::from(*session));
        self.tasks.take_in(sessions.chain(taken.runs.iter().map(|run| run.pipeline_id().into())));
        for run in &taken.runs {
            self.pipelines.take_in(run.pipeline_id());
        }
        let runs = taken.runs.iter().map(ToString::to_string).collect();
        Ok(ImportedStaged { sessions: taken.sessions, runs })
    }

    /// Makes tasks, all or none, and shows them.
    pub fn create_tasks(&self, new: &[NewTask], key: Option<&Key>, by: &str) -> Result<Vec<TaskView>> {
        let made = self.tasks.create(new, key, by)?;
        self.tasks.show_all(&made)
    }

    /// Lists the tasks that have not ended, and behind them the runs of pipelines, each with the step that goes on.
    pub fn active_tasks(&self) -> Result<TaskList> {
        let mut list = self.tasks.active()?;
        list.tasks.extend(self.pipelines.active());
        Ok(list)
    }

    /// Lists tasks, ended or not, the newest first.
    pub fn tasks(&self, filter: &TaskFilter) -> Result<TaskList> {
        self.tasks.list(filter)
    }

    /// Returns the history of a task.
    pub fn task_transitions(&self, id: TaskId) -> Result<TransitionList> {
        self.tasks.transitions(id)
    }

    /// Follows a task and its runs, behind an event or from its beginning.
    pub fn follow_task(&self, id: TaskId, since: Option<feed::TaskPoint>) -> Result<feed::FollowTask> {
        self.tasks.follow_task(&self.feed, id, since)
    }

    /// Says how tasks stand.
    pub fn task_stats(&self) -> Result<TaskStatsView> {
        self.tasks.stats()
    }

    /// Shows a task.
    pub fn task(&self, id: TaskId) -> Result<TaskView> {
        match self.pipelines.run_of(id) {
            Some(run) => self.pipelines.show_task(run),
            None => self.tasks.show(id),
        }
    }

    /// Cancels a task. A pipeline run is aborted.
    pub fn cancel_task(&self, id: TaskId, asked: &CancelTask, by: &str) -> Result<TaskView> {
        match self.pipelines.run_of(id) {
            Some(run) => self.pipelines.abort(run, asked.reason.as_deref(), &user(by))?,
            None => self.tasks.cancel(id, asked.reason.as_deref(), by)?,
        }
        self.task(id)
    }

    /// Has a task that failed or was cancelled attempted again.
    pub fn retry_task(&self, id: TaskId, retry: &RetryTask, by: &str) -> Result<TaskView> {
        self.tasks.retry(id, retry, by)?;
        self.tasks.show(id)
    }

    /// Makes a task more or less urgent.
    pub fn set_task_priority(&self, id: TaskId, priority: i8, by: &str) -> Result<TaskView> {
        self.tasks.set_priority(id, priority, by)?;
        self.tasks.show(id)
    }

    /// Removes what is there for nothing, one after the other: whoever comes second is told so.
    pub fn collect(&self, asked: &Collect) -> Result<Collected> {
        self.recovery.collector.collect(asked.into())
    }

    /// Searches the logs of all sessions.
    pub fn search(&self, filter: &SearchFilter) -> Result<SearchPage> {
        search::search(&self.views, filter)
    }

    /// Gives a session a message.
    pub fn message(&self, id: SessionId, new: &NewMessage, key: Option<&Key>) -> Result<MessageTaken> {
        self.entry(id)?;
        messages::message(&self.workers, id, new, key, None)
    }

    /// Waits for the outcome of a message that was taken, through every interruption of its run. Whoever died meanwhile
    /// waits again, with the same message.
    pub async fn outcome(&self, id: SessionId, taken: &MessageTaken) -> Result<MessageOutcome> {
        feed::await_outcome(&self.feed, &self.views, id, taken.message_id, taken.seq).await
    }

    /// Gives a session a message without blocking, if that is possible: none if it is not. An answer of nothing says
    /// that it has to be given in the other way.
    pub fn try_message(
        &self,
        id: SessionId,
        new: &NewMessage,
        key: Option<&Key>,
    ) -> Option<impl Future<Output = Result<Option<MessageTaken>>> + Send + 'static> {
        messages::try_message(&self.workers, id, new, key)
    }

    /// Changes a session.
    pub fn change(&self, id: SessionId, change: Change) -> Result<SessionView> {
        update_session::change(&self.workers, &self.locks, id, change)?;
        self.session(id)
    }

    /// Changes a session without blocking, if that is possible.
    pub fn try_change(
        &self,
        id: SessionId,
        change: Change,
    ) -> Option<impl Future<Output = Result<()>> + Send + 'static> {
        update_session::try_change(&self.workers, id, change)
    }

    /// Cancels what a session is doing, is about to do and has queued.
    pub fn cancel(&self, id: SessionId, by: &str) -> Result<Option<RunId>> {
        self.entry(id)?;
        cancel_run::cancel(&self.workers, id, CancelReason::User, by)
    }

    /// Continues an interrupted session, or answers a wait by its token.
    pub fn resume(&self, id: SessionId, resume: Resume, by: &str) -> Result<Resumed> {
        let entry = self.entry(id)?;
        if let Some(damage) = &entry.damage {
            return Err(ServiceError::damaged(damage));
        }
        if entry.trouble.is_some() {
            // Says why not.
            self.store.open_session(id)?;
        }
        environment::check(&resume.env)?;
        match resume.token.clone() {
            None if resume.answer.is_some() => {
                Err(ServiceError::new(Code::InvalidAnswer, "an answer needs the token of its wait")
                    .hint(Hint::AnswerById))
            }
            Some(token) => answer_by_token(&self.views, &entry, token, resume.answer, by),
            None => resume_session::resume(&self.workers, &self.locks, id, &resume),
        }
    }

    /// Ends a session: its agent goes, its log stays.
    pub fn close(&self, id: SessionId, by: &str) -> Result<()> {
        self.entry(id)?;
        sessions::close(&self.workers, id, by)
    }

    /// Removes a session; one whose run has not ended only if forced.
    pub fn delete(&self, id: SessionId, force: bool, by: &str) -> Result<()> {
        self.note_worktree(&self.entry(id)?.state)?;
        sessions::delete(&self.workers, id, force, by)
    }

    /// Shows a session.
    pub fn session(&self, id: SessionId) -> Result<SessionView> {
        Ok(self.views.session(&self.entry(id)?))
    }

    /// Shows a session if nothing has to be read for that, and nobody waited for.
    pub fn session_at_hand(&self, id: SessionId) -> Option<SessionView> {
        let _at_work = self.at_request(id)?;
        self.views.session_at_hand(id)
    }

    /// Lists sessions.
    pub fn sessions(&self, filter: &Filter) -> Result<SessionList> {
        self.views.list_sessions(filter)
    }

    /// Reads records of a session's log, and tells where the next page begins (`after` of the next call).
    pub fn log(&self, id: SessionId, after: u64, limit: usize) -> Result<LogPage> {
        log::page(&*self.store, &self.entry(id)?, after, limit.min(MOST_RECORDS))
    }

    /// Tells what a run did to the files of its directory: the latest that has checkpoints, unless one is named.
    pub fn diff(&self, id: SessionId, run: Option<&str>, only_stat: bool) -> Result<RunDiff> {
        let entry = self.entry(id)?;
        let history = log::history(&*self.store, entry.state.id)?;
        let found = find_run_checkpoints(&history.reader, run).map_err(ServiceError::internal)?;
        let found = found.ok_or_else(|| {
            let which =
                run.map_or("no run of the session has".to_owned(), |run| format!("{run} does not have"));
            ServiceError::new(Code::CheckpointMissing, format!("{which} any checkpoint"))
        })?;
        run_diff(&self.workspaces, &found, only_stat)
    }

    /// Lists a session's kept snapshots.
    pub fn snapshots(&self, id: SessionId) -> Result<SnapshotList> {
        self.entry(id)?;
        snapshots::list(&self.snapshots, id)
    }

    /// Shows a kept snapshot.
    pub fn snapshot(&self, id: SessionId, name: SnapshotName) -> Result<SnapshotDetail> {
        self.entry(id)?;
        snapshots::show(&self.snapshots, id, name)
    }

    /// Takes a snapshot of a session as it is, and keeps it.
    pub fn take_snapshot(&self, id: SessionId) -> Result<SnapshotView> {
        self.entry(id)?;
        snapshots::take(&self.snapshots, id)
    }

    /// Removes a kept snapshot.
    pub fn remove_snapshot(&self, id: SessionId, name: SnapshotName) -> Result<()> {
        self.entry(id)?;
        self.snapshots.remove(id, name)
    }

    /// Returns a payload that is kept apart from the log that names it.
    pub fn blob(&self, id: &BlobId) -> Result<Vec<u8>> {
        Ok(self.store.blobs().get(id)?)
    }

    /// Follows a session's log and what its agent says; `attended` says that a person looks at it.
    pub fn follow(&self, id: SessionId, since: Since, attended: bool) -> Result<Following> {
        self.entry(id)?;
        let following = Following::new(&self.feed, &self.views, id, since)?;
        Ok(if attended { following.attended() } else { following })
    }

    /// Follows everything: who is told looks at the session.
    pub fn follow_all(&self) -> Subscription<Anywhere> {
        self.feed.follow_all()
    }

    /// Lists holders.
    pub fn holders(&self, filter: &HolderFilter) -> Result<HolderList> {
        self.views.list_holders(filter)
    }

    /// Counts a request that was answered; `route` is the pattern that its path matched.
    pub fn answered(&self, method: &str, route: Option<&str>, status: u16, took: Duration) {
        self.metrics.http.count(method, route, status, took);
    }

    /// Writes what is counted and known, for those who watch many daemons.
    pub fn metrics(&self, format: Format) -> String {
        let counted = Counted {
            meter: self.store.meter(),
            snapshots: &self.snapshots.counts,
            feed: &self.feed,
            pipelines: self.pipelines.counts(),
            notifications: self.notifications.as_ref().map(|notifications| notifications.counts()),
        };
        self.metrics.show(&self.views, &counted, format)
    }

    /// Cancels everything and ends every agent; returns how many are left after the time agents get.
    pub fn stop_all(&self, by: &str) -> usize {
        shutdown::stop_all(&self.views, by)
    }

    /// Gives up room that is kept for emergencies, for a file without which nobody could reach the daemon.
    pub fn make_room(&self) {
        self.store.make_room();
    }

    /// Returns who may speak to it from elsewhere.
    pub fn access(&self) -> &Arc<Access> {
        &self.access
    }

    /// Leaves: agents work on, everything that is known is on disk.
    pub fn leave(&self) {
        self.pipelines.leave();
        self.tasks.leave();
        if let Some(notifications) = &self.notifications {
            notifications.leave();
        }
        shutdown::leave(&self.store, &self.views, &self.access, &self.snapshots);
    }

    /// Notes that this thread handles a request for a session, until the guard is dropped; nobody works on one that is
    /// quarantined.
    pub fn at_request(&self, id: SessionId) -> Option<AtWork> {
        self.store.quarantine(id).is_none().then(|| at_work(id, "request"))
    }

    /// Says that something is about to be recorded: the committer is woken while that is composed.
    pub fn expect_append(&self) {
        self.store.expect_append();
    }

    /// Has a session tried again that made daemons crash, and forgets that it did. One that did not is as it was.
    pub fn release(&self, id: SessionId) -> Result<SessionView> {
        self.entry(id)?;
        let released = self.store.release_quarantine(id);
        if released.map_err(|error| ServiceError::caused_by(Code::Storage, error))? {
            tracing::warn!("released from quarantine");
        }
        let entry = self.entry(id)?;
        if entry.needs_worker() {
            self.workers.send(id, Command::Look)?;
        }
        Ok(self.views.session(&entry))
    }

    fn entry(&self, id: SessionId) -> Result<SessionEntry> {
        let entry = self.views.directory.get(self.views.store(), id).filter(|entry| !entry.state.deleted);
        entry.ok_or_else(|| ServiceError::no_session(id))
    }
}
