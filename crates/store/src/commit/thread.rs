//! The committer's thread: a bounded queue in front of the state machine, and a clock behind it.

use std::io;
use std::mem;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{JoinHandle, current};
use std::time::{Duration, Instant};

use rekindle_domain::id::StreamId;

use super::machine::CommitMachine;
use super::published_streams::Published;
use super::{Answer, Append, Call, Commits, Committed, Outcome, Receipts, Reply, Slot, with_answer};
use crate::error::AppendError;
use crate::fold::Fold;
use crate::home::HomeLock;

/// How long what the kernel has may stay off the disk.
const SYNC_WITHIN: Duration = Duration::from_secs(1);

/// Most requests that wait for the committer; producers beyond it wait their turn, which bounds memory.
const QUEUE_LIMIT: usize = 4096;

/// How long the logs may lack what was answered while there is always something else to do: so much goes into each with one call.
const WRITE_LOGS_WITHIN: Duration = Duration::from_millis(20);

/// How often the committer looks again before it goes to sleep: some 50 µs.
const LINGER_ROUNDS: usize = 100;

enum Request {
    Append(Append, Reply),
    /// Comes behind the appends before it.
    Call(Call),
    /// Does not concern these.
    Ahead(Call),
}

/// A batch of requests, which are taken together, by the lowest bit of its number: those of one are answered before the next is
/// taken, and so before anybody waits for the one after that.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Batch(bool);

#[derive(Default)]
struct Queue {
    /// Each with when it was handed over.
    requests: Vec<(Request, Instant)>,
    /// The batch they are.
    batch: Batch,
    /// The checkpoint under way can go on.
    synced: bool,
    closed: bool,
}

impl Queue {
    /// Tells whether there is nothing to be done.
    fn is_idle(&self) -> bool {
        self.requests.is_empty() && !self.synced && !self.closed
    }
}

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    not_empty: Condvar,
    not_full: Condvar,
    /// Everyone who waits for an outcome of a batch is woken together, and nobody else: of many callers half wait for the next one.
    answered: [Condvar; 2],
    over: Mutex<bool>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        // A panic elsewhere leaves the queue whole: it is changed in single steps.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until there is room in the queue; none if nothing is taken any more.
    fn wait_for_room(&self) -> Option<MutexGuard<'_, Queue>> {
        let mut queue = self.lock();
        while queue.requests.len() >= QUEUE_LIMIT && !queue.closed {
            queue = self.not_full.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        (!queue.closed).then_some(queue)
    }

    #[expect(clippy::result_large_err, reason = "a request is given back only when the committer is gone")]
    fn push(&self, request: Request) -> Result<Batch, Request> {
        let now = Instant::now();
        let Some(mut queue) = self.wait_for_room() else { return Err(request) };
        queue.requests.push((request, now));
        let (first, batch) = (queue.requests.len() == 1, queue.batch);
        // Woken with the lock free, the committer need not wait for it.
        drop(queue);
        if first {
            self.not_empty.notify_one();
        }
        Ok(batch)
    }

    /// Tells whether there will be no more answers.
    fn over(&self) -> MutexGuard<'_, bool> {
        self.over.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answered(&self, Batch(odd): Batch) -> &Condvar {
        &self.answered[usize::from(odd)]
    }

    /// Wakes everyone who waits for an outcome of a batch.
    fn wake(&self, batch: Batch) {
        drop(self.over());
        self.answered(batch).notify_all();
    }

    /// Pushes several requests together: they are taken together too.
    fn push_all(&self, requests: impl Iterator<Item = Request>) -> Option<Batch> {
        let now = Instant::now();
        let mut queue = self.wait_for_room()?;
        queue.requests.extend(requests.map(|request| (request, now)));
        let batch = queue.batch;
        drop(queue);
        self.not_empty.notify_one();
        Some(batch)
    }

    /// Waits for an outcome of a batch.
    fn wait(&self, slot: &Slot, batch: Batch) -> Outcome {
        match slot.take().or_else(|| self.wait_for_answer(slot, batch)) {
            Some(answer) => answer.into_outcome(),
            None => Err(AppendError::Closed),
        }
    }

    /// Waits for an answer; none if there will be none.
    fn wait_for_answer(&self, slot: &Slot, batch: Batch) -> Option<Answer> {
        let mut over = self.over();
        loop {
            // Looked at under the lock that is taken before waking: no wake-up can be missed.
            match slot.take() {
                None if !*over => {
                    over = self.answered(batch).wait(over).unwrap_or_else(PoisonError::into_inner);
                }
                answer => return answer,
            }
        }
    }

    /// Wakes the committer: the checkpoint under way can go on. Never waits for room: nobody is more in the way of the committer
    /// than its own checkpoint.
    fn go_on(&self) {
        self.lock().synced = true;
        self.not_empty.notify_all();
    }

    fn close(&self) {
        self.lock().closed = true;
        self.not_empty.notify_all();
        self.not_full.notify_all();
    }
}

