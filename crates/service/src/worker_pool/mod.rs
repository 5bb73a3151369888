//! A pool of workers, each on a thread of its own, by what they look after. What they do is no matter of the pool: a
//! worker is told something, does what there is to do, waits until something happens, and leaves when nothing does.

mod backoff;
mod inbox;
mod semaphore;

use std::collections::HashMap;
use std::hash::Hash;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

pub(crate) use backoff::{BackOff, Rest};
pub(crate) use inbox::Inbox;
pub(crate) use semaphore::Semaphore;

use crate::lock::locked;

/// What others see of a worker.
pub(crate) trait Seat: Send + Sync + 'static {
    /// What it can be told.
    type Command: Send;

    /// Where it is told.
    fn inbox(&self) -> &Inbox<Self::Command>;
}

/// What a worker's thread does.
pub(crate) trait Work: Send + 'static {
    /// Does what there is to do without waiting; returns how long to wait for something to happen, or nothing if the work
    /// is over.
    fn work(&mut self) -> Option<Duration>;

    /// Waits until something happens, or for so long; tells whether that was in vain.
    fn wait(&self, most: Duration) -> bool;

    /// Tells whether nothing goes on for which it would be needed.
    fn is_idle(&self) -> bool;

    /// It was idle and has waited in vain: it leaves, unless it was just told something; returns whether it has left.
    fn leave(&mut self) -> bool;
}

/// Workers that were hired without threads, if that is how they are hired: a test has them work.
#[cfg(test)]
pub(crate) type ByHand<S, W> = Mutex<Option<Vec<(Arc<S>, W)>>>;

/// The workers.
pub(crate) struct Pool<K, S> {
    seats: Mutex<HashMap<K, Arc<S>>>,
}

impl<K, S> Default for Pool<K, S> {
    fn default() -> Pool<K, S> {
        Pool { seats: Mutex::default() }
    }
}

impl<K: Copy + Eq + Hash, S: Seat> Pool<K, S> {
    /// Tells a worker something, hiring one if there is none.
    pub(crate) fn send<W: Work>(
        &self,
        key: K,
        command: S::Command,
        name: &str,
        hire: impl FnOnce() -> io::Result<(Arc<S>, W)>,
    ) -> io::Result<()> {
        let mut seats = locked(&self.seats);
        if let Some(seat) = seats.get(&key) {
            seat.inbox().push(command);
            return Ok(());
        }
        let (seat, worker) = hire()?;
        seat.inbox().push(command);
        std::thread::Builder::new().name(name.to_owned()).stack_size(1 << 20).spawn(move || run(worker))?;
        seats.insert(key, seat);
        Ok(())
    }

    /// Adds a worker that has no thread: whoever has it has it work.
    #[cfg(test)]
    pub(crate) fn add(&self, key: K, seat: Arc<S>) {
        locked(&self.seats).insert(key, seat);
    }

    /// Returns what is seen of a worker, if there is one.
    pub(crate) fn get(&self, key: K) -> Option<Arc<S>> {
        locked(&self.seats).get(&key).cloned()
    }

    /// Returns what the workers look after.
    pub(crate) fn keys(&self) -> Vec<K> {
        locked(&self.seats).keys().copied().collect()
    }

    /// Returns what is seen of all workers.
    pub(crate) fn seats(&self) -> Vec<Arc<S>> {
        locked(&self.seats).values().cloned().collect()
    }

    /// Lets go of a worker, unless it was just told something: then only one that leaves whatever comes.
    pub(crate) fn dismiss(&self, key: K, seat: &S, whatever_comes: bool) -> bool {
        let mut seats = locked(&self.seats);
        let may = whatever_comes || seat.inbox().is_empty();
        if may {
            seats.remove(&key);
        }
        may
    }

    /// Waits until all workers have left, but not for ever; returns how many have not.
    pub(crate) fn await_empty(&self, most: Duration) -> usize {
        let begin = Instant::now();
        loop {
            let left = locked(&self.seats).len();
            if left == 0 || begin.elapsed() >= most {
                return left;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn run(mut worker: impl Work) {
    while let Some(most) = worker.work() {
        if most.is_zero() {
            continue;
        }
        let idle = worker.is_idle();
        if worker.wait(most) && idle && worker.leave() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Weak;

    use super::*;

    struct Counter {
        inbox: Inbox<u64>,
        sum: Mutex<u64>,
    }

    impl Seat for Counter {
        type Command = u64;

        fn inbox(&self) -> &Inbox<u64> {
            &self.inbox
        }
    }

    /// Adds up what it is told, and leaves as soon as nothing comes.
    struct Adder {
        pool: Weak<Pool<u8, Counter>>,
        seat: Arc<Counter>,
    }

    impl Work for Adder {
        fn work(&mut self) -> Option<Duration> {
            while let Some(number) = self.seat.inbox.pop() {
                *locked(&self.seat.sum) += number;
            }
            Some(Duration::from_millis(1))
        }

        fn wait(&self, most: Duration) -> bool {
            self.seat.inbox.wait(None, Some(most))
        }

        fn is_idle(&self) -> bool {
            true
        }

        fn leave(&mut self) -> bool {
            self.pool.upgrade().is_none_or(|pool| pool.dismiss(1, &self.seat, false))
        }
    }

    #[test]
    fn a_worker_that_leaves_misses_nothing_that_it_was_told() {
        let pool = Arc::new(Pool::<u8, Counter>::default());
        let mut counters: Vec<Arc<Counter>> = Vec::new();
        for number in 0..2_000 {
            pool.send(1, number, "adder", || {
                let seat = Arc::new(Counter { inbox: Inbox::new()?, sum: Mutex::default() });
                counters.push(seat.clone());
                Ok((seat.clone(), Adder { pool: Arc::downgrade(&pool), seat }))
            })
            .expect("told");
            if number % 100 == 0 {
                assert_eq!(pool.await_empty(Duration::from_secs(30)), 0, "it leaves when nothing comes");
            }
        }
        assert_eq!(pool.await_empty(Duration::from_secs(30)), 0);
        assert!(counters.len() >= 20, "another one was hired after each had left");
        assert_eq!(counters.iter().map(|counter| *locked(&counter.sum)).sum::<u64>(), 1_999_000);
    }

    #[test]
    fn nobody_is_in_the_pool_who_could_not_be_hired() {
        let pool = Pool::<u8, Counter>::default();
        let refused = pool.send(1, 1, "nobody", || Err::<(_, Adder), _>(io::ErrorKind::OutOfMemory.into()));
        assert!(refused.is_err() && pool.get(1).is_none() && pool.keys().is_empty());
    }
}
