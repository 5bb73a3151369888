//! Staged sessions: what a bundle brought, below `imports/`, checked and made ready there before anything of it gets its place. A
//! staging directory has the layout of a home with nothing but sessions; nobody looks for sessions in it, and after a crash it is
//! worth nothing.

use std::io;
use std::path::{Path, PathBuf};

use rekindle_domain::event::{ForkedFrom, SessionCreated};
use rekindle_domain::id::SessionId;
use rekindle_domain::line::Draft;
use rekindle_domain::session::{Position, Replay, SessionState};
use rekindle_domain::time::Timestamp;
use rekindle_domain::token::TokenIndex;

use crate::aside::lines;
use crate::disk::{Disk, DiskFile, EntryKind, OpenMode, SharedDisk, if_exists, write_all_at};
use crate::error::{AtPath, PathError};
use crate::history;
use crate::home_files::HomeFiles;
use crate::layout::Layout;
use crate::log::{Damage, LogReader, Stop, walk};

/// Why a staged session cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StagedError {
    /// Its log is not one.
    #[error("the log of {session} is damaged {damage}")]
    Damaged {
        /// The session.
        session: SessionId,
        /// Where, and how.
        damage: Damage,
    },
    /// What it goes on from is not what it says.
    #[error("the history of {session} is not valid: {why}")]
    History {
        /// The session.
        session: SessionId,
        /// Why not.
        why: String,
    },
    /// Records cannot be put behind it.
    #[error("the log of {session} cannot be continued: {why}")]
    Unfit {
        /// The session.
        session: SessionId,
        /// Why not.
        why: String,
    },
    /// A file cannot be used.
    #[error(transparent)]
    File(#[from] PathError),
}

/// A session in a staging directory, read from its first record to its last.
pub struct StagedSession {
    home: HomeFiles,
    replay: Replay,
    /// Why what it goes on from is not there, if it is not.
    missing: Option<String>,
}

impl StagedSession {
    /// Reads a staged log, and before it what it goes on from: every record must follow the one before it.
    pub fn open(disk: SharedDisk, staging: &Path, session: SessionId) -> Result<StagedSession, StagedError> {
        let home = HomeFiles::new(disk, Layout::new(staging));
        let path = home.log(session);
        let reader = LogReader::open(&*home.disk, &path, home.codec()).at_path("read", &path)?;
        let mut replay = Replay::new(session);
        let damaged = |damage: Damage| StagedError::Damaged { session, damage };
        match walk(&reader, &mut replay, u64::MAX).at_path("read", &path)? {
            Stop::End => {}
            Stop::Damaged(damage) => return Err(damaged(damage)),
            Stop::Torn(torn) => {
                let detail = "it ends with an incomplete record".into();
                return Err(damaged(Damage { offset: torn.begin().offset(), detail }));
            }
        }
        if !replay.state.is_created() || replay.state.deleted {
            return Err(damaged(Damage {
                offset: 0,
                detail: "it is not a session that could continue".into(),
            }));
        }
        let has_base = home.disk.stat(&home.base(session)).is_ok();
        let unfit = |why: String| StagedError::History { session, why };
        let opened = history::open(&home, session).at_path("read", &path)?;
        match (replay.state.forked_from, &opened.missing) {
            (None, _) if has_base => {
                return Err(unfit("it starts from nothing, but has a history".into()));
            }
            (Some(_), Some(why)) if has_base => return Err(unfit(why.clone())),
            _ => {}
        }
        if let Some(damage) = opened.broken_base().at_path("read", &home.base(session))? {
            return Err(unfit(format!("it is damaged {damage}")));
        }
        let missing = opened.missing;
        Ok(StagedSession { home, replay, missing })
    }

    /// Returns the session as its log has it.
    pub fn state(&self) -> &SessionState {
        &self.replay.state
    }

    /// Returns its tokens.
    pub fn tokens(&self) -> TokenIndex {
        let state = &self.replay.state;
        let empty = || TokenIndex::empty_at(state.id, state.position());
        self.replay.tokens.clone().unwrap_or_else(empty)
    }

    /// Returns why what it goes on from is not there, if it is not.
    pub fn missing(&self) -> Option<&str> {
        self.missing.as_deref()
    }

    /// Puts records behind its last one, as one append, durably.
    pub fn append(&mut self, drafts: &[Draft], now: Timestamp) -> Result<(), StagedError> {
        let (session, end) = (self.replay.state.id, self.replay.position().log_offset);
        let path = self.home.log(session);
        let lines = lines(self.home.codec(), &mut self.replay, drafts, now);
        let lines = lines.map_err(|why| StagedError::Unfit { session, why })?;
        let write = || {
            let file = self.home.disk.open(&path, OpenMode::Write)?;
            write_all_at(&*file, &lines, end)?;
            file.sync()
        };
        Ok(write().at_path("write", &path)?)
    }

