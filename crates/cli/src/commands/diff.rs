//! `rekindle diff`: what a run did to the files of its directory.

use crate::completers::ids;
use rekindle_client::completion::IdKind;
use rekindle_client::failure::{Exit, Failure};
use rekindle_client::{Client, read};
use rekindle_display::checkpoint_text::touched_text;
use rekindle_domain::blob_id::BlobId;
use rekindle_domain::event::{CheckpointAt, CheckpointHow, RunCheckpoint};
use rekindle_domain::id::SessionId;
use rekindle_service::workspaces::Workspaces;
use rekindle_service::{RunCheckpoints, all_checkpoints, find_run_checkpoints, skipped_paths};
use rekindle_store::offline::Offline;
use rekindle_terminal::output;
use rekindle_wire::view::RunDiff;
use serde_json::json;
use serde_json::value::RawValue;

use super::Context;
use super::tree_diff::{Compared, show, write_coloured};
use super::workspace::{capture_options, workspaces};
use crate::session_arg::SessionArg;
use crate::workspace_failure::failure;

/// Show what a run did to the files of its directory
///
/// Compares the directory before the run's prompt with what it was after its end: everything that changed, whether the agent, its
/// commands or somebody else changed it. A run that goes on is compared with the directory as it is now. As a diff that
/// `git apply` takes; `git apply -R` takes it back. Works with a daemon and without one.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle diff                            the latest run of the latest session
  rekindle diff --stat                     which files, and how many lines
  rekindle diff 01khz0p6r8 run_01khz0p7aa  a certain run of a certain session
  rekindle diff | git apply -R             takes back what it did
Two snapshots, as rekindle log and rekindle status name them:
  rekindle diff snap-1a2b3c4d5e6f..snap-77c0a1b2c3d4")]
pub(crate) struct Args {
    /// The session [default: this directory's latest], or what is meant of it
    #[arg(value_name = "SESSION", add = ids(IdKind::Session))]
    first: Option<String>,
    /// A run by its id or the beginning of it [default: the latest], or two snapshots with .. between them
    #[arg(value_name = "RUN|SNAP..SNAP")]
    second: Option<String>,
    /// Only list the files, with how many lines were added and removed
    #[arg(long)]
    stat: bool,
}

/// What is compared.
#[derive(Debug, PartialEq, Eq)]
enum Wanted {
    /// The latest run that has checkpoints.
    Latest,
    /// A run.
    Run(String),
    /// Two snapshots.
    Snapshots(String, String),
}

impl Wanted {
    /// Returns what a text means; nothing if it is the name of a session.
    fn of(text: &str) -> Option<Wanted> {
        match text.split_once("..") {
            Some((from, to)) => Some(Wanted::Snapshots(from.to_owned(), to.to_owned())),
            None => text.starts_with("run_").then(|| Wanted::Run(text.to_owned())),
        }
    }
}

impl Args {
    /// Returns the session that is named, if one is, and what is compared.
    fn wanted(&self) -> (Option<String>, Wanted) {
        let second = self.second.as_deref();
        let second = second.map(|text| Wanted::of(text).unwrap_or_else(|| Wanted::Run(text.to_owned())));
        match (&self.first, second) {
            (first, Some(wanted)) => (first.clone(), wanted),
            (Some(first), None) => match Wanted::of(first) {
                Some(wanted) => (None, wanted),
                None => (Some(first.clone()), Wanted::Latest),
            },
            (None, None) => (None, Wanted::Latest),
        }
    }
}

