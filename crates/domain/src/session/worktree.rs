//! The worktree of its own that a session works in: wanted with its first record, made before its first agent is launched.

use serde::{Deserialize, Serialize};

use super::SessionState;
use crate::event::{SessionWorktree, SessionWorktreeAdded, SessionWorktreeMerged, SessionWorktreeRemoved};

/// A session's own worktree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Worktree {
    /// What was asked for.
    #[serde(flatten)]
    pub wanted: SessionWorktree,
    /// The commit that its branch began at, or stood at, once it is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The branch that has its work, if it was merged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merged_into: Option<String>,
    /// It was removed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub removed: bool,
}

impl Worktree {
    pub(crate) fn wanted(wanted: SessionWorktree) -> Worktree {
        Worktree { wanted, commit: None, merged_into: None, removed: false }
    }
}

impl SessionState {
    /// Returns the worktree that is still to be made.
    pub fn missing_worktree(&self) -> Option<&SessionWorktree> {
        let worktree = self.worktree.as_deref()?;
        (worktree.commit.is_none() && !worktree.removed).then_some(&worktree.wanted)
    }

    /// Returns the directory that it was asked for in: where it works, unless a worktree was made for it.
    pub fn origin(&self) -> &str {
        self.worktree.as_ref().map_or(&self.working_dir, |worktree| &worktree.wanted.origin)
    }

    pub(super) fn note_worktree(&mut self, added: &SessionWorktreeAdded<'_>) -> Result<(), String> {
        let worktree = self.own_worktree()?;
        if worktree.commit.is_some() {
            return Err("its worktree is there already".into());
        }
        worktree.commit = Some(added.commit.as_ref().into());
        Ok(())
    }

    pub(super) fn note_merge(&mut self, merged: &SessionWorktreeMerged<'_>) -> Result<(), String> {
        let worktree = self.own_worktree()?;
        if worktree.commit.is_none() {
            return Err("its worktree is not made yet".into());
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
        let own = self.worktree.as_mut().filter(|worktree| !worktree.removed);
        own.map(|worktree| &mut **worktree).ok_or_else(|| "the session has no worktree of its own".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::MergeMethod;
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
