//! Crash reports: which session a daemon was working on when it panicked, so that the next one can leave it alone. Whoever works
//! on one session says so for that time ([`at_work`]); the daemon's panic hook adds a line to the session's reports
//! ([`report`]), and the store reads all of them when it is opened.

use std::cell::Cell;
use std::collections::HashMap;
use std::io;
use std::marker::PhantomData;
use std::sync::{Arc, RwLock};

use rekindle_domain::id::{SessionId, StreamId};
use rekindle_domain::quarantine::{Crash, Quarantine};

use crate::disk::{Disk, OpenMode, if_exists, read_all, write_all_at};
use crate::layout::Layout;

/// Largest file of reports that is added to or read: the first hundreds of crashes say it all.
const MAX_REPORTS: u64 = 256 << 10;

/// Most of a panic's message that is kept, in bytes: enough for a person, and a line is written in one piece.
const MAX_MESSAGE: usize = 2000;

/// Work on a session: which one, and what is done with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Work {
    /// The session.
    pub session: SessionId,
    /// What is done with it, in a word.
    pub doing: &'static str,
}

thread_local! {
    static AT_WORK: Cell<Option<Work>> = const { Cell::new(None) };
}

/// A guard for as long as this thread works on a session.
#[must_use]
#[derive(Debug)]
pub struct AtWork {
    before: Option<Work>,
    /// It belongs to its thread.
    _here: PhantomData<*const ()>,
}

impl Drop for AtWork {
    fn drop(&mut self) {
        // A thread that ends has nothing at work any more.
        let _ = AT_WORK.try_with(|at_work| at_work.set(self.before));
    }
}

/// Notes that this thread works on a session until the guard is dropped. Costs a copy in memory and nothing else.
pub fn at_work(session: impl Into<StreamId>, doing: &'static str) -> AtWork {
    let work = session.into().session().map(|session| Work { session, doing });
    let before = AT_WORK.with(|at_work| at_work.replace(work));
    panic_if_wanted(work);
    AtWork { before, _here: PhantomData }
}

/// Returns what this thread is working on.
pub fn current() -> Option<Work> {
    AT_WORK.try_with(Cell::get).ok().flatten()
}

/// Panics if `REKINDLE_PANIC_AT` names this work, as `doing@session`: for tests, and only in builds that are made for them.
#[cfg(any(debug_assertions, feature = "fault-injection"))]
fn panic_if_wanted(work: Option<Work>) {
    use std::sync::LazyLock;

    static WANTED: LazyLock<Option<String>> = LazyLock::new(|| std::env::var("REKINDLE_PANIC_AT").ok());

    if let (Some(wanted), Some(Work { session, doing })) = (&*WANTED, work)
        && wanted.split_once('@') == Some((doing, session.as_str()))
    {
        panic!("REKINDLE_PANIC_AT is {wanted}");
    }
}

#[cfg(not(any(debug_assertions, feature = "fault-injection")))]
fn panic_if_wanted(_: Option<Work>) {}

/// Adds a crash to a session's reports, durably. A crash in the middle leaves a line that is no report, and is passed over.
pub fn report(disk: &dyn Disk, layout: &Layout, session: SessionId, mut crash: Crash) -> io::Result<()> {
    crash.message.truncate(crash.message.floor_char_boundary(MAX_MESSAGE));
    disk.create_dir(&layout.crashes())?;
    let file = disk.open(&layout.crash_report(session), OpenMode::Create)?;
    let len = file.stat()?.len;
    if len >= MAX_REPORTS {
        return Ok(());
    }
    // Behind a line that was cut short it stands on its own.
    let line = format!("{}{}\n", if len > 0 { "\n" } else { "" }, serde_json::to_string(&crash)?);
    write_all_at(&*file, line.as_bytes(), len)?;
    file.sync()?;
    disk.sync_dir(&layout.crashes())?;
    disk.sync_dir(layout.home())
}

/// Reads the reports of a session's crashes; what is no report is passed over.
pub(crate) fn read(disk: &dyn Disk, layout: &Layout, session: SessionId) -> io::Result<Vec<Crash>> {
    let bytes = if_exists(read_all(disk, &layout.crash_report(session), 2 * MAX_REPORTS))?;
    let lines = bytes.as_deref().unwrap_or_default().split(|byte| *byte == b'\n');
    Ok(lines.filter_map(|line| serde_json::from_slice(line).ok()).collect())
}

/// Removes the reports of a session's crashes, durably; tells whether there were any.
pub fn remove(disk: &dyn Disk, layout: &Layout, session: SessionId) -> io::Result<bool> {
    let removed = if_exists(disk.remove_file(&layout.crash_report(session)))?.is_some();
    if removed {
        disk.sync_dir(&layout.crashes())?;
    }
    Ok(removed)
}

/// The sessions of a home that are left alone because they made daemons of this version crash.
#[derive(Debug, Clone, Default)]
pub(crate) struct Quarantined(Arc<RwLock<HashMap<SessionId, Arc<Quarantine>>>>);

impl Quarantined {
    /// Reads all reports of a home. What cannot be read keeps nobody from anything.
    pub(crate) fn read(disk: &dyn Disk, layout: &Layout) -> Quarantined {
        let names = disk.list(&layout.crashes()).unwrap_or_default();
        let sessions = names.iter().filter_map(|entry| Layout::crashed_session(&entry.name));
        let decide = |session| {
            let crashes = read(disk, layout, session).ok()?;
            Some((session, Arc::new(Quarantine::decide(&crashes, env!("CARGO_PKG_VERSION"))?)))
        };
        Quarantined(Arc::new(RwLock::new(sessions.filter_map(decide).collect())))
    }

    /// Returns why a session is left alone, if it is.
    pub(crate) fn get(&self, session: SessionId) -> Option<Arc<Quarantine>> {
        self.0.read().unwrap_or_else(std::sync::PoisonError::into_inner).get(&session).cloned()
    }

    /// Has a session used again.
    pub(crate) fn release(&self, session: SessionId) {
        self.0.write().unwrap_or_else(std::sync::PoisonError::into_inner).remove(&session);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_noted_for_as_long_as_its_guard_lives_and_on_its_thread_alone() {
        let [outer, inner] = ["sess_outer", "sess_inner"].map(|id| id.parse::<SessionId>().expect("an id"));
        assert_eq!(current(), None);
        let guard = at_work(outer, "request");
        {
            let _guard = at_work(inner, "load");
            assert_eq!(current(), Some(Work { session: inner, doing: "load" }));
            assert_eq!(std::thread::spawn(current).join().expect("a thread"), None);
        }
        assert_eq!(current(), Some(Work { session: outer, doing: "request" }));
        drop(guard);
        assert_eq!(current(), None);
    }
}