pub(super) fn run(context: &Context, args: &Args) -> Result<Exit, Failure> {
    let (session, wanted) = args.wanted();
    let session = SessionArg::named(session);
    if let Some(client) = context.elsewhere()? {
        return from_daemon(context, &client, &session, &wanted, args.stat);
    }
    let home = context.offline()?;
    let workspaces = workspaces(context, false)?;
    match wanted {
        Wanted::Snapshots(from, to) => {
            // Without a session the snapshots that are kept by name are all there is.
            let known = session.find(&home).ok().map(|session| checkpoints(&home, session)).transpose()?;
            let known = known.unwrap_or_default();
            let resolve = |name: &str| workspaces.resolve_among(name, known.iter().copied()).map_err(failure);
            let (from, to) = (resolve(&from)?, resolve(&to)?);
            kept(&workspaces, &from)?;
            kept(&workspaces, &to)?;
            show(context, &workspaces, &Compared::new(from, to), args.stat)
        }
        wanted => {
            let session = session.find(&home)?;
            let name = if let Wanted::Run(name) = &wanted { Some(name.as_str()) } else { None };
            // Of a fork together with what it goes on from.
            let history = home.history(session).map_err(|error| unreadable(session, error))?;
            let found =
                find_run_checkpoints(&history.reader, name).map_err(|error| unreadable(session, error))?;
            let found = found.ok_or_else(|| none(session, name))?;
            run_diff(context, &workspaces, &found, args.stat)
        }
    }
}

/// Shows what a run did, from its checkpoints.
fn run_diff(
    context: &Context,
    workspaces: &Workspaces,
    found: &RunCheckpoints,
    only_stat: bool,
) -> Result<Exit, Failure> {
    let from = tree(found.start.as_ref(), found, CheckpointAt::Start)?;
    let is_over = found.end.is_some();
    let to = match (&found.end, &found.start) {
        (None, Some(start)) => {
            workspaces.capture_for_now(capture_options(start.root.as_ref())?).map_err(failure)?.tree
        }
        (end, _) => tree(end.as_ref(), found, CheckpointAt::End)?,
    };
    kept(workspaces, &from)?;
    kept(workspaces, &to)?;
    let is_late = found.end.as_ref().is_some_and(|end| end.how == CheckpointHow::Late);
    let rules =
        |checkpoint: &Option<RunCheckpoint>| checkpoint.as_ref().and_then(|checkpoint| checkpoint.rules);
    let rules_differ = is_over && rules(&found.start) != rules(&found.end);
    if !context.json {
        note(is_over, is_late, rules_differ);
    }
    let skipped = skipped_paths(workspaces, found)?;
    let hides = |path: &[u8]| skipped.iter().any(|skipped| skipped.covers(path));
    let compared = Compared {
        from,
        to,
        hides: &hides,
        about: json!({"run_id": found.run_id, "ended": is_over, "rules_differ": rules_differ,
            "how": found.end.as_ref().map(|end| end.how)}),
    };
    show(context, workspaces, &compared, only_stat)
}

/// Says on stderr what else has to be known of a diff.
fn note(is_over: bool, is_late: bool, rules_differ: bool) {
    if !is_over {
        anstream::eprintln!("note: the run has not ended: this compares with the directory as it is now");
    }
    if is_late {
        anstream::eprintln!(
            "note: no daemon was running when the run ended: changes made before the next one started are included"
        );
    }
    if rules_differ {
        anstream::eprintln!(
            "note: the rules for which files count have changed in between: some differences may come from that alone"
        );
    }
}

/// Returns the tree of a checkpoint, or says why there is none.
fn tree(
    checkpoint: Option<&RunCheckpoint>,
    found: &RunCheckpoints,
    at: CheckpointAt,
) -> Result<BlobId, Failure> {
    if let Some(tree) = checkpoint.and_then(|checkpoint| checkpoint.tree) {
        return Ok(tree);
    }
    let why = checkpoint.and_then(|checkpoint| checkpoint.not_taken.as_ref());
    let why = why.map_or_else(String::new, |why| format!(": {}", why.detail));
    let message = format!("the checkpoint at the {} of {} was not taken{why}", at.as_str(), found.run_id);
    Err(Failure::failed("checkpoint_missing", anyhow::Error::msg(message)).hint(
        "rekindle log shows which were; rekindle run --checkpoints on takes them whatever the directory is",
    ))
}

/// Says so if the files of a snapshot are not kept any more.
fn kept(workspaces: &Workspaces, tree: &BlobId) -> Result<(), Failure> {
    if workspaces.has(tree) {
        return Ok(());
    }
    let message = format!("the files of {tree} are no longer kept");
    Err(Failure::failed("snap_expired", anyhow::Error::msg(message))
        .hint("keep_days of [checkpoints] in the configuration says how long they are"))
}

