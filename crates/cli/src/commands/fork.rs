//! `rekindle fork`: a new session that goes on from a point of another.

use std::io::Write;
use std::path::PathBuf;

use clap::ArgGroup;
use rekindle_agent::known::by_id;
use rekindle_client::{Exit, Failure, read};
use rekindle_display::hints::ours;
use rekindle_wire::request::{AgentChoice, ForkAt, NewFork};
use rekindle_wire::view::Forked;

use super::Context;
use crate::possible_values::one_of;
use crate::restored_files::finish;
use crate::session_arg::SessionArg;
use crate::session_options::{PROFILES, directory, usual_profile, whole_program};

/// Fork a session: a new one with the same history up to a point, which goes its own way
///
/// The other session stays as it is. The history is cut between two runs: behind the newest one that has ended, or where --at
/// says. The fork has the same agent, directory and settings unless you name others; its agent goes on from its own
/// session of before if it can and nothing was asked since, else it is told with the first prompt what happened up to there. Files are not touched: two agents in one directory see each other's changes. With --files the fork's own
/// directory gets the files that were there at the cut, if a checkpoint was taken; messages wait until that is done. With --worktree
/// that is a new worktree of the git repository, at the commit that HEAD was at; `git worktree remove` removes it again.
#[derive(Debug, clap::Args)]
#[command(group(ArgGroup::new("place").args(["cwd", "worktree"]).multiple(true)))]
#[command(group(ArgGroup::new("with_files").args(["files", "worktree"]).multiple(true)))]
#[command(after_help = "Examples:
  rekindle fork
  rekindle fork 01khz0p6r8 --at run_01khz0p6r8vk6mqj3b8y2c9d4e
  rekindle fork 01khz0p6r8 --agent codex --title \"the same with codex\"
  rekindle fork 01khz0p6r8 --at 148 --cwd ../copy
  rekindle fork 01khz0p6r8 --files --cwd ../before-it-went-wrong
  rekindle fork 01khz0p6r8 --worktree --agent codex
  rekindle send $(rekindle fork 01khz0p6r8) \"try it the other way\"")]
pub(crate) struct Args {
    #[command(flatten)]
    session: SessionArg,

    /// Where to cut the history: after a run, by its id; at a record, by its number, rounded down to the end of a run; or at a
    /// kept snapshot, by its name
    #[arg(long, value_name = "RUN|SEQ|SNAPSHOT")]
    at: Option<String>,

    /// Another agent, by a name that `rekindle agents` shows
    #[arg(long, short, value_name = "NAME", conflicts_with = "command")]
    agent: Option<String>,

    /// The model, as the agent names it
    #[arg(long)]
    model: Option<String>,

    /// The agent's mode, as the agent names it
    #[arg(long)]
    mode: Option<String>,

    /// A short title
    #[arg(long)]
    title: Option<String>,

    /// Where the agent works [default: where the other one does]
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,

    /// Restore the files of the cut there: in a directory that is new or empty
    #[arg(long, requires = "place")]
    files: bool,

    /// Make a git worktree for it, with the files of the cut: beside the repository, or where --cwd says
    #[arg(long)]
    worktree: bool,

    /// With --files, also in a directory that is not empty; also while an agent is at work in it, above it or below it; what is
    /// overwritten or removed is kept first
    #[arg(long, requires = "with_files")]
    force: bool,

    /// What the command after -- speaks [default: acp if one of its words says so, else exec]
    #[arg(long, value_parser = one_of::<String>(PROFILES), requires = "command")]
    profile: Option<String>,

    /// Any command as the agent, after `--`
    #[arg(last = true)]
    command: Vec<String>,
}

pub(super) fn run(context: &Context, args: Args) -> Result<Exit, Failure> {
    let agent = match (args.agent, args.command.as_slice()) {
        (Some(name), _) if by_id(&name).is_none() => {
            let message = format!("there is no known agent named {name:?}");
            return Err(Failure::usage("unknown_agent", message)
                .hint("`rekindle agents` lists the names; any other command comes after --"));
        }
        (Some(name), _) => Some(AgentChoice::Known(name)),
        (None, []) => None,
        (None, command) => {
            let profile = args.profile.unwrap_or_else(|| usual_profile(command).to_owned());
            Some(AgentChoice::Command { profile, command: whole_program(command) })
        }
    };
    let with_files = args.files || args.worktree;
    let working_dir = match &args.cwd {
        // A directory for files need not be there yet.
        Some(cwd) => Some(directory(Some(cwd), context.server.is_none() && (!with_files || cwd.exists()))?),
        None => None,
    };
    let at = args.at.map(|at| match at.parse() {
        Ok(seq) => ForkAt::Seq(seq),
        Err(_) => ForkAt::Name(at),
    });
    let new = NewFork {
        at,
        agent,
        model: args.model,
        mode: args.mode,
        title: args.title,
        working_dir,
        files: args.files,
        worktree: args.worktree,
        force: args.force,
        ..NewFork::default()
    };
    let mut client = context.daemon_or_start()?;
    let id = args.session.find_live(context, &client)?;
    let body = client.post_once(&format!("/api/sessions/{id}/fork"), &new)?;
    let forked: Forked = read(&body)?;
    if context.json {
        context.acknowledge(&body, "")?;
        return finish(context, &client, &forked.session, forked.files);
    }
    // The id alone, so that a script can take it.
    writeln!(std::io::stdout(), "{}", forked.session.id)?;
    let behind = forked.session.forked_from.map_or(0, |from| from.seq);
    anstream::eprintln!("forked from {id} after record {behind}, with {}", forked.session.agent);
    let exit = finish(context, &client, &forked.session, forked.files)?;
    anstream::eprintln!("{}: {}", forked.verdict, forked.notice);
    anstream::eprintln!("continue with: {}", ours(format_args!("send {} TEXT", forked.session.id)));
    Ok(exit)
}
