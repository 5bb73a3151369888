//! Many agents asked at once, so that a slow one keeps only itself waiting.

use std::sync::{Mutex, PoisonError};

use super::{Probe, ProbeFailure, Probed};
use crate::profile::Profile;

/// Agents that are asked at the same time: most are programs that take a second of one processor to start.
const AT_ONCE: usize = 4;

/// Asks all of them; `answered` is told of each, by its place, as soon as it has answered.
pub fn probe_all(
    probes: &[Probe],
    profile: &dyn Profile,
    answered: &(dyn Fn(usize) + Sync),
) -> Vec<Result<Probed, ProbeFailure>> {
    let next = Mutex::new(probes.iter().enumerate());
    let outcomes = Mutex::new(Vec::with_capacity(probes.len()));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE.min(probes.len()) {
            scope.spawn(|| {
                loop {
                    let taken = next.lock().unwrap_or_else(PoisonError::into_inner).next();
                    let Some((place, probe)) = taken else { return };
                    let outcome = probe.run(profile);
                    answered(place);
                    outcomes.lock().unwrap_or_else(PoisonError::into_inner).push((place, outcome));
                }
            });
        }
    });
    let mut outcomes = outcomes.into_inner().unwrap_or_else(PoisonError::into_inner);
    outcomes.sort_by_key(|(place, _)| *place);
    outcomes.into_iter().map(|(_, outcome)| outcome).collect()
}
