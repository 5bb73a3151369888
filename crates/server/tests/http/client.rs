//! A server in a directory of its own, on threads of its own, asked from the thread of the test.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rekindle_domain::time::{Clock, Timestamp};
use rekindle_lab::{Connection, HOST, PATIENCE, Reply, request};
use rekindle_server::{Ending, Listeners, TcpListeners, serve};
use rekindle_service::daemon::{
    CheckpointSettings, Daemon, IdleAgentPolicy, Settings, TaskSettings, WaitSettings,
};
use rekindle_store::disk::SharedDisk;
use rekindle_testkit::tapped::Tapped;
use rustix::process::{Resource, getrlimit, setrlimit};
use tempfile::TempDir;
use tokio::net::UnixListener;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::disk_gate::Gate;

/// A server, on threads of its own.
pub(crate) struct Server {
    pub(crate) daemon: Arc<Daemon>,
    socket: PathBuf,
    end: Option<oneshot::Sender<()>>,
    task: JoinHandle<Ending>,
    runtime: Runtime,
    _directory: TempDir,
}

/// A clock that stands still: nothing here is about time.
struct Still;

impl Clock for Still {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(1_800_000_000_000)
    }
}

/// Opens a daemon in a home of its own, which never launches anything.
fn daemon(directory: &Path, gate: &Gate) -> Arc<Daemon> {
    let settings = Settings {
        base_url: None,
        home: directory.join("home"),
        holder: std::env::current_exe().expect("this program"),
        runtime: directory.to_owned(),
        env_files: Default::default(),
        umask: 0o022,
        env: BTreeMap::new(),
        scopes: None,
        checkpoints: CheckpointSettings::default(),
        persistence: Default::default(),
        collection: None,
        idle_agents: IdleAgentPolicy::KEEP_ALL,
        tasks: TaskSettings::default(),
        worktrees: directory.join("worktrees"),
        worktree_preparation: Default::default(),
        waits: WaitSettings::default(),
        notifications: Default::default(),
    };
    let disk: SharedDisk = Arc::new(Tapped(gate.clone()));
    let boot = "boot_1".parse().expect("an id");
    Daemon::open(settings, &disk, boot, Arc::new(Still)).expect("a daemon")
}

/// Allows for a thousand connections: both ends of each are ours.
pub(crate) fn allow_many_connections() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).expect("descriptors");
}

impl Server {
    /// Starts one.
    pub(crate) fn start() -> Server {
        Server::of(|directory| daemon(directory, &Gate::default()))
    }

    /// Starts one whose disk is behind a gate, and whose sessions are known.
    pub(crate) fn start_on(gate: &Gate) -> Server {
        Server::of(|directory| {
            let daemon = daemon(directory, gate);
            daemon.recover();
            daemon
        })
    }

    fn of(daemon: impl FnOnce(&Path) -> Arc<Daemon>) -> Server {
        let directory = TempDir::new().expect("a directory");
        let socket = directory.path().join("s");
        // One thread serves all connections, as that of a daemon does.
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
        let _inside = runtime.enter();
        let listener = UnixListener::bind(&socket).expect("a socket");
        let (end, ended) = oneshot::channel();
        let shutdown = async {
            // Without anyone who could say it, nobody ends it.
            if ended.await.is_err() {
                std::future::pending().await
            }
        };
        let daemon = daemon(directory.path());
        let listeners = Listeners { unix: listener, tcp: TcpListeners::default() };
        let task = runtime.spawn(serve(Arc::clone(&daemon), listeners, shutdown));
        Server { daemon, socket, end: Some(end), task, runtime, _directory: directory }
    }

    /// Connects to it.
    pub(crate) fn connect(&self) -> Connection {
        Connection::open(&self.socket).expect("a connection")
    }

    /// Sends a request as it stands, and reads the answer.
    pub(crate) fn send(&self, request: &[u8]) -> Reply {
        let mut connection = self.connect();
        // It may be answered before it is read.
        let _ = connection.send(request);
        read(&mut connection)
    }

    /// Asks for something.
    pub(crate) fn ask(&self, method: &str, path: &str, headers: &str, body: &str) -> Reply {
        self.send(request(method, path, &format!("{HOST}{headers}"), body).as_bytes())
    }

    /// Ends it from outside.
    pub(crate) fn end(&mut self) {
        let end = self.end.take().expect("ended once");
        end.send(()).expect("somebody listens");
    }

    /// Waits for its end.
    pub(crate) fn ended(self) -> Ending {
        let end = async { timeout(PATIENCE, self.task).await };
        self.runtime.block_on(end).expect("it ends").expect("it does not panic")
    }

    /// Tells whether anybody listens.
    pub(crate) fn listens(&self) -> bool {
        Connection::open(&self.socket).is_ok()
    }
}

/// Waits for an answer on a connection that stays.
#[track_caller]
pub(crate) fn read(connection: &mut Connection) -> Reply {
    connection.receive().unwrap_or_else(|error| panic!("no answer: {error}")).into()
}
