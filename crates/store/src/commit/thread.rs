//! The committer on a thread of its own: a bounded queue in front of the state machine, and a clock behind it. Whoever appends while
//! nobody else does commits on his own thread meanwhile.

use std::io;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{JoinHandle, current};
use std::time::{Duration, Instant};

use rekindle_domain::id::StreamId;

use super::machine::CommitMachine;
use super::published_streams::Published;
use super::queue::{Batch, CommitQueue, Request, Taken, Timed, Waiting};
use super::{
    Answer, Append, Call, Commits, Committed, Outcome, Receipts, Reply, Slot, Submitted, with_answer,
};
use crate::error::AppendError;
use crate::fold::Fold;
use crate::home::HomeLock;

/// How long what the kernel has may stay off the disk.
const SYNC_WITHIN: Duration = Duration::from_secs(1);

/// How long the logs may lack what was answered while there is always something else to do: so much goes into each with one call.
const WRITE_LOGS_WITHIN: Duration = Duration::from_millis(20);

/// How often the committer looks again before it goes to sleep: some 50 µs.
const LINGER_ROUNDS: usize = 100;

/// A ticket for an append under way.
pub struct Ticket {
    slot: Arc<[Slot]>,
    batch: Batch,
    queue: Arc<CommitQueue>,
}

impl Ticket {
    /// Waits for the outcome.
    pub fn wait(self) -> Result<Receipts, AppendError> {
        self.queue.wait(&self.slot[0], self.batch)
    }
}

/// The committer on a thread of its own; one for all streams of a home.
pub struct Committer {
    queue: Arc<CommitQueue>,
    /// The state machine: the thread has it while it is up. None once it has ended.
    machine: Arc<Mutex<Option<CommitMachine>>>,
    published: Arc<Published>,
    thread: Option<JoinHandle<()>>,
}

impl Committer {
    /// Hands over an append and returns at once; appends of one caller are committed in order.
    pub fn submit(&self, append: Append) -> Ticket {
        let slot: Arc<[Slot]> = Arc::new([Slot::default()]);
        let batch = self.hand_over(append, Reply::Slot(slot.clone(), 0));
        Ticket { slot, batch, queue: self.queue.clone() }
    }

    /// Makes several appends together, so that they share one write and one sync, and waits.
    pub fn append_all(&self, appends: Vec<Append>) -> Vec<Result<Receipts, AppendError>> {
        let slots: Arc<[Slot]> = appends.iter().map(|_| Slot::default()).collect();
        let replies = (0..slots.len()).map(|index| Reply::Slot(slots.clone(), index));
        let requests = appends.into_iter().zip(replies).map(|(append, reply)| Request::Append(append, reply));
        let Some(batch) = self.queue.push_all(requests) else {
            return slots.iter().map(|_| Err(AppendError::Closed)).collect();
        };
        slots.iter().map(|slot| self.queue.wait(slot, batch)).collect()
    }

    /// Hands over an append; `reply` is called on the committer's thread and must not block.
    pub fn submit_with(
        &self,
        append: Append,
        reply: impl FnOnce(Result<Receipts, AppendError>) + Send + 'static,
    ) {
        let _ = self.hand_over(append, Reply::Call(Box::new(reply)));
    }

    /// Returns a stream that is published.
    pub(crate) fn at_hand<F: Fold>(&self, stream: StreamId) -> Option<Committed<F>> {
        self.published.get(stream)
    }

    /// Commits an append on the caller's thread, which saves waking two, if nobody else has anything to commit; gives it back if
    /// somebody has.
    fn commit_alone(&self, append: Append) -> Result<Outcome, Append> {
        let since = Instant::now();
        let Ok(mut held) = self.machine.try_lock() else { return Err(append) };
        // Looked at with the state machine in hand: what was handed over before comes first.
        let Some(machine) = held.as_mut().filter(|_| self.queue.lock().is_free()) else { return Err(append) };
        let slot: Arc<[Slot]> = Arc::new([Slot::default()]);
        machine.commit(vec![(append, Reply::Slot(slot.clone(), 0))]);
        machine.meter.appends.observe(since.elapsed());
        drop(held);
        self.queue.leave_chores();
        Ok(slot[0].take().map_or(Err(AppendError::Closed), Answer::into_outcome))
    }

