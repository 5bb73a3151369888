//! `rekindle set`: changes what a session is called and how it behaves.

use rekindle_client::failure::{Exit, Failure};
use rekindle_client::read;
use rekindle_domain::event::{CheckpointMode, OnUncertain, Permissions, ResumePolicy};
use rekindle_wire::request::Change;
use rekindle_wire::view::SessionView;

use super::Context;
use crate::possible_values::one_of;
use crate::session_arg::SessionArg;
use crate::session_options::{CHECKPOINT_MODES, ON_UNCERTAIN, PERMISSIONS, RESUME_POLICIES, seconds};

/// Change a session: its title, and what it does by itself
///
/// What is not named stays as it is. A running agent is switched to a new mode or model at once.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle set --title \"The flaky test\"
  rekindle set 01khz0p6r8 --permissions allow --wait-timeout 2h
  rekindle set 01khz0p6r8 --resume never --on-uncertain continue
  rekindle set --model opus")]
pub(crate) struct Args {
    #[command(flatten)]
    session: SessionArg,

    /// Its title
    #[arg(long)]
    title: Option<String>,

    /// The answer when the agent asks for permission
    #[arg(long, value_parser = one_of::<Permissions>(PERMISSIONS), value_name = "POLICY")]
    permissions: Option<Permissions>,

    /// Whether it continues automatically after an interruption
    #[arg(long, value_parser = one_of::<ResumePolicy>(RESUME_POLICIES), value_name = "POLICY")]
    resume: Option<ResumePolicy>,

    /// What happens then if a tool call may or may not have taken effect
    #[arg(long, value_parser = one_of::<OnUncertain>(ON_UNCERTAIN), value_name = "POLICY")]
    on_uncertain: Option<OnUncertain>,

    /// How long a question may wait for its answer, for example 2h, from the next question on; `never` for no limit
    #[arg(long, value_name = "TIME", value_parser = timeout)]
    wait_timeout: Option<u64>,

    /// Whether the directory is captured before and after each run
    #[arg(long, value_parser = one_of::<CheckpointMode>(CHECKPOINT_MODES), value_name = "MODE")]
    checkpoints: Option<CheckpointMode>,

    /// The model, as the agent names it
    #[arg(long)]
    model: Option<String>,

    /// The agent's mode, as the agent names it
    #[arg(long)]
    mode: Option<String>,
}

pub(super) fn run(context: &Context, args: Args) -> Result<Exit, Failure> {
    let change = Change {
        title: args.title,
        permissions: args.permissions,
        resume: args.resume,
        on_uncertain: args.on_uncertain,
        wait_timeout_s: args.wait_timeout,
        checkpoints: args.checkpoints,
        model: args.model,
        mode: args.mode,
        persistence: None,
    };
    if change.title.is_none() && !change.names_options() {
        return Err(Failure::usage("nothing_to_change", "nothing to change was named".into())
            .hint("rekindle set --help lists what can be changed"));
    }
    let client = context.daemon_or_start()?;
    let id = args.session.find_live(context, &client)?;
    let body = client.patch(&format!("/api/sessions/{id}"), &change)?;
    let session: SessionView = read(&body)?;
    context.acknowledge(&body, format_args!("changed {} ({})", session.id, session.title))
}

/// Reads how long a question waits; for ever is 0.
fn timeout(text: &str) -> Result<u64, String> {
    if text == "never" { Ok(0) } else { seconds(text) }
}
