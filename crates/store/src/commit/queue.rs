//! The committer's queue: what was handed over to its thread, and who waits for the answers.

use std::mem;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rekindle_domain::id::StreamId;

use super::{Answer, Append, Call, Outcome, Reply, Slot};
use crate::error::AppendError;

/// Most requests that wait for the committer; producers beyond it wait their turn, which bounds memory.
pub(super) const QUEUE_LIMIT: usize = 4096;

/// How long chores may wait while whoever left them goes on by himself: the thread would only be in his way. Who reads a log that
/// lacks something wakes it before.
const CHORES_WITHIN: Duration = Duration::from_millis(5);

pub(super) enum Request {
    Append(Append, Reply),
    /// Comes behind the appends before it.
    Call(Call),
    /// Lets go of a stream. It keeps the appends before it from being written together only if one of them is to that stream.
    Release(StreamId),
    /// Does not concern these.
    Ahead(Call),
}

/// A batch of requests, which are taken together, by the lowest bit of its number: those of one are answered before the next is
/// taken, and so before anybody waits for the one after that.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Batch(bool);

impl Batch {
    fn next(self) -> Batch {
        Batch(!self.0)
    }
}

/// What the thread took to do.
pub(super) struct Taken {
    /// Which batch it is.
    pub(super) batch: Batch,
    /// Nothing comes after it.
    pub(super) is_last: bool,
    /// It is nothing, but something is about to come.
    pub(super) is_more_expected: bool,
}

/// A request, and when it was handed over.
pub(super) type Timed = (Request, Instant);

/// What waits for the committer's thread.
#[derive(Default)]
pub(super) struct Waiting {
    requests: Vec<Timed>,
    /// The batch they are.
    batch: Batch,
    /// The checkpoint under way can go on, or something else that goes on beside appends.
    synced: bool,
    closed: bool,
    /// Somebody committed without the thread, and left what is not urgent.
    has_chores: bool,
    /// Somebody is about to hand over an append.
    is_expected: bool,
    /// The thread is up, or about to be: what comes now comes behind what it does.
    is_attended: bool,
}

impl Waiting {
    /// Tells whether there is nothing to be done at once.
    pub(super) fn is_idle(&self) -> bool {
        self.requests.is_empty() && !self.synced && !self.closed
    }

    /// Tells whether somebody may commit without the thread: nothing was handed over that has to come before.
    pub(super) fn is_free(&self) -> bool {
        self.is_idle() && !self.is_attended
    }

    /// Notes that the thread goes to sleep.
    pub(super) fn leave(&mut self, has_chores: bool) {
        self.is_attended = false;
        self.has_chores |= has_chores;
    }
}

/// A bounded queue in front of the committer's thread.
#[derive(Default)]
pub(super) struct CommitQueue {
    waiting: Mutex<Waiting>,
    not_empty: Condvar,
    not_full: Condvar,
    /// Everyone who waits for an outcome of a batch is woken together, and nobody else: of many callers half wait for the next one.
    answered: [Condvar; 2],
    over: Mutex<bool>,
}

impl CommitQueue {
    pub(super) fn lock(&self) -> MutexGuard<'_, Waiting> {
        // A panic elsewhere leaves the queue whole: it is changed in single steps.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until there is room in the queue; none if nothing is taken any more.
    fn wait_for_room(&self) -> Option<MutexGuard<'_, Waiting>> {
        let mut queue = self.lock();
        while queue.requests.len() >= QUEUE_LIMIT && !queue.closed {
            queue = self.not_full.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        (!queue.closed).then_some(queue)
    }

