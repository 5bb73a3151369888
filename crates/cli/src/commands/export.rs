//! `rekindle export`: sessions in one file, to be carried to another home.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rekindle_client::clock::SystemClock;
use rekindle_client::failure::{Exit, Failure};
use rekindle_domain::time::Clock;
use rekindle_service::bundles::BundleError;
use rekindle_service::bundles::export::{Export, Exported, export};
use rekindle_store::layout::Layout;
use rekindle_terminal::output;
use serde_json::json;

use super::{Context, capture_options};
use crate::bundle_progress::BundleProgress;
use crate::session_arg::{find_offline, latest_offline};

/// Export sessions as one file, a bundle, that `rekindle import` takes in elsewhere
///
/// Works beside a daemon and without one, and changes nothing: a session that runs is exported at the record that is its last at
/// this moment. A bundle has the whole history of each session, what is too large for a log, and kept snapshots; with
/// --with-workspace also the files of its directory as they are now, but for what a snapshot of it leaves out. It is readable by
/// whoever has it: conversations may hold secrets.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle export
  rekindle export 01khz0p6r8 -o session.rkb --with-workspace
  rekindle export 01khz0p6r8 -o - | ssh host 'cat > session.rkb'")]
pub(crate) struct Args {
    /// The sessions' ids, or the beginnings of them [default: this directory's latest]
    #[arg(value_name = "SESSION")]
    sessions: Vec<String>,

    /// Where to write it; - is standard output [default: the session's id with .rkb, in this directory]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Take the files of the sessions' directories along, as they are now
    #[arg(long)]
    with_workspace: bool,

    /// Replace the file if there is one
    #[arg(long)]
    force: bool,
}

pub(super) fn run(context: &Context, args: &Args) -> Result<Exit, Failure> {
    let home = context.offline()?;
    let mut sessions = Vec::new();
    for name in &args.sessions {
        let session = find_offline(name, &home)?;
        if !sessions.contains(&session) {
            sessions.push(session);
        }
    }
    if sessions.is_empty() {
        sessions.push(latest_offline(&home)?);
    }
    // Read once before anything is captured: a configuration that cannot be understood is told at once.
    capture_options(Path::new("."))?;
    let options = |directory: &Path| {
        capture_options(directory).unwrap_or_else(|_| rekindle_workspace::CaptureOptions::new(directory))
    };
    let machine = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let asked = Export {
        files: args.with_workspace.then_some(&options),
        made_by: env!("CARGO_PKG_VERSION").to_owned(),
        made_at: SystemClock.now(),
        machine: Some(machine.trim().to_owned()).filter(|name| !name.is_empty()),
        sessions,
    };
    let target = args.output.clone().unwrap_or_else(|| format!("{}.rkb", asked.sessions[0]).into());
    if target == Path::new("-") {
        return to_stdout(context, &asked);
    }
    if !args.force && target.symlink_metadata().is_ok() {
        let message = format!("{} is there already", target.display());
        return Err(Failure::usage("file_exists", message).hint("--force replaces it; -o names another"));
    }
    let exported = to_file(context, &asked, &target, args.force)?;
    let sessions: Vec<_> = exported.contents.sessions.iter().collect();
    let body = json!({
        "file": target.to_string_lossy(),
        "bytes": exported.bytes,
        "members": exported.contents.members.len(),
        "sessions": sessions,
        "notes": exported.notes,
    });
    context.print(&body, |out| {
        let count = output::plural(exported.contents.sessions.len() as u64, "session");
        writeln!(out, "{}: {count}, {}", target.display(), output::size(exported.bytes))?;
        tell(&exported);
        Ok(())
    })
}

fn tell(exported: &Exported) {
    for note in &exported.notes {
        anstream::eprintln!("note: {note}");
    }
}

fn to_stdout(context: &Context, asked: &Export<'_>) -> Result<Exit, Failure> {
    if io::stdout().is_terminal() {
        let message = "a bundle is nothing for a terminal".to_owned();
        return Err(
            Failure::usage("stdout_is_terminal", message).hint("-o FILE, or send it somewhere: … -o - | …")
        );
    }
    let mut out = BufWriter::new(io::stdout());
    let exported = write(context, asked, &mut out)?;
    out.flush()?;
    tell(&exported);
    Ok(Exit::Ok)
}

/// Writes a bundle beside its place and gives it its name when it is whole and on disk.
fn to_file(context: &Context, asked: &Export<'_>, target: &Path, force: bool) -> Result<Exported, Failure> {
    let mut name = target.as_os_str().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    let temporary = PathBuf::from(name);
    let written = (|| {
        // Conversations are nobody else's business.
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
        let mut out = BufWriter::with_capacity(1 << 17, file);
        let exported = write(context, asked, &mut out)?;
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
        Ok(exported)
    })();
    if written.is_err() {
        let _ = std::fs::remove_file(&temporary);
    }
    written
}

fn write(context: &Context, asked: &Export<'_>, out: &mut (dyn Write + Send)) -> Result<Exported, Failure> {
    let mut progress = BundleProgress::new(context.json);
    let layout = Layout::new(&context.home);
    let exported = export(&context.disk(), &layout, asked, out, &mut |done| progress.show(done));
    progress.end();
    exported.map_err(failure)
}

/// Returns the failure that an error of a bundle is.
pub(super) fn failure(error: BundleError) -> Failure {
    let hint = match error.code() {
        "bundle_damaged" | "not_a_bundle" => "nothing was changed; export it again, or copy it again",
        "bundle_newer" => "nothing was changed",
        "command_not_trusted" => "--trust-command takes it, if you know what it does",
        "import_busy" => "wait until it has ended",
        "home_unusable" | "session_unreadable" => "rekindle doctor looks at the home",
        "session_exists" => "run the same command again",
        _ => return Failure::failed(error.code(), error),
    };
    Failure::failed(error.code(), error).hint(hint)
}