    /// Hands over an append; the batch matters to nobody if it is answered at once because nothing is taken any more.
    fn hand_over(&self, append: Append, reply: Reply) -> Batch {
        match self.queue.push(Request::Append(append, reply)) {
            Ok(batch) => batch,
            Err(Request::Append(_, reply)) => {
                reply.send(Err(AppendError::Closed));
                Batch::default()
            }
            Err(_) => Batch::default(),
        }
    }
}

impl Commits for Committer {
    fn start(mut machine: CommitMachine, lock: Arc<HomeLock>) -> io::Result<Committer> {
        let (queue, published) = (Arc::<CommitQueue>::default(), machine.published.clone());
        let woken = queue.clone();
        machine.sync_on_thread(move || woken.go_on());
        let machine = Arc::new(Mutex::new(Some(machine)));
        let (theirs, held) = (queue.clone(), machine.clone());
        let thread = std::thread::Builder::new().name("committer".into()).spawn(move || {
            run(&theirs, &held);
            drop(lock);
        })?;
        Ok(Committer { queue, machine, published, thread: Some(thread) })
    }

    fn append_together(&self, append: Append) -> Result<Receipts, AppendError> {
        self.commit_alone(append).unwrap_or_else(|append| self.submit(append).wait())
    }

    fn post(&self, call: Call) {
        let _ = self.queue.push(Request::Call(call));
    }

    fn post_ahead(&self, call: Call) {
        let _ = self.queue.push(Request::Ahead(call));
    }

    fn expect_append(&self) {
        self.queue.expect();
    }

    fn release(&self, stream: StreamId) {
        let _ = self.queue.push(Request::Release(stream));
    }

    /// Of one that is published nobody has to ask the committer.
    fn current<F: Fold>(&self, stream: StreamId) -> Option<Committed<F>> {
        let ask = || {
            let (call, answer) = with_answer(move |machine| machine.current(stream));
            self.post_ahead(call);
            answer.recv().ok().flatten()
        };
        self.published.get(stream).or_else(ask)
    }
}

impl Drop for Committer {
    /// Commits what was handed over, then ends the thread.
    fn drop(&mut self) {
        self.queue.close();
        // Whoever is told of an append may be the last who has the store: then the thread ends after that, by itself.
        if let Some(thread) = self.thread.take().filter(|thread| thread.thread().id() != current().id()) {
            let _ = thread.join();
        }
    }
}

/// Closes the queue and ends the answers when it is dropped: however the thread ends.
struct CloseOnExit<'a>(&'a CommitQueue);

impl Drop for CloseOnExit<'_> {
    fn drop(&mut self) {
        self.0.end_answers();
    }
}

fn run(queue: &CommitQueue, machine: &Mutex<Option<CommitMachine>>) {
    let _close = CloseOnExit(queue);
    let mut worker =
        Worker { queue, requests: vec![], answered: vec![], tick_at: None, unwritten_since: None };
    loop {
        // If whoever committed alone has panicked, nobody knows what the state machine is.
        let Ok(mut held) = machine.lock() else { return };
        let Some(machine) = held.as_mut() else { return };
        if worker.work(machine) {
            *held = None;
            return;
        }
        drop(held);
        queue.sleep(worker.tick_at);
    }
}

/// What the thread has while it runs.
struct Worker<'a> {
    queue: &'a CommitQueue,
    requests: Vec<Timed>,
    /// When the appends that were just answered had been handed over.
    answered: Vec<Instant>,
    tick_at: Option<Instant>,
    /// When the logs began to lack something.
    unwritten_since: Option<Instant>,
}

