//! `rekindle pipeline init`: a `rekindle.toml` to begin with, for this directory and the agents that are here.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::Path;

use rekindle_agent::find::{How, find_all};
use rekindle_client::failure::{Exit, Failure};
use rekindle_project::FILE;
use rekindle_project::starting_file::{self, Roles};
use serde_json::json;

use super::Context;
use crate::agent_choice::lacks_only_adapter;

/// Write a rekindle.toml to begin with into this directory
///
/// It has comments on everything that may stand there, names agents that are on PATH, and a command that tests what is here
/// if one can be told. A file that is there stays, unless --force is given.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle pipeline init
  rekindle pipeline init --force    in place of the file that is there")]
pub(super) struct Args {
    /// Replace the file that is there
    #[arg(long)]
    force: bool,
}

pub(super) fn run(context: &Context, args: &Args) -> Result<Exit, Failure> {
    let found = find_all(&std::env::var_os("PATH").unwrap_or_default());
    // What is installed goes first; an adapter that is lacking is downloaded when the agent is first started.
    let installed = found.iter().filter(|agent| agent.how == How::Installed);
    let lacking = found.iter().filter(|agent| lacks_only_adapter(agent));
    let here: Vec<&str> = installed.chain(lacking).map(|agent| agent.id).collect();
    let roles = Roles::of(&here);
    let check = starting_file::check_for(|name| Path::new(name).is_file());
    let text = starting_file::text(roles, check);
    write(Path::new(FILE), text.as_bytes(), args.force).map_err(|error| {
        let message = format!("{FILE} cannot be written: {error}");
        match error.kind() {
            ErrorKind::AlreadyExists => Failure::usage("config_exists", format!("{FILE} already exists"))
                .hint("--force replaces it; `rekindle pipeline validate` says what is wrong with it"),
            _ => Failure::failed("config_unwritable", io::Error::new(error.kind(), message)),
        }
    })?;
    let agents = roles.names();
    context.print(
        &json!({"file": FILE, "agents": {"builder": agents.0, "reviewer": agents.1}, "check": check}),
        |out| {
            writeln!(out, "wrote {FILE}: {}", roles.text())?;
            writeln!(out, "describe your task in it, then run: rekindle pipeline validate")?;
            Ok(())
        },
    )?;
    Ok(Exit::Ok)
}

/// Writes a file that is not there yet, or replaces it; whoever reads it meanwhile finds one of both, whole.
fn write(path: &Path, bytes: &[u8], replaces: bool) -> io::Result<()> {
    let temporary = path.with_extension(format!("toml.{}.tmp", std::process::id()));
    // What a crash left there is nobody's.
    let _ = fs::remove_file(&temporary);
    let written = OpenOptions::new().write(true).create_new(true).open(&temporary).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()?;
        // A link fails where there is something already.
        if replaces { fs::rename(&temporary, path) } else { fs::hard_link(&temporary, path) }
    });
    if !replaces || written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}
