//! `rekindle run`: a new session with a prompt, watched until its run ends.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

use rekindle_agent::known::{by_program, seems_acp};
use rekindle_client::target::Target;
use rekindle_client::{Exit, Failure, logout, read};
use rekindle_domain::event::{CheckpointMode, Permissions, Persistence, ResumePolicy};
use rekindle_wire::request::{AgentChoice, Content, NewSession};
use rekindle_wire::view::KeyedSession;

use super::Context;
use crate::agent_choice;
use crate::env_arg::{environment_for, umask_for};
use crate::hints::attach;
use crate::live::{Goal, watch};
use crate::possible_values::one_of;
use crate::prompt_arg::prompt;

/// Run an agent on a prompt, so that nothing that dies takes the work with it
///
/// Starts a daemon in the background if none runs. The agent's answer goes to stdout, unwrapped and without control
/// characters, everything else to stderr. Ctrl-C leaves and the agent works on; Esc cancels the run.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle run \"fix the failing test\"
  rekindle run -f task.md --agent codex --detach
  rekindle run --key my-project \"and now the documentation\"
  git diff | rekindle run \"review this\" -f - --permissions deny > review.md
  rekindle run \"fix it\" -- my-agent --acp
  rekindle run \"count these words\" -- wc -w
  rekindle run \"fix it\" -- my-tool --message={prompt}

Exit codes:
  0  completed             3  interrupted             5    no daemon
  1  failed or cancelled   4  waits for an answer     130  left with Ctrl-C
  2  wrong usage")]
pub(crate) struct Args {
    /// What to ask [default: what stdin has, if it is no terminal]
    prompt: Option<String>,

    /// Read the prompt, or what follows it, from a file; `-` is stdin
    #[arg(long, short, value_name = "FILE")]
    file: Option<PathBuf>,

    /// The agent, by a name that `rekindle agents` shows
    #[arg(long, short, value_name = "NAME", conflicts_with = "command")]
    agent: Option<String>,

    /// Where the agent works [default: here; with --server the same path there]
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,

    /// A short title [default: from the prompt]
    #[arg(long)]
    title: Option<String>,

    /// The model, by the agent's own name for it: `rekindle agents NAME --models` lists them
    #[arg(long)]
    model: Option<String>,

    /// The agent's mode, by its own name for it: `rekindle agents NAME --modes` lists them
    #[arg(long)]
    mode: Option<String>,

    /// What is answered when the agent asks for permission
    #[arg(long, value_parser = one_of::<Permissions>(PERMISSIONS), default_value = "ask", value_name = "POLICY")]
    permissions: Permissions,

    /// Whether the session goes on by itself after an interruption: a command of --profile exec never does
    #[arg(long, value_parser = one_of::<ResumePolicy>(RESUME_POLICIES), default_value = "auto", value_name = "POLICY")]
    resume: ResumePolicy,

    /// Whether the directory is captured before and after each run, so that `rekindle diff` shows what it did [default: as the
    /// daemon is configured, else auto]
    #[arg(long, value_parser = one_of::<CheckpointMode>(CHECKPOINT_MODES), value_name = "MODE")]
    checkpoints: Option<CheckpointMode>,

    /// Go on in the session with this key, or begin it if there is none: its run is resumed if it was interrupted, and
    /// the prompt is its next message
    #[arg(long, value_name = "KEY")]
    key: Option<String>,

    /// Take no snapshots of the session by themselves; `rekindle snapshot create` still does
    #[arg(long)]
    no_snapshots: bool,

    /// Hand the agent a variable of ours, or one with a value
    #[arg(long, value_name = "NAME[=VALUE]")]
    env: Vec<String>,

    /// Do not watch: print the session's id and return
    #[arg(long, short)]
    detach: bool,

    /// What the command after -- speaks [default: acp if one of its words says so, else exec]
    #[arg(long, value_parser = one_of::<String>(PROFILES), requires = "command")]
    profile: Option<String>,

    /// Any command as the agent, after `--`. With exec its prompt goes to its input, or where an argument is {prompt} or
    /// ends with ={prompt}
    #[arg(last = true)]
    command: Vec<String>,
}

/// What is answered to requests for permission.
const PERMISSIONS: &[(&str, &str)] =
    &[("ask", "Someone is asked"), ("allow", "Yes, once each time"), ("deny", "No, once each time")];

/// Whether a session goes on by itself.
const RESUME_POLICIES: &[(&str, &str)] = &[
    ("auto", "The agent's session is continued by itself, twice at most"),
    ("ask", "It is continued when someone says so: rekindle resume, or a message"),
    ("never", "It stays as it was left; a message, or rekindle resume, still goes on with it"),
];

/// Whether the directory is captured.
const CHECKPOINT_MODES: &[(&str, &str)] = &[
    ("auto", "Unless it is a home directory, or has more than 50,000 files or 2 GiB"),
    ("on", "Always"),
    ("off", "Never"),
];

/// What a command speaks.
pub(super) const PROFILES: &[(&str, &str)] = &[
    ("acp", "The Agent Client Protocol"),
    ("exec", "Nothing: what it writes is the answer, and its exit code ends the run"),
];

