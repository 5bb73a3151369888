//! A worktree of this repository, ready for an agent: on a branch of its own, locked, and on disk. Raw: `git worktree add` of the same,
//! which makes nothing durable.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};
use rekindle_domain::event::{DirtyPolicy, SessionWorktree};
use rekindle_service::workspaces::Workspaces;
use rekindle_service::workspaces::session_worktree::prepare::{Preparation, Surroundings};

use crate::context::Context;
use crate::measure::{interleave, millis};
use crate::rows::workspace::workspaces;
use crate::table::{Row, Target, Unit};

pub(crate) fn run(context: &Context) -> anyhow::Result<Vec<Row>> {
    let dir = context.directory()?;
    let place = dir.path().canonicalize().context("no directory")?;
    let repository = place.join("repository");
    let this = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    git(&place, &["clone", "-q", "--no-local", text(&this)?, text(&repository)?])?;
    let bench = Bench { workspaces: workspaces(&place.join("home"))?, place, repository };
    let (mut raw, mut ours) = (0, 0);
    let by_git = || {
        raw += 1;
        bench.by_git(raw)
    };
    let by_us = || {
        ours += 1;
        bench.by_us(ours)
    };
    let what = "a worktree of this repository, ready";
    let [time] = interleave(what, context.pick(15, 5), by_git, by_us)?;
    Ok(vec![Row::compared(what, Unit::Millis, &time, Target::RatioAtMost(1.2))])
}

struct Bench {
    workspaces: Workspaces,
    place: PathBuf,
    repository: PathBuf,
}

impl Bench {
    fn by_git(&self, round: usize) -> anyhow::Result<[f64; 1]> {
        let (directory, branch) = (self.place.join(format!("raw-{round}")), format!("raw/{round}"));
        let add = ["worktree", "add", "-q", "-b", &branch, text(&directory)?];
        let (millis, done) = millis(|| git(&self.repository, &add));
        done?;
        self.remove(&directory)?;
        Ok([millis])
    }

    fn by_us(&self, round: usize) -> anyhow::Result<[f64; 1]> {
        let directory = self.place.join("trees").join(format!("own-{round}"));
        let wanted = SessionWorktree {
            origin: text(&self.repository)?.to_owned(),
            repository: text(&self.repository.join(".git"))?.to_owned(),
            directory: text(&directory)?.to_owned(),
            branch: format!("own/{round}"),
            base: None,
            dirty: DirtyPolicy::Refuse,
        };
        let (preparation, env) = (Preparation::default(), BTreeMap::new());
        let around = Surroundings { env: &env, umask: 0o022, is_stopping: &|| false };
        let add = || self.workspaces.add_session_worktree(&wanted, &directory, &preparation, &around);
        let (millis, done) = millis(add);
        done.context("cannot make a worktree")?;
        self.remove(&directory)?;
        Ok([millis])
    }

    fn remove(&self, directory: &Path) -> anyhow::Result<()> {
        git(&self.repository, &["worktree", "remove", "--force", "--force", text(directory)?])
    }
}

fn text(path: &Path) -> anyhow::Result<&str> {
    path.to_str().context("a path is no text")
}

fn git(directory: &Path, arguments: &[&str]) -> anyhow::Result<()> {
    let told = Command::new("git").arg("-C").arg(directory).args(arguments).output();
    let told = told.context("cannot run git")?;
    ensure!(told.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&told.stderr));
    Ok(())
}
