//! The commands, a file each.

mod agents;
mod answer;
mod attach;
mod cancel;
mod chaos;
mod close;
mod completions;
mod config;
mod converse;
mod demo;
mod demo_agent;
mod diff;
mod doctor;
mod export;
mod fork;
mod gc;
mod holders;
mod import;
mod late_answer;
mod log;
mod log_from_daemon;
mod man;
mod notify;
mod pipeline;
mod ps;
mod resume;
mod rewind;
mod rm;
mod run;
mod run_queue;
mod search;
mod send;
mod serve;
pub(crate) mod service;
mod set;
mod snapshot;
mod status;
mod stop;
mod task;
mod token;
mod tree_diff;
mod waits;
mod workspace;
pub(crate) use workspace::capture_options;

use std::path::PathBuf;

use crate::Shared;
pub(crate) use crate::context::{Context, Unheard};
use rekindle_client::failure::{Exit, Failure};

/// What to do.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    Run(run::Args),
    Ps(ps::Args),
    Attach(attach::Args),
    Send(send::Args),
    Waits(waits::Args),
    Answer(answer::Args),
    Resume(resume::Args),
    Fork(fork::Args),
    Rewind(rewind::Args),
    Export(export::Args),
    Cancel(cancel::Args),
    Set(set::Args),
    Close(close::Args),
    Rm(rm::Args),
    Log(log::Args),
    Search(search::Args),
    Status(status::Args),
    Snapshot(snapshot::Args),
    Task(task::Args),
    Pipeline(pipeline::Args),
    Notify(notify::Args),
    Agents(agents::Args),
    Serve(serve::Args),
    Restart(stop::RestartArgs),
    Stop(stop::Args),
    Token(token::Args),
    Service(service::Args),
    Doctor(doctor::Args),
    Gc(gc::Args),
    Diff(diff::Args),
    Workspace(workspace::Args),
    Import(import::Args),
    Demo(demo::Args),
    Chaos(chaos::Args),
    Config(config::Args),
    Completions(completions::Args),
    #[command(hide = true)]
    Man(man::Args),
    #[command(hide = true)]
    Holders(holders::Args),
    #[command(hide = true)]
    DemoAgent(demo_agent::Args),
}

/// Does what is meant without a command: at a terminal a conversation. Elsewhere there is nothing to do.
pub(crate) fn converse(shared: Shared) -> Option<Result<Exit, Failure>> {
    (!shared.json && rekindle_conversation::is_possible()).then(|| converse::here(shared.context()?))
}

/// Does it.
pub(crate) fn run(shared: Shared, command: Command) -> Result<Exit, Failure> {
    let context = || shared.context();
    let here = |command| context()?.only_here(command);
    // Which agents there are has nothing to do with any home, and some make a home of their own and need no other.
    let homeless = || {
        let (home, json, server) = (PathBuf::new(), shared.json, shared.elsewhere()?);
        Ok::<_, Failure>(Context { home, json, server })
    };
    match command {
        Command::Agents(args) => agents::run(&homeless()?, &args),
        Command::Run(args) => run::run(&context()?, args),
        Command::Ps(args) => ps::run(&context()?, &args),
        Command::Attach(args) => attach::run(context()?, &args),
        Command::Send(args) => send::run(&context()?, &args),
        Command::Waits(args) => waits::run(&context()?, &args),
        Command::Answer(args) => answer::run(&context()?, &args),
        Command::Resume(args) => resume::run(&context()?, &args),
        Command::Fork(args) => fork::run(&context()?, args),
        Command::Rewind(args) => rewind::run(&context()?, args),
        Command::Export(args) => export::run(&here("export")?, &args),
        Command::Cancel(args) => cancel::run(&context()?, &args),
        Command::Set(args) => set::run(&context()?, args),
        Command::Close(args) => close::run(&context()?, &args),
        Command::Rm(args) => rm::run(&context()?, &args),
        Command::Log(args) => log::run(&context()?, &args),
        Command::Search(args) => search::run(&context()?, &args),
        Command::Status(args) => status::run(&context()?, &args),
        Command::Snapshot(args) => snapshot::run(&context()?, &args),
        Command::Task(args) => task::run(&context()?, args),
        Command::Pipeline(args) if args.is_about_file() => {
            homeless()?.only_here("pipeline").and_then(|context| pipeline::run(&context, args))
        }
        Command::Pipeline(args) => pipeline::run(&context()?, args),
        Command::Notify(args) => notify::run(&here("notify")?, &args),
        Command::Serve(args) => serve::run(&here("serve")?, &args),
        Command::Restart(args) => stop::restart(&here("restart")?, &args),
        Command::Stop(args) => stop::run(&context()?, &args),
        Command::Token(args) => token::run(&here("token")?, args),
        Command::Doctor(args) => doctor::run(&here("doctor")?, &args),
        Command::Demo(args) => homeless()?.only_here("demo").and_then(|_| demo::run(&shared, &args)),
        Command::Chaos(args) => homeless()?.only_here("chaos").and_then(|_| chaos::run(&shared, &args)),
        Command::Gc(args) => gc::run(&here("gc")?, &args),
        Command::Diff(args) => diff::run(&context()?, &args),
        Command::Workspace(args) => workspace::run(&here("workspace")?, &args),
        Command::Import(args) => import::run(&here("import")?, &args),
        Command::Service(args) => service::run(&here("service")?, &args),
        Command::Config(args) => {
            homeless()?.only_here("config").and_then(|_| config::run(shared.json, &args))
        }
        Command::Completions(args) => completions::run(&args),
        Command::Man(args) => man::run(&args),
        Command::Holders(args) => holders::run(&context()?, &args),
        // An agent has no home, and its environment may be next to empty.
        Command::DemoAgent(args) => demo_agent::run(args),
    }
}
