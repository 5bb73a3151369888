//! How an agent process behaves, decided when it starts: the flags of its command, as they are given.

use std::path::PathBuf;
use std::time::Duration;

use crate::units::parse_duration;

/// How an agent process behaves.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// Where conversations are kept [default: $REKINDLE_DEMO_STATE, else the XDG state directory]
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// Where `barrier` meets a test [default: $REKINDLE_DEMO_BARRIERS]
    #[arg(long, value_name = "DIR")]
    pub barriers: Option<PathBuf>,
    /// Take commands and answer with events, JSON objects, one a line, instead of ACP
    #[arg(long)]
    pub ndjson: bool,
    /// With --ndjson: keep answers by the keys of the work in this file, and answer from it
    #[arg(long, value_name = "FILE", requires = "ndjson")]
    pub answers: Option<PathBuf>,
    /// With --ndjson: answer each command twice, and once more with the contrary
    #[arg(long, requires = "ndjson")]
    pub twice: bool,
    /// With --ndjson: say this often that it is alive
    #[arg(long, value_name = "TIME", value_parser = duration, requires = "ndjson")]
    pub heartbeat: Option<Duration>,
    /// Append `pid N` and then every line received to this file
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// Pause between two words, or two states of a tool
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "0ms")]
    pub pace: Duration,
    /// Answer nothing for this long at first
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "0ms")]
    pub slow_start: Duration,
    /// How sessions are loaded.
    #[command(flatten)]
    pub load: LoadOptions,
    /// Told of an interruption, do the rest of the turn instead of only saying what is known
    #[arg(long)]
    pub carry_on: bool,
    /// Do not offer session/load
    #[arg(long)]
    pub no_load: bool,
    /// Do not offer session/resume
    #[arg(long)]
    pub no_resume: bool,
    /// Do not offer modes
    #[arg(long)]
    pub no_modes: bool,
    /// How models are offered
    #[arg(long, value_enum, default_value_t, value_name = "HOW")]
    pub models: Models,
    /// Refuse every change of mode or model, although they are offered
    #[arg(long)]
    pub refuse_settings: bool,
    /// Answer a change of mode or model after this long, and other messages meanwhile
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "0ms")]
    pub slow_settings: Duration,
    /// Answer a change of mode or model only when a test made NAME.go in the directory of barriers
    #[arg(long, value_name = "NAME")]
    pub hold_settings: Option<String>,
    /// Refuse sessions until authenticate was called
    #[arg(long)]
    pub auth_required: bool,
    /// The highest protocol version to agree to
    #[arg(long, value_name = "VERSION", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=2))]
    pub protocol: u16,
    /// Introduce itself as another agent: clients may know something of that one
    #[arg(long, value_name = "NAME", default_value = "rekindle-demo-agent")]
    pub name: String,
    /// Join messages that follow each other when they are replayed
    #[arg(long)]
    pub merge_messages: bool,
    /// Say nothing of tool calls in a session that was loaded
    #[arg(long)]
    pub quiet_after_load: bool,
    /// Answer a load first, and show the conversation so much later
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub replay_late: Option<Duration>,
}

/// How models are offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Models {
    /// As a config option
    #[default]
    Option,
    /// In the field `models`, as older agents do
    Field,
    /// Not at all
    None,
}

/// How sessions are loaded: as they were, unless one of these is given.
#[derive(Debug, Clone, Copy, clap::Args)]
#[group(multiple = false)]
pub struct LoadOptions {
    /// Answer every load and resume with an error
    #[arg(long)]
    pub refuse_load: bool,
    /// Let every load succeed, with an empty conversation
    #[arg(long)]
    pub load_empty: bool,
    /// Know only so many of the first messages and tool calls
    #[arg(long, value_name = "N")]
    pub load_short: Option<usize>,
    /// Run the rest of an interrupted turn before a load is answered
    #[arg(long)]
    pub load_continues: bool,
    /// Forget turns that were interrupted, prompt and all
    #[arg(long)]
    pub forget_cut: bool,
    /// Forget the first turn if it was interrupted
    #[arg(long)]
    pub forget_first: bool,
    /// Never answer a load
    #[arg(long)]
    pub load_hangs: bool,
    /// Destroy a session that is loaded within this time after it was made or last loaded
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub load_destroys_within: Option<Duration>,
}

fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text).ok_or_else(|| "a whole number and ms, s or m".to_owned())
}
