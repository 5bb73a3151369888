//! Hidden commands for those who work on Rekindle: homes of any size, damage of every kind, and processes to
//! kill. Nothing here is part of what users are promised.

mod append;
mod damage;
mod drive;
mod hold;
mod make_home;
mod script;
mod unsynced;

use std::sync::Arc;

use rekindle_domain::id::BootId;
use rekindle_domain::time::Clock;
use rekindle_store::Store;
use rekindle_store::disk::SharedDisk;

use super::Context;
use crate::clock::{SystemClock, opener};
use crate::failure::{Exit, Failure};

/// Tools for working on Rekindle itself
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
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

pub(super) fn run(context: &Context, args: Args) -> Result<Exit, Failure> {
    match args.command {
        Command::MakeHome(args) => make_home::run(context, &args),
        Command::Damage(args) => damage::run(context, &args),
        Command::Append(args) => append::run(context, &args),
        Command::Drive(args) => drive::run(context, &args),
        Command::Hold(args) => hold::run(context, &args),
    }
}

/// Opens the home as its owner.
fn open(context: &Context, disk: SharedDisk) -> Result<(Store, BootId), Failure> {
    let opener = opener()?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let store = rekindle_service::home::open(&disk, &context.home, opener, &clock)?;
    Ok((store, opener.boot_id))
}