    /// Makes its whole history what another session goes on from, which begins with the record that `first` returns: for a session
    /// whose id is taken. Its own files are not needed any more.
    pub fn into_base_of(
        self,
        child: SessionId,
        first: impl FnOnce(&SessionState, ForkedFrom) -> SessionCreated<'static>,
        now: Timestamp,
    ) -> Result<StagedSession, StagedError> {
        let StagedSession { home, replay, missing } = self;
        let session = replay.state.id;
        if let Some(why) = missing {
            return Err(StagedError::History { session, why });
        }
        let (log, base) = (home.log(session), home.base(child));
        let opened = history::open(&home, session).at_path("read", &log)?;
        let (position, bytes) = (replay.position(), opened.reader.end().offset());
        let keep = || {
            let file = home.disk.open(&base, OpenMode::Replace)?;
            opened.reader.copy_to(&*file, bytes)?;
            file.sync()
        };
        keep().at_path("write", &base)?;
        let root = Some(opened.root).filter(|root| *root != session);
        let (seq, h) = (position.last_seq, position.last_hash);
        let from = ForkedFrom { session_id: session, seq, h, bytes: Some(bytes), root, snapshot: None };
        let created = first(&replay.state, from);
        let state = SessionState::forked(child, &from);
        let mut tokens = TokenIndex::empty(child);
        tokens.set_position(Position::forked(&from));
        let own = home.log(child);
        home.disk.open(&own, OpenMode::Replace).at_path("make", &own)?;
        let mut forked = StagedSession { replay: Replay::from(state, Some(tokens)), home, missing: None };
        forked.append(&[created.into()], now)?;
        for path in [log, forked.home.base(session)] {
            if_exists(forked.home.disk.remove_file(&path)).at_path("remove", &path)?;
        }
        Ok(forked)
    }
}

/// Takes the lock of whoever imports a bundle; none if somebody else does.
pub fn lock_imports(disk: &dyn Disk, layout: &Layout) -> Result<Option<Box<dyn DiskFile>>, PathError> {
    let (directory, path) = (layout.imports(), layout.imports_lock());
    if disk.stat(&directory).is_err() {
        let made = disk.create_dir(&directory).and_then(|()| disk.sync_dir(layout.home()));
        made.at_path("make", &directory)?;
    }
    let file = disk.open(&path, OpenMode::Create).at_path("open", &path)?;
    let taken = file.try_lock().at_path("lock", &path)?;
    Ok(taken.then_some(file))
}

/// Tells whether somebody imports a bundle at this moment.
pub fn is_importing(disk: &dyn Disk, layout: &Layout) -> bool {
    let lock = disk.open(&layout.imports_lock(), OpenMode::Read);
    lock.is_ok_and(|file| matches!(file.try_lock(), Ok(false)))
}

/// Returns what imports have left that were cut short, or that go on.
pub fn leftovers(disk: &dyn Disk, layout: &Layout) -> io::Result<Vec<PathBuf>> {
    let directory = layout.imports();
    let entries = if_exists(disk.list(&directory))?.unwrap_or_default();
    let staged = entries.into_iter().filter(|entry| entry.kind == EntryKind::Dir);
    Ok(staged.map(|entry| directory.join(entry.name)).collect())
}

/// Takes back what an import that was cut short has moved already: files of sessions that have no log here, which is moved last, so that
/// nobody knows these files yet. A log that is still staged goes first: whoever is about to move it finds it gone.
pub fn take_back(disk: &dyn Disk, layout: &Layout, staging: &Path, sessions: &[SessionId]) -> io::Result<()> {
    for session in sessions {
        if_exists(disk.remove_file(&Layout::new(staging).log(*session)))?;
        if if_exists(disk.stat(&layout.log(*session)))?.is_none() {
            if_exists(disk.remove_file(&layout.base(*session)))?;
            remove(disk, &layout.history(*session))?;
            disk.sync_dir(&layout.sessions())?;
        }
    }
    Ok(())
}

/// Removes a staging directory with everything in it.
pub fn remove(disk: &dyn Disk, staging: &Path) -> io::Result<()> {
    for entry in if_exists(disk.list(staging))?.unwrap_or_default() {
        let path = staging.join(&entry.name);
        match entry.kind {
            EntryKind::Dir => remove(disk, &path)?,
            EntryKind::File | EntryKind::Other => drop(if_exists(disk.remove_file(&path))?),
        }
    }
    if_exists(disk.remove_dir(staging)).map(drop)
}

/// Returns how much room a staging directory takes.
pub fn size(disk: &dyn Disk, staging: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in disk.list(staging)? {
        let path = staging.join(&entry.name);
        bytes += if entry.kind == EntryKind::Dir { size(disk, &path)? } else { disk.stat(&path)?.len };
    }
    Ok(bytes)
}
