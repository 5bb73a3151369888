//! The worktree that a session works in: wanted with its first record, made before its first agent is launched. It has one owner, who
//! merges and removes it: whoever takes the place of a session takes it over, and a fork that works there too leaves it alone.

use super::SessionState;
use crate::event::{
    SessionWorktree, SessionWorktreeAdded, SessionWorktreeMerged, SessionWorktreeRemoved, Worktree,
};

impl SessionState {
    /// Returns the worktree that is still to be made.
    pub fn missing_worktree(&self) -> Option<&SessionWorktree> {
        let worktree = self.worktree.as_deref()?;
        (worktree.commit.is_none() && !worktree.removed).then_some(&worktree.wanted)
    }

    /// Returns the worktree that is this session's to merge and to remove, made or begun.
    pub fn owned_worktree(&self) -> Option<&Worktree> {
        let is_owned =
            |worktree: &&Worktree| self.replaced_by.is_none() && !worktree.shared && !worktree.removed;
        self.worktree.as_deref().filter(is_owned)
    }

    /// Returns the worktree that a fork begins with which works where this session does: as its own if it takes the session's place.
    pub(crate) fn worktree_of_fork(&self, takes_place: bool) -> Option<Worktree> {
        let worktree = self.worktree.as_deref().filter(|worktree| !worktree.removed)?;
        Some(match &worktree.commit {
            // Where nothing was ever done it still has to be made.
            None => Worktree::wanted(worktree.wanted.clone()),
            Some(_) if takes_place => worktree.clone(),
            Some(_) => Worktree { merged_into: None, shared: true, ..worktree.clone() },
        })
    }

    /// Returns the directory that it was asked for in: where it works, unless a worktree was made for it.
    pub fn origin(&self) -> &str {
        self.worktree.as_ref().map_or(&self.working_dir, |worktree| &worktree.wanted.origin)
    }

    pub(super) fn note_worktree(&mut self, added: &SessionWorktreeAdded<'_>) -> Result<(), String> {
        let worktree = self.own_worktree()?;
        if worktree.commit.is_some() {
            return Err("it already has a worktree".into());
        }
        worktree.commit = Some(added.commit.as_ref().into());
        Ok(())
    }

    pub(super) fn note_merge(&mut self, merged: &SessionWorktreeMerged<'_>) -> Result<(), String> {
        let worktree = self.own_worktree()?;
        if worktree.commit.is_none() {
            return Err("its worktree does not exist yet".into());
        }
        worktree.merged_into = Some(merged.into.as_ref().into());
        Ok(())
    }

    pub(super) fn note_removal(&mut self, _: &SessionWorktreeRemoved<'_>) -> Result<(), String> {
        self.own_worktree()?.removed = true;
        Ok(())
    }

