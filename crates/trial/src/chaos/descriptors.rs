//! A daemon that may hardly open anything: its limit of descriptors is lowered to a few more than it has, while sessions are
//! begun and spoken to, and raised again.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use rekindle_client::failure::Failure;
use rekindle_seeded::Rng;
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::Value;

use super::processes::Processes;
use super::shortage::{Lack, play};
use crate::ground::end_all;

/// Descriptors that are left: enough to answer callers one after the other.
const LEAST: u64 = 4;

/// The limit of a daemon's descriptors.
#[derive(Default)]
struct Descriptors {
    /// The process, and the limit that it had.
    before: Option<(Pid, Rlimit)>,
}

impl Lack for Descriptors {
    fn words(&self) -> &'static str {
        "hardly any descriptors"
    }

    fn begin(&mut self, processes: &Processes, rng: &mut Rng) -> std::io::Result<()> {
        let Some(pid) = processes.daemon().and_then(|daemon| Pid::from_raw(daemon.pid)) else {
            return Ok(());
        };
        let open = std::fs::read_dir(format!("/proc/{}/fd", pid.as_raw_nonzero()))?;
        let open: BTreeSet<u64> =
            open.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
        let most = limit_for(&open, LEAST + rng.below(8));
        let maximum = rustix::process::getrlimit(Resource::Nofile).maximum;
        let before = prlimit(Some(pid), Resource::Nofile, Rlimit { current: Some(most), maximum })?;
        self.before = Some((pid, before));
        Ok(())
    }

    fn end(&mut self, _: &Processes) -> std::io::Result<()> {
        // A daemon that was killed meanwhile has taken its limit along.
        if let Some((pid, before)) = self.before.take() {
            let _ = prlimit(Some(pid), Resource::Nofile, before);
        }
        Ok(())
    }

    fn newcomers(&self) -> usize {
        4
    }
}

/// Returns the limit with which just so many more descriptors can be opened. It bounds their numbers, and the lowest free one is
/// taken each time: one that is open far above the others must not make room for hundreds.
fn limit_for(open: &BTreeSet<u64>, more: u64) -> u64 {
    let mut free = (0_u64..).filter(|number| !open.contains(number));
    free.nth(more as usize).unwrap_or(more)
}

/// Has a daemon go short of descriptors in a home of its own.
pub(super) fn limit(
    home: &Path,
    runtime: &Path,
    request: &Value,
    told: PathBuf,
    processes: &mut Processes,
    pick: u64,
) -> Result<(), Failure> {
    let mut own = Processes::new(home, runtime, &processes.cancel);
    let played = play(&mut own, &mut Descriptors::default(), request, told, &mut Rng::new(pick));
    processes.sights.append(&mut own.sights);
    end_all(home);
    super::processes::reap();
    played?;
    std::fs::remove_dir_all(home).map_err(|error| Failure::failed("few_descriptors", error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_leaves_just_so_many_free_numbers() {
        let check = |open: &[u64], more, limit| {
            let open = open.iter().copied().collect();
            assert_eq!(limit_for(&open, more), limit, "{open:?} and {more} more");
        };
        check(&[0, 1, 2], 4, 7);
        check(&[0, 1, 2, 5], 4, 8);
        check(&[0, 1, 2, 251], 4, 7);
        check(&[], 0, 0);
    }
}
