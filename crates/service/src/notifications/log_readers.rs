//! Threads that read logs for notifications. A disk may hang: then the log that is on it is waited for, and the others are read by
//! another thread. There are few of these, and none while there is nothing to read.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::lock::locked;

/// Threads at the same time: so many logs may hang before the others wait for them.
const MOST_THREADS: usize = 4;

/// How long a log may take before another thread reads the others.
const PATIENCE: Duration = Duration::from_millis(250);

/// How long a thread stays that has nothing to do.
const IDLE: Duration = Duration::from_secs(10);

/// What is to be read.
type Job = Box<dyn FnOnce() + Send>;

/// The threads.
#[derive(Default)]
pub(super) struct LogReaders(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    more: Condvar,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    idle: usize,
    /// Since when each thread is at its log.
    busy: Vec<Option<Instant>>,
}

impl LogReaders {
    /// Has something read.
    pub(super) fn submit(&self, job: Job) {
        locked(&self.0.state).jobs.push_back(job);
        self.relieve();
    }

    /// Sees to it that somebody reads what is to be read; to be called again while anything is.
    pub(super) fn relieve(&self) {
        let mut state = locked(&self.0.state);
        if state.jobs.is_empty() {
            return;
        }
        if state.idle > 0 {
            return self.0.more.notify_one();
        }
        let working = state.busy.iter().flatten();
        let all_hang = working.clone().all(|since| since.elapsed() >= PATIENCE);
        let free = state.busy.iter().position(Option::is_none);
        if !all_hang || working.count() >= MOST_THREADS {
            return;
        }
        let place = free.unwrap_or_else(|| {
            state.busy.push(None);
            state.busy.len() - 1
        });
        state.busy[place] = Some(Instant::now());
        let shared = self.0.clone();
        let begun = std::thread::Builder::new().name("notify-read".into()).spawn(move || shared.work(place));
        if let Err(error) = begun {
            state.busy[place] = None;
            tracing::warn!("logs cannot be read for notifications at the moment: {error}");
        }
    }
}

impl Shared {
    fn work(&self, place: usize) {
        let mut state = locked(&self.state);
        loop {
            if let Some(job) = state.jobs.pop_front() {
                state.busy[place] = Some(Instant::now());
                drop(state);
                job();
                state = locked(&self.state);
                continue;
            }
            // Whoever rests is not one that hangs.
            state.busy[place] = None;
            state.idle += 1;
            let waited = self.more.wait_timeout_while(state, IDLE, |state| state.jobs.is_empty());
            let (after, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            state = after;
            state.idle -= 1;
            if timeout.timed_out() && state.jobs.is_empty() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn a_log_that_hangs_keeps_only_itself() {
        let readers = LogReaders::default();
        let (release, hang) = channel::<()>();
        let hang = Arc::new(Mutex::new(hang));
        for _ in 0..MOST_THREADS - 1 {
            let hang = hang.clone();
            readers.submit(Box::new(move || assert!(locked(&hang).recv().is_err())));
        }
        let (tell, told) = channel();
        readers.submit(Box::new(move || tell.send(()).expect("somebody listens")));
        let begin = Instant::now();
        while told.try_recv().is_err() {
            assert!(begin.elapsed() < Duration::from_secs(20), "the others wait for those that hang");
            readers.relieve();
            std::thread::yield_now();
        }
        assert!(locked(&readers.0.state).busy.len() <= MOST_THREADS);
        drop(release);
    }
}
