//! What a session is to be, as the command line says it: which agent, where, with which settings. The same for a run that begins
//! at once and for a task that waits for its turn.

use std::path::{Path, PathBuf};

use rekindle_agent::known::{by_program, seems_acp};
use rekindle_client::{Client, Failure};
use rekindle_domain::age::Age;
use rekindle_domain::event::{CheckpointMode, DirtyPolicy, OnUncertain, Permissions, ResumePolicy};
use rekindle_wire::request::{AgentChoice, NewSession, NewWorktree};

use crate::agent_choice;
use crate::completers::agents;
use crate::context::Context;
use crate::env_arg::{environment_for, umask_for};
use crate::possible_values::one_of;

/// What a session is to be.
#[derive(Debug, clap::Args)]
pub(crate) struct SessionOptions {
    /// The agent, by a name that `rekindle agents` shows
    #[arg(long, short, value_name = "NAME", conflicts_with = "command", add = agents())]
    agent: Option<String>,

    /// Where the agent works [default: here; with --server the same path there]
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,

    /// A short title [default: from the prompt]
    #[arg(long)]
    title: Option<String>,

    /// The model, as the agent names it: `rekindle agents NAME --models` lists them
    #[arg(long)]
    model: Option<String>,

    /// The agent's mode, as the agent names it: `rekindle agents NAME --modes` lists them
    #[arg(long)]
    mode: Option<String>,

    /// The answer when the agent asks for permission
    #[arg(long, value_parser = one_of::<Permissions>(PERMISSIONS), default_value = "ask", value_name = "POLICY")]
    permissions: Permissions,

    /// Whether to continue automatically after an interruption (never with --profile exec)
    #[arg(long, value_parser = one_of::<ResumePolicy>(RESUME_POLICIES), default_value = "auto", value_name = "POLICY")]
    resume: ResumePolicy,

    /// What happens then if a tool call may or may not have taken effect
    #[arg(long, value_parser = one_of::<OnUncertain>(ON_UNCERTAIN), default_value = "ask", value_name = "POLICY")]
    on_uncertain: OnUncertain,

    /// How long a question may wait for its answer, for example 2h [default: as the daemon is configured, else no limit]
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    wait_timeout: Option<u64>,

    /// Whether the directory is captured before and after each run, so that `rekindle diff` shows what it did [default: as the
    /// daemon is configured, else auto]
    #[arg(long, value_parser = one_of::<CheckpointMode>(CHECKPOINT_MODES), value_name = "MODE")]
    checkpoints: Option<CheckpointMode>,

    /// Work in a git worktree of its own, on a new branch, or on BRANCH
    #[arg(long, value_name = "BRANCH", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    worktree: Option<String>,

    /// The commit, branch or tag that the new branch starts from [default: HEAD of the directory]
    #[arg(long, value_name = "COMMIT", requires = "worktree")]
    base: Option<String>,

    /// What to do with uncommitted changes in the directory [default: refuse to make a worktree]
    #[arg(long, value_parser = one_of::<DirtyPolicy>(DIRTY_POLICIES), value_name = "POLICY", requires = "worktree")]
    dirty: Option<DirtyPolicy>,

    /// Pass an environment variable to the agent: NAME from this shell, or NAME=VALUE
    #[arg(long, value_name = "NAME[=VALUE]")]
    env: Vec<String>,

    /// What the command after -- speaks [default: acp if one of its words says so, else exec]
    #[arg(long, value_parser = one_of::<String>(PROFILES), requires = "command")]
    profile: Option<String>,

    /// Any command as the agent, after `--`. With exec its prompt goes to its input, or where an argument is {prompt} or
    /// ends with ={prompt}
    #[arg(last = true)]
    command: Vec<String>,
}

/// What is answered to requests for permission.
pub(crate) const PERMISSIONS: &[(&str, &str)] =
    &[("ask", "You are asked"), ("allow", "Yes, once each time"), ("deny", "No, once each time")];