pub(super) fn run(context: &Context, args: Args) -> Result<Exit, Failure> {
    let text = prompt(args.prompt.as_deref(), args.file.as_deref())?.ok_or_else(|| {
        Failure::usage("no_prompt", "there is nothing to ask".into())
            .hint("rekindle run \"fix the failing test\"")
    })?;
    // Which agents there are is known there.
    let elsewhere = context.elsewhere()?;
    let (agent, name) = if args.command.is_empty() {
        let name = agent_choice::agent(args.agent.as_deref(), elsewhere.as_ref())?;
        (AgentChoice::Known(name.clone()), Some(name))
    } else {
        let profile = args.profile.unwrap_or_else(|| usual_profile(&args.command).to_owned());
        let known = by_program(&args.command).map(|known| known.id.to_owned());
        (AgentChoice::Command { profile, command: whole_program(&args.command) }, known)
    };
    let working_dir = directory(args.cwd.as_deref(), elsewhere.is_none())?;
    let env = environment_for(context, name.as_deref(), &args.env)?;
    let body = NewSession {
        title: args.title,
        prompt: Some(Content::text(&text)),
        model: args.model,
        mode: args.mode,
        permissions: args.permissions,
        resume: args.resume,
        checkpoints: args.checkpoints,
        key: args.key,
        persistence: args
            .no_snapshots
            .then(|| Persistence { enabled: Some(false), ..Persistence::default() }),
        env,
        umask: umask_for(context),
        ..NewSession::new(working_dir, agent)
    };
    let mut client = match elsewhere {
        Some(client) => client,
        None => context.daemon_or_start()?,
    };
    let body = client.post_once("/api/sessions", &body)?;
    let KeyedSession { session, message } = read(&body)?;
    // It is told once, and not into a file that nobody reads.
    if let Target::Local { home, place } = client.target()
        && !context.json
        && std::io::stderr().is_terminal()
    {
        logout::warn_once(home, place.pid);
    }
    if args.detach {
        if context.json {
            return context.acknowledge(&body, "");
        }
        // The id alone, so that a script can take it.
        writeln!(std::io::stdout(), "{}", session.id)?;
        anstream::eprintln!("it works in the background; watch it with: {}", attach(session.id));
        return Ok(Exit::Ok);
    }
    if let Some(message) = message {
        if message.queued {
            anstream::eprintln!("queued behind what goes on");
        }
        let goal = Goal::Message(message.message_id.to_string());
        return watch(context, &client, session.id.to_string(), message.seq, goal);
    }
    let goal = session.run.map_or(Goal::Next, |run| Goal::Run(run.run_id.to_string()));
    watch(context, &client, session.id.to_string(), 0, goal)
}

/// Returns what a command speaks, if nobody says.
pub(super) fn usual_profile(command: &[String]) -> &'static str {
    if seems_acp(command) { "acp" } else { "exec" }
}

/// Returns the working directory, whole: what was named, or this one. Here it must be there; of a daemon elsewhere that is for it to say.
pub(super) fn directory(named: Option<&Path>, is_here: bool) -> Result<String, Failure> {
    let Some(path) = named else { return crate::session_arg::current_dir() };
    let bad = |path: &Path, why: &str| Failure::usage("no_directory", format!("{}: {why}", path.display()));
    let whole = if is_here {
        let whole = std::fs::canonicalize(path).map_err(|error| bad(path, &error.to_string()))?;
        if !whole.is_dir() {
            return Err(bad(path, "not a directory"));
        }
        whole
    } else {
        std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
    };
    whole
        .into_os_string()
        .into_string()
        .map_err(|whole| bad(if is_here { path } else { Path::new(&whole) }, "its path is no text"))
}

/// Returns the command with its program's path made whole, if it is one from here: the daemon is elsewhere.
pub(super) fn whole_program(command: &[String]) -> Vec<String> {
    let mut command = command.to_vec();
    if let Some(program) = command.first_mut()
        && program.contains('/')
        && let Some(whole) =
            std::path::absolute(&*program).ok().and_then(|path| path.into_os_string().into_string().ok())
    {
        *program = whole;
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_speaks_the_protocol_if_it_says_so() {
        let of =
            |words: &[&str]| usual_profile(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        for agent in ["claude-agent-acp", "/usr/bin/codex-acp", "gemini --experimental-acp", "goose acp"] {
            assert_eq!(of(&agent.split(' ').collect::<Vec<_>>()), "acp", "{agent}");
        }
        for command in [&["wc", "-w"][..], &["sh", "-c", "cat acp"], &["/opt/acp/bin/tool"], &["macpro"]] {
            assert_eq!(of(command), "exec", "{command:?}");
        }
    }

    #[test]
    fn a_program_from_here_is_named_by_its_whole_path() {
        let command = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        assert_eq!(whole_program(&command(&["agent", "./x"])), ["agent", "./x"]);
        let whole = whole_program(&command(&["./agent", "--acp"]));
        assert!(whole[0].starts_with('/') && whole[0].ends_with("/agent") && whole[1] == "--acp");
    }
}
