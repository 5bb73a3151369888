//! The database of tasks, for questions: a thread that brings it up to date with the stream of tasks and answers what is asked of it.
//! Nothing ever begins because of a row: while the database cannot be reached tasks go on, and only questions are refused.

mod stale_pipelines;
mod stale_sessions;
mod thread;

use std::collections::BTreeSet;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rekindle_domain::id::{StreamId, TaskId};
use rekindle_domain::time::Clock;
use rekindle_store::Store;
use rekindle_taskdb::project::Owner;
use rekindle_taskdb::{TaskPage, TaskQuery, TaskRow, TaskStats, TransitionRow};
use rekindle_wire::code::Code;

use crate::error::{Result, ServiceError};
use crate::lock::locked;
use crate::show::Directory;
use crate::task_rows::{DatabaseSettings, owner_of};

/// Questions that wait for their answer at once.
const MOST_WAITING: usize = 256;

/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(30);

/// What is asked of the thread.
enum Ask {
    /// The stream of tasks has grown.
    TasksGrown,
    /// Sessions or pipeline runs have grown.
    RunsGrown,
    List(Box<TaskQuery>, SyncSender<Answer<TaskPage>>),
    Tasks(Vec<TaskId>, SyncSender<Answer<Vec<TaskRow>>>),
    Transitions(TaskId, SyncSender<Answer<Vec<TransitionRow>>>),
    Stats(SyncSender<Answer<(TaskStats, rekindle_domain::time::Timestamp)>>),
    /// Nobody needs it any more.
    Leave,
}

/// An answer, or why there is none.
type Answer<T> = std::result::Result<T, String>;

/// What the thread works with.
struct Tools {
    store: Arc<Store>,
    directory: Arc<Directory>,
    /// Sessions and pipeline runs that have grown since their rows were written.
    grown: Arc<Mutex<BTreeSet<StreamId>>>,
    owner: Owner,
    settings: DatabaseSettings,
    clock: Arc<dyn Clock>,
}

/// The database of tasks.
pub(crate) struct TaskDatabase {
    ask: SyncSender<Ask>,
    grown: Arc<Mutex<BTreeSet<StreamId>>>,
    /// What the thread takes over when it begins.
    waiting: Mutex<Option<(Receiver<Ask>, Tools)>>,
}

impl TaskDatabase {
    /// Makes ready to open a database. Nothing is opened yet.
    pub(crate) fn new(
        store: Arc<Store>,
        directory: Arc<Directory>,
        settings: DatabaseSettings,
        clock: Arc<dyn Clock>,
    ) -> TaskDatabase {
        let (ask, asked) = sync_channel(MOST_WAITING);
        let owner = owner_of(store.home_id());
        let grown = Arc::new(Mutex::default());
        let tools = Tools { store, directory, grown: grown.clone(), owner, settings, clock };
        TaskDatabase { ask, grown, waiting: Mutex::new(Some((asked, tools))) }
    }

    /// Begins to bring the database up to date; returns at once.
    pub(crate) fn begin_thread(&self) -> std::io::Result<()> {
        let Some((asked, tools)) = locked(&self.waiting).take() else { return Ok(()) };
        let name = "tasks-db".to_owned();
        std::thread::Builder::new().name(name).spawn(move || thread::run(&asked, &tools)).map(drop)
    }

    /// A stream has grown. Must not block: one that is told already needs not be told again.
    pub(crate) fn grown(&self, stream: StreamId) {
        if stream == StreamId::tasks() {
            let _ = self.ask.try_send(Ask::TasksGrown);
        }
        if stream.session().is_some() || stream.pipeline().is_some() {
            let mut grown = locked(&self.grown);
            let is_first = grown.is_empty();
            grown.insert(stream);
            if is_first {
                let _ = self.ask.try_send(Ask::RunsGrown);
            }
        }
    }

    /// Has the thread leave, with everything written that it knows of.
    pub(crate) fn leave(&self) {
        let _ = self.ask.try_send(Ask::Leave);
    }

    /// Returns a page of tasks.
    pub(crate) fn list(&self, query: TaskQuery) -> Result<TaskPage> {
        self.ask(|reply| Ask::List(Box::new(query), reply))
    }

    /// Returns the rows of some tasks.
    pub(crate) fn tasks(&self, ids: Vec<TaskId>) -> Result<Vec<TaskRow>> {
        self.ask(|reply| Ask::Tasks(ids, reply))
    }

    /// Returns the history of a task.
    pub(crate) fn transitions(&self, task: TaskId) -> Result<Vec<TransitionRow>> {
        self.ask(|reply| Ask::Transitions(task, reply))
    }

    /// Returns the statistics of this home, and as of when.
    pub(crate) fn stats(&self) -> Result<(TaskStats, rekindle_domain::time::Timestamp)> {
        self.ask(Ask::Stats)
    }

    fn ask<T>(&self, ask: impl FnOnce(SyncSender<Answer<T>>) -> Ask) -> Result<T> {
        let (reply, answer) = sync_channel(1);
        match self.ask.try_send(ask(reply)) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => return Err(unavailable("too many requests are waiting for it")),
            Err(TrySendError::Disconnected(_)) => return Err(unavailable("the daemon is shutting down")),
        }
        match answer.recv_timeout(PATIENCE) {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(why)) => Err(unavailable(&why)),
            Err(RecvTimeoutError::Timeout) => Err(unavailable("it does not answer")),
            Err(RecvTimeoutError::Disconnected) => Err(unavailable("the daemon is shutting down")),
        }
    }
}

fn unavailable(why: &str) -> ServiceError {
    ServiceError::new(Code::TasksDbUnavailable, format!("the task database cannot be used: {why}"))
}
