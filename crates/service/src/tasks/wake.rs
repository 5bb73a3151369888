//! The wake-up of the thread of tasks: what has happened since it last looked.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rekindle_domain::id::{SessionId, StreamId};

use crate::lock::locked;

/// Sessions that grow are looked at together, this long behind the first of them: whoever made it grow has its answer by then.
const TOGETHER: Duration = Duration::from_millis(20);

/// What has happened.
#[derive(Debug, Default)]
pub(crate) struct Happened {
    /// Sessions that are not what they were.
    pub(super) sessions: BTreeSet<SessionId>,
    /// When they are to be looked at.
    due: Option<Instant>,
    /// Tasks were asked for or changed.
    pub(super) tasks: bool,
    /// Nobody needs the thread any more.
    pub(super) stop: bool,
}

/// Tells the thread of tasks that something has happened. Cheap while there are neither tasks nor budgets.
#[derive(Debug, Default)]
pub(crate) struct Wake {
    happened: Mutex<Happened>,
    bell: Condvar,
    /// There are neither tasks that have not ended nor budgets: what sessions do does not matter. Known once somebody has looked.
    pub(super) ignores_sessions: AtomicBool,
}

impl Wake {
    /// A stream has grown.
    pub(crate) fn grown(&self, stream: StreamId) {
        match stream.session() {
            None if stream == StreamId::tasks() => self.look(),
            None => {}
            Some(session) => self.changed(session),
        }
    }

    /// A session is not what it was.
    pub(crate) fn changed(&self, session: SessionId) {
        if !self.ignores_sessions.load(Ordering::Relaxed) {
            let mut happened = locked(&self.happened);
            happened.sessions.insert(session);
            // The thread is told of the first, and finds the others.
            if happened.due.is_none() {
                happened.due = Some(Instant::now() + TOGETHER);
                self.bell.notify_one();
            }
        }
    }

    /// Tasks are to be looked at.
    pub(crate) fn look(&self) {
        locked(&self.happened).tasks = true;
        self.bell.notify_one();
    }

    /// The thread is to leave.
    pub(crate) fn stop(&self) {
        locked(&self.happened).stop = true;
        self.bell.notify_one();
    }

    /// Waits until something has happened, or for so long, and returns what has.
    pub(super) fn wait(&self, most: Duration) -> Happened {
        let (end, mut happened) = (Instant::now() + most, locked(&self.happened));
        loop {
            let due = happened.due.map_or(end, |due| due.min(end));
            let left = due.saturating_duration_since(Instant::now());
            if happened.tasks || happened.stop || left.is_zero() {
                return std::mem::take(&mut happened);
            }
            happened = self.bell.wait_timeout(happened, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn sessions_are_looked_at_together_and_tasks_at_once() {
        let wake = Wake::default();
        let sessions = [SessionId::from_ulid(1), SessionId::from_ulid(2)];
        wake.ignores_sessions.store(true, Ordering::Relaxed);
        sessions.into_iter().for_each(|session| wake.changed(session));
        assert!(wake.wait(Duration::ZERO).sessions.is_empty(), "without tasks nobody asks");

        // What happens before anybody has looked whether there are tasks is not lost.
        let wake = Wake::default();
        let begin = Instant::now();
        sessions.into_iter().for_each(|session| wake.changed(session));
        assert!(wake.wait(LONG).sessions.into_iter().eq(sessions));
        assert!(begin.elapsed() >= TOGETHER);
        assert!(wake.wait(Duration::ZERO).sessions.is_empty(), "once");

        // Whoever looks for another reason takes what there is along, and the next begins anew.
        wake.changed(sessions[0]);
        wake.look();
        let happened = wake.wait(LONG);
        assert!(happened.tasks && happened.sessions.into_iter().eq([sessions[0]]));
        let begin = Instant::now();
        wake.changed(sessions[1]);
        assert!(wake.wait(LONG).sessions.into_iter().eq([sessions[1]]));
        assert!(begin.elapsed() >= TOGETHER);
    }

    #[test]
    fn a_thread_that_waits_is_told() {
        let wake = Wake::default();
        let session = SessionId::from_ulid(1);
        let woken_by = |act: &(dyn Fn() + Sync)| {
            std::thread::scope(|scope| {
                let (tell, told) = std::sync::mpsc::channel();
                let wake = &wake;
                let waits = scope.spawn(move || {
                    tell.send(()).expect("somebody listens");
                    wake.wait(LONG)
                });
                told.recv().expect("it begins");
                std::thread::yield_now();
                act();
                waits.join().expect("it does not panic")
            })
        };
        // Often enough that it sleeps already in some of the rounds.
        for _ in 0..20 {
            assert!(woken_by(&|| wake.changed(session)).sessions.contains(&session));
            assert!(woken_by(&|| wake.look()).tasks);
            assert!(woken_by(&|| wake.stop()).stop);
        }
    }
}
