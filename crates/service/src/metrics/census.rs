//! The census of sessions: how many do what, how many wait and since when, and whose agents are known to live. Only
//! sessions in which something is or was left open are looked at; all others are idle by what their log says, and are only
//! counted.

use rekindle_domain::projector::{HolderProof, SessionStatus};

use crate::show::Views;

/// What is known of holders that a log says are there.
pub(super) const PROOFS: [&str; 4] = ["pending", "living", "silent", "gone"];

/// The count.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Census {
    /// By status, in the order of [`SessionStatus::ALL`].
    pub(super) statuses: [usize; SessionStatus::ALL.len()],
    pub(super) damaged: usize,
    pub(super) waits: usize,
    /// How long the oldest of them has waited, in milliseconds.
    pub(super) oldest_wait: u64,
    /// By [`PROOFS`].
    pub(super) holders: [usize; PROOFS.len()],
}

impl Census {
    /// Counts; none while the sessions are being listed.
    pub(super) fn take(views: &Views) -> Option<Census> {
        let listed = views.directory.active_if_surveyed(views.store())?;
        let mut census = Census { damaged: listed.damaged, ..Census::default() };
        census.statuses[SessionStatus::Idle as usize] = listed.quiet;
        let now = views.workers.records.now();
        for entry in listed.active.iter().filter(|entry| !entry.state.deleted) {
            let derived = views.status(&entry.state, &entry.tokens);
            census.statuses[derived.status as usize] += 1;
            let proof = derived.evidence.holder.as_ref().map(|holder| holder.proof);
            if let Some(proof) = proof.filter(|_| entry.state.agent.as_ref().is_some_and(|one| !one.exited)) {
                census.holders[proof_index(proof)] += 1;
            }
            // As lists have it: whoever is proven gone waits for nothing.
            let open = entry.state.open_run().filter(|_| proof != Some(HolderProof::Gone));
            for wait in open.iter().flat_map(|run| &run.waits) {
                census.waits += 1;
                census.oldest_wait = census.oldest_wait.max(now.millis_since(wait.since));
            }
        }
        Some(census)
    }
}

fn proof_index(proof: HolderProof) -> usize {
    match proof {
        HolderProof::Pending => 0,
        HolderProof::Lock => 1,
        HolderProof::Unresponsive => 2,
        HolderProof::Gone => 3,
    }
}
