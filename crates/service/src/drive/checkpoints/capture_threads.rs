//! The threads that capture directories: a few for all sessions, there only while there is something to capture.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use crate::lock::locked;

/// Directories that are captured at a time: each capture uses all processors by itself.
const MOST_THREADS: usize = 2;

/// A capture; told whether there is a thread for it, else it only says that there is none.
pub(super) type Job = Box<dyn FnOnce(bool) + Send>;

/// Threads, and what waits for one.
#[derive(Default)]
pub(super) struct CaptureThreads(Mutex<State>);

#[derive(Default)]
struct State {
    waiting: VecDeque<Job>,
    threads: usize,
}

impl CaptureThreads {
    /// Has a job done, behind those that wait.
    pub(super) fn submit(self: &Arc<CaptureThreads>, job: Job) {
        let mut state = locked(&self.0);
        state.waiting.push_back(job);
        if state.threads >= MOST_THREADS {
            return;
        }
        let pool = self.clone();
        let spawned = std::thread::Builder::new().name("checkpoint".into()).spawn(move || pool.work());
        match spawned {
            Ok(_) => state.threads += 1,
            Err(error) => {
                tracing::warn!("cannot start a thread for a checkpoint: {error}");
                // Those that there are will come to it.
                let job = if state.threads == 0 { state.waiting.pop_back() } else { None };
                drop(state);
                if let Some(job) = job {
                    job(false);
                }
            }
        }
    }

    /// Does what waits until nothing does.
    fn work(&self) {
        loop {
            let mut state = locked(&self.0);
            let Some(job) = state.waiting.pop_front() else {
                state.threads -= 1;
                return;
            };
            drop(state);
            job(true);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use super::*;

    const DEADLINE: Duration = Duration::from_secs(30);

    #[test]
    fn some_are_captured_at_a_time_and_all_in_the_end() {
        let pool = Arc::new(CaptureThreads::default());
        let (begun, begins) = channel();
        let gates: Vec<_> = (0..5).map(|_| channel::<()>()).collect();
        let mut opened = Vec::new();
        for (number, (open, gate)) in gates.into_iter().enumerate() {
            let begun = begun.clone();
            pool.submit(Box::new(move |_| {
                begun.send(number).expect("told");
                let _ = gate.recv_timeout(DEADLINE);
            }));
            opened.push(open);
        }
        let mut first: Vec<usize> =
            (0..MOST_THREADS).map(|_| begins.recv_timeout(DEADLINE).expect("begun")).collect();
        first.sort_unstable();
        assert_eq!(first, [0, 1]);
        assert!(begins.try_recv().is_err(), "the others wait");
        drop(opened);
        let mut rest: Vec<usize> = (0..3).map(|_| begins.recv_timeout(DEADLINE).expect("begun")).collect();
        rest.sort_unstable();
        assert_eq!(rest, [2, 3, 4]);
    }
}
