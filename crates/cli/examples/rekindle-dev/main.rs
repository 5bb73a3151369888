//! `rekindle-dev`: tools for those who work on Rekindle: homes of any size, damage of every kind, and processes to kill. It is an
//! example, so that the tests of this package find it built, it may use what only tests use, and nobody installs it.

mod append;
mod damage;
mod drive;
mod hold;
mod make_home;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use rekindle_client::clock::{SystemClock, opener};
use rekindle_client::failure::{Exit, Failure};
use rekindle_domain::id::BootId;
use rekindle_domain::time::Clock;
use rekindle_store::Store;
use rekindle_store::disk::{RealDisk, SharedDisk};

/// Tools for working on Rekindle itself
#[derive(Debug, Parser)]
#[command(name = "rekindle-dev")]
struct Cli {
    /// The home to work on [default: $REKINDLE_HOME]
    #[arg(long, value_name = "PATH", global = true)]
    home: Option<PathBuf>,
    /// Print JSON instead of text
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    MakeHome(make_home::Args),
    Damage(damage::Args),
    Append(append::Args),
    Drive(drive::Args),
    Hold(hold::Args),
}

/// What every command is given.
struct Context {
    home: PathBuf,
    json: bool,
}

impl Context {
    fn disk(&self) -> SharedDisk {
        Arc::new(RealDisk)
    }
}

fn main() -> ExitCode {
    let Cli { home, json, command } = Cli::parse();
    match run(home, json, command) {
        Ok(exit) => exit.into(),
        Err(failure) if failure.is_broken_pipe() => Exit::Ok.into(),
        Err(failure) => {
            failure.report(json);
            failure.exit.into()
        }
    }
}

fn run(home: Option<PathBuf>, json: bool, command: Command) -> Result<Exit, Failure> {
    // Never the usual home: what is done here is not for anyone's own.
    let home = home.or_else(|| std::env::var_os("REKINDLE_HOME").map(PathBuf::from)).ok_or_else(|| {
        Failure::usage("home_unknown", "no home is named".into()).hint("--home PATH or $REKINDLE_HOME")
    })?;
    let context = Context { home: std::path::absolute(&home).unwrap_or(home), json };
    match command {
        Command::MakeHome(args) => make_home::run(&context, &args),
        Command::Damage(args) => damage::run(&context, &args),
        Command::Append(args) => append::run(&context, &args),
        Command::Drive(args) => drive::run(&context, &args),
        Command::Hold(args) => hold::run(&context, &args),
    }
}

/// Opens the home as its owner.
fn open(context: &Context, disk: SharedDisk) -> Result<(Store, BootId), Failure> {
    let opener = opener()?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let store = rekindle_service::home::open(&disk, &context.home, opener, &clock)?;
    Ok((store, opener.boot_id))
}
