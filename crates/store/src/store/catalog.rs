//! The sessions of a home for whoever lists and shows them: one, or all, without making any ready to be appended to.

use std::io;

use rekindle_domain::id::SessionId;
use rekindle_domain::session::SessionState;

use super::{Store, locked};
use crate::commit::Commits;
use crate::error::AtPath;
use crate::index::{self, Index};
use crate::load::{LoadError, Loaded, Want, head, load, stand_in};
use crate::missing_logs::write_lost_notes;
use crate::survey::{LARGE, Listing, Visitor, list, survey, survey_within};

impl<C: Commits> Store<C> {
    /// Loads a session without making it ready to be appended to.
    pub fn load(&self, session: SessionId, want: Want) -> Result<Loaded, LoadError> {
        match load(&self.home, session, want) {
            // One that was lost is known to be once the list is compared.
            Err(LoadError::NotFound(_)) => {
                self.await_list_compared().at_path("list", &self.home.sessions())?;
                load(&self.home, session, want)
            }
            loaded => loaded,
        }
    }

    /// Reads what can be shown of a session that cannot be loaded; nothing may be added to it.
    pub fn stand_in(&self, session: SessionId) -> Loaded {
        stand_in(&self.home, session)
    }

    /// Reads how a session began, for showing one that is still to be read.
    pub fn head(&self, session: SessionId) -> Loaded {
        head(&self.home, session)
    }

    /// Looks at every session, concurrently; returns names in `sessions/` that are none of ours.
    pub fn survey(
        &self,
        mut visit: impl FnMut(SessionId, Result<Loaded, LoadError>) + Send,
    ) -> io::Result<Vec<String>> {
        let (listing, index) = self.compare_list()?;
        survey(&self.home, &listing, &index, &mut visit);
        Ok(listing.foreign)
    }

    /// Looks at every session, concurrently, but for those of whose log a large part is in no cache: of these the visitor is told
    /// that they are [`LoadError::Unread`]. It may be called by several threads at once.
    pub fn survey_small(&self, visit: &Visitor<'_>) -> io::Result<()> {
        let (listing, index) = self.compare_list()?;
        survey_within(&self.home, (&listing, &index), LARGE, visit);
        Ok(())
    }

    /// Compares the list unless that was done before.
    pub(super) fn await_list_compared(&self) -> io::Result<()> {
        let compared = *locked(&self.list_compared);
        if !compared {
            self.compare_list()?;
        }
        Ok(())
    }

    /// Reads the list cache and what there is; the first time, sessions of which nothing is left but their entry in the list
    /// that the last owner left are noted. Not when the home is opened: with ten thousand sessions that is most of the time until
    /// the first answer. If we die before it, the lock file tells the next owner whose list is still to be compared.
    pub(super) fn compare_list(&self) -> io::Result<(Listing, Index)> {
        let mut compared = locked(&self.list_compared);
        let (mut listing, index) = (list(&self.home)?, Index::read(&self.home));
        if !*compared {
            let mentioned = self.recovered.sessions().map(|(session, _)| session).collect();
            let noted = write_lost_notes(&self.home, (&listing, &index), self.lock.last_owner, &mentioned);
            // Without room for the notes it is tried again: until then whoever has the list finds such a session.
            *compared = noted.as_ref().is_ok_and(|_| self.lock.mark_list_checked().is_ok());
            if noted.unwrap_or(true) {
                listing = list(&self.home)?;
            }
        }
        Ok((listing, index))
    }

    /// Writes the list cache from what a survey found; what is in the last one before the home is left, and has no log later, was
    /// lost.
    pub fn write_index<'a>(
        &self,
        states: impl Iterator<Item = &'a SessionState>,
        is_last: bool,
    ) -> io::Result<()> {
        self.committer.sync().map_err(io::Error::other)?;
        let _one_at_a_time = locked(&self.writing);
        index::write(&self.home, states, self.lock.boot_id().filter(|_| is_last))
    }
}
