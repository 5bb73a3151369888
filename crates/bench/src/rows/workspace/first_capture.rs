//! The first capture of a directory: all contents are stored and synced. Raw: `git add -A` and `git write-tree` in a new
//! repository; and tar through zstd at level 3 into one synced file.

use super::git::Git;
use super::{Subject, snapshot, subjects, tar, workspaces};
use crate::context::Context;
use crate::measure::{interleave, millis};
use crate::table::{Row, Target, Unit};

pub(crate) fn run(context: &Context) -> anyhow::Result<Vec<Row>> {
    let dir = context.directory()?;
    let mut rows = Vec::new();
    for Subject { what, root } in subjects(context, dir.path())? {
        let rounds = context.pick(3, 3);
        let ours = || {
            let home = context.directory()?;
            let workspaces = workspaces(&home.path().join("home"))?;
            let (millis, captured) = millis(|| snapshot(&workspaces, &root));
            captured?;
            Ok([millis])
        };
        let by_git = || {
            let repository = context.directory()?;
            let git = Git::new(&repository.path().join("git"), &root)?;
            let (millis, tree) = millis(|| git.write_tree());
            tree?;
            Ok([millis])
        };
        let by_tar = || {
            let (millis, packed) = millis(|| tar(&root, &dir.path().join("packed.tar.zst")));
            packed?;
            Ok([millis])
        };
        // Four times as fast as git, and half as fast as tar: by the time that they take.
        let [git] = interleave(&format!("first capture beside git, {what}"), rounds, by_git, ours)?;
        let [tar] = interleave(&format!("first capture beside tar and zstd, {what}"), rounds, by_tar, ours)?;
        let row = |beside: &str| format!("first capture, {what}, beside {beside}");
        rows.push(Row::compared(row("git"), Unit::Millis, &git, Target::RatioAtMost(0.25)));
        rows.push(Row::compared(row("tar | zstd"), Unit::Millis, &tar, Target::RatioAtMost(2.0)));
    }
    Ok(rows)
}
