//! `rekindle task diff`, `merge` and `rm`: the worktree of a task, or of a session, looked at, brought back and removed.

use std::io::Write;

use rekindle_client::{Client, Exit, Failure, read};
use rekindle_domain::event::MergeMethod;
use rekindle_domain::id::SessionId;
use rekindle_terminal::output::{BAD, BOLD, DIM, GOOD, plural, styled};
use rekindle_terminal::sanitise;
use rekindle_wire::request::MergeWorktree;
use rekindle_wire::view::{TaskView, WorktreeDiff, WorktreeMerged, WorktreeRemoved};

use super::task_arg;
use crate::commands::Context;
use crate::commands::tree_diff::write_coloured;
use crate::session_arg;

/// Names whose worktree is meant.
#[derive(Debug, Clone, clap::Args)]
struct OwnerArg {
    /// The task's id, or the beginning of it; a session's with `sess_` before it
    #[arg(value_name = "TASK|SESSION")]
    owner: String,
}

impl OwnerArg {
    /// Finds the session whose worktree is meant: a task's latest, or the one that took its place.
    fn session(&self, context: &Context, client: &Client) -> Result<String, Failure> {
        if self.owner.starts_with(SessionId::PREFIX) {
            return session_arg::find_live(Some(&self.owner), context, client);
        }
        let id = task_arg::find(&self.owner, client)?;
        let task: TaskView = client.get(&format!("/api/tasks/{id}"))?;
        if task.branch.is_none() {
            let message = format!("{id} has no worktree of its own");
            return Err(Failure::usage("worktree_missing", message)
                .hint("rekindle task add --worktree gives a task one"));
        }
        let session = task.session_id.ok_or_else(|| {
            Failure::usage(
                "worktree_missing",
                format!("{id} has not started, so its worktree does not exist yet"),
            )
        })?;
        Ok(in_its_place(client, session)?.to_string())
    }
}

/// Returns the session that works where a task's latest one did: that one, unless it was rewound.
pub(super) fn in_its_place(client: &Client, session: SessionId) -> Result<SessionId, Failure> {
    let mut latest = session;
    while let Some(successor) = client.session(latest.as_str())?.replaced_by {
        latest = successor;
    }
    Ok(latest)
}

/// Show what a task did in its worktree: everything that a merge would bring
///
/// Compares the worktree with the commit at which it parted from the directory that it was made for, committed or not, new files too.
/// As a diff that `git apply` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle task diff 01khz0p6r8
  rekindle task diff 01khz0p6r8 --stat
  rekindle task diff sess_01khz0p7aa     # of a session: rekindle run --worktree")]
pub(super) struct DiffArgs {
    #[command(flatten)]
    owner: OwnerArg,

    /// Only list the files, with how many lines were added and removed
    #[arg(long)]
    stat: bool,
}

/// Bring what a task did in its worktree into the directory that it was made for
///
/// Commits what is not committed in the worktree, with the task's title as the message, then merges its branch into the branch that the
/// directory is at. A conflict leaves both as they are, and so do changes in the directory that would be overwritten. No hooks are
/// run. The worktree stays and stands where the directory stands, so that the agent can go on; `rekindle task rm` removes it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle task merge 01khz0p6r8
  rekindle task merge 01khz0p6r8 --squash --message \"Fix the flaky test\" --rm")]
pub(super) struct MergeArgs {
    #[command(flatten)]
    owner: OwnerArg,

    /// Rebase its commits onto the branch of the directory
    #[arg(long, conflicts_with = "squash")]
    rebase: bool,

    /// Squash everything into one commit
    #[arg(long)]
    squash: bool,

    /// The message of the commit [default: the task's title]
    #[arg(long, short, value_name = "TEXT")]
    message: Option<String>,

    /// Remove the worktree and its branch afterwards
    #[arg(long)]
    rm: bool,
}

/// Remove the worktree of a task, and its branch if that was made for it
///
/// The task, its session and their history stay. Refused while the worktree has commits that are in no other branch, or files that are
/// not committed; with --force these are saved in a git bundle first, which is kept for 30 days. Files that git ignores go with it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle task rm 01khz0p6r8
  rekindle task rm 01khz0p6r8 --force
What was saved is brought back with:
  cd ~/.local/state/rekindle/removed-worktrees
  git -C DIR fetch \"$PWD/SESSION.bundle\" BRANCH:BRANCH")]
pub(super) struct RmArgs {
    #[command(flatten)]
    owner: OwnerArg,

    /// Remove it even if it has work that is nowhere else, and keep that in a git bundle
    #[arg(long, short)]
    force: bool,
}