fn none(session: SessionId, run: Option<&str>) -> Failure {
    let message = match run {
        Some(run) => format!("no run of {session} that begins with {run} has a checkpoint"),
        None => format!("no run of {session} has a checkpoint"),
    };
    Failure::failed("checkpoint_missing", anyhow::Error::msg(message)).hint(
        "they are taken unless [checkpoints] mode is off; in a home directory only with rekindle run --checkpoints on",
    )
}

fn unreadable(session: SessionId, error: std::io::Error) -> Failure {
    let error = anyhow::Error::new(error).context(format!("cannot read the log of {session}"));
    Failure::failed("session_unreadable", error).hint("rekindle doctor says what can be done")
}

/// Returns the trees of all checkpoints of a session.
fn checkpoints(home: &Offline, session: SessionId) -> Result<Vec<BlobId>, Failure> {
    let read = home.history(session).and_then(|history| all_checkpoints(&history.reader));
    let read = read.map_err(|error| unreadable(session, error))?;
    Ok(read.iter().filter_map(|checkpoint| checkpoint.tree).collect())
}

/// Asks a daemon elsewhere what a run did.
fn from_daemon(
    context: &Context,
    client: &Client,
    session: &SessionArg,
    wanted: &Wanted,
    only_stat: bool,
) -> Result<Exit, Failure> {
    let run = match wanted {
        Wanted::Latest => String::new(),
        Wanted::Run(run) if run.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') => {
            format!("&run={run}")
        }
        Wanted::Run(run) => {
            let message = format!("{run:?} is neither the id of a run nor the beginning of one");
            return Err(Failure::usage("bad_run_id", message).hint("rekindle log shows them"));
        }
        Wanted::Snapshots(..) => {
            let message = "snapshots can be compared only on the machine of the home".to_owned();
            return Err(Failure::usage("only_here", message).hint("name a run instead"));
        }
    };
    let id = session.find_live(context, client)?;
    let stat = u8::from(only_stat);
    let told: Box<RawValue> = client.get(&format!("/api/sessions/{id}/diff?stat={stat}{run}"))?;
    let diff: RunDiff = read(told.get().as_bytes())?;
    if !context.json {
        note(true, diff.how == CheckpointHow::Late, diff.rules_differ);
    }
    context.print(&told, |out| {
        let mut out = out;
        for file in &diff.files {
            match &file.diff {
                Some(text) => write_coloured(&mut out, text.as_bytes())?,
                None => {
                    let path = file.file.path.path.as_deref().unwrap_or("(a name that is not valid UTF-8)");
                    let path = rekindle_terminal::sanitise::line(path);
                    let lines = file.file.lines_added.zip(file.file.lines_removed);
                    let lines = lines.map(|(added, removed)| format!("  +{added} −{removed}"));
                    let change = file.file.change.as_str();
                    writeln!(out, "{change:>8}  {path}{}", lines.unwrap_or_default())?;
                }
            }
        }
        if only_stat {
            let RunDiff { total, lines_added, lines_removed, .. } = diff;
            let touched = rekindle_wire::view::TouchedView { files: total, lines_added, lines_removed };
            writeln!(out, "{}", output::styled(output::DIM, touched_text(touched)))?;
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_a_run_and_snapshots_are_told_apart() {
        let wanted = |first: Option<&str>, second: Option<&str>| {
            let args = Args { first: first.map(Into::into), second: second.map(Into::into), stat: false };
            args.wanted()
        };
        let run = |name: &str| Wanted::Run(name.to_owned());
        let snapshots = || Wanted::Snapshots("snap-1".to_owned(), "snap-2".to_owned());
        assert_eq!(wanted(None, None), (None, Wanted::Latest));
        assert_eq!(wanted(Some("01kh"), None), (Some("01kh".to_owned()), Wanted::Latest));
        assert_eq!(wanted(Some("run_01"), None), (None, run("run_01")));
        assert_eq!(wanted(Some("snap-1..snap-2"), None), (None, snapshots()));
        assert_eq!(wanted(Some("01kh"), Some("01kj")), (Some("01kh".to_owned()), run("01kj")));
        assert_eq!(wanted(Some("01kh"), Some("snap-1..snap-2")), (Some("01kh".to_owned()), snapshots()));
    }
}