impl Worker<'_> {
    /// Does what there is to do until there is nothing more for now; tells whether there is nothing more for ever.
    fn work(&mut self, machine: &mut CommitMachine) -> bool {
        loop {
            let Taken { batch, is_last, is_more_expected } = self.queue.take(&mut self.requests);
            let requests = self.requests.len();
            handle(machine, &mut self.requests, &mut self.answered);
            self.queue.wake(batch);
            // Whoever was answered need not wait for any of this.
            self.see_to_logs(machine, requests == 0);
            machine.advance_checkpoint();
            // What opening the home could not finish is gone on with, also if nobody asks for anything.
            let next = || Instant::now() + SYNC_WITHIN;
            self.tick_at = machine.needs_tick().then(|| self.tick_at.unwrap_or_else(next));
            if is_last {
                // Nothing can be handed over any more; what was, is committed. A checkpoint makes the next
                // start short, and one that fails loses nothing.
                let _ = machine.sync();
                let _ = machine.checkpoint();
                return true;
            }
            if self.is_over(machine, requests > 1 || is_more_expected) {
                return false;
            }
        }
    }

    /// Has the logs brought up to what was answered where that is due, and does what is due after a while.
    fn see_to_logs(&mut self, machine: &mut CommitMachine, is_idle: bool) {
        let now = Instant::now();
        machine.poll_log_writes();
        if !machine.has_unwritten_lines() {
            self.unwritten_since = None;
        } else if is_idle
            || machine.are_log_writes_due()
            || now.duration_since(*self.unwritten_since.get_or_insert(now)) >= WRITE_LOGS_WITHIN
        {
            machine.begin_log_writes();
        }
        machine.drop_answered();
        self.answered.drain(..).for_each(|since| machine.meter.appends.observe(now.duration_since(since)));
        if self.tick_at.is_some_and(|at| Instant::now() >= at) {
            machine.tick();
            self.tick_at = None;
        }
    }

    /// Tells whether nobody wants anything more for now. Of a crowd somebody comes back soon, and whoever is expected comes. Who is
    /// alone goes on by himself, and what his logs lack is a chore.
    fn is_over(&self, machine: &mut CommitMachine, is_worth_waiting: bool) -> bool {
        let mut waiting = if is_worth_waiting { linger(self.queue) } else { self.queue.lock() };
        if is_worth_waiting && waiting.is_idle() && machine.has_unwritten_lines() {
            drop(waiting);
            machine.begin_log_writes();
            waiting = self.queue.lock();
        }
        let is_idle = waiting.is_idle();
        if is_idle {
            // Whoever writes logs beside this wakes it when he is done.
            waiting.leave(machine.has_unwritten_lines() && !machine.is_writing_logs());
        }
        is_idle
    }
}

/// Gives others the processor for a moment: whoever was just answered often comes back at once, and finding
/// the committer awake saves waking it.
fn linger(queue: &CommitQueue) -> MutexGuard<'_, Waiting> {
    for _ in 0..LINGER_ROUNDS {
        let waiting = queue.lock();
        if !waiting.is_idle() {
            return waiting;
        }
        drop(waiting);
        std::thread::yield_now();
    }
    queue.lock()
}

/// Does what was asked, in order; `answered` gets the time at which each append was handed over.
fn handle(machine: &mut CommitMachine, requests: &mut Vec<Timed>, answered: &mut Vec<Instant>) {
    let mut appends: Vec<Submitted> = Vec::new();
    for (request, since) in requests.drain(..) {
        match request {
            Request::Append(append, reply) => {
                appends.push((append, reply));
                answered.push(since);
            }
            Request::Call(call) => {
                // Order matters between appends and everything else.
                machine.commit(mem::take(&mut appends));
                machine.finish_log_writes();
                call(machine);
            }
            Request::Release(stream) => {
                if appends.iter().any(|(append, _)| append.concerns(stream)) {
                    machine.commit(mem::take(&mut appends));
                }
                machine.release(stream);
            }
            Request::Ahead(call) => call(machine),
        }
    }
    machine.commit(appends);
}
