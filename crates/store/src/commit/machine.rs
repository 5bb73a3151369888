//! The committer's state machine: commits groups, makes checkpoints, keeps the reserve. No clock, and no threads but one
//! that helps when very many logs are written and, where it is wanted, one that syncs logs for a checkpoint.

mod catch_up;
mod checkpoint;
mod write_logs;

use std::collections::BTreeSet;
use std::io;
use std::mem;
use std::path::PathBuf;
use std::sync::Arc;

use rekindle_domain::id::{SessionId, StreamId};
use rekindle_domain::session::Position;
use rekindle_domain::time::Clock;

use self::checkpoint::Checkpoint;
pub(crate) use self::checkpoint::Checkpointed;
use self::write_logs::{MOST_UNWRITTEN, UnwrittenLines, WritesUnderWay};
use super::background_sync::Syncer;
use super::group_commit::{Group, is_urgent};
use super::helper_thread::HelperThread;
use super::open_stream::OpenStream;
use super::open_streams::{OpenStreams, half_of};
use super::published_streams::Published;
use super::{Append, Committed, Persist, Submitted};
use crate::aside::set_aside;
use crate::error::AppendError;
use crate::fold::Fold;
use crate::home_files::HomeFiles;
use crate::lagging::LaggingLogs;
use crate::meter::Meter;
use crate::recover::Unfinished;
use crate::reserve::Reserve;
use crate::session_files;
use crate::threads::Wake;
use crate::unwritten_logs::UnwrittenLogs;
use crate::wal::writer::{Wal, WalFailure};

/// Bounds of the committer, each with its reason.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Size of a segment at which a checkpoint begins, so that its syncs are spread over this much writing; at twice of it
    /// appends wait for the checkpoint. Replay at boot reads about as much.
    pub segment_bytes: u64,
    /// Logs open between two checkpoints: well below the usual limit of 1,024 descriptors, more where the
    /// process may have more. A checkpoint begins at three quarters of it; at this many appends wait for its end.
    pub open_logs: usize,
    /// Logs that may be synced while appends wait, at the end of a checkpoint: if more were written again, they are synced
    /// beside the appends once more.
    pub syncs_in_pause: usize,
    /// Appends in one group: bounds what one failure takes back.
    pub group_bytes: usize,
    /// Room kept for the records that end work when the disk is full.
    pub reserve_bytes: u64,
    /// From this many appends at once the helper thread is worth waking to encode half of them.
    pub appends_for_two: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            segment_bytes: 16 << 20,
            open_logs: 512,
            syncs_in_pause: 16,
            group_bytes: 8 << 20,
            reserve_bytes: 4 << 20,
            appends_for_two: 128,
        }
    }
}

/// The committer's state machine, without a thread and without a clock that runs.
pub struct CommitMachine {
    home: HomeFiles,
    limits: Limits,
    clock: Arc<dyn Clock>,
    wal: Wal,
    reserve: Reserve,
    streams: OpenStreams,
    /// Those of them that others look at.
    pub(super) published: Arc<Published>,
    /// Streams whose log has been written to since the last checkpoint.
    touched: BTreeSet<StreamId>,
    /// Streams whose log lacks something that was committed.
    pub(crate) lagging: Arc<LaggingLogs>,
    /// What the last groups add to the logs, until somebody begins to write it.
    pending: UnwrittenLines,
    /// What is written into them beside the next groups, and by whom.
    under_way: Option<WritesUnderWay>,
    log_writer: HelperThread,
    /// Wakes whoever drives this, where that is a thread.
    wake: Option<Wake>,
    /// The logs that are meant: whoever reads one waits for it.
    pub(crate) unwritten: Arc<UnwrittenLogs>,
    /// Ticks until a log that needs the whole write-ahead log read is tried again, and how many there were the last time.
    patience: (u32, u32),
    /// Deleted sessions whose files could not all be removed yet.
    removals: BTreeSet<SessionId>,
    /// How many groups there have been.
    groups: u64,
    /// What the next group is encoded into.
    frames: Vec<u8>,
    /// Helps with groups of very many appends.
    helper: HelperThread,
    /// Appends that were answered and are only waiting to be dropped.
    answered: Vec<Append>,
    /// Where the logs are synced for a checkpoint.
    syncer: Syncer,
    /// The checkpoint that is under way.
    checkpoint: Option<Checkpoint>,
    /// Who is told how the next checkpoint went.
    asked_for_checkpoint: Vec<Box<dyn FnOnce(Checkpointed) + Send>>,
    /// A checkpoint failed; it is tried again on the next tick, not at every append.
    checkpoint_failed: bool,
    pub(crate) meter: Arc<Meter>,
}

