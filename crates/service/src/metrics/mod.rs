//! Metrics: what the daemon counts and shows of itself, on one page for whoever watches many of them. Counting is done
//! where things happen, with atomics; the page is put together when someone asks, from memory alone: it must be there when
//! the disk is not. Everything begins at zero with the process. Labels come from closed lists.

mod http;
mod page;
mod process;
mod show;

pub use page::Format;
pub(crate) use show::Counted;

use std::sync::OnceLock;
use std::time::Duration;

use rekindle_domain::time::Timestamp;
use rekindle_holder::client::Inspection;
use rekindle_store::meter::Gauge;
use rekindle_wire::view::HolderState;

use crate::show::{DIRECTORIES, directory_state};
use http::Http;

/// What is counted above the store.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    /// When the daemon began.
    began: Timestamp,
    /// Requests.
    pub(crate) http: Http,
    /// How long each part of the start took.
    pub(crate) opening: OnceLock<Duration>,
    pub(crate) listing: OnceLock<Duration>,
    pub(crate) looking: OnceLock<Duration>,
    /// Sessions in which something was going on at the start.
    pub(crate) unfinished: Gauge,
    /// What the last sweep found, by [`DIRECTORIES`].
    directories: [Gauge; DIRECTORIES.len()],
}

impl Metrics {
    pub(crate) fn new(began: Timestamp) -> Metrics {
        Metrics { began, ..Metrics::default() }
    }

    /// A sweep has looked at the directories of all holders.
    pub(crate) fn count_directories(&self, seen: &[Inspection]) {
        let count =
            |state: HolderState| seen.iter().filter(|one| directory_state(&one.lock) == state).count();
        for (gauge, state) in self.directories.iter().zip(DIRECTORIES) {
            gauge.set(count(state) as u64);
        }
    }
}
