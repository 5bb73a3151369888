//! A directory is made what it was before some files changed. Raw: `git checkout` of the same. Each has a directory of its
//! own, so that neither finds files that the other wrote.

use anyhow::Context as _;
use rekindle_workspace::CaptureOptions;

use super::git::Git;
use super::{generated_files, snapshot, workspaces};
use crate::context::{Context, progress};
use crate::measure::{interleave, millis};
use crate::table::{Row, Target, Unit};

/// Files that differ.
const CHANGED: usize = 1_000;

pub(crate) fn run(context: &Context) -> anyhow::Result<Vec<Row>> {
    let files = context.pick(generated_files::FILES, generated_files::FILES_QUICK);
    let dir = context.directory()?;
    let [theirs, own] = ["git-files", "own-files"].map(|name| dir.path().join(name));
    progress(&format!("making {files} files, twice"));
    let git = Git::new(&dir.path().join("git"), make(&theirs, files)?)?;
    let workspaces = workspaces(&dir.path().join("home"))?;
    let before = (git.commit()?, snapshot(&workspaces, make(&own, files)?)?.tree);
    for root in [&theirs, &own] {
        generated_files::change(root, files, CHANGED, 1)?;
    }
    let after = (git.commit()?, snapshot(&workspaces, &own)?.tree);
    let (mut checked_out, mut restored) = (0, 0);
    let what = format!("{CHANGED} of {files} files restored");
    let by_git = || {
        checked_out += 1;
        let commit = if checked_out % 2 == 1 { &before.0 } else { &after.0 };
        let (millis, done) = millis(|| git.checkout(commit));
        done?;
        Ok([millis])
    };
    let ours = || {
        restored += 1;
        let tree = if restored % 2 == 1 { before.1 } else { after.1 };
        let (millis, done) = millis(|| workspaces.restore(tree, CaptureOptions::new(&own)));
        done.context("cannot restore")?;
        Ok([millis])
    };
    let [time] = interleave(&what, context.pick(8, 6), by_git, ours)?;
    Ok(vec![Row::compared(what, Unit::Millis, &time, Target::RatioAtMost(1.0))])
}

fn make(root: &std::path::Path, files: usize) -> anyhow::Result<&std::path::Path> {
    generated_files::make(root, files)?;
    Ok(root)
}
