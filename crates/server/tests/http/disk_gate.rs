//! A gate before a disk, at which what is done to some files waits: the machine of somebody whose disk hangs.

use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use rekindle_testkit::tapped::{Access, Tap};

#[derive(Debug, Default)]
struct State {
    /// What waits: this, of files whose name has this in it.
    closed: Option<(Access, String)>,
    /// The names of the threads that wait.
    waiting: Vec<String>,
}

/// A gate before a disk: open at first.
#[derive(Debug, Clone, Default)]
pub(crate) struct Gate(Arc<(Mutex<State>, Condvar)>);

impl Gate {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.0.lock().expect("nobody panics at the gate")
    }

    /// From now on something waits that is done to files whose name has `name` in it.
    pub(crate) fn close(&self, access: Access, name: &str) {
        self.state().closed = Some((access, name.to_owned()));
    }

    /// Lets everybody through.
    pub(crate) fn open(&self) {
        self.state().closed = None;
        self.0.1.notify_all();
    }

    /// Returns something that lets everybody through when it is dropped, however its test ends.
    pub(crate) fn open_at_end(&self) -> impl Drop {
        struct Opened(Gate);
        impl Drop for Opened {
            fn drop(&mut self) {
                self.0.open();
            }
        }
        Opened(self.clone())
    }

    /// Returns the names of the threads that wait.
    pub(crate) fn waiting(&self) -> Vec<String> {
        self.state().waiting.clone()
    }

    fn pass(&self, access: Access, path: &Path) {
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        let is_closed = |state: &State| {
            state.closed.as_ref().is_some_and(|(what, name)| *what == access && file.contains(name))
        };
        let mut state = self.state();
        if !is_closed(&state) {
            return;
        }
        let me = std::thread::current().name().unwrap_or_default().to_owned();
        state.waiting.push(me.clone());
        let mut state = self.0.1.wait_while(state, |state| is_closed(state)).expect("nobody panics");
        let at = state.waiting.iter().position(|name| *name == me).expect("who waits is in the list");
        state.waiting.swap_remove(at);
    }
}

impl Tap for Gate {
    fn before(&self, access: Access, path: &Path) {
        self.pass(access, path);
    }
}