/// A ticket for an append under way.
pub struct Ticket {
    slot: Arc<[Slot]>,
    batch: Batch,
    shared: Arc<Shared>,
}

impl Ticket {
    /// Waits for the outcome.
    pub fn wait(self) -> Result<Receipts, AppendError> {
        self.shared.wait(&self.slot[0], self.batch)
    }
}

/// The committer on a thread of its own; one for all streams of a home.
pub struct Committer {
    shared: Arc<Shared>,
    published: Arc<Published>,
    thread: Option<JoinHandle<()>>,
}

impl Committer {
    /// Hands over an append and returns at once; appends of one caller are committed in order.
    pub fn submit(&self, append: Append) -> Ticket {
        let slot: Arc<[Slot]> = Arc::new([Slot::default()]);
        let batch = self.hand_over(append, Reply::Slot(slot.clone(), 0));
        Ticket { slot, batch, shared: self.shared.clone() }
    }

    /// Makes several appends together, so that they share one write and one sync, and waits.
    pub fn append_all(&self, appends: Vec<Append>) -> Vec<Result<Receipts, AppendError>> {
        let slots: Arc<[Slot]> = appends.iter().map(|_| Slot::default()).collect();
        let replies = (0..slots.len()).map(|index| Reply::Slot(slots.clone(), index));
        let requests = appends.into_iter().zip(replies).map(|(append, reply)| Request::Append(append, reply));
        let Some(batch) = self.shared.push_all(requests) else {
            return slots.iter().map(|_| Err(AppendError::Closed)).collect();
        };
        slots.iter().map(|slot| self.shared.wait(slot, batch)).collect()
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

    /// Hands over an append; the batch matters to nobody if it is answered at once because nothing is taken any more.
    fn hand_over(&self, append: Append, reply: Reply) -> Batch {
        match self.shared.push(Request::Append(append, reply)) {
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
        let (shared, published) = (Arc::new(Shared::default()), machine.published.clone());
        let (queue, woken) = (shared.clone(), shared.clone());
        machine.sync_on_thread(move || woken.go_on());
        let thread = std::thread::Builder::new().name("committer".into()).spawn(move || {
            run(machine, &queue);
            drop(lock);
        })?;
        Ok(Committer { shared, published, thread: Some(thread) })
    }

    fn append_together(&self, append: Append) -> Result<Receipts, AppendError> {
        self.submit(append).wait()
    }

    fn post(&self, call: Call) {
        let _ = self.shared.push(Request::Call(call));
    }

    fn post_ahead(&self, call: Call) {
        let _ = self.shared.push(Request::Ahead(call));
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
        self.shared.close();
        // Whoever is told of an append may be the last who has the store: then the thread ends after that, by itself.
        if let Some(thread) = self.thread.take().filter(|thread| thread.thread().id() != current().id()) {
            let _ = thread.join();
        }
    }
}

/// Closes the queue and ends the answers when it is dropped: however the thread ends.
struct CloseOnExit<'a>(&'a Shared);

impl Drop for CloseOnExit<'_> {
    fn drop(&mut self) {
        self.0.close();
        *self.0.over() = true;
        self.0.answered.iter().for_each(Condvar::notify_all);
    }
}

