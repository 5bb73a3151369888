//! Speaking with the daemon: finding it, starting it by ourselves or as a service, asking it, and following a session. Whatever
//! goes wrong is a [`failure::Failure`], which commands print and end with.

pub mod clock;
pub mod completion;
pub mod content_text;
pub mod daemon_file;
pub mod default_home;
pub mod failure;
pub mod follow;
pub mod follow_all;
mod hint_text;
pub mod http;
pub mod listen_options;
pub mod logout;
pub mod payloads;
pub mod problem;
mod request_error;
pub mod run_start;
pub mod server;
pub mod sse;
pub mod start;
pub mod takeover;
pub mod target;
pub mod unit;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hyper::body::Bytes;
use rekindle_store::blobs::BlobId;
use rekindle_wire::request::Collect;
use rekindle_wire::view::{Collected, SessionView};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use tokio::runtime::Runtime;

use self::daemon_file::{DaemonFile, DaemonState};
use self::http::{Ask, RequestError};
use self::server::Server;
use self::target::{About, Target};
use crate::clock::random;
pub use crate::failure::{Exit, Failure};

/// How long a request that carries a key waits for the daemon's successor before it gives up.
const SUCCESSOR: Duration = Duration::from_secs(15);

/// How often it is tried again whether one elsewhere has come back.
const AGAIN: Duration = Duration::from_millis(200);

/// How long the daemon may take to say that it will leave: it says so before it does anything for it.
const LEAVING: Duration = Duration::from_secs(5);

/// The daemon is there and does not answer.
pub const SILENT: &str = "daemon_silent";

/// How long whoever asks for work on the files of a repository waits for it.
const PATIENCE: Duration = Duration::from_secs(10 * 60);

/// How long a daemon may take to look through its home: what a disk of some terabytes takes.
const COLLECTED: Duration = Duration::from_secs(60 * 60);

/// The daemon is there and its socket is not.
pub const CUT: &str = "daemon_unreachable";

/// Where a daemon's words are.
pub const WORDS: &str =
    "logs/daemon.log in the home, or `journalctl --user -u 'rekindle*'` of a service, may say why";

/// What to do about a daemon that is there and of no use.
pub const REPLACE: &str = "`rekindle restart` replaces it while agents keep working";

/// Entries of a list that are fetched at a time: as many as are given at once.
const PAGE: usize = 500;

/// Returns the path of a page of a list, by its name and what narrows it.
fn list_path(name: &str, filters: &[(&str, Option<&str>)], cursor: Option<&str>) -> String {
    let mut path = format!("/api/{name}?limit={PAGE}");
    for (name, value) in filters.iter().chain(&[("cursor", cursor)]) {
        if let Some(value) = value {
            path.push_str(&format!("&{name}={}", http::escape(value)));
        }
    }
    path
}

/// A daemon that can be asked.
pub struct Client {
    runtime: Runtime,
    target: Target,
}

impl Client {
    /// Returns the daemon of a home, if one lives. One that cannot be reached is a failure.
    pub fn find(home: &Path) -> Result<Option<Client>, Failure> {
        match daemon_file::find_daemon(home) {
            DaemonState::Lives(place) => Client::at(home, place).map(Some),
            DaemonState::Cut(place) => Err(unreachable(&place)),
            DaemonState::Unproven(place) => Err(unproven(home, &place)),
            DaemonState::Leaves | DaemonState::Died | DaemonState::None => Ok(None),
        }
    }

    /// Returns a daemon of which it is known where it is.
    pub fn at(home: &Path, place: DaemonFile) -> Result<Client, Failure> {
        Ok(Client { runtime: runtime()?, target: Target::local(home, place) })
    }

    /// Returns a daemon elsewhere, once it has said who it is.
    pub fn elsewhere(server: Arc<Server>) -> Result<Client, Failure> {
        let unknown = Client { runtime: runtime()?, target: Target::remote(Arc::clone(&server)) };
        let about: About = unknown.get("/api/version")?;
        Ok(Client { target: Target::Remote { server, about }, ..unknown })
    }

    /// Says so if the daemon is of another version than this program.
    pub fn note_version(&self) {
        let (theirs, ours) = (self.target.version(), env!("CARGO_PKG_VERSION"));
        if theirs != ours {
            let then = match &self.target {
                Target::Local { .. } => "`rekindle restart` replaces it while agents keep working",
                Target::Remote { .. } => "some features may work in only one of them",
            };
            let theirs = rekindle_terminal::sanitise::line(theirs);
            anstream::eprintln!("note: the daemon is version {theirs}, this is {ours}; {then}");
        }
    }

