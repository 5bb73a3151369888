//! `rekindle export`: sessions and runs of pipelines in one file, to be carried to another home.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rekindle_agent::known::AgentDirectories;
use rekindle_client::clock::SystemClock;
use rekindle_client::failure::{Exit, Failure};
use rekindle_domain::id::RunName;
use rekindle_domain::time::Clock;
use rekindle_service::bundles::BundleError;
use rekindle_service::bundles::export::{Export, Exported, export};
use rekindle_service::bundles::sealed::{Passphrase, Sealing};
use rekindle_store::layout::Layout;
use rekindle_store::offline::Offline;
use rekindle_terminal::output;
use serde_json::json;

use super::{Context, capture_options};
use crate::bundle_progress::BundleProgress;
use crate::passphrase;
use crate::session_arg::{find_offline, latest_offline};

/// Export sessions or runs of pipelines as one file, a bundle, that `rekindle import` takes in elsewhere
///
/// Works beside a daemon and without one, and changes nothing: a session that runs is exported at the record that is its last at
/// this moment. A bundle has the whole history of each session, what is too large for a log, and kept snapshots; with
/// --with-workspace also the files of its directory, as they are now and as every checkpoint and kept snapshot has them that is still
/// here, but for what a snapshot of it leaves out: `rekindle diff`, `rewind` and restores work where it is imported. With
/// --with-transcript also what the agent itself wrote down, where that is known, so that it remembers the session elsewhere.
///
/// A run is named by its name, or the beginning of it, with `run-`. Its bundle has its ledger, every state of files that this names, and
/// the sessions of its steps, and those of their results that runs share: `rekindle pipeline resume` goes on with it where it is imported.
///
/// Anyone who has the file can read it, and conversations may contain secrets. --seal encrypts it with a passphrase, which it asks for
/// twice; the tools of age can open it too.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle export
  rekindle export 01khz0p6r8 -o session.rkb --with-workspace --with-transcript
  rekindle export run-20251020-140818-4f9f29a1
  rekindle export --seal --passphrase-file ~/.bundle-passphrase
  rekindle export 01khz0p6r8 -o - | ssh host 'cat > session.rkb'")]
pub(crate) struct Args {
    /// The sessions' ids, or the beginnings of them, and names of runs [default: this directory's latest session]
    #[arg(value_name = "SESSION|RUN")]
    sessions: Vec<String>,

    /// Where to write it; - is standard output [default: the session's id, or the run's name, with .rkb, in this directory]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Include the files of the sessions' directories, as they are now and as checkpoints and snapshots have them
    #[arg(long)]
    with_workspace: bool,

    /// Include the agents' own transcripts, where their place is known
    #[arg(long)]
    with_transcript: bool,

    /// Encrypt it with a passphrase
    #[arg(long)]
    seal: bool,

    /// Take the passphrase from the first line of a file instead of asking for it
    #[arg(long, value_name = "FILE", requires = "seal")]
    passphrase_file: Option<PathBuf>,

    /// Overwrite the file if it exists
    #[arg(long)]
    force: bool,
}

pub(super) fn run(context: &Context, args: &Args) -> Result<Exit, Failure> {
    let home = context.offline()?;
    let (mut sessions, mut runs) = (Vec::new(), Vec::new());
    for name in &args.sessions {
        if name.starts_with("run-") {
            let run = find_run(name, &home)?;
            if !runs.contains(&run) {
                runs.push(run);
            }
            continue;
        }
        let session = find_offline(name, &home)?;
        if !sessions.contains(&session) {
            sessions.push(session);
        }
    }
    if sessions.is_empty() && runs.is_empty() {
        sessions.push(latest_offline(&home)?);
    }
    // Read once before anything is captured: a configuration that cannot be understood is told at once.
    capture_options(Path::new("."))?;
    let options = |directory: &Path| {
        capture_options(directory).unwrap_or_else(|_| rekindle_workspace::CaptureOptions::new(directory))
    };
    let machine = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let directories = || AgentDirectories::from_environment(|name| std::env::var_os(name));
    let asked = Export {
        files: args.with_workspace.then_some(&options),
        transcripts: args.with_transcript.then(directories),
        made_by: env!("CARGO_PKG_VERSION").to_owned(),
        made_at: SystemClock.now(),
        machine: Some(machine.trim().to_owned()).filter(|name| !name.is_empty()),
        runs: runs.iter().map(|run| run.pipeline_id()).collect(),
        sessions,
    };
    let first = asked.sessions.first().map(ToString::to_string);
    let first = first.or_else(|| runs.first().map(ToString::to_string)).unwrap_or_default();
    let target = args.output.clone().unwrap_or_else(|| format!("{first}.rkb").into());
    let is_stdout = target == Path::new("-");
    if is_stdout && io::stdout().is_terminal() {
        let message = "a bundle cannot be written to a terminal".to_owned();
        return Err(Failure::usage("stdout_is_terminal", message)
            .hint("use -o FILE, or pipe it to a command: … -o - | …"));
    }
    if !is_stdout && !args.force && target.symlink_metadata().is_ok() {
        let message = format!("{} already exists", target.display());
        return Err(Failure::usage("file_exists", message).hint("--force replaces it; -o names another"));
    }
    let passphrase = args.passphrase_file.as_deref();
    let passphrase = args.seal.then(|| passphrase::for_sealing(context, passphrase)).transpose()?;
    let passphrase = passphrase.as_ref();
    if is_stdout {
        return to_stdout(context, &asked, passphrase);
    }
    let (exported, bytes) = to_file(context, &asked, passphrase, &target, args.force)?;
    let sessions: Vec<_> = exported.contents.sessions.iter().collect();
    let body = json!({
        "file": target.to_string_lossy(),
        "bytes": bytes,
        "sealed": args.seal,
        "members": exported.contents.members.len(),
        "sessions": sessions,
        "runs": exported.contents.runs,
        "cached_results": exported.contents.cached_results().count(),
        "notes": exported.notes,
    });
    context.print(&body, |out| {
        let mut count = output::plural(exported.contents.sessions.len() as u64, "session");
        if !exported.contents.runs.is_empty() {
            let runs = output::plural(exported.contents.runs.len() as u64, "run");
            count = format!("{runs}, {count}");
        }
        let results = exported.contents.cached_results().count() as u64;
        if results > 0 {
            count = format!("{count}, {}", output::plural(results, "shared result"));
        }
        let sealed = if args.seal { ", sealed" } else { "" };
        writeln!(out, "{}: {count}, {}{sealed}", target.display(), output::size(bytes))?;
        tell(&exported);
        Ok(())
    })
}