impl CommitMachine {
    pub(crate) fn new(
        home: HomeFiles,
        limits: Limits,
        clock: Arc<dyn Clock>,
        mut wal: Wal,
        unfinished: Unfinished,
    ) -> CommitMachine {
        let meter = Arc::<Meter>::default();
        wal.meter = meter.clone();
        // A write-ahead log begins with a checkpoint.
        meter.checkpointed(clock.now());
        let reserve = Reserve::new(home.disk.clone(), home.reserve(), limits.reserve_bytes);
        let mut machine = CommitMachine {
            home,
            limits,
            clock,
            wal,
            reserve,
            streams: OpenStreams::default(),
            published: Arc::default(),
            touched: BTreeSet::new(),
            lagging: unfinished.lagging,
            pending: UnwrittenLines::default(),
            under_way: None,
            log_writer: HelperThread::new("log-writer"),
            wake: None,
            unwritten: Arc::default(),
            patience: (0, 1),
            removals: unfinished.removals,
            groups: 0,
            frames: Vec::new(),
            helper: HelperThread::new("committer-2"),
            answered: Vec::new(),
            syncer: Syncer::Steps,
            checkpoint: None,
            asked_for_checkpoint: Vec::new(),
            checkpoint_failed: !unfinished.checkpointed,
            meter,
        };
        machine.reserve.refill();
        if unfinished.reserve_used && !machine.reserve.is_kept() {
            machine.reserve.release();
        }
        machine.gauge();
        machine
    }

    /// Takes in a stream so that it can be appended to; one that is in already stays as it is.
    pub(crate) fn register(&mut self, open: OpenStream) {
        let stream = open.stream;
        if self.home.streams().kind(stream.kind()).is_none() {
            // Nobody could read what the write-ahead log would say of it.
            return;
        }
        let open = self.streams.entry(stream).or_insert(open);
        if self.lagging.contains(stream) {
            open.mark_lagging();
            self.touched.insert(stream);
        }
    }

    /// Lets go of a stream that has nothing on its way to disk.
    pub(crate) fn release(&mut self, stream: StreamId) {
        if !self.touched.contains(&stream) {
            self.forget(stream);
        }
    }

    /// Lets go of a stream in the same way, unless it has no record yet: whoever makes it is about to append the first one.
    pub(crate) fn release_begun(&mut self, stream: StreamId) {
        if self.streams.get(stream).is_some_and(|open| open.position().last_seq > 0) {
            self.release(stream);
        }
    }

    /// Returns a stream as of everything committed; from now on it is published.
    pub(crate) fn current<F: Fold>(&self, stream: StreamId) -> Option<Committed<F>> {
        let committed = self.streams.get(stream)?.committed::<F>()?;
        self.published.publish(committed.clone());
        Some(committed)
    }

    /// Gives up the room that is kept for the records that end work.
    pub(crate) fn make_room(&mut self) {
        self.reserve.release();
        self.gauge();
    }

    /// Shows how much there is in the write-ahead log, and whether there is room for the last words.
    fn gauge(&self) {
        let (segments, bytes) = self.wal.size();
        self.meter.wal_segments.set(segments);
        self.meter.wal_bytes.set(bytes);
        self.meter.reserve_kept.set(u64::from(self.reserve.is_kept()));
    }