pub(super) fn diff(context: &Context, args: &DiffArgs) -> Result<Exit, Failure> {
    let client = context.daemon_or_start()?;
    let session = args.owner.session(context, &client)?;
    let stat = if args.stat { "?stat=1" } else { "" };
    let diff: WorktreeDiff = client.get(&format!("/api/sessions/{session}/worktree/diff{stat}"))?;
    let json = serde_json::to_string(&diff).map_err(|error| Failure::failed("output", error))?;
    context.print(&json, |mut out| match &diff.diff {
        Some(text) => {
            write_coloured(&mut out, text.as_bytes())?;
            if diff.cut {
                eprintln!("There is more: git diff {} in the worktree shows all of it.", diff.base);
            }
            Ok(())
        }
        None => write_stat(out, &diff),
    })
}

fn write_stat(out: &mut dyn Write, diff: &WorktreeDiff) -> Result<(), Failure> {
    for file in &diff.files {
        let lines = match (file.lines_added, file.lines_removed) {
            (Some(added), Some(removed)) => {
                format!(
                    "{} {}",
                    styled(GOOD, format_args!("+{added}")),
                    styled(BAD, format_args!("-{removed}"))
                )
            }
            _ => styled(DIM, "no text").to_string(),
        };
        writeln!(out, "{}  {lines}", sanitise::line(&file.path))?;
    }
    let more = diff.total.saturating_sub(diff.files.len() as u64);
    if more > 0 {
        writeln!(out, "and {more} more")?;
    }
    let (files, commits) = (plural(diff.total, "file"), plural(diff.commits, "commit"));
    let (added, removed) = (diff.lines_added, diff.lines_removed);
    writeln!(out, "{files} changed, +{added} -{removed}: {commits}, {} not committed", diff.uncommitted)?;
    Ok(())
}

pub(super) fn merge(context: &Context, args: &MergeArgs) -> Result<Exit, Failure> {
    let client = context.daemon_or_start()?;
    let session = args.owner.session(context, &client)?;
    let method = match (args.rebase, args.squash) {
        (true, _) => MergeMethod::Rebase,
        (_, true) => MergeMethod::Squash,
        _ => MergeMethod::Merge,
    };
    let asked = MergeWorktree { method, message: args.message.clone() };
    let answer = client.post_patiently(&format!("/api/sessions/{session}/worktree/merge"), &asked)?;
    let merged: WorktreeMerged = read(&answer)?;
    context.print(&String::from_utf8_lossy(&answer).trim_end(), |out| write_merge(out, &merged))?;
    if args.rm {
        return remove(context, &client, &session, "");
    }
    Ok(Exit::Ok)
}

fn write_merge(out: &mut dyn Write, merged: &WorktreeMerged) -> Result<(), Failure> {
    let (branch, into) = (sanitise::line(&merged.branch), sanitise::line(&merged.into));
    if merged.commits == 0 {
        writeln!(out, "{into} already has everything from {branch}")?;
        return Ok(());
    }
    let also = if merged.committed { ", with what was not committed" } else { "" };
    let commits = plural(merged.commits, "commit");
    let short = merged.commit.get(..10).unwrap_or(&merged.commit);
    writeln!(out, "{} {branch} into {into}: {commits}{also}, at {short}", styled(BOLD, "Merged"))?;
    Ok(())
}

pub(super) fn rm(context: &Context, args: &RmArgs) -> Result<Exit, Failure> {
    let client = context.daemon_or_start()?;
    let session = args.owner.session(context, &client)?;
    let force = if args.force { "?force=1" } else { "" };
    remove(context, &client, &session, force)
}

/// Removes the worktree of a session, and says so: in JSON on a line of its own.
fn remove(context: &Context, client: &Client, session: &str, force: &str) -> Result<Exit, Failure> {
    let answer = client.delete_patiently(&format!("/api/sessions/{session}/worktree{force}"))?;
    let removed: WorktreeRemoved = read(&answer)?;
    context.print(&String::from_utf8_lossy(&answer).trim_end(), |out| write_removal(out, &removed))
}

fn write_removal(out: &mut dyn Write, removed: &WorktreeRemoved) -> Result<(), Failure> {
    let branch = sanitise::line(&removed.branch);
    let which = if removed.branch_kept { format!("; {branch} stays") } else { format!(" with {branch}") };
    writeln!(out, "{} {}{which}", styled(BOLD, "Removed"), sanitise::line(&removed.directory))?;
    if let Some(bundle) = &removed.bundle {
        writeln!(
            out,
            "Work that existed nowhere else is kept for 30 days; in the repository, this brings it back:"
        )?;
        writeln!(out, "  git fetch {} {branch}:{branch}", sanitise::line(bundle))?;
    }
    Ok(())
}
