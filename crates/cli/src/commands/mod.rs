//! The commands, a file each.

mod agents;
mod demo_agent;
pub(crate) mod dev;
mod doctor;
mod log;
mod status;

use std::path::PathBuf;
use std::sync::Arc;

use rekindle_store::disk::{RealDisk, SharedDisk};
use rekindle_store::offline::Offline;

use crate::Shared;
use crate::failure::{Exit, Failure};

/// What to do.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    Agents(agents::Args),
    Doctor(doctor::Args),
    Log(log::Args),
    Status(status::Args),
    #[command(hide = true)]
    DemoAgent(demo_agent::Args),
    #[command(hide = true)]
    Dev(dev::Args),
}

/// Does it.
pub(crate) fn run(shared: Shared, command: Command) -> Result<Exit, Failure> {
    let context = || Ok::<_, Failure>(Context { home: shared.home.path()?, json: shared.json });
    match command {
        // Which agents there are has nothing to do with any home.
        Command::Agents(args) => agents::run(shared.json, &args),
        Command::Doctor(args) => doctor::run(&context()?, &args),
        Command::Log(args) => log::run(&context()?, &args),
        Command::Status(args) => status::run(&context()?, &args),
        // An agent has no home, and its environment may be next to empty.
        Command::DemoAgent(args) => demo_agent::run(args),
        Command::Dev(args) => dev::run(&context()?, args),
    }
}

/// What every command is given.
pub(crate) struct Context {
    /// The home.
    pub(crate) home: PathBuf,
    /// Print JSON.
    pub(crate) json: bool,
}

impl Context {
    /// Returns the disk.
    pub(crate) fn disk(&self) -> SharedDisk {
        Arc::new(RealDisk)
    }

    /// Looks at the home without owning it.
    pub(crate) fn offline(&self) -> Result<Offline, Failure> {
        Ok(Offline::open(self.disk(), &self.home)?)
    }
}
