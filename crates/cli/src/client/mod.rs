//! Speaking with the daemon: finding it, starting it, asking it, and following a session.

pub(crate) mod follow;
pub(crate) mod http;
pub(crate) mod news;
pub(crate) mod place;
mod sse;
pub(crate) mod start;
pub(crate) mod wire;

use std::path::{Path, PathBuf};
use std::time::Duration;

use hyper::body::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::runtime::Runtime;

use self::http::{Ask, Lost};
use self::place::{Place, Seen};
use crate::clock::random;
use crate::failure::{Exit, Failure};

/// How long a request that carries a key waits for the daemon's successor before it gives up.
const SUCCESSOR: Duration = Duration::from_secs(15);

/// How long the daemon may take to say that it will leave: it says so before it does anything for it.
const LEAVING: Duration = Duration::from_secs(5);

/// The daemon is there and does not answer.
pub(crate) const SILENT: &str = "daemon_silent";

/// The daemon is there and its socket is not.
pub(crate) const CUT: &str = "daemon_unreachable";

/// What to do about a daemon that is there and of no use.
pub(crate) const REPLACE: &str = "`rekindle restart` replaces it while agents work on";

/// A daemon that can be asked.
pub(crate) struct Client {
    runtime: Runtime,
    home: PathBuf,
    place: Place,
}

impl Client {
    /// Returns the daemon of a home, if one lives. One that cannot be reached is a failure.
    pub(crate) fn find(home: &Path) -> Result<Option<Client>, Failure> {
        match place::look(home) {
            Seen::Lives(place) => Client::at(home, place).map(Some),
            Seen::Cut(place) => Err(unreachable(&place)),
            Seen::Leaves | Seen::Died | Seen::None => Ok(None),
        }
    }

    /// Returns a daemon of which it is known where it is.
    pub(crate) fn at(home: &Path, place: Place) -> Result<Client, Failure> {
        let runtime = http::runtime().map_err(|error| Failure::failed("runtime", error))?;
        Ok(Client { runtime, home: home.to_owned(), place })
    }

    /// Says so if the daemon is of another version than this program.
    pub(crate) fn note_version(&self) {
        let (theirs, ours) = (&self.place.version, env!("CARGO_PKG_VERSION"));
        if theirs != ours {
            anstream::eprintln!(
                "note: the daemon is version {}, this is {ours}; `rekindle restart` replaces it while agents work on",
                crate::sanitise::line(theirs),
            );
        }
    }

    /// Returns where it is.
    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    /// Fetches something.
    pub(crate) fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        read(&self.get_raw(path)?)
    }

    /// Fetches something as it was sent.
    pub(crate) fn get_raw(&self, path: &str) -> Result<Bytes, Failure> {
        self.ask(&Ask { method: "GET", path: path.to_owned(), ..Ask::default() })
    }

    /// Asks for something to be done; returns what was sent back.
    pub(crate) fn post(&self, path: &str, body: &impl Serialize) -> Result<Bytes, Failure> {
        let body = Some(write(body)?);
        self.ask(&Ask { method: "POST", path: path.to_owned(), body, ..Ask::default() })
    }

    /// Asks the daemon to leave, with or without its agents; it says at once that it will.
    pub(crate) fn shut_down(&self, agents: bool) -> Result<(), Failure> {
        let body = Some(write(&serde_json::json!({ "agents": agents }))?);
        let (path, within) = ("/api/shutdown".to_owned(), Some(LEAVING));
        self.ask(&Ask { method: "POST", path, body, within, ..Ask::default() }).map(drop)
    }

    /// Asks for something to be done exactly once: repeated under the same key if the daemon goes away midway.
    pub(crate) fn post_once(&mut self, path: &str, body: &impl Serialize) -> Result<Bytes, Failure> {
        let key = format!("cli-{:032x}", random()?);
        let headers = vec![("idempotency-key", key.as_str())];
        let ask =
            Ask { method: "POST", path: path.to_owned(), body: Some(write(body)?), headers, within: None };
        match http::call(&self.runtime, &self.place.socket, &ask) {
            Err(Lost::NotThere { .. } | Lost::Midway(_)) => {
                anstream::eprintln!("note: the daemon went away; asking its successor");
                self.place = start::successor(&self.home, SUCCESSOR)?;
                self.ask(&ask)
            }
            answer => judge(answer, self.place.pid),
        }
    }

    /// Removes something.
    pub(crate) fn delete(&self, path: &str) -> Result<Bytes, Failure> {
        self.ask(&Ask { method: "DELETE", path: path.to_owned(), ..Ask::default() })
    }

    fn ask(&self, ask: &Ask<'_>) -> Result<Bytes, Failure> {
        let answer = http::call(&self.runtime, &self.place.socket, ask);
        // Nothing was asked yet: its successor may listen elsewhere.
        if let Err(Lost::NotThere { .. }) = &answer
            && let Seen::Lives(place) = place::look(&self.home)
        {
            return judge(http::call(&self.runtime, &place.socket, ask), place.pid);
        }
        judge(answer, self.place.pid)
    }
}

/// Says that a daemon is there and cannot be reached.
pub(crate) fn unreachable(place: &Place) -> Failure {
    let error = anyhow::anyhow!("the daemon (process {}) cannot be reached: its socket is gone", place.pid);
    Failure::failed(CUT, error).exit_with(Exit::NoDaemon).hint(REPLACE)
}

/// Returns the body of an answer, or the failure it tells of.
fn judge(answer: Result<(u16, Bytes), Lost>, pid: u32) -> Result<Bytes, Failure> {
    match answer {
        Ok((status, body)) if (200..300).contains(&status) => Ok(body),
        Ok((status, body)) => Err(wire::refusal(status, &body)),
        Err(lost @ Lost::NotThere { .. }) => Err(Failure::no_daemon(lost.to_string())),
        Err(lost @ Lost::Midway(_)) => Err(Failure::failed("outcome_unknown", lost)
            .hint("it may have been done: look with rekindle ps before you repeat it")),
        Err(Lost::TooLong) => {
            let error = anyhow::anyhow!("the daemon (process {pid}) does not answer");
            Err(Failure::failed(SILENT, error)
                .hint(format!("{REPLACE}; logs/daemon.log in the home may say what it does")))
        }
        Err(lost @ Lost::Request(_)) => Err(Failure::failed("request", lost)),
    }
}

/// Reads what the daemon sent.
pub(crate) fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Failure> {
    serde_json::from_slice(body).map_err(|error| {
        let error = anyhow::Error::new(error).context("the daemon's answer cannot be understood");
        Failure::failed("answer_unreadable", error)
            .hint("rekindle restart, if its version is another than ours")
    })
}

fn write(body: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string(body).map_err(|error| Failure::failed("request", error))
}