    /// Returns the worktree, made or begun.
    fn own_worktree(&mut self) -> Result<&mut Worktree, String> {
        let own = self.worktree.as_mut().filter(|worktree| !worktree.removed && !worktree.shared);
        own.map(|worktree| &mut **worktree).ok_or_else(|| "the session has no worktree of its own".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Event, MergeMethod, SessionCreated};
    use crate::id::SessionId;
    use crate::session::tests::script::{at, draft, worktree};

    #[test]
    fn a_worktree_is_made_once_and_only_where_one_is_wanted() {
        let mut state = SessionState::empty(SessionId::from_ulid(1));
        let added = SessionWorktreeAdded { commit: "c0ffee".into(), carried: 0, copied: 0, setup: None };
        assert!(state.note_worktree(&added).is_err());
        state.worktree = Some(Box::new(Worktree::wanted(worktree())));
        assert_eq!((state.missing_worktree(), state.origin()), (Some(&worktree()), "/repo"));
        assert_eq!(state.note_worktree(&added), Ok(()));
        assert_eq!((state.missing_worktree(), state.origin()), (None, "/repo"));
        assert!(state.note_worktree(&added).is_err(), "once");
        let merged = SessionWorktreeMerged {
            into: "main".into(),
            commit: "c0ffee".into(),
            commits: 1,
            method: MergeMethod::Merge,
            by: "anna".into(),
        };
        let removed = SessionWorktreeRemoved { bundle: None, by: "anna".into() };
        for _ in 0..2 {
            assert_eq!(state.note_merge(&merged), Ok(()), "as often as somebody likes");
        }
        assert_eq!(state.note_removal(&removed), Ok(()));
        assert!(state.note_removal(&removed).is_err() && state.note_merge(&merged).is_err());
        assert_eq!(state.missing_worktree(), None, "it is not made again");
        // One that could not be made may be removed, with whatever was begun of it.
        state.worktree = Some(Box::new(Worktree::wanted(worktree())));
        assert!(state.note_merge(&merged).is_err());
        assert_eq!((state.note_removal(&removed), state.missing_worktree()), (Ok(()), None));
        assert!(state.note_worktree(&added).is_err());
    }

    // Whatever became of a worktree, and whoever goes on there: who has it, and what of it goes on.
    #[test]
    fn a_worktree_has_one_owner() {
        let wanted = || Worktree::wanted(worktree());
        let made = || Worktree { commit: Some("c0ffee".into()), ..wanted() };
        let merged = || Worktree { merged_into: Some("main".into()), ..made() };
        let shared = || Worktree { shared: true, ..made() };
        let removed = || Worktree { removed: true, ..merged() };
        for (name, has, is_owned, successor, fork) in [
            ("none", None, false, None, None),
            ("not made", Some(wanted()), true, Some(wanted()), Some(wanted())),
            ("made", Some(made()), true, Some(made()), Some(shared())),
            ("merged", Some(merged()), true, Some(merged()), Some(shared())),
            ("another session's", Some(shared()), false, Some(shared()), Some(shared())),
            ("removed", Some(removed()), false, None, None),
        ] {
            let mut state = SessionState::empty(SessionId::from_ulid(1));
            state.worktree = has.map(Box::new);
            assert_eq!(state.owned_worktree().is_some(), is_owned, "{name}");
            assert_eq!(state.worktree_of_fork(true), successor, "{name}: a successor");
            assert_eq!(state.worktree_of_fork(false), fork, "{name}: a fork");
            state.replaced_by = Some(SessionId::from_ulid(2));
            assert_eq!(state.owned_worktree(), None, "{name}, and replaced");
        }
    }

    #[test]
    fn a_session_that_took_a_worktree_over_has_it_from_its_first_record() {
        let mut state = SessionState::empty(SessionId::from_ulid(1));
        let with = |worktree: Worktree| {
            let first = draft("session.created");
            let Event::SessionCreated(created) = first.event else { panic!("{first:?}") };
            Event::SessionCreated(SessionCreated { worktree: Some(Box::new(worktree)), ..created })
        };
        let made = Worktree { commit: Some("c0ffee".into()), ..Worktree::wanted(worktree()) };
        state.apply(1, at(1), &with(made.clone())).expect("made");
        assert_eq!((state.missing_worktree(), state.owned_worktree()), (None, Some(&made)));
        let added = SessionWorktreeAdded { commit: "c0ffee".into(), carried: 0, copied: 0, setup: None };
        assert!(state.note_worktree(&added).is_err(), "it is not made again");
        let removed = SessionWorktreeRemoved { bundle: None, by: "anna".into() };
        let mut fork = SessionState::empty(SessionId::from_ulid(2));
        fork.apply(1, at(1), &with(Worktree { shared: true, ..made })).expect("made");
        assert_eq!((fork.missing_worktree(), fork.origin()), (None, "/repo"));
        assert!(fork.note_removal(&removed).is_err(), "it is another session's");
        assert_eq!(state.note_removal(&removed), Ok(()));
    }

    #[test]
    fn a_session_that_came_from_elsewhere_wants_none() {
        let mut state = SessionState::empty(SessionId::from_ulid(1));
        state.apply(1, at(1), &draft("session.created").event).expect("made");
        state.worktree = Some(Box::new(Worktree::wanted(worktree())));
        let imported = draft(r#"session.updated imported={"transcript":false}"#);
        state.apply(2, at(2), &imported.event).expect("imported");
        assert_eq!((state.missing_worktree(), state.origin()), (None, &*state.working_dir));
    }
}
