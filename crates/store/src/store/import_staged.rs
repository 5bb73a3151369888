//! Taking in a session that was staged: its files get their place, the log last. Whoever dies before that has no such session, and
//! afterwards it is there whole.

use std::io;
use std::path::{Path, PathBuf};

use rekindle_domain::id::{RunName, SessionId};

use super::{Store, locked};
use crate::aside::is_taken;
use crate::commit::Commits;
use crate::disk::{EntryKind, if_exists};
use crate::error::{AtPath, PathError};
use crate::history;
use crate::layout::Layout;
use crate::session_files;

/// Why a staged session was not taken in.
#[derive(Debug, thiserror::Error)]
pub enum ImportStagedError {
    /// There is a session of this id.
    #[error("session {0} already exists here")]
    Exists(SessionId),
    /// Nothing of that id was staged.
    #[error("no log of session {0} was staged")]
    NotStaged(SessionId),
    /// There is a run of this name.
    #[error("run {0} already exists here")]
    RunExists(RunName),
    /// Nothing of that run was staged.
    #[error("no ledger of run {0} was staged")]
    RunNotStaged(RunName),
    /// The write-ahead log could not be cleared of what it may have of an earlier session of this id.
    #[error("the write-ahead log cannot be written out before the bundle is imported")]
    Checkpoint(#[source] io::Error),
    /// A file cannot be moved.
    #[error(transparent)]
    File(#[from] PathError),
}

impl<C: Commits> Store<C> {
    /// Tells whether anything here is called by a session's id: one that is here, was lost, was set aside or made daemons crash.
    pub fn has_any(&self, session: SessionId) -> io::Result<bool> {
        self.await_list_compared()?;
        is_taken(&*self.home.disk, &self.home, session)
    }

    /// Takes in a session that was staged, durably. Its log is moved last.
    pub fn import_staged(&self, staging: &Path, session: SessionId) -> Result<(), ImportStagedError> {
        let (disk, staged) = (&*self.home.disk, Layout::new(staging));
        // Whoever removes a session that this one goes on from finds it, or has removed it before.
        let mut forks = locked(&self.forks);
        if self.has_any(session).at_path("look for", &self.home.log(session))? {
            return Err(ImportStagedError::Exists(session));
        }
        let log = staged.log(session);
        if if_exists(disk.stat(&log)).at_path("look at", &log)?.is_none() {
            return Err(ImportStagedError::NotStaged(session));
        }
        // It may still have records of an earlier session of this id, which the next start would put in the place of these.
        self.committer.checkpoint().map_err(ImportStagedError::Checkpoint)?;
        // What an earlier try left, and caches of an earlier session.
        let sessions = self.home.sessions();
        session_files::remove(disk, &self.home, session).at_path("clear", &sessions)?;
        let base = staged.base(session);
        let renamed = if_exists(disk.rename(&base, &self.home.base(session)));
        let mut moved = renamed.at_path("move", &base)?.is_some();
        let (from, to) = (staged.history(session), self.home.history(session));
        let kept = if_exists(disk.list(&from)).at_path("list", &from)?.unwrap_or_default();
        if !kept.is_empty() {
            disk.create_dir(&to).at_path("make", &to)?;
            for entry in kept.iter().filter(|entry| entry.kind == EntryKind::File) {
                let path: PathBuf = from.join(&entry.name);
                disk.rename(&path, &to.join(&entry.name)).at_path("move", &path)?;
            }
            disk.sync_dir(&to).at_path("sync", &to)?;
            moved = true;
        }
        if moved {
            disk.sync_dir(&sessions).at_path("sync", &sessions)?;
        }
        disk.rename(&log, &self.home.log(session)).at_path("move", &log)?;
        disk.sync_dir(&sessions).at_path("sync", &sessions)?;
        if let Some(known) = &mut *forks {
            match history::forked_from(&self.home, session) {
                Ok(Some(from)) => known.add(session, from),
                Ok(None) => {}
                // Looked up anew when somebody needs them.
                Err(_) => *forks = None,
            }
        }
        Ok(())
    }
}
