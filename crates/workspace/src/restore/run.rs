//! A restore from its beginning to its end, in the order that makes it safe to interrupt.

use rekindle_domain::blob_id::BlobId;

use super::collision::Collision;
use super::complete::complete;
use super::execute::Execution;
use super::journal::{Journal, JournalFile};
use super::lookup::Began;
use super::paths::{join, split, temporary};
use super::plan::plan;
use super::report::{RestoreError, Restored};
use super::root::Root;
use super::side::Side;
use super::survey::{Work, survey};
use super::temporaries::{folds_case, remove_leftovers};
use super::undo::lay_over;
use crate::objects::{ObjectSink, ObjectSource};
use crate::tree::Limits;

/// What a restore works with.
#[derive(Clone, Copy)]
pub struct Tools<'a> {
    /// The directory.
    pub root: &'a dyn Root,
    /// Where trees and contents come from.
    pub source: &'a dyn ObjectSource,
    /// Where the way back goes.
    pub sink: &'a dyn ObjectSink,
    /// Where the journal of this root is.
    pub journal: &'a dyn JournalFile,
    /// How large a tree may be.
    pub limits: Limits,
}

/// Makes a directory what the wanted tree says.
///
/// `now` is a capture of the directory as it is, made just before; what has changed since is noticed. The order is: look and
/// capture what would be lost; write the journal; make everything under temporary names and check it; sync; rename; sync the
/// directories; remove the journal. Interrupted anywhere, the same call with a new capture ends right, and keeps the way back
/// of the first attempt. Errors say whether anything was changed.
pub fn restore(tools: &Tools<'_>, now: &Side<'_>, wanted: &Side<'_>) -> Result<Restored, RestoreError> {
    let Tools { root, source, sink, journal, limits } = *tools;
    let of_journal = |doing| move |source| RestoreError::Journal { doing, source };
    let began = journal.read().map_err(of_journal("read"))?;
    let mut now = *now;
    if let Some(began) = &began {
        now.tree = complete(root, sink, source, now.tree, (began, limits))?;
    }
    let plan = plan(source, &now, wanted, began.as_ref(), limits)?;
    let collisions = plan.collisions.clone();
    if let Some(began) = &began {
        remove_leftovers(root, source, began.to, limits)?;
    }
    let known = began.as_ref().map(|journal| Began::new(source, journal));
    let mut work = survey(root, sink, &wanted.tree, plan, known.as_ref())?;
    let base = began.as_ref().map_or(now.tree, |journal| journal.from);
    let undo = lay_over(source, sink, base, &work.overlay)?;

    let mut execution = Execution::new(root, source);
    let is_needed = !work.removals.is_empty() || !work.placements.is_empty() || !work.modes.is_empty();
    if is_needed || began.is_some() {
        let written = Journal::after(began.as_ref(), undo, wanted.tree);
        if began.as_ref() != Some(&written) {
            journal.write(&written).map_err(of_journal("written"))?;
        }
        let staged =
            check_names(root, &wanted.tree, &collisions).and_then(|()| execution.stage(&mut work.placements));
        if let Err(error) = staged {
            // Where temporaries cannot be removed, or an earlier attempt got further, the journal stays and says so.
            if execution.discard(&work.placements).is_ok() && began.is_none() {
                journal.remove().map_err(of_journal("removed"))?;
            }
            return Err(error);
        }
        let unfinished = |path, source| RestoreError::Unfinished { path, undo, source };
        execution.put_in_place(&work).map_err(|(path, source)| unfinished(path, source))?;
        // What an earlier attempt renamed may not be durable yet, and nothing says which directories those were.
        let synced = if began.is_some() { execution.sync_everything() } else { execution.sync() };
        synced.map_err(|source| unfinished(Vec::new(), source))?;
        journal.remove().map_err(of_journal("removed"))?;
    }
    let Work { mut left, .. } = work;
    left.append(&mut execution.left);
    left.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(Restored {
        undo,
        tree: wanted.tree,
        done: execution.done,
        left,
        resumed: began.is_some(),
        head_moved: matches!((now.git_head, wanted.git_head), (Some(now), Some(then)) if now != then),
    })
}

/// Refuses names that the file system would take for the same. Only trees that have such names are asked about.
fn check_names(root: &dyn Root, wanted: &BlobId, collisions: &[Collision]) -> Result<(), RestoreError> {
    let mut asked: Option<(&[u8], bool)> = None;
    for Collision { directory, first, second } in collisions {
        let folds = match asked {
            Some((before, folds)) if before == directory.as_slice() => folds,
            _ => {
                let probe = temporary(wanted, &join(directory, b"case"));
                folds_case(root, directory, split(&probe).1)
                    .map_err(|source| RestoreError::Prepare { path: directory.clone(), source })?
            }
        };
        if folds {
            return Err(RestoreError::NameCollision { first: first.clone(), second: second.clone() });
        }
        asked = Some((directory, folds));
    }
    Ok(())
}
