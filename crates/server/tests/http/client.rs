//! A server in a directory of its own, on threads of its own, asked from the thread of the test.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rekindle_domain::time::{Clock, Timestamp};
use rekindle_lab::{Connection, HOST, PATIENCE, Reply, request};
use rekindle_server::{Ending, Listeners, TcpListeners, serve};
use rekindle_service::daemon::{Daemon, Settings};
use rekindle_store::disk::{RealDisk, SharedDisk};
use tempfile::TempDir;
use tokio::net::UnixListener;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// A server, on threads of its own.
pub(crate) struct Server {
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
fn daemon(directory: &Path) -> Arc<Daemon> {
    let settings = Settings {
        home: directory.join("home"),
        holder: std::env::current_exe().expect("this program"),
        runtime: directory.to_owned(),
        umask: 0o022,
        env: BTreeMap::new(),
        scopes: None,
    };
    let disk: SharedDisk = Arc::new(RealDisk);
    let boot = "boot_1".parse().expect("an id");
    Daemon::open(settings, &disk, boot, Arc::new(Still)).expect("a daemon")
}

impl Server {
    /// Starts one.
    pub(crate) fn start() -> Server {
        let directory = TempDir::new().expect("a directory");
        let socket = directory.path().join("s");
        let runtime = Runtime::new().expect("a runtime");
        let _inside = runtime.enter();
        let listener = UnixListener::bind(&socket).expect("a socket");
        let (end, ended) = oneshot::channel();
        let shutdown = async {
            // Without anyone who could say it, nobody ends it.
            if ended.await.is_err() {
                std::future::pending().await
            }
        };
        let listeners = Listeners { unix: listener, tcp: TcpListeners::default() };
        let task = runtime.spawn(serve(daemon(directory.path()), listeners, shutdown));
        Server { socket, end: Some(end), task, runtime, _directory: directory }
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
