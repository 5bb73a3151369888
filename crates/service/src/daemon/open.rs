//! Becoming the daemon of a home: the lock, the store, the list of sessions, the next epoch.

use std::io;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Instant;

use rekindle_agent::connection::Delta;
use rekindle_domain::id::{BootId, SessionId, StreamId};
use rekindle_domain::projector::HolderProof;
use rekindle_domain::time::Clock;
use rekindle_holder::client::{Executable, InstallError, highest_epoch, install_executable};
use rekindle_store::commit::Receipt;
use rekindle_store::disk::{SharedDisk, is_shortage};
use rekindle_store::layout::Layout;
use rekindle_store::{Observer, OpenError, Opener, Store};
use rekindle_workspace::rules::Selection;

use super::recovery::Recovery;
use super::{Daemon, Settings};
use crate::access::Access;
use crate::answer_links::AnswerLinks;
use crate::boottime::BootClock;
use crate::budget_check::BudgetCheck;
use crate::bundles::import::collect_leftovers;
use crate::commands::Locks;
use crate::drive::agents::Agents;
use crate::drive::checkpoints::{CheckpointSettings, DirectoryCaptures};
use crate::drive::environment::Environment;
use crate::drive::holders::{HolderPaths, Processes};
use crate::drive::live::Supervisor;
use crate::drive::worker::{Watcher, Workers};
use crate::drive::workspace_files::WorkspaceFiles;
use crate::feed::{self, Feed, News};
use crate::metrics::Metrics;
use crate::notifications::{HolderLook, LinkMint, NoLinks, Notifications, Sources};
use crate::pipelines::{Pipelines, StepsOfRuns, WorkspaceTrees};
use crate::records::Records;
use crate::show::{Directory, LogDetails, Views};
use crate::snapshots::Snapshots;
use crate::task_database::TaskDatabase;
use crate::tasks::{Tasks, Wake};
use crate::upkeep::GarbageCollector;
use crate::workspaces::Workspaces;