    /// Commits appends and answers each of them; those to one stream in order.
    pub(crate) fn commit(&mut self, appends: Vec<Submitted>) {
        if self.reserve.is_released() {
            self.reserve.refill();
        }
        // One that touches several logs may touch both halves.
        let divided = appends.len() >= self.limits.appends_for_two
            && !appends.iter().any(|(append, _)| append.is_shared());
        if divided {
            self.commit_divided(appends);
        } else {
            let mut appends = appends.into_iter();
            while appends.len() > 0 {
                let mut group = self.new_group();
                group.fill(&mut self.streams, &mut appends, self.limits.group_bytes);
                self.commit_group(group);
            }
        }
        self.gauge();
    }

    /// Commits appends whose encoding two threads divide between them.
    fn commit_divided(&mut self, appends: Vec<Submitted>) {
        let enough = self.limits.group_bytes / 2;
        // The halves need not reach their bound at the same append: were only some of the groups synced, one
        // that was handed over later could be on disk before one that was handed over earlier.
        let sync = appends.iter().any(|(append, _)| append.persist == Persist::Disk);
        let (mine, theirs): (Vec<_>, Vec<_>) =
            appends.into_iter().partition(|(append, _)| half_of(append.stream) == 0);
        let (mut mine, mut theirs) = (mine.into_iter(), theirs.into_iter());
        while mine.len() + theirs.len() > 0 {
            let mut group = self.new_group();
            let mut other = group.sibling();
            let mut streams = mem::take(self.streams.half(1));
            let pending = self.helper.begin(move || {
                other.fill(&mut streams, &mut theirs, enough);
                (other, streams, theirs)
            });
            group.fill(self.streams.half(0), &mut mine, enough);
            let (other, streams, rest) = pending.wait();
            *self.streams.half(1) = streams;
            theirs = rest;
            group.join(other);
            group.sync |= sync;
            self.commit_group(group);
        }
    }

    fn new_group(&mut self) -> Group {
        self.groups += 1;
        let frames = mem::take(&mut self.frames);
        Group::new(self.groups, self.home.codec(), self.clock.now(), self.reserve.is_released(), frames)
    }

    fn commit_group(&mut self, mut group: Group) {
        if group.appends.is_empty() {
            return;
        }
        let error = match self.wal.append(&mut group.frames, group.sync) {
            Ok(()) => return self.answer(group),
            Err(WalFailure::Unknown(error)) => {
                let error = Arc::new(error);
                self.meter.unknown.inc();
                for (_, reply) in group.roll_back(&mut self.streams) {
                    reply.send(Err(AppendError::OutcomeUnknown(error.clone())));
                }
                return;
            }
            Err(WalFailure::Refused(error)) => Arc::new(error),
        };
        let full = matches!(AppendError::refused(&error), AppendError::StorageFull(_));
        if full { &self.meter.full } else { &self.meter.failed }.inc();
        let (urgent, others): (Vec<_>, Vec<_>) = group
            .roll_back(&mut self.streams)
            .into_iter()
            .partition(|(append, _)| full && self.reserve.is_kept() && is_urgent(append));
        for (_, reply) in others {
            reply.send(Err(AppendError::refused(&error)));
        }
        if !urgent.is_empty() {
            // What must go through does, in the room the reserve gives up; it is gone then, so this does not come round again.
            self.reserve.release();
            let mut group = self.new_group();
            group.fill(&mut self.streams, &mut urgent.into_iter(), usize::MAX);
            self.commit_group(group);
        }
    }

    /// Answers a group that the write-ahead log has; its logs are written behind that, so that nobody waits for them who need not.
    fn answer(&mut self, mut group: Group) {
        if self.pending.size() >= MOST_UNWRITTEN {
            self.finish_log_writes();
        }
        for lines in &group.lines {
            if let Some(open) = self.streams.get_mut(lines.stream).filter(|open| !open.touched) {
                open.touched = true;
                self.touched.insert(lines.stream);
            }
        }
        self.unwritten.add(group.lines.iter().map(|lines| lines.stream));
        let spare = self.pending.add(mem::take(&mut group.lines), mem::take(&mut group.frames));
        self.frames = spare.unwrap_or_default();
        if self.wal.lost
            && let Err(error) = self.checkpoint()
        {
            let error = Arc::new(io::Error::other(error));
            self.meter.unknown.inc();
            for entry in group.appends {
                entry.reply.send(Err(AppendError::OutcomeUnknown(error.clone())));
            }
            return;
        }
        // Whoever is answered sees what it did.
        let streams = group.appends.iter().flat_map(|entry| entry.append.parts().map(|(stream, ..)| stream));
        self.published.refresh(streams, &self.streams);
        for entry in group.appends {
            entry.append.parts().for_each(|(_, records, _)| self.meter.records.count(records));
            self.answered.extend(entry.reply.send_receipts(entry.receipts, entry.append));
        }
    }

