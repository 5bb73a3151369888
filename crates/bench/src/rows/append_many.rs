//! Thirty-two producers that each wait for their record to be on disk. Raw: a bare group commit, one thread
//! that writes and syncs whatever has come together since it last looked.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::ScopedJoinHandle;
use std::time::Instant;

use anyhow::Context as _;
use rekindle_domain::id::SessionId;
use rekindle_store::Store;
use rekindle_store::commit::Append;

use crate::context::Context;
use crate::home;
use crate::measure::{interleave, rate};
use crate::records;
use crate::table::{Row, Target, Unit};

pub(crate) const PRODUCERS: usize = 32;

pub(crate) fn run(context: &Context) -> anyhow::Result<Vec<Row>> {
    let (each, rounds) = context.pick((1_000, 11), (200, 5));
    let dir = context.directory()?;
    let mut raw = Raw::create(&dir.path().join("raw"))?;
    let store = home::open(&dir.path().join("home"))?;
    let sessions = home::make_sessions(&store, PRODUCERS)?;

    let what = "32 producers, a session each";
    let [apart] = interleave(what, rounds, || raw.append(each), || ours(&store, &sessions, each))?;
    let what = "32 producers, one session";
    let [together] = interleave(what, rounds, || raw.append(each), || ours(&store, &sessions[..1], each))?;
    let row = |what: &str, rounds| {
        let what = format!("durable append, 32 producers, {what}");
        Row::compared(what, Unit::PerSecond, rounds, Target::RatioAtLeast(0.6))
    };
    Ok(vec![row("a session each", &apart), row("one session", &together)])
}

/// What producers and the committer share.
#[derive(Default)]
struct Queue {
    lines: Vec<u8>,
    taken_in: u64,
    durable: u64,
    closed: bool,
}

/// A bare group commit.
pub(crate) struct Raw {
    file: File,
    end: u64,
    queue: Mutex<Queue>,
    filled: Condvar,
    synced: Condvar,
}

impl Raw {
    pub(crate) fn create(path: &Path) -> anyhow::Result<Raw> {
        let file = File::create(path).context("cannot make the raw file")?;
        let (queue, filled, synced) = Default::default();
        Ok(Raw { file, end: 0, queue, filled, synced })
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has every producer append so many records; returns how many a second that is.
    pub(crate) fn append(&mut self, each: usize) -> anyhow::Result<[f64; 1]> {
        self.append_lines(each, &[&[b'x'; 300]])
    }

    /// Has every producer append these records so many times, each after the one before is on disk.
    pub(crate) fn append_lines(&mut self, each: usize, lines: &[&[u8]]) -> anyhow::Result<[f64; 1]> {
        self.append_lines_and(each, lines, || Ok(()))
    }

    /// The same, with something else that a producer does each time before it begins again.
    pub(crate) fn append_lines_and(
        &mut self,
        each: usize,
        lines: &[&[u8]],
        also: impl Fn() -> std::io::Result<()> + Sync,
    ) -> anyhow::Result<[f64; 1]> {
        self.lock().closed = false;
        let (raw, begin) = (&*self, self.end);
        let start = Instant::now();
        let written = std::thread::scope(|scope| {
            let committer = scope.spawn(move || raw.commit(begin));
            let producers: Vec<_> =
                (0..PRODUCERS).map(|_| scope.spawn(|| raw.produce(each, lines, &also))).collect();
            let join =
                |producer: ScopedJoinHandle<'_, _>| producer.join().expect("a producer does not panic");
            let produced: std::io::Result<()> = producers.into_iter().try_for_each(join);
            raw.lock().closed = true;
            raw.filled.notify_one();
            produced.and(committer.join().expect("the committer does not panic"))
        });
        let rate = rate(each * PRODUCERS * lines.len(), start.elapsed());
        self.end = written?;
        Ok([rate])
    }

    fn produce(
        &self,
        each: usize,
        lines: &[&[u8]],
        also: impl Fn() -> std::io::Result<()>,
    ) -> std::io::Result<()> {
        for _ in 0..each {
            lines.iter().for_each(|line| self.append_line(line));
            also()?;
        }
        Ok(())
    }

    /// Appends one record and waits until it is on disk.
    fn append_line(&self, line: &[u8]) {
        let mut queue = self.lock();
        queue.lines.extend_from_slice(line);
        queue.taken_in += 1;
        let mine = queue.taken_in;
        self.filled.notify_one();
        while queue.durable < mine {
            queue = self.synced.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn commit(&self, mut end: u64) -> std::io::Result<u64> {
        let mut batch = Vec::new();
        loop {
            let mut queue = self.lock();
            while queue.lines.is_empty() {
                if queue.closed {
                    return Ok(end);
                }
                queue = self.filled.wait(queue).unwrap_or_else(PoisonError::into_inner);
            }
            std::mem::swap(&mut queue.lines, &mut batch);
            let up_to = queue.taken_in;
            drop(queue);
            self.file.write_all_at(&batch, end)?;
            self.file.sync_data()?;
            end += batch.len() as u64;
            batch.clear();
            self.lock().durable = up_to;
            self.synced.notify_all();
        }
    }
}

/// Appends from all producers; with fewer sessions than producers they share.
fn ours(store: &Store, sessions: &[SessionId], each: usize) -> anyhow::Result<[f64; 1]> {
    let work: Vec<_> = (0..PRODUCERS)
        .map(|producer| (sessions[producer % sessions.len()], records::messages(each)))
        .collect();
    let start = Instant::now();
    std::thread::scope(|scope| {
        let produce = |(session, drafts): (SessionId, Vec<_>)| {
            drafts
                .into_iter()
                .try_for_each(|draft| store.append(Append::durable(session, vec![draft])).map(|_| ()))
        };
        let producers: Vec<_> = work.into_iter().map(|work| scope.spawn(move || produce(work))).collect();
        producers.into_iter().try_for_each(|producer| producer.join().expect("a producer does not panic"))
    })?;
    Ok([rate(each * PRODUCERS, start.elapsed())])
}
