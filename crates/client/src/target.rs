//! The target of requests: the daemon of a home on this machine, or one elsewhere. Here a daemon that died is replaced by who
//! notices it; elsewhere that is up to others.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;

use super::daemon_file::DaemonFile;
use super::server::Server;
use super::start;
use crate::failure::{Exit, Failure};

/// The daemon that is spoken to.
#[derive(Debug, Clone)]
pub enum Target {
    /// The one of a home on this machine.
    Local {
        /// The home, where a successor is found.
        home: PathBuf,
        /// Where it is.
        place: Box<DaemonFile>,
    },
    /// One elsewhere.
    Remote {
        /// Where it listens.
        server: Arc<Server>,
        /// What it said of itself.
        about: About,
    },
}

/// What a daemon says of itself, as far as it has to say it: whoever is of another version is understood too.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct About {
    /// Its version.
    pub version: String,
    /// Its process.
    pub pid: u32,
}

impl Target {
    /// Returns the daemon of a home.
    pub fn local(home: &Path, place: DaemonFile) -> Target {
        Target::Local { home: home.to_owned(), place: Box::new(place) }
    }

    /// Returns a daemon elsewhere that has not said yet who it is.
    pub fn remote(server: Arc<Server>) -> Target {
        Target::Remote { server, about: About::default() }
    }

    /// Returns its version.
    pub fn version(&self) -> &str {
        match self {
            Target::Local { place, .. } => &place.version,
            Target::Remote { about, .. } => &about.version,
        }
    }

    /// Returns its process.
    pub fn pid(&self) -> u32 {
        match self {
            Target::Local { place, .. } => place.pid,
            Target::Remote { about, .. } => about.pid,
        }
    }

    /// Returns whoever comes after it, which may take a while.
    pub fn successor(&self, within: Duration) -> Result<Target, Failure> {
        match self {
            Target::Local { home, .. } => Ok(Target::local(home, start::successor(home, within)?)),
            // It comes back where it was, or not at all.
            Target::Remote { .. } => Ok(self.clone()),
        }
    }

    /// Says that it does not come back.
    pub fn lost(&self) -> Failure {
        match self {
            Target::Local { .. } => Failure::no_daemon("the daemon did not come back")
                .hint(format!("the agent keeps working without it; {}", super::WORDS)),
            Target::Remote { server, .. } => {
                Failure::no_daemon(format!("the daemon at {} did not come back", server.url))
                    .hint("the agent keeps working without it; try again later")
            }
        }
    }

    /// Says that it does not answer.
    pub(super) fn silent(&self) -> Failure {
        match self {
            Target::Local { place, .. } => {
                let error = anyhow::anyhow!("the daemon (process {}) does not answer", place.pid);
                let hint = format!("{}; {}", super::REPLACE, super::WORDS);
                Failure::failed(super::SILENT, error).hint(hint)
            }
            Target::Remote { server, .. } => {
                Failure::failed(super::SILENT, anyhow::anyhow!("no answer from {}", server.url))
                    .exit_with(Exit::NoDaemon)
                    .hint("check that it is running, and that nothing on the way blocks connections")
            }
        }
    }
}
