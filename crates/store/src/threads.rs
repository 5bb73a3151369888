//! Threads: the same done to many things at once, on as many as there are to be had; and how one that sleeps is woken.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A function that wakes the committer: something that goes on beside it is over, or somebody waits for it.
pub(crate) type Wake = Arc<dyn Fn() + Send + Sync>;

/// Calls a function with each of some things, on at most so many threads; returns what it answered, in order. Without threads
/// to be had it is done on the caller's.
pub(crate) fn map_on_threads<T: Sync, R: Send>(
    most: usize,
    items: &[T],
    call: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(items.len()));
    let work = || {
        let mut own = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(index) else { break };
            own.push((index, call(item)));
        }
        done.lock().unwrap_or_else(PoisonError::into_inner).append(&mut own);
    };
    std::thread::scope(|scope| {
        for _ in 1..most.min(items.len()) {
            if std::thread::Builder::new().spawn_scoped(scope, work).is_err() {
                break;
            }
        }
        work();
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_unstable_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, answer)| answer).collect()
}

/// Returns how many threads are worth having for work that reads and parses.
pub(crate) fn worthwhile() -> usize {
    /// More threads than this gain nothing on the disks we know.
    const MOST: usize = 8;
    std::thread::available_parallelism().map_or(2, usize::from).min(MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_come_in_the_order_of_what_was_asked() {
        let items: Vec<u64> = (0..1000).collect();
        for most in [0, 1, 2, 7] {
            let doubled = map_on_threads(most, &items, |item| item * 2);
            assert!(doubled.iter().zip(&items).all(|(answer, item)| *answer == item * 2), "{most} threads");
            assert_eq!(doubled.len(), items.len(), "{most} threads");
        }
        assert!(map_on_threads(4, &[] as &[u64], |item| *item).is_empty());
    }
}
