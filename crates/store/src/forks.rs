//! The forks of sessions: which histories are read through whose log. Known from the list cache and from first records, never from
//! whole logs, and looked up only when a session is to go: before its log does, each fork gets a base file.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::Path;
use std::sync::Arc;

use rekindle_domain::event::ForkedFrom;
use rekindle_domain::id::SessionId;
use rekindle_domain::kept_snapshot::SnapshotName;

use crate::disk::{Disk, RetryDisk, SharedDisk};
use crate::history;
use crate::home_files::HomeFiles;
use crate::index::Index;
use crate::layout::Layout;
use crate::offline::Offline;
use crate::survey::list;

/// The forks of every session.
#[derive(Debug, Default)]
pub(crate) struct Forks(HashMap<SessionId, Vec<(SessionId, ForkedFrom)>>);

impl Forks {
    /// Finds all forks of a home. What a session is forked from never changes, so an entry of the list cache says it, however old.
    pub(crate) fn read(home: &HomeFiles) -> io::Result<Forks> {
        let (listing, index) = (list(home)?, Index::read(home));
        let mut forks = Forks::default();
        for session in listing.sessions {
            let from = match index.forked_from(session) {
                Some(known) => known,
                None => history::forked_from(home, session)?,
            };
            if let Some(from) = from {
                forks.add(session, from);
            }
        }
        Ok(forks)
    }

    /// Adds a fork that was made.
    pub(crate) fn add(&mut self, fork: SessionId, from: ForkedFrom) {
        self.0.entry(from.session_id).or_default().push((fork, from));
    }

    /// Returns the kept snapshots of a session that its forks name.
    pub(crate) fn snapshots(&self, session: SessionId) -> HashSet<SnapshotName> {
        self.0.get(&session).into_iter().flatten().filter_map(|(_, from)| from.snapshot).collect()
    }

    /// Forgets a session that goes, as the fork of another.
    pub(crate) fn forget(&mut self, fork: SessionId) {
        self.0.values_mut().for_each(|forks| forks.retain(|(known, _)| *known != fork));
    }

    /// Gives each fork of a session that has none a base file, before the session's log goes. One whose history is gone already
    /// stays as it is, and says so.
    pub(crate) fn write_bases(
        &self,
        home: &HomeFiles,
        disk: &dyn Disk,
        session: SessionId,
    ) -> io::Result<()> {
        for (fork, from) in self.0.get(&session).into_iter().flatten() {
            history::write_base(home, disk, *fork, from)?;
        }
        Ok(())
    }
}

/// Gives each fork of a session a base file, before the session is set aside, in a home that nobody owns: the write-ahead log is laid
/// over its logs to read them.
pub fn keep_forked_history(disk: &SharedDisk, home: &Path, session: SessionId) -> io::Result<()> {
    let disk = Arc::new(RetryDisk(disk.clone())) as SharedDisk;
    let offline = Offline::regardless(disk.clone(), Layout::new(home)).map_err(io::Error::other)?;
    Forks::read(offline.home())?.write_bases(offline.home(), &*disk, session)
}
