//! The first capture of a directory: all contents are stored and synced. Raw: `git add -A` and `git write-tree` in a new
//! repository; and tar through zstd at level 3 into one synced file.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};

use super::git::Git;
use super::{Subject, snapshot, subjects, workspaces};
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

fn tar(root: &Path, packed: &Path) -> anyhow::Result<()> {
    let mut tar = Command::new("tar");
    let tar = tar.arg("-cf").arg("-").arg("-C").arg(root).arg(".");
    let mut tar = tar.stdout(Stdio::piped()).spawn().context("cannot run tar")?;
    let output = tar.stdout.take().context("tar has no output")?;
    let mut zstd = Command::new("zstd");
    let zstd = zstd.args(["-3", "-q", "-f", "-o"]).arg(packed).arg("-").stdin(output).status();
    ensure!(zstd.context("cannot run zstd")?.success() && tar.wait()?.success(), "tar or zstd failed");
    Ok(File::open(packed)?.sync_all()?)
}
