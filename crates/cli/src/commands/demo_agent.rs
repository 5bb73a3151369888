//! `rekindle demo-agent`: the scripted agent, which speaks ACP on stdin and stdout. Demonstrations and tests start
//! it as any other agent; the script is in its prompt.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use rekindle_demo_agent::{Load, Models, Options, default_state, directives_help, linger, parse_duration};

use rekindle_client::failure::{Exit, Failure};

/// Be an agent that does what the script in its prompt says
#[derive(Debug, clap::Args)]
#[command(after_help = directives_help())]
pub(crate) struct Args {
    /// Where conversations are kept [default: $REKINDLE_DEMO_STATE, else the XDG state directory]
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// Where `barrier` meets a test [default: $REKINDLE_DEMO_BARRIERS]
    #[arg(long, value_name = "DIR")]
    barriers: Option<PathBuf>,
    /// Append `pid N` and then every line received to this file
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Pause between two words, or two states of a tool
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "0ms")]
    pace: Duration,
    /// Answer nothing for this long at first
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "0ms")]
    slow_start: Duration,
    #[command(flatten)]
    load: LoadArgs,
    /// Told of an interruption, do the rest of the turn instead of only saying what is known
    #[arg(long)]
    carry_on: bool,
    /// Do not offer session/load
    #[arg(long)]
    no_load: bool,
    /// Do not offer session/resume
    #[arg(long)]
    no_resume: bool,
    /// Do not offer modes
    #[arg(long)]
    no_modes: bool,
    /// How models are offered
    #[arg(long, value_enum, default_value_t, value_name = "HOW")]
    models: ModelsArg,
    /// Refuse every change of mode or model, although they are offered
    #[arg(long)]
    refuse_settings: bool,
    /// Answer a change of mode or model after this long, and other messages meanwhile
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "0ms")]
    slow_settings: Duration,
    /// Answer a change of mode or model only when a test made NAME.go in the directory of barriers
    #[arg(long, value_name = "NAME")]
    hold_settings: Option<String>,
    /// Refuse sessions until authenticate was called
    #[arg(long)]
    auth_required: bool,
    /// The highest protocol version to agree to
    #[arg(long, value_name = "VERSION", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=2))]
    protocol: u16,
    /// Introduce itself as another agent: clients may know something of that one
    #[arg(long, value_name = "NAME", default_value = "rekindle-demo-agent")]
    name: String,
    /// Join messages that follow each other when they are replayed
    #[arg(long)]
    merge_messages: bool,
    /// Say nothing of tool calls in a session that was loaded
    #[arg(long)]
    quiet_after_load: bool,
    /// Answer a load first, and show the conversation so much later
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    replay_late: Option<Duration>,
    /// Be a launcher, and have the agent as a child that reads and writes for itself: it outlives its launcher
    #[arg(long)]
    behind_launcher: bool,
    /// Be no agent but a child that one left behind
    #[arg(long, value_name = "SECONDS", hide = true)]
    linger: Option<u64>,
    /// Be such a child in a session of its own, without pipes
    #[arg(long, hide = true, requires = "linger")]
    detach: bool,
}

/// How models are offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
enum ModelsArg {
    /// As a config option
    #[default]
    Option,
    /// In the field `models`, as older agents do
    Field,
    /// Not at all
    None,
}

/// How sessions are loaded: as they were, unless one of these is given.
#[derive(Debug, clap::Args)]
#[group(multiple = false)]
struct LoadArgs {
    /// Answer every load and resume with an error
    #[arg(long)]
    refuse_load: bool,
    /// Let every load succeed, with an empty conversation
    #[arg(long)]
    load_empty: bool,
    /// Know only so many of the first messages and tool calls
    #[arg(long, value_name = "N")]
    load_short: Option<usize>,
    /// Run the rest of an interrupted turn before a load is answered
    #[arg(long)]
    load_continues: bool,
    /// Forget turns that were interrupted, prompt and all
    #[arg(long)]
    forget_cut: bool,
    /// Forget the first turn if it was interrupted
    #[arg(long)]
    forget_first: bool,
    /// Never answer a load
    #[arg(long)]
    load_hangs: bool,
    /// Destroy a session that is loaded within this time after it was made or last loaded
    #[arg(long, value_name = "TIME", value_parser = duration)]
    load_destroys_within: Option<Duration>,
}

impl LoadArgs {
    fn chosen(&self) -> Load {
        match self {
            LoadArgs { refuse_load: true, .. } => Load::Refuse,
            LoadArgs { load_empty: true, .. } => Load::Empty,
            LoadArgs { load_short: Some(most), .. } => Load::Short(*most),
            LoadArgs { load_continues: true, .. } => Load::Continues,
            LoadArgs { forget_cut: true, .. } => Load::ForgetCut,
            LoadArgs { forget_first: true, .. } => Load::ForgetFirst,
            LoadArgs { load_hangs: true, .. } => Load::Hangs,
            LoadArgs { load_destroys_within: Some(limit), .. } => Load::DestroysWithin(*limit),
            _ => Load::Honest,
        }
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text).ok_or_else(|| "a whole number and ms, s or m".to_owned())
}

/// The flag that makes a launcher, which its child is not.
const BEHIND_LAUNCHER: &str = "--behind-launcher";

/// Starts the agent itself, and waits for it.
fn launch() -> std::io::Result<Exit> {
    let arguments = std::env::args_os().skip(1).filter(|argument| argument != BEHIND_LAUNCHER);
    let status = Command::new(std::env::current_exe()?).args(arguments).status()?;
    Ok(if status.success() { Exit::Ok } else { Exit::Failed })
}

pub(super) fn run(args: Args) -> Result<Exit, Failure> {
    let failed = |error| Failure::failed("demo_agent", error);
    if let Some(seconds) = args.linger {
        return linger(seconds, args.detach).map(|()| Exit::Ok).map_err(failed);
    }
    if args.behind_launcher {
        return launch().map_err(|error| Failure::failed("demo_agent", error));
    }
    let state = args.state.or_else(default_state).ok_or_else(|| {
        let message = "it is not known where conversations are kept: $HOME is not set";
        Failure::usage("state_unknown", message.to_owned()).hint("name a directory with --state DIR")
    })?;
    // Without its own path it cannot leave children behind; everything else works.
    let program = std::env::current_exe().map(OsString::from).into_iter();
    let options = Options {
        linger_command: program.chain(["demo-agent", "--linger"].map(OsString::from)).collect(),
        state,
        barriers: args.barriers,
        record: args.record,
        pace: args.pace,
        slow_start: args.slow_start,
        load: args.load.chosen(),
        carries_on: args.carry_on,
        can_load: !args.no_load,
        can_resume: !args.no_resume,
        offers_modes: !args.no_modes,
        models: match args.models {
            ModelsArg::Option => Models::Option,
            ModelsArg::Field => Models::Field,
            ModelsArg::None => Models::None,
        },
        refuse_settings: args.refuse_settings,
        slow_settings: args.slow_settings,
        hold_settings: args.hold_settings,
        auth_required: args.auth_required,
        protocol: args.protocol,
        name: args.name,
        merges: args.merge_messages,
        quiet_after_load: args.quiet_after_load,
        replays_late: args.replay_late,
    };
    match rekindle_demo_agent::run(options).map_err(failed)? {
        0 => Ok(Exit::Ok),
        _ => Ok(Exit::Failed),
    }
}
