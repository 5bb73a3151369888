//! Checkpoints: every log that was written is made durable, then a new segment of the write-ahead log says so and the older
//! ones go.
//!
//! Appends go on meanwhile. The logs are synced in rounds beside the committer; at the end it syncs only those that were
//! written again since, which are few, and begins the segment. Nothing is dropped from the write-ahead log before every log it
//! speaks of is durable up to where that segment says it reaches.

use std::io;
use std::mem;
use std::sync::Arc;
use std::time::Instant;

use rekindle_domain::id::StreamId;

use super::super::background_sync::{FailedSync, LogSync, SyncRound, Syncer, sync_logs};
use super::CommitMachine;
use super::catch_up::mark_lagging;
use crate::lagging::Cause;
use crate::threads::Wake;

/// Rounds of one checkpoint: where all logs are always being written, more of them gain nothing.
const MOST_ROUNDS: u32 = 3;

/// Why a checkpoint could not be made; everything stays in the write-ahead log meanwhile.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CheckpointError {
    #[error("{0} logs cannot be brought up to date")]
    Lagging(usize),
    #[error("{0} deleted sessions cannot be removed yet")]
    Removals(usize),
    #[error("cannot make the logs' names durable")]
    Directory(#[source] io::Error),
    #[error("cannot begin a new segment of the write-ahead log")]
    Segment(#[source] io::Error),
}

/// The outcome of a checkpoint, for all who asked for it.
pub(crate) type Checkpointed = Result<(), Arc<CheckpointError>>;

/// A checkpoint under way.
pub(super) struct Checkpoint {
    begun: Instant,
    rounds: u32,
    round: SyncRound,
}

impl CommitMachine {
    /// Has logs synced on a thread of its own from now on; `wake` is called when a checkpoint can go on, or something else that
    /// goes on beside appends.
    pub(in super::super) fn sync_on_thread(&mut self, wake: impl Fn() + Send + Sync + 'static) {
        let wake: Wake = Arc::new(wake);
        self.wake = Some(wake.clone());
        self.unwritten.wake_with(wake.clone());
        self.syncer = Syncer::thread(wake);
    }

    /// Goes on with a checkpoint, or begins one that is due; to be called after commits.
    pub(crate) fn advance_checkpoint(&mut self) {
        if self.checkpoint.is_none() {
            let due = self.is_checkpoint_due() && !self.reserve.is_released() && !self.checkpoint_failed;
            if due {
                self.begin_checkpoint();
            }
            return;
        }
        if self.is_checkpoint_overdue() {
            let _ = self.checkpoint();
        } else if let Some(checkpoint) = &mut self.checkpoint
            && let Some(failed) = checkpoint.round.poll()
        {
            self.end_round(failed);
        }
    }

    /// Tells whether to begin a checkpoint: early enough that there is room for what is written meanwhile.
    fn is_checkpoint_due(&self) -> bool {
        self.wal.is_full() || self.touched.len() >= self.limits.open_logs * 3 / 4
    }

    /// Tells whether appends have to wait for the checkpoint: descriptors are bounded, and so is what the next start reads.
    fn is_checkpoint_overdue(&self) -> bool {
        self.wal.size().1 >= 2 * self.limits.segment_bytes || self.touched.len() >= self.limits.open_logs
    }

    /// Begins a checkpoint, unless one is under way; appends go on.
    pub(super) fn begin_checkpoint(&mut self) {
        if self.checkpoint.is_some() {
            return;
        }
        if !self.removals.is_empty() || self.is_checkpoint_overdue() {
            let _ = self.checkpoint();
            return;
        }
        self.finish_log_writes();
        let begun = Instant::now();
        // In place first: what that writes is made durable with the rest.
        self.catch_up(true);
        self.begin_round(begun, 1);
    }

    /// Makes a checkpoint while appends go on, and tells how that went; at once where there is no thread for it.
    pub(crate) fn checkpoint_with(&mut self, told: Box<dyn FnOnce(Checkpointed) + Send>) {
        self.asked_for_checkpoint.push(told);
        match self.syncer {
            Syncer::Thread { .. } => self.begin_checkpoint(),
            Syncer::Steps => drop(self.checkpoint()),
        }
    }

    /// Makes a checkpoint before anything else is committed.
    pub(crate) fn checkpoint(&mut self) -> Checkpointed {
        self.finish_log_writes();
        let begun = match self.checkpoint.take() {
            Some(Checkpoint { begun, round, .. }) => {
                self.take_in_failures(round.wait());
                begun
            }
            None => Instant::now(),
        };
        self.finish_checkpoint(begun)
    }

    /// Hands the logs that were written since they were last synced to a round.
    fn begin_round(&mut self, begun: Instant, rounds: u32) {
        let logs = self.unsynced_logs();
        let round = self.syncer.begin(self.home.clone(), logs);
        self.checkpoint = Some(Checkpoint { begun, rounds, round });
    }

    fn end_round(&mut self, failed: Vec<FailedSync>) {
        let Some(Checkpoint { begun, rounds, .. }) = self.checkpoint.take() else { return };
        self.finish_log_writes();
        self.take_in_failures(failed);
        let unsynced = |stream: &&StreamId| self.streams.get(**stream).is_some_and(|open| open.unsynced);
        let again = self.touched.iter().filter(unsynced).count();
        if again > self.limits.syncs_in_pause && rounds < MOST_ROUNDS {
            self.begin_round(begun, rounds + 1);
        } else {
            // Whoever asked is told.
            let _ = self.finish_checkpoint(begun);
        }
    }

    /// Marks what a round could not make durable as lagging, unless it is gone or was written anew meanwhile.
    fn take_in_failures(&mut self, failed: Vec<FailedSync>) {
        for FailedSync { stream, log, error } in failed {
            let open = self.streams.get_mut(stream);
            let same = |now: &Arc<_>| Arc::ptr_eq(now, &log);
            if let Some(open) = open.filter(|open| open.log.as_ref().is_some_and(same)) {
                let end = open.position().log_offset;
                mark_lagging(&self.lagging, &self.home, open, end, Cause::Sync, &error);
            }
        }
    }

    /// Takes a log as lagging that somebody else failed to make durable: another sync of it may say that it is, and be wrong.
    pub(crate) fn sync_failed(&mut self, stream: StreamId, error: &io::Error) {
        let is_known = self.lagging.contains(stream);
        if let Some(open) = self.streams.get_mut(stream).filter(|_| !is_known) {
            let end = open.position().log_offset;
            mark_lagging(&self.lagging, &self.home, open, end, Cause::Sync, error);
        }
    }

    fn finish_checkpoint(&mut self, begun: Instant) -> Checkpointed {
        let outcome = self.try_checkpoint().map_err(Arc::new);
        self.meter.checkpoints.observe(begun.elapsed());
        self.checkpoint_failed = outcome.is_err();
        match &outcome {
            Ok(()) => self.meter.checkpointed(self.clock.now()),
            Err(_) => self.meter.failed_checkpoints.inc(),
        }
        self.gauge();
        for told in mem::take(&mut self.asked_for_checkpoint) {
            told(outcome.clone());
        }
        outcome
    }

    /// Makes what is not yet durable so, begins a new segment that says where the logs reach, and drops the older ones.
    fn try_checkpoint(&mut self) -> Result<(), CheckpointError> {
        if !self.removals.is_empty() {
            return Err(CheckpointError::Removals(self.removals.len()));
        }
        // In place first: what that writes is made durable with the rest.
        self.catch_up(true);
        self.sync_rest();
        // A deleted stream's log may go at any time: nothing must vouch for it.
        let lasting = |stream: &StreamId| self.streams.get(*stream).filter(|open| !open.fold.is_deleted());
        let position = |stream: &StreamId| Some((*stream, lasting(stream)?.position()));
        let positions: Vec<_> = self.touched.iter().filter_map(position).collect();
        // What catches up only now is not durable by what was synced before.
        self.catch_up(true);
        self.sync_rest();
        match self.lagging.len() {
            0 => {}
            behind => return Err(CheckpointError::Lagging(behind)),
        }
        for directory in self.home.log_directories(self.touched.iter().copied()) {
            self.home.disk.sync_dir(&directory).map_err(CheckpointError::Directory)?;
        }
        self.wal.checkpoint(&positions).map_err(CheckpointError::Segment)?;
        for stream in mem::take(&mut self.touched) {
            if let Some(open) = self.streams.get_mut(stream) {
                open.checkpointed();
            }
        }
        Ok(())
    }

    /// Makes the logs durable that were written since they were last synced; one that cannot be lags.
    fn sync_rest(&mut self) {
        let logs = self.unsynced_logs();
        let failed = sync_logs(&self.home, logs, self.home.disk.parallel_syncs());
        self.take_in_failures(failed);
    }

    /// Returns the logs that were written since they were last synced; whoever takes them syncs them.
    fn unsynced_logs(&mut self) -> Vec<LogSync> {
        let streams = &mut self.streams;
        self.touched.iter().filter_map(|stream| streams.get_mut(*stream)?.begin_sync()).collect()
    }
}