    /// Returns which daemon it is.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Fetches a list whole, page by page: what path and answer call so, narrowed by parameters.
    pub fn all<T: DeserializeOwned>(
        &self,
        name: &str,
        filters: &[(&str, Option<&str>)],
    ) -> Result<Vec<T>, Failure> {
        let (mut found, mut cursor) = (Vec::new(), None::<String>);
        loop {
            let mut page: BTreeMap<String, Box<RawValue>> =
                self.get(&list_path(name, filters, cursor.as_deref()))?;
            let Some(entries) = page.remove(name) else { return Ok(found) };
            found.extend(read::<Vec<T>>(entries.get().as_bytes())?);
            let next = page.remove("next").map(|next| read::<Option<String>>(next.get().as_bytes()));
            match next.transpose()?.flatten() {
                // A cursor that does not move would never end.
                Some(next) if cursor.as_ref() != Some(&next) => cursor = Some(next),
                _ => return Ok(found),
            }
        }
    }

    /// Fetches something.
    pub fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        read(&self.ask(&Ask { method: "GET", path: path.to_owned(), ..Ask::default() })?)
    }

    /// Fetches a session.
    pub fn session(&self, id: &str) -> Result<SessionView, Failure> {
        self.get(&format!("/api/sessions/{id}"))
    }

    /// Fetches a payload that is kept apart from a log: it may be large.
    pub fn blob(&self, id: &BlobId) -> Result<Bytes, Failure> {
        let path = format!("/api/blobs/{id}");
        self.ask(&Ask { method: "GET", path, within: Some(http::ANSWER), ..Ask::default() })
    }

    /// Asks for something to be done; returns what was sent back.
    pub fn post(&self, path: &str, body: &impl Serialize) -> Result<Bytes, Failure> {
        let body = Some(write(body)?);
        self.ask(&Ask { method: "POST", path: path.to_owned(), body, ..Ask::default() })
    }

    /// Asks for something that may take minutes.
    pub fn post_patiently(&self, path: &str, body: &impl Serialize) -> Result<Bytes, Failure> {
        let (body, within) = (Some(write(body)?), Some(PATIENCE));
        self.ask(&Ask { method: "POST", path: path.to_owned(), body, within, ..Ask::default() })
    }

    /// Has the daemon remove what nobody needs any more: it reads all logs for that, and may take long.
    pub fn collect(&self, asked: &Collect) -> Result<Collected, Failure> {
        let (path, body) = ("/api/gc".to_owned(), Some(write(asked)?));
        read(&self.ask(&Ask { method: "POST", path, body, within: Some(COLLECTED), ..Ask::default() })?)
    }

    /// Asks the daemon to leave, with or without its agents; it says at once that it will.
    pub fn shut_down(&self, agents: bool) -> Result<(), Failure> {
        let body = Some(write(&serde_json::json!({ "agents": agents }))?);
        let (path, within) = ("/api/shutdown".to_owned(), Some(LEAVING));
        self.ask(&Ask { method: "POST", path, body, within, ..Ask::default() }).map(drop)
    }

    /// Asks for something to be done exactly once: repeated under the same key if the daemon goes away midway.
    pub fn post_once(&mut self, path: &str, body: &impl Serialize) -> Result<Bytes, Failure> {
        self.post_with_key(path, body, &new_key()?, || {
            anstream::eprintln!("note: the daemon went away; asking the next one");
        })
    }

    /// Asks for something to be done exactly once, however often it is asked for under a key; `away` is told, once, if the daemon
    /// goes away midway and its successor is asked.
    pub fn post_with_key(
        &mut self,
        path: &str,
        body: &impl Serialize,
        key: &str,
        away: impl FnOnce(),
    ) -> Result<Bytes, Failure> {
        let headers = vec![("idempotency-key", key)];
        let ask =
            Ask { method: "POST", path: path.to_owned(), body: Some(write(body)?), headers, within: None };
        let deadline = Instant::now() + SUCCESSOR;
        let mut answer = http::call(&self.runtime, &self.target, &ask);
        let mut away = Some(away);
        while let Err(RequestError::Unreachable { .. } | RequestError::ConnectionLost(_)) = &answer
            && Instant::now() < deadline
        {
            match away.take() {
                Some(away) => away(),
                None => std::thread::sleep(AGAIN),
            }
            self.target = self.target.successor(SUCCESSOR)?;
            answer = http::call(&self.runtime, &self.target, &ask);
        }
        body_of(answer, || self.target.silent())
    }

    /// Changes something.
    pub fn patch(&self, path: &str, body: &impl Serialize) -> Result<Bytes, Failure> {
        let body = Some(write(body)?);
        self.ask(&Ask { method: "PATCH", path: path.to_owned(), body, ..Ask::default() })
    }

    /// Removes something.
    pub fn delete(&self, path: &str) -> Result<Bytes, Failure> {
        self.ask(&Ask { method: "DELETE", path: path.to_owned(), ..Ask::default() })
    }

    /// Removes something that it may take minutes to remove.
    pub fn delete_patiently(&self, path: &str) -> Result<Bytes, Failure> {
        let within = Some(PATIENCE);
        self.ask(&Ask { method: "DELETE", path: path.to_owned(), within, ..Ask::default() })
    }

    fn ask(&self, ask: &Ask<'_>) -> Result<Bytes, Failure> {
        let answer = http::call(&self.runtime, &self.target, ask);
        // Nothing was asked yet: its successor may listen at another socket.
        if let Err(RequestError::Unreachable { .. }) = &answer
            && let Target::Local { home, .. } = &self.target
            && let DaemonState::Lives(place) = daemon_file::find_daemon(home)
        {
            let target = Target::local(home, place);
            return body_of(http::call(&self.runtime, &target, ask), || target.silent());
        }
        body_of(answer, || self.target.silent())
    }
}