/// Whether a session goes on by itself.
pub(crate) const RESUME_POLICIES: &[(&str, &str)] = &[
    ("auto", "It continues automatically, at most twice"),
    ("ask", "It continues when you say so: rekindle resume, or a message"),
    ("never", "It stays as it is; a message, or rekindle resume, still continues it"),
];

/// What uncertain tool calls do to that.
pub(crate) const ON_UNCERTAIN: &[(&str, &str)] = &[
    ("ask", "It waits until you have checked: rekindle resume, or a message"),
    ("continue", "It goes on, and the agent is told"),
];

/// Reads a length of time in seconds.
pub(crate) fn seconds(text: &str) -> Result<u64, String> {
    let Age(length) = text.parse::<Age>().map_err(|error| error.to_string())?;
    match length.as_secs() {
        0 => Err("expected a duration above 0, such as 2h".into()),
        seconds => Ok(seconds),
    }
}

/// Whether the directory is captured.
pub(crate) const CHECKPOINT_MODES: &[(&str, &str)] = &[
    ("auto", "Unless it is a home directory, or has more than 50,000 files or 2 GiB"),
    ("on", "Always"),
    ("off", "Never"),
];

/// What becomes of changes that are not committed.
pub(crate) const DIRTY_POLICIES: &[(&str, &str)] = &[
    ("ignore", "They stay where they are"),
    ("carry", "They are copied, new files too, but for those that git ignores"),
];

/// What a command speaks.
pub(crate) const PROFILES: &[(&str, &str)] = &[
    ("acp", "The Agent Client Protocol"),
    ("ndjson", "JSON objects, one a line: a command goes in, events come out"),
    ("exec", "Nothing: what it writes is the answer, and its exit code ends the run"),
];

impl SessionOptions {
    /// Returns the session that is meant, without a prompt. Which agents there are is known where the daemon is.
    pub(crate) fn session(
        &self,
        context: &Context,
        elsewhere: Option<&Client>,
    ) -> Result<NewSession, Failure> {
        let (agent, name) = if self.command.is_empty() {
            let name = agent_choice::agent(self.agent.as_deref(), elsewhere)?;
            (AgentChoice::Known(name.clone()), Some(name))
        } else {
            let profile = self.profile.clone().unwrap_or_else(|| usual_profile(&self.command).to_owned());
            let known = by_program(&self.command).map(|known| known.id.to_owned());
            (AgentChoice::Command { profile, command: whole_program(&self.command) }, known)
        };
        let working_dir = directory(self.cwd.as_deref(), elsewhere.is_none())?;
        Ok(NewSession {
            title: self.title.clone(),
            model: self.model.clone(),
            mode: self.mode.clone(),
            permissions: self.permissions,
            resume: self.resume,
            on_uncertain: self.on_uncertain,
            wait_timeout_s: self.wait_timeout,
            checkpoints: self.checkpoints,
            env: environment_for(context, name.as_deref(), &self.env)?,
            umask: umask_for(context),
            worktree: self.worktree.as_ref().map(|branch| NewWorktree {
                branch: Some(branch.clone()).filter(|branch| !branch.is_empty()),
                base: self.base.clone(),
                dirty: self.dirty.unwrap_or_default(),
            }),
            ..NewSession::new(working_dir, agent)
        })
    }
}

/// Returns what a command speaks, if nobody says.
pub(crate) fn usual_profile(command: &[String]) -> &'static str {
    if seems_acp(command) { "acp" } else { "exec" }
}

/// Returns the working directory, whole: what was named, or this one. Here it must be there; of a daemon elsewhere that is for it to say.
pub(crate) fn directory(named: Option<&Path>, is_here: bool) -> Result<String, Failure> {
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
        .map_err(|whole| bad(if is_here { path } else { Path::new(&whole) }, "its path is not valid UTF-8"))
}

/// Returns the command with its program's path made whole, if it is one from here: the daemon is elsewhere.
pub(crate) fn whole_program(command: &[String]) -> Vec<String> {
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
