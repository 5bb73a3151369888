//! Unwritten logs: their latest records are in the write-ahead log and answered, and on their way into the logs' own files. Whoever
//! appends does not wait for that, and whoever reads such a log does: nobody finds less in it than was answered.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::path::Path;
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

use foldhash::fast::RandomState;
use rekindle_domain::id::StreamId;

use crate::layout::{Layout, SessionFile, session_file};
use crate::threads::Wake;

/// The logs that lack something, and who waits for them.
#[derive(Default)]
pub(crate) struct UnwrittenLogs {
    state: Mutex<State>,
    written: Condvar,
    /// Wakes whoever writes them.
    wake: OnceLock<Wake>,
}

#[derive(Default)]
struct State {
    /// What each is written with, at the latest.
    streams: HashMap<StreamId, Batch, RandomState>,
    /// The batch that is being put together.
    next: Batch,
    /// The first one that is not written.
    unfinished: Batch,
    readers: usize,
}

/// A number of logs that are written together; they are written in order.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Batch(u64);

impl UnwrittenLogs {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Changed in single steps: a panic elsewhere leaves it whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has whoever writes them woken by readers who wait.
    pub(crate) fn wake_with(&self, wake: Wake) {
        let _ = self.wake.set(wake);
    }

    /// Adds logs that lack what is about to be answered.
    pub(crate) fn add(&self, streams: impl Iterator<Item = StreamId>) {
        let mut state = self.lock();
        let next = state.next;
        state.streams.extend(streams.map(|stream| (stream, next)));
    }

    /// Begins to write those that were added, as one batch.
    pub(crate) fn begin(&self) -> Batch {
        let mut state = self.lock();
        let batch = state.next;
        state.next.0 += 1;
        batch
    }

    /// Ends a batch: its logs have everything that was added before it began, or count as lagging.
    pub(crate) fn finish(&self, batch: Batch) {
        let mut state = self.lock();
        state.unfinished = Batch(batch.0 + 1);
        state.streams.retain(|_, with| *with > batch);
        let waited_for = state.readers > 0;
        drop(state);
        if waited_for {
            self.written.notify_all();
        }
    }

    /// Tells whether anybody waits to read one.
    pub(crate) fn are_awaited(&self) -> bool {
        self.lock().readers > 0
    }

    /// Waits until a file has what was answered before, if it is one of these logs.
    pub(crate) fn wait_for_log(&self, layout: &Layout, path: &Path) {
        if self.is_idle() {
            return;
        }
        // Most are logs of sessions, which are told by their names; to make a path of each would cost more than the rest.
        let name = path.file_name().and_then(OsStr::to_str);
        let log = match name.map(session_file) {
            Some(SessionFile::Log(session)) => Some(session),
            _ => None,
        };
        self.wait_for(|stream| match stream.session() {
            Some(session) => log == Some(session),
            None => layout.stream_log(stream).as_os_str() == path.as_os_str(),
        });
    }

    /// Waits until a directory has every log of which something was answered before.
    pub(crate) fn wait_for_logs_in(&self, layout: &Layout, dir: &Path) {
        if self.is_idle() {
            return;
        }
        let of_sessions = layout.sessions() == dir;
        self.wait_for(|stream| match stream.session() {
            Some(_) => of_sessions,
            None => layout.stream_log(stream).parent() == Some(dir),
        });
    }

    fn is_idle(&self) -> bool {
        self.lock().streams.is_empty()
    }

    /// Waits for what these lack by now: not for what is added meanwhile, or a reader might wait for ever.
    fn wait_for(&self, concerns: impl Fn(StreamId) -> bool) {
        let mut state = self.lock();
        let lacking = state.streams.iter().filter(|(stream, _)| concerns(**stream));
        let Some(last) = lacking.map(|(_, with)| *with).max() else { return };
        state.readers += 1;
        if let Some(wake) = self.wake.get() {
            drop(state);
            wake();
            state = self.lock();
        }
        while state.unfinished <= last {
            state = self.written.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.readers -= 1;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use rekindle_domain::id::SessionId;

    use super::*;

    /// A reader that came before more was added does not wait for that.
    #[test]
    fn a_reader_waits_for_its_own_log_alone() {
        let (layout, unwritten) = (Layout::new("/home"), Arc::new(UnwrittenLogs::default()));
        let [one, other] = [1, 2].map(|n| SessionId::mint(n, 0));
        unwritten.add([other.into()].into_iter());
        let batch = unwritten.begin();
        unwritten.add([one.into()].into_iter());
        unwritten.finish(batch);
        unwritten.wait_for_log(&layout, &layout.log(other));
        unwritten.wait_for_log(&layout, &layout.stream_log(StreamId::tasks()));
        unwritten.wait_for_logs_in(&layout, layout.home());

        let (read, done) = channel();
        let reader = {
            let (layout, unwritten) = (layout.clone(), unwritten.clone());
            std::thread::spawn(move || {
                unwritten.wait_for_log(&layout, &layout.log(one));
                let _ = read.send(());
            })
        };
        while unwritten.lock().readers == 0 {
            std::thread::yield_now();
        }
        assert!(unwritten.are_awaited());
        assert!(done.recv_timeout(Duration::from_millis(20)).is_err(), "it is not written");
        let batch = unwritten.begin();
        unwritten.add([one.into(), other.into()].into_iter());
        unwritten.finish(batch);
        assert_eq!(done.recv_timeout(Duration::from_secs(30)), Ok(()));
        reader.join().expect("it ends");
    }

    #[test]
    fn the_log_of_another_kind_of_stream_is_waited_for_too() {
        let (layout, unwritten) = (Layout::new("/home"), Arc::new(UnwrittenLogs::default()));
        let tasks = StreamId::tasks();
        unwritten.add([tasks].into_iter());
        unwritten.wait_for_logs_in(&layout, &layout.sessions());
        let readers = [layout.stream_log(tasks), layout.tasks()].map(|path| {
            let (layout, unwritten) = (layout.clone(), unwritten.clone());
            std::thread::spawn(move || match path.extension() {
                Some(_) => unwritten.wait_for_log(&layout, &path),
                None => unwritten.wait_for_logs_in(&layout, &path),
            })
        });
        while unwritten.lock().readers < readers.len() {
            std::thread::yield_now();
        }
        unwritten.finish(unwritten.begin());
        readers.into_iter().for_each(|reader| reader.join().expect("it ends"));
    }
}
