//! A server in a directory of its own, and the smallest client that can talk to it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rekindle_domain::time::{Clock, Timestamp};
use rekindle_server::{Ending, serve};
use rekindle_service::daemon::{Daemon, Settings};
use rekindle_store::disk::{RealDisk, SharedDisk};
use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Nothing here takes this long unless it hangs.
const PATIENCE: Duration = Duration::from_secs(20);

/// A server.
pub(crate) struct Server {
    socket: PathBuf,
    end: Option<oneshot::Sender<()>>,
    task: JoinHandle<Ending>,
    _directory: TempDir,
}

/// An answer.
pub(crate) struct Reply {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: Value,
}

impl Reply {
    /// Returns a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().skip(1).filter_map(|line| line.split_once(':'));
        lines.filter(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim()).next()
    }

    /// Returns status and code, once the answer has the shape that all errors have.
    #[track_caller]
    pub(crate) fn refusal(&self) -> (u16, &str) {
        assert_eq!(self.header("content-type"), Some("application/json"), "{}", self.head);
        let error = &self.body["error"];
        assert!(error["message"].is_string() && error.get("hint").is_some(), "{}", self.body);
        (self.status, error["code"].as_str().unwrap_or_default())
    }
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
        let listener = UnixListener::bind(&socket).expect("a socket");
        let (end, ended) = oneshot::channel();
        let shutdown = async {
            // Without anyone who could say it, nobody ends it.
            if ended.await.is_err() {
                std::future::pending().await
            }
        };
        let task = tokio::spawn(serve(daemon(directory.path()), listener, shutdown));
        Server { socket, end: Some(end), task, _directory: directory }
    }

    /// Connects to it.
    pub(crate) async fn connect(&self) -> UnixStream {
        UnixStream::connect(&self.socket).await.expect("a connection")
    }

    /// Sends a request as it stands, and reads the answer.
    pub(crate) async fn send(&self, request: &[u8]) -> Reply {
        let mut stream = self.connect().await;
        // It may be answered before it is read.
        let _ = stream.write_all(request).await;
        read(&mut stream).await
    }

    /// Asks for something.
    pub(crate) async fn ask(&self, method: &str, path: &str, headers: &str, body: &str) -> Reply {
        let length = body.len();
        let head =
            format!("{method} {path} HTTP/1.1\r\nHost: x\r\n{headers}Content-Length: {length}\r\n\r\n");
        self.send(format!("{head}{body}").as_bytes()).await
    }

    /// Ends it from outside.
    pub(crate) fn end(&mut self) {
        let end = self.end.take().expect("ended once");
        end.send(()).expect("somebody listens");
    }

    /// Waits for its end.
    pub(crate) async fn ended(self) -> Ending {
        timeout(PATIENCE, self.task).await.expect("it ends").expect("it does not panic")
    }

    /// Tells whether anybody listens.
    pub(crate) async fn listens(&self) -> bool {
        UnixStream::connect(&self.socket).await.is_ok()
    }
}

/// Reads one answer: a head, and as many bytes as it announces.
pub(crate) async fn read(stream: &mut UnixStream) -> Reply {
    let mut bytes = Vec::new();
    loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8(bytes[..end].to_vec()).expect("text");
            let status = head.split(' ').nth(1).and_then(|word| word.parse().ok()).expect("a status");
            let mut reply = Reply { status, head, body: Value::Null };
            let length = reply.header("content-length").map_or(0, |text| text.parse().expect("a length"));
            if bytes.len() >= end + 4 + length {
                reply.body = serde_json::from_slice(&bytes[end + 4..end + 4 + length]).unwrap_or_default();
                return reply;
            }
        }
        let read = timeout(PATIENCE, stream.read_buf(&mut bytes)).await.expect("an answer in time");
        assert!(read.is_ok_and(|count| count > 0), "cut off: {:?}", String::from_utf8_lossy(&bytes));
    }
}