/// Returns a key for something that is to be done once.
pub fn new_key() -> Result<String, Failure> {
    Ok(format!("cli-{:032x}", random()?))
}

/// Says that a daemon is there and cannot be reached.
pub fn unreachable(place: &DaemonFile) -> Failure {
    let error = anyhow::anyhow!("the daemon (process {}) cannot be reached: its socket is gone", place.pid);
    Failure::failed(CUT, error).exit_with(Exit::NoDaemon).hint(REPLACE)
}

/// Says that it cannot be told whether a daemon serves a home.
pub fn unproven(home: &Path, place: &DaemonFile) -> Failure {
    let (home, pid) = (home.display(), place.pid);
    let error = anyhow::anyhow!(
        "cannot tell whether the daemon (process {pid}) serves {home}: daemon.lock is missing"
    );
    let failure = Failure::failed("daemon_unproven", error).exit_with(Exit::NoDaemon);
    failure.hint(format!(
        "if the directory is a copy of another home, remove its daemon.json; if it is the daemon's own, stop the daemon with `kill {pid}`: agents keep working"
    ))
}

/// Returns the body of an answer, or the failure it tells of.
fn body_of(
    answer: Result<(u16, Bytes), RequestError>,
    silent: impl FnOnce() -> Failure,
) -> Result<Bytes, Failure> {
    match answer {
        Ok((status, body)) if (200..300).contains(&status) => Ok(body),
        Ok((status, body)) => Err(Failure::refused(status, &body)),
        Err(lost) => Err(lost.failure().unwrap_or_else(silent)),
    }
}

impl RequestError {
    /// Returns the failure it is; none if nothing was heard, of which others know more.
    pub fn failure(self) -> Option<Failure> {
        Some(match self {
            RequestError::TimedOut => return None,
            RequestError::Unreachable { ref path, .. } if path.contains("://") => {
                let failure = Failure::failed("no_daemon", self).exit_with(Exit::NoDaemon);
                failure.hint(
                    "start it on its machine with rekindle serve --listen ADDRESS:PORT, and check firewalls and proxies on the way",
                )
            }
            RequestError::Unreachable { .. } => Failure::no_daemon(self.to_string()),
            // What `openssl req -x509` makes unless it is told otherwise.
            RequestError::Untrusted { ref source, .. } if source.to_string().contains("CaUsedAsEndEntity") => {
                Failure::failed("untrusted", self).exit_with(Exit::NoDaemon).hint(
                    "the server's certificate is marked as a certificate authority (CA:TRUE), which must not be \
                     accepted from a server: make one with -addext basicConstraints=critical,CA:FALSE",
                )
            }
            RequestError::Untrusted { .. } => Failure::failed("untrusted", self).exit_with(Exit::NoDaemon).hint(
                "--ca FILE names a certificate to trust; it must be valid for the host name that you use",
            ),
            RequestError::AnotherHome { .. } => Failure::failed("another_home", self).exit_with(Exit::NoDaemon).hint(
                "nothing was sent to it. If no daemon is running for the home that you meant, remove daemon.json from that \
                 home: it is a leftover",
            ),
            RequestError::ConnectionLost(_) => Failure::failed("outcome_unknown", self)
                .hint("it may have taken effect: check with rekindle ps before you repeat it"),
            RequestError::Malformed(_) => Failure::failed("request", self),
        })
    }
}

fn runtime() -> Result<Runtime, Failure> {
    http::runtime().map_err(|error| Failure::failed("runtime", error))
}

/// Reads what the daemon sent.
pub fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Failure> {
    serde_json::from_slice(body).map_err(|error| {
        let error = anyhow::Error::new(error).context("the daemon's answer cannot be understood");
        Failure::failed("answer_unreadable", error)
            .hint("run rekindle restart if its version differs from this one")
    })
}

fn write(body: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string(body).map_err(|error| Failure::failed("request", error))
}
