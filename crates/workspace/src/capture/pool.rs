//! The stack of work that the threads of a capture share. Last in, first out: a tree is walked depth first, so that few
//! directories are open at a time.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Work for several threads, which make more of it.
pub(super) struct Pool<T> {
    state: Mutex<State<T>>,
    wake: Condvar,
}

struct State<T> {
    stack: Vec<T>,
    /// Tasks on the stack or being worked on.
    unfinished: usize,
    idle: usize,
    is_stopped: bool,
}

impl<T> Pool<T> {
    pub(super) fn new() -> Pool<T> {
        let state = State { stack: Vec::new(), unfinished: 0, idle: 0, is_stopped: false };
        Pool { state: Mutex::new(state), wake: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds tasks; the last is done first.
    pub(super) fn push(&self, tasks: impl IntoIterator<Item = T>) {
        let mut state = self.state();
        let before = state.stack.len();
        state.stack.extend(tasks);
        let added = state.stack.len() - before;
        state.unfinished += added;
        if state.idle > 0 && added > 0 {
            self.wake.notify_all();
        }
    }

    /// Returns the next task, once there is one; nothing when all are finished, or after a stop.
    pub(super) fn next(&self) -> Option<(T, Unfinished<'_, T>)> {
        let mut state = self.state();
        loop {
            if state.is_stopped || state.unfinished == 0 {
                self.wake.notify_all();
                return None;
            }
            if let Some(task) = state.stack.pop() {
                return Some((task, Unfinished(self)));
            }
            state.idle += 1;
            state = self.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
        }
    }

    /// Ends the work: what is on the stack is dropped.
    pub(super) fn stop(&self) {
        let mut state = self.state();
        state.is_stopped = true;
        state.stack.clear();
        self.wake.notify_all();
    }
}

/// A task that is being worked on. Dropped, also by a panic, it is finished, so that nobody waits for it.
pub(super) struct Unfinished<'a, T>(&'a Pool<T>);

impl<T> Drop for Unfinished<'_, T> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.unfinished -= 1;
        if state.unfinished == 0 && state.idle > 0 {
            self.0.wake.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[test]
    fn all_work_is_done_once_and_then_everybody_goes() {
        let pool = Pool::new();
        let done = AtomicU64::new(0);
        pool.push([10_u32]);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    while let Some((depth, _unfinished)) = pool.next() {
                        done.fetch_add(1, Ordering::Relaxed);
                        pool.push(depth.checked_sub(1).into_iter().flat_map(|less| [less; 2]));
                    }
                });
            }
        });
        assert_eq!(done.into_inner(), (1 << 11) - 1);
    }

    #[test]
    fn a_stop_ends_it_with_work_left() {
        let pool = Pool::new();
        pool.push(0..100);
        let (first, unfinished) = pool.next().expect("work");
        pool.stop();
        drop(unfinished);
        assert_eq!((first, pool.next().is_none()), (99, true));
    }
}
