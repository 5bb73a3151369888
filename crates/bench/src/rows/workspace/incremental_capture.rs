//! The second capture of a directory: nothing has changed, or some files have. Raw: `git status` with an index that is up to
//! date; and `git add -A` with `git write-tree`.

use super::git::Git;
use super::{Subject, generated_files, snapshot, subjects, workspaces};
use crate::context::Context;
use crate::measure::{Rounds, interleave, millis};
use crate::table::{Row, Target, Unit};

/// Files that change between two captures.
const CHANGED: usize = 100;

pub(crate) fn run(context: &Context) -> anyhow::Result<Vec<Row>> {
    let dir = context.directory()?;
    let rounds = context.pick(9, 5);
    let mut rows = Vec::new();
    for (index, Subject { what, root }) in subjects(context, dir.path())?.into_iter().enumerate() {
        let git = Git::new(&dir.path().join(format!("git-{index}")), &root)?;
        let workspaces = workspaces(&dir.path().join(format!("home-{index}")))?;
        git.commit()?;
        // Twice: what was written a moment ago is read once more before it is trusted.
        for _ in 0..2 {
            snapshot(&workspaces, &root)?;
            git.status()?;
        }
        let unchanged = format!("captured again, nothing changed, {what}");
        let by_git = || {
            let (millis, looked) = millis(|| git.status());
            looked?;
            Ok([millis])
        };
        let ours = || {
            let (millis, captured) = millis(|| snapshot(&workspaces, &root));
            captured?;
            Ok([millis])
        };
        let [time] = interleave(&unchanged, rounds, by_git, ours)?;
        rows.push(Row::compared(unchanged, Unit::Millis, &time, Target::RatioAtMost(1.0)));
        if index > 0 {
            continue;
        }
        let changed = format!("captured again, {CHANGED} files changed, {what}");
        let mut times = Rounds::default();
        for round in 0..rounds as u64 {
            generated_files::change(
                &root,
                context.pick(generated_files::FILES, generated_files::FILES_QUICK),
                CHANGED,
                round,
            )?;
            let by_git = || millis(|| git.write_tree().map(drop));
            let ours = || millis(|| snapshot(&workspaces, &root).map(drop));
            let (raw, own) = if round % 2 == 0 {
                let raw = by_git();
                (raw, ours())
            } else {
                let own = ours();
                (by_git(), own)
            };
            raw.1?;
            own.1?;
            times.raw.push(raw.0);
            times.ours.push(own.0);
        }
        rows.push(Row::compared(changed, Unit::Millis, &times, Target::RatioAtMost(1.0 / 1.5)));
    }
    Ok(rows)
}