    #[expect(clippy::result_large_err, reason = "a request is given back only when the committer is gone")]
    pub(super) fn push(&self, request: Request) -> Result<Batch, Request> {
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
    pub(super) fn wake(&self, batch: Batch) {
        drop(self.over());
        self.answered(batch).notify_all();
    }

    /// Pushes several requests together: they are taken together too.
    pub(super) fn push_all(&self, requests: impl Iterator<Item = Request>) -> Option<Batch> {
        let now = Instant::now();
        let mut queue = self.wait_for_room()?;
        queue.requests.extend(requests.map(|request| (request, now)));
        let batch = queue.batch;
        drop(queue);
        self.not_empty.notify_one();
        Some(batch)
    }

    /// Waits for an outcome of a batch.
    pub(super) fn wait(&self, slot: &Slot, batch: Batch) -> Outcome {
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
    pub(super) fn go_on(&self) {
        self.lock().synced = true;
        self.not_empty.notify_all();
    }

    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.not_empty.notify_all();
        self.not_full.notify_all();
    }

    /// Sleeps until there is something to do: at once for requests, in a moment for chores, at some time for a tick. From then on the
    /// thread counts as up.
    pub(super) fn sleep(&self, tick_at: Option<Instant>) {
        let mut waiting = self.lock();
        let mut chores_at = None;
        while waiting.is_idle() && !waiting.is_expected {
            if waiting.has_chores {
                chores_at.get_or_insert_with(|| Instant::now() + CHORES_WITHIN);
            }
            let Some(at) = chores_at.into_iter().chain(tick_at).min() else {
                waiting = self.not_empty.wait(waiting).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let left = at.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let waited = self.not_empty.wait_timeout(waiting, left);
            waiting = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        waiting.is_attended = true;
    }

    /// Takes everything there is to be done.
    pub(super) fn take(&self, requests: &mut Vec<Timed>) -> Taken {
        let mut waiting = self.lock();
        mem::swap(&mut waiting.requests, requests);
        (waiting.synced, waiting.has_chores) = (false, false);
        let is_more_expected = mem::take(&mut waiting.is_expected) && requests.is_empty();
        let taken = Taken { batch: waiting.batch, is_last: waiting.closed, is_more_expected };
        waiting.batch = waiting.batch.next();
        drop(waiting);
        // Nobody waits for room unless there was none.
        if requests.len() >= QUEUE_LIMIT {
            self.not_full.notify_all();
        }
        taken
    }

    /// Wakes the thread for an append that somebody is about to hand over: that takes as long as composing it.
    pub(super) fn expect(&self) {
        let mut waiting = self.lock();
        if !waiting.is_attended && !mem::replace(&mut waiting.is_expected, true) {
            drop(waiting);
            self.not_empty.notify_one();
        }
    }

    /// Has the thread see to what somebody left who committed without it.
    pub(super) fn leave_chores(&self) {
        let had_chores = mem::replace(&mut self.lock().has_chores, true);
        if !had_chores {
            self.not_empty.notify_one();
        }
    }

    /// Ends the answers: there will be no more.
    pub(super) fn end_answers(&self) {
        self.close();
        *self.over() = true;
        self.answered.iter().for_each(Condvar::notify_all);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::mpsc::sync_channel;

    use super::*;

    #[test]
    fn whoever_waits_for_room_is_woken_when_there_is_some() {
        let queue = Arc::new(CommitQueue::default());
        let request = || Request::Ahead(Box::new(|_| ()));
        assert!(queue.push_all((0..QUEUE_LIMIT).map(|_| request())).is_some());
        let (tell, told) = sync_channel(2);
        for _ in 0..2 {
            let (queue, tell) = (queue.clone(), tell.clone());
            std::thread::spawn(move || tell.send(queue.push(Request::Ahead(Box::new(|_| ()))).is_ok()));
        }
        assert!(told.recv_timeout(Duration::from_millis(50)).is_err(), "there is no room");
        let mut taken = Vec::new();
        queue.sleep(None);
        assert!(!queue.take(&mut taken).is_last);
        assert_eq!(taken.len(), QUEUE_LIMIT);
        for _ in 0..2 {
            assert_eq!(told.recv_timeout(Duration::from_secs(30)), Ok(true), "woken");
        }
        // Those who come when there is room wake the committer alone.
        taken.clear();
        queue.sleep(None);
        assert!(!queue.take(&mut taken).is_last);
        assert_eq!(taken.len(), 2);
    }

    /// What was handed over comes before what somebody would commit by himself, until the thread has done it and sleeps.
    #[test]
    fn nobody_commits_before_what_was_handed_over() {
        let queue = CommitQueue::default();
        assert!(queue.lock().is_free());
        assert!(queue.push(Request::Ahead(Box::new(|_| ()))).is_ok());
        assert!(!queue.lock().is_free(), "handed over");
        queue.sleep(None);
        let mut taken = Vec::new();
        queue.take(&mut taken);
        assert!(!queue.lock().is_free(), "under way");
        queue.lock().leave(false);
        assert!(queue.lock().is_free(), "done");
        queue.close();
        assert!(!queue.lock().is_free(), "closed");
    }

    /// Whoever is about to append wakes a thread that sleeps; from then on appends come behind each other.
    #[test]
    fn an_append_that_is_expected_wakes_the_thread() {
        let queue = Arc::new(CommitQueue::default());
        let theirs = queue.clone();
        let thread = std::thread::spawn(move || theirs.sleep(None));
        queue.expect();
        thread.join().expect("it woke");
        assert!(!queue.lock().is_free(), "the thread is up");
        assert!(queue.take(&mut Vec::new()).is_more_expected, "nothing is there yet");
        queue.expect();
        assert!(!queue.take(&mut Vec::new()).is_more_expected, "it was awake");
        queue.lock().leave(false);
        assert!(queue.lock().is_free());
    }

    /// Whoever leaves chores wakes a thread that sleeps, and chores are no reason not to go on alone.
    #[test]
    fn chores_are_seen_to_in_a_moment() {
        let queue = Arc::new(CommitQueue::default());
        let theirs = queue.clone();
        let thread = std::thread::spawn(move || theirs.sleep(None));
        queue.leave_chores();
        thread.join().expect("it woke");
        assert!(queue.lock().has_chores);
        queue.take(&mut Vec::new());
        assert!(!queue.lock().has_chores);
        queue.lock().leave(true);
        assert!(queue.lock().is_free());
        queue.sleep(None);
    }
}
