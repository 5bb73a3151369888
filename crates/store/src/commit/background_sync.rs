//! Rounds of syncs: the logs that a checkpoint needs on disk, made durable beside the committer while appends go on.

use std::io;
use std::ops::Range;
use std::sync::{Arc, mpsc};
use std::vec;

use rekindle_domain::id::StreamId;

use super::helper_thread::HelperThread;
use crate::disk::DiskFile;
use crate::home_files::HomeFiles;
use crate::threads::{Wake, map_on_threads};

/// A log that is to be made durable.
pub(super) struct LogSync {
    pub(super) stream: StreamId,
    pub(super) log: Arc<dyn DiskFile>,
    /// What no sync has covered of it, up to its end.
    pub(super) new: Range<u64>,
}

impl LogSync {
    /// Makes the log durable. An error if it cannot be, if its name leads elsewhere by now, or if someone cut it short.
    pub(super) fn run(&self, home: &HomeFiles) -> io::Result<()> {
        self.log.sync()?;
        let (log, named) = (self.log.stat()?, home.disk.stat(&home.stream_log(self.stream))?);
        if log.identity != named.identity || log.len < self.new.end {
            return Err(io::Error::other("the log was changed by someone else"));
        }
        Ok(())
    }
}

/// A log that could not be made durable. The kernel tells of it once: nobody may ask again and believe the answer.
pub(super) struct FailedSync {
    pub(super) stream: StreamId,
    /// The file that is meant: the stream may have another by now.
    pub(super) log: Arc<dyn DiskFile>,
    pub(super) error: io::Error,
}

/// Logs that a thread writes at once: enough that a disk, and its journal, take them in one go, and not so many that an append
/// waits behind them.
const AT_ONCE: usize = 64;

/// Logs of a round for each thread that syncs them beside appends: the syncs of appends wait behind those of others, so that few logs
/// are left to one thread; of thousands one thread would take so long that appends have to wait for it.
const LOGS_A_THREAD: usize = 512;

/// Makes logs durable on so many threads; returns those that could not be.
pub(super) fn sync_logs(home: &HomeFiles, logs: Vec<LogSync>, threads: usize) -> Vec<FailedSync> {
    let mut outcomes = Vec::with_capacity(logs.len());
    for logs in logs.chunks(AT_ONCE * threads) {
        logs.iter().for_each(|sync| sync.log.begin_write_back(sync.new.start));
        outcomes.extend(map_on_threads(threads, logs, |sync| sync.run(home)));
    }
    let failed = |(sync, outcome): (LogSync, io::Result<()>)| {
        outcome.err().map(|error| FailedSync { stream: sync.stream, log: sync.log, error })
    };
    logs.into_iter().zip(outcomes).filter_map(failed).collect()
}

/// Returns how many threads sync so many logs beside appends.
fn threads_beside_appends(logs: usize, most: usize) -> usize {
    logs.div_ceil(LOGS_A_THREAD).clamp(1, most)
}

/// The syncs of a round, one after the other.
pub(super) struct Syncs {
    home: HomeFiles,
    rest: vec::IntoIter<LogSync>,
    failed: Vec<FailedSync>,
}

impl Syncs {
    /// Syncs one log; tells whether there was one left.
    fn step(&mut self) -> bool {
        let Some(next) = self.rest.next() else { return false };
        if let Err(error) = next.run(&self.home) {
            self.failed.push(FailedSync { stream: next.stream, log: next.log, error });
        }
        true
    }

    /// Syncs what is left and returns what failed.
    fn finish(mut self) -> Vec<FailedSync> {
        while self.step() {}
        self.failed
    }
}

/// Where rounds are carried out.
pub(super) enum Syncer {
    /// On a thread of its own, which calls a function when a round is over.
    Thread { thread: HelperThread, over: Wake },
    /// On the committer's own, one log each time it asks: between any two of them there may be appends.
    Steps,
}

impl Syncer {
    pub(super) fn thread(over: Wake) -> Syncer {
        Syncer::Thread { thread: HelperThread::new("log-sync"), over }
    }

    /// Begins a round.
    pub(super) fn begin(&mut self, home: HomeFiles, logs: Vec<LogSync>) -> SyncRound {
        let Syncer::Thread { thread, over } = self else {
            return SyncRound::Steps(Syncs { home, rest: logs.into_iter(), failed: Vec::new() });
        };
        let (sender, outcome) = mpsc::sync_channel(1);
        let over = over.clone();
        let threads = threads_beside_appends(logs.len(), home.disk.parallel_syncs());
        thread.begin(move || {
            let _ = sender.send(sync_logs(&home, logs, threads));
            over();
        });
        SyncRound::Thread(outcome)
    }
}

/// A round under way.
pub(super) enum SyncRound {
    Thread(mpsc::Receiver<Vec<FailedSync>>),
    Steps(Syncs),
}

/// Without an answer nobody knows what is on disk.
const DIED: &str = "the thread that makes logs durable has died";

impl SyncRound {
    /// Returns what failed, if the round is over.
    ///
    /// # Panics
    /// If a sync panicked: then nothing more may be dropped from the write-ahead log.
    pub(super) fn poll(&mut self) -> Option<Vec<FailedSync>> {
        match self {
            SyncRound::Thread(outcome) => match outcome.try_recv() {
                Ok(failed) => Some(failed),
                Err(mpsc::TryRecvError::Empty) => None,
                Err(mpsc::TryRecvError::Disconnected) => panic!("{DIED}"),
            },
            SyncRound::Steps(syncs) => (!syncs.step()).then(|| std::mem::take(&mut syncs.failed)),
        }
    }

    /// Waits for the end of the round and returns what failed.
    ///
    /// # Panics
    /// If a sync panicked: then nothing more may be dropped from the write-ahead log.
    pub(super) fn wait(self) -> Vec<FailedSync> {
        match self {
            SyncRound::Thread(outcome) => outcome.recv().expect(DIED),
            SyncRound::Steps(syncs) => syncs.finish(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_logs_are_left_to_one_thread_and_thousands_to_several() {
        let threads = |logs| threads_beside_appends(logs, 8);
        assert_eq!([0, 1, 512, 513, 3072, 100_000].map(threads), [1, 1, 1, 2, 6, 8]);
        assert_eq!(threads_beside_appends(100_000, 1), 1);
    }
}
