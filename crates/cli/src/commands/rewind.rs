//! `rekindle rewind`: takes a session back to before a run, its conversation and its files, or its files only.

mod files_only;

use std::io::Write;
use std::path::Path;

use rekindle_client::{Exit, Failure, read};
use rekindle_display::hints::{brief, ours};
use rekindle_domain::id::RunId;
use rekindle_wire::request::NewRewind;
use rekindle_wire::view::{FilesOutcome, RewindPlan, Rewound};

use super::{Context, workspace};
use crate::confirm::{can_ask, confirmed};
use crate::restored_files::finish;
use crate::session_arg::SessionArg;

/// Take a session back to before a run, its conversation and its files
///
/// What takes its place is a new session with the same title, directory, agent and settings, whose history ends before the run's
/// prompt; this one is closed, and keeps everything that happened in it. If a checkpoint of the directory was taken before that run,
/// the files are made what they were then; what is overwritten or removed is kept first, and the log tells the way back. With
/// --files-only the session goes on as it is, and its agent is told with the next prompt which files were changed.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle rewind                            undoes this directory's latest run
  rekindle rewind 01khz0p6r8 --to run_01khz0p6r8vk6mqj3b8y2c9d4e
  rekindle rewind --conversation-only --yes  leaves the files as they are
  rekindle rewind --files-only               leaves the conversation as it is")]
pub(crate) struct Args {
    #[command(flatten)]
    session: SessionArg,

    /// The run before whose prompt it was as it is to be again [default: the latest]
    #[arg(long, value_name = "RUN")]
    to: Option<RunId>,

    /// Leave the files as they are
    #[arg(long)]
    conversation_only: bool,

    /// Put the files back and leave the conversation as it is: the session goes on
    #[arg(long, conflicts_with = "conversation_only")]
    files_only: bool,

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
    if args.files_only {
        return files_only::run(context, &client, &id, &plan, &args);
    }
    plan.tree = plan.tree.filter(|_| !args.conversation_only);
    if !args.yes && can_ask(context) {
        show(context, &id, &plan)?;
        if !confirmed("go back?")? {
            return Ok(Exit::Ok);
        }
    }
    let files = args.conversation_only.then_some(false);
    // The run that was shown, whatever came since.
    let new = NewRewind { to: Some(plan.run_id), files, force: args.force };
    let body = client.post_once(&format!("/api/sessions/{id}/rewind"), &new)?;
    let rewound: Rewound = read(&body)?;
    if context.json {
        context.acknowledge(&body, "")?;
        return finish(context, &client, &rewound.session, rewound.files);
    }
    // The id alone, so that a script can take it.
    writeln!(std::io::stdout(), "{}", rewound.session.id)?;
    anstream::eprintln!("{} is closed; this session replaces it, as of record {}", brief(&id), plan.seq);
    if rewound.files != FilesOutcome::Restored {
        anstream::eprintln!("files: left as they are");
    }
    let exit = finish(context, &client, &rewound.session, rewound.files)?;
    anstream::eprintln!("{}: {}", rewound.verdict, rewound.notice);
    anstream::eprintln!("continue with: {}", ours(format_args!("send {} TEXT", rewound.session.id)));
    Ok(exit)
}

/// Shows what would change.
fn show(context: &Context, id: &str, plan: &RewindPlan) -> Result<(), Failure> {
    anstream::eprintln!("{} goes back to record {}, before {}", brief(id), plan.seq, plan.run_id);
    match plan.tree {
        Some(tree) if context.server.is_none() => {
            workspace::show_changes(context, Path::new(&plan.working_dir), tree)
        }
        Some(_) => {
            anstream::eprintln!("its files in {} are restored to what they were then", plan.working_dir);
            Ok(())
        }
        None => {
            anstream::eprintln!("its files are left as they are");
            Ok(())
        }
    }
}