/// Finds the run that a name means, or the beginning of one, in a home without a daemon.
fn find_run(name: &str, home: &Offline) -> Result<RunName, Failure> {
    let unlisted = |error| Failure::failed("home_unusable", anyhow::Error::new(error));
    let mut found = home.pipelines().map_err(unlisted)?.runs;
    found.retain(|run| run.to_string().starts_with(name));
    match (found.len(), found.pop()) {
        (1, Some(run)) => Ok(run),
        (_, None) => Err(Failure::usage("run_unknown", format!("there is no run {name}"))
            .hint("rekindle pipeline ls lists the runs")),
        (more, Some(last)) => Err(Failure::usage(
            "run_ambiguous",
            format!("{name} is not unique: it may be {last}, or {} more", more - 1),
        )
        .hint("give more of it")),
    }
}

fn tell(exported: &Exported) {
    for run in &exported.contents.runs {
        let states = output::plural(run.trees.len() as u64, "state");
        anstream::eprintln!("{}: {:?}, with {states} of its files", run.run_id, run.goal);
    }
    for session in &exported.contents.sessions {
        let mut along: Vec<String> = Vec::new();
        along.extend(session.tree.map(|_| "its files as they are now".to_owned()));
        let states = session.checkpoints.len() as u64;
        along.extend(
            (states > 0).then(|| format!("{} of checkpoints and snapshots", output::plural(states, "state"))),
        );
        along.extend(session.transcript.as_ref().map(|found| format!("the transcript of {}", found.agent)));
        if !along.is_empty() {
            anstream::eprintln!("{}: with {}", session.session_id, along.join(", "));
        }
    }
    for note in &exported.notes {
        anstream::eprintln!("note: {note}");
    }
}

fn to_stdout(
    context: &Context,
    asked: &Export<'_>,
    passphrase: Option<&Passphrase>,
) -> Result<Exit, Failure> {
    let mut out = BufWriter::new(io::stdout());
    let exported = write(context, asked, passphrase, &mut out)?;
    out.flush()?;
    tell(&exported);
    Ok(Exit::Ok)
}

/// Writes a bundle beside its place and gives it its name when it is whole and on disk; returns how long it is, too.
fn to_file(
    context: &Context,
    asked: &Export<'_>,
    passphrase: Option<&Passphrase>,
    target: &Path,
    force: bool,
) -> Result<(Exported, u64), Failure> {
    // A name that no capture takes in: it may lie in the very directory that is exported.
    let temporary = target.with_file_name(format!(".rekindle-{:08x}.tmp", std::process::id()));
    let written = (|| {
        // Conversations are nobody else's business.
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
        let mut out = BufWriter::with_capacity(1 << 17, file);
        let exported = write(context, asked, passphrase, &mut out)?;
        let file: File = out.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.sync_all()?;
        if force {
            std::fs::rename(&temporary, target)?;
        } else {
            // Unlike a rename this never replaces what somebody put there meanwhile.
            std::fs::hard_link(&temporary, target)?;
            std::fs::remove_file(&temporary)?;
        }
        let directory = target.parent().filter(|parent| !parent.as_os_str().is_empty());
        File::open(directory.unwrap_or(Path::new(".")))?.sync_all()?;
        Ok((exported, file.metadata()?.len()))
    })();
    if written.is_err() {
        let _ = std::fs::remove_file(&temporary);
    }
    written
}

fn write(
    context: &Context,
    asked: &Export<'_>,
    passphrase: Option<&Passphrase>,
    out: &mut (dyn Write + Send),
) -> Result<Exported, Failure> {
    let mut progress = BundleProgress::new(context.json);
    let layout = Layout::new(&context.home);
    let mut show = |done| progress.show(done);
    let exported = match passphrase {
        None => export(&context.disk(), &layout, asked, out, &mut show),
        Some(passphrase) => Sealing::new(out, passphrase).and_then(|mut sealing| {
            let exported = export(&context.disk(), &layout, asked, &mut sealing, &mut show)?;
            sealing.finish().map(|_| exported)
        }),
    };
    progress.end();
    exported.map_err(failure)
}

/// Returns the failure that an error of a bundle is.
pub(super) fn failure(error: BundleError) -> Failure {
    let hint = match error.code() {
        "bundle_damaged" | "not_a_bundle" => "nothing was changed; export it again, or copy it again",
        "bundle_newer" => "nothing was changed",
        "wrong_passphrase" => "nothing was changed; try it again",
        "command_not_trusted" => "--trust-command takes it, if you know what it does",
        "import_busy" => "wait until it has ended",
        "home_unusable" | "session_unreadable" => "rekindle doctor checks the home",
        "session_exists" => "run the same command again",
        "run_exists" => "nothing was changed; the run is here: rekindle pipeline show",
        _ => return Failure::failed(error.code(), error),
    };
    Failure::failed(error.code(), error).hint(hint)
}
