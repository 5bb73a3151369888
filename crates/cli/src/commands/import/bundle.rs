//! A bundle becomes sessions and runs of this home.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use rekindle_agent::known::AgentDirectories;
use rekindle_client::clock::SystemClock;
use rekindle_client::failure::{Exit, Failure};
use rekindle_display::hints::ours;
use rekindle_domain::blob_id::BlobId;
use rekindle_domain::time::Clock;
use rekindle_service::bundles::BundleFile;
use rekindle_service::bundles::import::{
    Import, ImportedResults, ImportedRun, ImportedSession, Staged, import_staged, stage,
};
use rekindle_service::bundles::sealed::{is_sealed, open_sealed};
use rekindle_service::workspaces::Workspaces;
use rekindle_store::home::{self, HomeError};
use rekindle_store::layout::Layout;
use rekindle_store::{OpenError, Store};
use rekindle_terminal::output::plural;
use rekindle_terminal::sanitise;
use rekindle_wire::request::ImportStaged;
use rekindle_workspace::tree::short_name;
use serde_json::json;

use super::{Args, runs_text};
use crate::bundle_progress::BundleProgress;
use crate::commands::export::failure;
use crate::commands::{Context, capture_options};
use crate::passphrase;

pub(super) fn run(context: &Context, args: &Args) -> Result<Exit, Failure> {
    let unreadable = |error: std::io::Error| {
        let message = format!("cannot read {}", args.path.display());
        Failure::failed("bundle_unusable", anyhow::Error::new(error).context(message))
    };
    let file = File::open(&args.path).map_err(unreadable)?;
    let mut file = opened(context, args, file)?;
    let (disk, layout) = (context.disk(), Layout::new(&context.home));
    let cwd = args.cwd.as_deref().map(whole_path).transpose()?;
    let asked = Import {
        working_dir: cwd.clone(),
        trust_command: args.trust_command,
        agent_directories: AgentDirectories::from_environment(|name| std::env::var_os(name)),
        now: SystemClock.now(),
    };
    let mut progress = BundleProgress::new(context.json);
    let staged = stage(&disk, &layout, &mut *file, &asked, &mut |done| progress.show(done));
    let staged = staged.and_then(|mut staged| {
        if !args.dry_run {
            staged.keep_contents(&mut *file, &mut |done| progress.show(done))?;
        }
        Ok(staged)
    });
    progress.end();
    let staged = staged.map_err(failure)?;
    if !args.dry_run {
        place(context, &staged)?;
    }
    let (sessions, runs, known) = (staged.sessions.clone(), staged.runs.clone(), staged.known.clone());
    let results = staged.results.clone();
    // What is left of staging goes, and whoever collects objects may: a session names them now.
    drop(staged);
    let mut restored = None;
    if let Some(cwd) = cwd.as_deref().map(Path::new)
        && let Some(tree) = files_for(&sessions, &runs, cwd)?
    {
        restored = if args.dry_run { Some(tree) } else { put_files(context, tree, cwd)? };
    }
    if !context.json {
        runs_text::tell(&runs, &known, restored, args.dry_run);
        runs_text::tell_results(&results, args.dry_run);
    }
    tell(context, args, (&sessions[..], &runs[..], &results), restored)
}

/// Returns what is in a file: what was sealed, if it is.
fn opened(context: &Context, args: &Args, mut file: File) -> Result<Box<dyn BundleFile>, Failure> {
    if !is_sealed(&mut file).map_err(failure)? {
        return Ok(Box::new(file));
    }
    let passphrase = passphrase::for_opening(context, args.passphrase_file.as_deref())?;
    Ok(Box::new(open_sealed(file, &passphrase).map_err(failure)?))
}

/// Has the sessions taken in: by the daemon that owns the home, or here if none does.
fn place(context: &Context, staged: &Staged) -> Result<(), Failure> {
    if let Some(mut client) = context.daemon()? {
        client.post_once("/api/imports", &ImportStaged { staged: staged.name().to_owned() })?;
        return Ok(());
    }
    let (disk, layout) = (context.disk(), Layout::new(&context.home));
    let lock = home::lock_for_upkeep(&*disk, &layout, std::process::id()).map_err(|error| match error {
        // One that is just starting, or does not answer.
        HomeError::Locked { .. } => {
            Failure::from(error).hint("try it again; if that does not help: rekindle stop")
        }
        error => error.into(),
    })?;
    let store = Store::open_held(disk.clone(), &context.home, lock, Arc::new(SystemClock));
    let store = store.map_err(|error: OpenError| Failure::failed("home_unusable", error))?;
    import_staged(&disk, &store, staged.name()).map_err(failure)?;
    Ok(())
}

/// Returns the files that go into a directory, if it is empty or missing: those that the runs go on with, without any those of the
/// sessions; if they all have the same.
fn files_for(
    sessions: &[ImportedSession],
    runs: &[ImportedRun],
    cwd: &Path,
) -> Result<Option<BlobId>, Failure> {
    let mut trees: Vec<BlobId> = runs.iter().filter_map(|run| run.tree).collect();
    if runs.is_empty() {
        trees.extend(sessions.iter().filter_map(|session| session.tree));
    }
    trees.dedup();
    let [tree] = trees[..] else { return Ok(None) };
    match std::fs::read_dir(cwd) {
        Ok(mut entries) => Ok(entries.next().is_none().then_some(tree)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Some(tree)),
        Err(error) => Err(error.into()),
    }
}