    /// Lets go of what was committed; whoever waits need not wait for that.
    pub(crate) fn drop_answered(&mut self) {
        self.answered.clear();
    }

    /// Tells whether a tick has anything to try again.
    pub(crate) fn needs_tick(&self) -> bool {
        let behind = self.lagging.len() > 0 || !self.removals.is_empty();
        self.wal.is_dirty() || self.checkpoint_failed || behind || !self.reserve.is_kept()
    }

    /// Makes everything committed durable.
    pub(crate) fn sync(&mut self) -> Result<(), AppendError> {
        self.wal.sync().map_err(|failure| match failure {
            WalFailure::Refused(error) | WalFailure::Unknown(error) => {
                AppendError::OutcomeUnknown(Arc::new(error))
            }
        })
    }

    /// Does what is due after a while: syncs, retries, refills the reserve.
    pub(crate) fn tick(&mut self) {
        self.finish_log_writes();
        // A failure leaves the write-ahead log poisoned, and the next append or tick tries again.
        let _ = self.sync();
        let removals = mem::take(&mut self.removals);
        for session in removals {
            let _ = self.remove(session);
        }
        self.reserve.refill();
        // Room that was given up is for the records that end work; logs that lack something are served all the same.
        if !self.reserve.is_released() {
            self.catch_up(false);
            // Reads and writes everything there is of it: in vain while a log lags.
            if self.checkpoint_failed && self.lagging.len() == 0 {
                self.begin_checkpoint();
            }
        }
        self.gauge();
    }

    /// Removes the files of a session whose deletion is recorded. Until the removal is durable no
    /// checkpoint passes, so that a replay finishes it.
    pub(crate) fn remove(&mut self, session: SessionId) -> io::Result<()> {
        let stream = StreamId::from(session);
        if let Some(open) = self.streams.get(stream) {
            if !open.fold.is_deleted() {
                return Err(denied("the session's deletion is not recorded"));
            }
            // The deletion must be on disk before the first file goes.
            self.sync().map_err(io::Error::other)?;
        }
        self.forget(stream);
        self.lagging.remove(stream);
        self.removals.insert(session);
        session_files::remove(&*self.home.disk, &self.home, session)?;
        self.removals.remove(&session);
        Ok(())
    }

    /// Sets the files of a damaged session aside: nothing of it is on its way to disk, because nothing was added.
    pub(crate) fn set_aside(&mut self, session: SessionId) -> io::Result<PathBuf> {
        let stream = StreamId::from(session);
        if self.streams.get(stream).is_none_or(|open| open.damage.is_none()) {
            return Err(denied("the session is not known to be damaged"));
        }
        let path = set_aside(&*self.home.disk, &self.home, session)?;
        self.forget(stream);
        Ok(path)
    }

    /// Removes the log of a stream that was kept compressed up to a position, unless anything was added behind that; tells whether it
    /// is gone. What the write-ahead log still has of it, the compressed log has too, on disk.
    pub(crate) fn remove_plain_log(&mut self, stream: StreamId, end: Position) -> io::Result<bool> {
        self.finish_log_writes();
        let open = self.streams.get(stream);
        let is_other = open.is_some_and(|open| open.position() != end || open.damage.is_some());
        let log = self.home.stream_log(stream);
        if is_other || self.lagging.contains(stream) || self.home.disk.stat(&log)?.len != end.log_offset {
            return Ok(false);
        }
        self.home.disk.remove_file(&log)?;
        self.forget(stream);
        Ok(true)
    }

    fn forget(&mut self, stream: StreamId) {
        self.streams.remove(stream);
        self.published.withdraw(stream);
        self.touched.remove(&stream);
    }
}

fn denied(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, why)
}