fn run(mut machine: CommitMachine, shared: &Shared) {
    let _close = CloseOnExit(shared);
    let meter = machine.meter.clone();
    let (mut requests, mut answered) = (Vec::new(), Vec::new());
    // What opening the home could not finish is gone on with, also if nobody asks for anything.
    let mut tick_at = machine.needs_tick().then(|| Instant::now() + SYNC_WITHIN);
    // When the logs began to lack something.
    let mut unwritten_since = None;
    loop {
        let mut queue = linger(shared);
        if queue.is_idle() && machine.has_unwritten_lines() {
            drop(queue);
            machine.begin_log_writes();
            queue = shared.lock();
        }
        let (batch, closing) = wait_for_work(shared, queue, &mut requests, tick_at);
        handle(&mut machine, &mut requests, &mut answered);
        shared.wake(batch);
        let now = Instant::now();
        // Whoever was answered need not wait for any of this.
        machine.poll_log_writes();
        if !machine.has_unwritten_lines() {
            unwritten_since = None;
        } else if machine.are_log_writes_due()
            || now.duration_since(*unwritten_since.get_or_insert(now)) >= WRITE_LOGS_WITHIN
        {
            machine.begin_log_writes();
        }
        machine.drop_answered();
        answered.drain(..).for_each(|since| meter.appends.observe(now.duration_since(since)));
        if tick_at.is_some_and(|at| Instant::now() >= at) {
            machine.tick();
            tick_at = None;
        }
        machine.advance_checkpoint();
        tick_at = machine.needs_tick().then(|| tick_at.unwrap_or_else(|| Instant::now() + SYNC_WITHIN));
        if closing {
            // Nothing can be handed over any more; what was, is committed. A checkpoint makes the next
            // start short, and one that fails loses nothing.
            let _ = machine.sync();
            let _ = machine.checkpoint();
            return;
        }
    }
}

/// Gives others the processor for a moment: whoever was just answered often comes back at once, and finding
/// the committer awake saves waking it.
fn linger(shared: &Shared) -> MutexGuard<'_, Queue> {
    for _ in 0..LINGER_ROUNDS {
        let queue = shared.lock();
        if !queue.is_idle() {
            return queue;
        }
        drop(queue);
        std::thread::yield_now();
    }
    shared.lock()
}

/// Waits until there are requests, it is time for a tick, or nothing more will come; returns which batch was taken, and tells the last.
fn wait_for_work(
    shared: &Shared,
    mut queue: MutexGuard<'_, Queue>,
    requests: &mut Vec<(Request, Instant)>,
    tick_at: Option<Instant>,
) -> (Batch, bool) {
    while queue.is_idle() {
        let Some(at) = tick_at else {
            queue = shared.not_empty.wait(queue).unwrap_or_else(PoisonError::into_inner);
            continue;
        };
        let left = at.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        let waited = shared.not_empty.wait_timeout(queue, left);
        queue = waited.unwrap_or_else(PoisonError::into_inner).0;
    }
    mem::swap(&mut queue.requests, requests);
    queue.synced = false;
    let taken = (queue.batch, queue.closed);
    queue.batch = Batch(!queue.batch.0);
    drop(queue);
    // Nobody waits for room unless there was none.
    if requests.len() >= QUEUE_LIMIT {
        shared.not_full.notify_all();
    }
    taken
}

/// Does what was asked, in order; `answered` gets the time at which each append was handed over.
fn handle(machine: &mut CommitMachine, requests: &mut Vec<(Request, Instant)>, answered: &mut Vec<Instant>) {
    let mut appends = Vec::new();
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
            Request::Ahead(call) => call(machine),
        }
    }
    machine.commit(appends);
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;

    use super::*;

    #[test]
    fn whoever_waits_for_room_is_woken_when_there_is_some() {
        let shared = Arc::new(Shared::default());
        let request = || Request::Ahead(Box::new(|_| ()));
        assert!(shared.push_all((0..QUEUE_LIMIT).map(|_| request())).is_some());
        let (tell, told) = sync_channel(2);
        for _ in 0..2 {
            let (shared, tell) = (shared.clone(), tell.clone());
            std::thread::spawn(move || tell.send(shared.push(Request::Ahead(Box::new(|_| ()))).is_ok()));
        }
        assert!(told.recv_timeout(Duration::from_millis(50)).is_err(), "there is no room");
        let mut taken = Vec::new();
        assert!(!wait_for_work(&shared, shared.lock(), &mut taken, None).1);
        assert_eq!(taken.len(), QUEUE_LIMIT);
        for _ in 0..2 {
            assert_eq!(told.recv_timeout(Duration::from_secs(30)), Ok(true), "woken");
        }
        // Those who come when there is room wake the committer alone.
        taken.clear();
        assert!(!wait_for_work(&shared, shared.lock(), &mut taken, None).1);
        assert_eq!(taken.len(), 2);
    }
}