/// Why there is no daemon.
#[derive(Debug, thiserror::Error)]
pub enum OpenDaemonError {
    /// The home cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The holder's executable is not there, or cannot be copied.
    #[error("cannot install the holder's executable")]
    Executable(#[from] InstallError),
    /// The holders cannot be listed.
    #[error("cannot list the holders")]
    Holders(#[source] io::Error),
}

impl Daemon {
    /// Opens a home: from here on nobody else writes it. Nothing is looked at yet.
    pub fn open(
        settings: Settings,
        disk: &SharedDisk,
        boot_id: BootId,
        clock: Arc<dyn Clock>,
    ) -> Result<Arc<Daemon>, OpenDaemonError> {
        let (begin, metrics) = (Instant::now(), Metrics::new(clock.now()));
        let opener = Opener { pid: std::process::id(), boot_id };
        let store = Arc::new(crate::home::open(disk, &settings.home, opener, &clock)?);
        remove_import_leftovers(disk, &Layout::new(&settings.home));
        let watch = Arc::new(Watch::default());
        store.observe(watch.clone());
        let holders = settings.home.join("holders");
        let highest = highest_epoch(&holders).map_err(OpenDaemonError::Holders)?;
        let epoch = crate::home::next_epoch(&**disk, &settings.home, highest, || store.make_room());
        let steady = BootClock::of_home(&**disk, &settings.home, clock.now());
        let executable = installed(&settings)?;
        let access = Arc::new(Access::new(disk.clone(), &settings.home, steady));
        let captures = captures(&settings, disk, &store, &watch.directory);
        let agents = Agents {
            supervisor: Supervisor { boot_id, epoch, steady, wait_timeout: settings.waits.timeout },
            holders: Arc::new(Processes),
            places: HolderPaths { holders, runtime: settings.runtime, executable, scopes: settings.scopes },
            environment: Environment::new(settings.env, settings.umask, settings.env_files),
            captures: Arc::new(captures),
        };
        let snapshots = Arc::new(Snapshots::new(store.clone(), clock.clone(), settings.persistence));
        let workspaces =
            Arc::new(Workspaces::of_owner(disk.clone(), Layout::new(&settings.home), store.blobs()));
        let records = Records::new(store.clone(), clock, steady);
        let CheckpointSettings { exclude, include, .. } = settings.checkpoints;
        let selection = Selection { exclude, include };
        let trees_selection = selection.clone();
        let files =
            Arc::new(WorkspaceFiles::new(workspaces.clone(), selection, settings.worktree_preparation));
        let budgets = BudgetCheck::new(settings.tasks.budgets.session);
        let workers = Workers::new(records, agents, budgets, files, watch.clone());
        let workers = Arc::new(workers.with_idle_policy(settings.idle_agents));
        let (feed, directory, log_details) =
            (watch.feed.clone(), watch.directory.clone(), watch.log_details.clone());
        let metrics = Arc::new(metrics);
        let collector =
            GarbageCollector::new(disk.clone(), settings.home.clone(), store.blobs(), settings.collection)
                .with_store(&store);
        let recovery = Arc::new(Recovery {
            store: store.clone(),
            workers: workers.clone(),
            directory: directory.clone(),
            metrics: metrics.clone(),
            collector: Arc::new(collector),
            recovered: AtomicBool::new(false),
        });
        let (database, clock) = (settings.tasks.database.clone(), workers.records.clock().clone());
        let database = Arc::new(TaskDatabase::new(store.clone(), directory.clone(), database, clock));
        let views = Arc::new(Views {
            workers: workers.clone(),
            catalog: store.clone(),
            directory,
            log_details,
            worktrees: settings.worktrees,
        });
        let _ = watch.task_database.set(database.clone());
        let tasks = Tasks::new(store.clone(), views.clone(), &settings.tasks, database, watch.wake.clone());
        let tasks = Arc::new(tasks);
        let trees = Arc::new(WorkspaceTrees::new(workspaces.clone(), trees_selection));
        let pipelines = Arc::new(Pipelines::new(store.clone(), disk.clone(), views.clone(), trees));
        let _ = watch.pipelines.set(Arc::downgrade(&pipelines));
        tasks.count_steps(Box::new(StepsOfRuns(Arc::downgrade(&pipelines))));
        let wake = watch.wake.clone();
        pipelines.ask_scheduler(Box::new(move || wake.look()));
        let answer_links = settings.base_url.map(|base_url| {
            Arc::new(AnswerLinks::new(workers.records.clone(), base_url, settings.waits.token_lifetime))
        });
        let notifications = Notifications::new(
            settings.notifications,
            Sources {
                disk: disk.clone(),
                store: store.clone(),
                directory: views.directory.clone(),
                log_details: views.log_details.clone(),
                attendance: feed.attendance.clone(),
                holder: holder_look(&workers),
                links: link_mint(answer_links.as_ref()),
                clock: workers.records.clock().clone(),
            },
        );
        let notifications = notifications.map(Arc::new);
        let _ = metrics.opening.set(begin.elapsed());
        let (home, waits, locks) = (settings.home, settings.waits, Locks::default());
        Ok(Arc::new(Daemon {
            home,
            store,
            workers,
            views,
            feed,
            recovery,
            metrics,
            access,
            workspaces,
            snapshots,
            tasks,
            pipelines,
            waits,
            answer_links,
            notifications,
            locks,
        }))
    }
}

/// Returns who makes links for notifications.
fn link_mint(links: Option<&Arc<AnswerLinks>>) -> Arc<dyn LinkMint> {
    match links {
        Some(links) => links.clone(),
        None => Arc::new(NoLinks),
    }
}

/// Returns what is known of sessions' holders: what their workers see.
fn holder_look(workers: &Arc<Workers>) -> Box<HolderLook> {
    let workers = workers.clone();
    Box::new(move |session| {
        let seen = workers.pool.get(session).and_then(|seat| seat.sighting().holder);
        seen.unwrap_or(HolderProof::Pending)
    })
}

/// Removes what imports have left that were cut short. It can wait where that fails: nobody reads it.
fn remove_import_leftovers(disk: &SharedDisk, layout: &Layout) {
    if let Err(error) = collect_leftovers(disk, layout, false) {
        tracing::warn!("the leftovers of an import cannot be removed: {}", crate::error::chain(&error));
    }
}

/// Returns who captures directories; those of other sessions in which something goes on are left out.
fn captures(
    settings: &Settings,
    disk: &SharedDisk,
    store: &Arc<Store>,
    directory: &Arc<Directory>,
) -> DirectoryCaptures {
    let workspaces = Workspaces::of_owner(disk.clone(), Layout::new(&settings.home), store.blobs());
    let (store, directory) = (store.clone(), directory.clone());
    let others = move |session: SessionId, root: &Path| directory.busy_below(&*store, session, root);
    let user_home = settings.env.get("HOME").map(String::as_str);
    DirectoryCaptures::new(workspaces, settings.checkpoints.clone(), user_home, Box::new(others))
}

/// Returns the holder's executable: the home's own copy, or on a full disk the original, which only an update changes.
fn installed(settings: &Settings) -> Result<Executable, InstallError> {
    match install_executable(&settings.holder, &settings.home.join("bin")) {
        Err(InstallError::Copy(failed)) if is_shortage(&failed.source) => {
            let why = failed.source;
            tracing::warn!("{} is run where it is: no copy can be made: {why}", settings.holder.display());
            let sha256 = failed.path.parent().and_then(|dir| dir.file_name()).unwrap_or_default();
            let sha256 = sha256.to_string_lossy().into_owned();
            Ok(Executable { path: settings.holder.clone(), sha256 })
        }
        outcome => outcome,
    }
}

/// Every append makes what is listed old, and is news; so is what workers tell and no record does.
#[derive(Default)]
struct Watch {
    feed: Arc<Feed>,
    directory: Arc<Directory>,
    log_details: Arc<LogDetails>,
    wake: Arc<Wake>,
    task_database: OnceLock<Arc<TaskDatabase>>,
    pipelines: OnceLock<Weak<Pipelines>>,
}

impl Watch {
    /// A stream has grown, or a session is not what it was: runs of pipelines look at that.
    fn tell_pipelines(&self, stream: StreamId) {
        if let Some(pipelines) = self.pipelines.get().and_then(Weak::upgrade) {
            pipelines.grown(stream);
        }
    }
}

impl Observer for Watch {
    fn committed(&self, stream: StreamId, _: &Receipt) {
        if let Some(session) = stream.session() {
            self.directory.mark_stale(session);
        }
    }

    fn answered(&self, stream: StreamId, receipt: &Receipt) {
        if let Some(session) = stream.session() {
            self.feed.publish(session, News::Appended(receipt.last_seq));
        }
        if stream == StreamId::tasks() {
            self.feed.publish_tasks(receipt.last_seq);
        }
        self.wake.grown(stream);
        self.tell_pipelines(stream);
        if let Some(database) = self.task_database.get() {
            database.grown(stream);
        }
    }
}

impl Watcher for Watch {
    fn said(&self, session: SessionId, delta: &Delta) {
        if self.feed.is_followed(session) {
            self.feed.publish(session, News::Said(Arc::new(feed::delta(delta).into())));
        }
    }

    fn changed(&self, session: SessionId) {
        self.directory.mark_stale(session);
        self.wake.changed(session);
        self.tell_pipelines(session.into());
    }

    fn removed(&self, session: SessionId) {
        self.directory.forget(session);
        self.log_details.forget(session);
        self.wake.changed(session);
        self.tell_pipelines(session.into());
        if let Some(database) = self.task_database.get() {
            database.grown(session.into());
        }
    }
}
