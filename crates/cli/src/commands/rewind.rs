//! `rekindle rewind`: takes a session back to before a run, its conversation and its files.

use std::io::{BufRead, IsTerminal, Write};
use std::path::Path;

use rekindle_client::{Exit, Failure, read};
use rekindle_domain::id::RunId;
use rekindle_terminal::output;
use rekindle_wire::request::NewRewind;
use rekindle_wire::view::{RewindPlan, Rewound, RewoundFiles};

use super::{Context, workspace};
use crate::hints::ours;
use crate::session_arg::SessionArg;

/// Take a session back to before a run, its conversation and its files
///
/// What takes its place is a new session with the same title, directory, agent and settings, whose history ends before the run's
/// prompt; this one is closed, and keeps everything that happened in it. If a checkpoint of the directory was taken before that run,
/// the files are made what they were then; what is overwritten or removed is kept first, and the log tells the way back.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle rewind                                             undoes this directory's latest run
  rekindle rewind 01khz0p6r8 --to run_01khz0p6r8vk6mqj3b8y2c9d4e
  rekindle rewind --conversation-only --yes                   leaves the files as they are")]
pub(crate) struct Args {
    #[command(flatten)]
    session: SessionArg,

    /// The run before whose prompt it was as it is to be again [default: the latest]
    #[arg(long, value_name = "RUN")]
    to: Option<RunId>,

    /// Leave the files as they are
    #[arg(long)]
    conversation_only: bool,

    /// Also while another session's agent is at work in the directory, above it or below it
    #[arg(long)]
    force: bool,

    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

pub(super) fn run(context: &Context, args: Args) -> Result<Exit, Failure> {
    let mut client = context.daemon_or_start()?;
    let id = args.session.find_live(context, &client)?;
    let to = args.to.map(|run| format!("?to={run}")).unwrap_or_default();
    let mut plan: RewindPlan = client.get(&format!("/api/sessions/{id}/rewind{to}"))?;
    plan.tree = plan.tree.filter(|_| !args.conversation_only);
    if !args.yes && !context.json && output::is_terminal() && std::io::stdin().is_terminal() {
        show(context, &id, &plan)?;
        if !confirmed()? {
            return Ok(Exit::Ok);
        }
    }
    let files = args.conversation_only.then_some(false);
    // The run that was shown, whatever came since.
    let new = NewRewind { to: Some(plan.run_id), files, force: args.force };
    let body = client.post_once(&format!("/api/sessions/{id}/rewind"), &new)?;
    if context.json {
        return context.acknowledge(&body, "");
    }
    let rewound: Rewound = read(&body)?;
    // The id alone, so that a script can take it.
    writeln!(std::io::stdout(), "{}", rewound.session.id)?;
    anstream::eprintln!("{id} is closed; this takes its place, as before {}", plan.run_id);
    anstream::eprintln!(
        "{}",
        match rewound.files {
            RewoundFiles::Restored =>
                "files: made what they were before that run; messages wait until that is done",
            _ => "files: left as they are",
        }
    );
    anstream::eprintln!("{}: {}", rewound.verdict, rewound.notice);
    anstream::eprintln!("go on with: {}", ours(format_args!("send {} TEXT", rewound.session.id)));
    Ok(Exit::Ok)
}

/// Shows what would change.
fn show(context: &Context, id: &str, plan: &RewindPlan) -> Result<(), Failure> {
    anstream::eprintln!("{id} goes back to before {}, behind record {}", plan.run_id, plan.seq);
    match plan.tree {
        Some(tree) if context.server.is_none() => {
            workspace::show_changes(context, Path::new(&plan.working_dir), tree)
        }
        Some(_) => {
            anstream::eprintln!("its files in {} are made what they were then", plan.working_dir);
            Ok(())
        }
        None => {
            anstream::eprintln!("its files are left as they are");
            Ok(())
        }
    }
}

fn confirmed() -> Result<bool, Failure> {
    anstream::eprint!("go back? [y/N] ");
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
