//! Bundles of git in which removals keep what is nowhere else: their names, and what they have. None is written over: it may be the
//! only place of what it has.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::changes::Going;
use crate::workspaces::git::{GitError, git, output};

/// Returns the names that bundles of one worktree have, in the order in which they are written.
fn names(first: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let (first, stem) =
        (first.to_owned(), first.file_stem().unwrap_or_default().to_string_lossy().into_owned());
    (1_u32..).map(move |number| match number {
        1 => first.clone(),
        _ => first.with_file_name(format!("{stem}-{number}.bundle")),
    })
}

/// Returns the name of the next one.
pub(super) fn free_name(first: &Path) -> PathBuf {
    names(first).find(|name| !name.exists()).unwrap_or_else(|| first.to_owned())
}

/// Returns the last one, if there are any.
pub(super) fn latest(first: &Path) -> Option<PathBuf> {
    names(first).take_while(|name| name.exists()).last()
}

/// Tells whether a bundle has everything up to what goes.
pub(super) fn has_all(bundle: &Path, going: &Going<'_>) -> Result<bool, GitError> {
    let mut tips = git(going.place);
    tips.arg("rev-parse").args(going.head);
    tips.args(going.branch.map(|branch| format!("refs/heads/{branch}")));
    let tips = output("find its newest commits", &mut tips)?;
    let mut heads = git(going.place);
    heads.args(["bundle", "list-heads"]).arg(bundle);
    let heads = output("read a bundle", &mut heads)?;
    let heads: BTreeSet<&str> = heads.lines().filter_map(|line| line.split_whitespace().next()).collect();
    Ok(tips.lines().all(|tip| heads.contains(tip)))
}