/// Puts files into a directory, and makes it if it is missing. Tells which were put there; none if something was left out.
fn put_files(context: &Context, tree: BlobId, cwd: &Path) -> Result<Option<BlobId>, Failure> {
    std::fs::create_dir_all(cwd)?;
    let workspaces = Workspaces::new(context.disk(), Layout::new(&context.home));
    let restored = workspaces.restore(tree, capture_options(cwd)?);
    let restored = restored.map_err(|error| Failure::failed(error.code(), error))?;
    Ok(restored.is_complete().then_some(tree))
}

fn tell(
    context: &Context,
    args: &Args,
    (sessions, runs, results): (&[ImportedSession], &[ImportedRun], &ImportedResults),
    restored: Option<BlobId>,
) -> Result<Exit, Failure> {
    let body = json!({
        "sessions": sessions,
        "runs": runs,
        "cached_results": results,
        "dry_run": args.dry_run,
        "files": restored.map(|tree| short_name(&tree)),
    });
    context.print(&body, |out| {
        for run in runs {
            writeln!(out, "{}", run.run_id)?;
        }
        // The sessions of a run's steps are found through it.
        for session in sessions.iter().filter(|_| runs.is_empty()) {
            // The id alone, so that a script can take it.
            writeln!(out, "{}", session.id)?;
            anstream::eprintln!("{}", sanitise::line(&summary(session, args.dry_run)));
            for note in notes(session, restored, args.dry_run) {
                anstream::eprintln!("note: {}", sanitise::line(&note));
            }
        }
        if let ([session], [], false) = (sessions, runs, args.dry_run) {
            anstream::eprintln!("continue with: {}", ours(format_args!("send {} TEXT", session.id)));
        }
        Ok(())
    })
}

fn summary(session: &ImportedSession, dry_run: bool) -> String {
    let done = if dry_run { "would be imported" } else { "imported" };
    format!(
        "{done}: {:?}, {} records, {} in {}",
        session.title, session.records, session.agent, session.working_dir
    )
}

/// Says what was lost, and what to look at.
fn notes(session: &ImportedSession, restored: Option<BlobId>, dry_run: bool) -> Vec<String> {
    let mut notes = session.notes.clone();
    if session.lost_run {
        notes.push(
            "a run was in progress when it was exported: it is interrupted, and what it did since is not known"
                .into(),
        );
    }
    if session.dropped_prompts > 0 {
        notes.push(format!("{} queued prompts were dropped", session.dropped_prompts));
    }
    if session.is_command {
        notes.push(format!("its agent is a command: {}", session.agent));
    }
    if let Some(place) = &session.transcript {
        let goes = if dry_run { "would go" } else { "is" };
        notes.push(format!(
            "its agent's own transcript {goes} where the agent looks for it: {}",
            place.display()
        ));
    }
    if session.checkpoints > 0 {
        let are = if session.checkpoints == 1 { "is" } else { "are" };
        let states = plural(session.checkpoints as u64, "state");
        notes.push(format!(
            "{states} of its files {are} here: rekindle diff and rekindle rewind can use them"
        ));
    }
    // With files comes the directory.
    if restored.is_none() && !Path::new(&session.working_dir).is_dir() {
        notes.push(format!("there is no directory {} here; --cwd names another", session.working_dir));
    }
    if let Some(tree) = session.tree.filter(|tree| Some(*tree) != restored) {
        let name = short_name(&tree);
        notes.push(format!(
            "its files are kept as {name}; rekindle workspace restore {name} puts them into a directory"
        ));
    }
    notes
}

/// Returns a directory's whole path; it need not be there.
fn whole_path(path: &Path) -> Result<String, Failure> {
    let mut whole = std::path::absolute(path)?;
    // Sessions are found by the path without links, which is what a shell in there has.
    if let Some((above, real)) = whole.ancestors().find_map(|above| Some((above, above.canonicalize().ok()?)))
    {
        whole = whole
            .strip_prefix(above)
            .into_iter()
            .flat_map(Path::components)
            .fold(real, |real, name| real.join(name));
    }
    let bad = |_| Failure::usage("no_directory", format!("{}: its path is not valid UTF-8", path.display()));
    whole.into_os_string().into_string().map_err(bad)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_is_not_there_yet_is_named_without_links() {
        let place = tempfile::tempdir().expect("a directory");
        let real = place.path().canonicalize().expect("it is there").join("real");
        std::fs::create_dir(&real).expect("made");
        std::os::unix::fs::symlink(&real, place.path().join("link")).expect("linked");
        let whole = |path: &str| whole_path(&place.path().join(path)).expect("text");
        let real = real.to_str().expect("text");
        assert_eq!(whole("link"), real);
        assert_eq!(whole("link/new/x"), format!("{real}/new/x"));
        assert_eq!(whole("real/new"), format!("{real}/new"));
    }
}
