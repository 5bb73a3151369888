//! `rekindle run`: a new session with a prompt, watched until its run ends.

use std::io::{IsTerminal, Write};
use std::path::PathBuf;

use rekindle_client::target::Target;
use rekindle_client::{Exit, Failure, logout, read};
use rekindle_display::hints::attach;
use rekindle_display::live::Goal;
use rekindle_domain::event::Persistence;
use rekindle_wire::request::{AgentChoice, Content, NewSession};
use rekindle_wire::view::KeyedSession;

use super::{Context, run_queue};
use crate::agent_choice::note_download;
use crate::prompt_arg::prompt;
use crate::session_options::SessionOptions;

/// Run an agent on a prompt and watch it
///
/// Starts a daemon in the background if none runs. The agent's answer goes to stdout, unwrapped and without control
/// characters, everything else to stderr. Ctrl-C leaves and the agent keeps working; Esc cancels the run.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle run \"fix the failing test\"
  rekindle run -f task.md --agent codex --detach
  rekindle run --queue \"and then the documentation\"
  rekindle run --key my-project \"and now the documentation\"
  git diff | rekindle run \"review this\" -f - --permissions deny > review.md
  rekindle run \"fix it\" -- my-agent --acp
  rekindle run \"count these words\" -- wc -w
  rekindle run \"fix it\" -- my-tool --message={prompt}

Exit codes:
  0  completed             3  interrupted             5    no daemon
  1  failed or cancelled   4  waiting for an answer   130  left with Ctrl-C
  2  wrong usage")]
pub(crate) struct Args {
    /// What to ask [default: stdin, if it is not a terminal]
    prompt: Option<String>,

    /// Read the prompt, or what follows it, from a file; `-` is stdin
    #[arg(long, short, value_name = "FILE")]
    file: Option<PathBuf>,

    /// Continue the session with this key, or start it if there is none: an interrupted run is resumed, and the prompt
    /// is its next message
    #[arg(long, value_name = "KEY")]
    key: Option<String>,

    /// Take no automatic snapshots of the session; `rekindle snapshot create` still takes one
    #[arg(long)]
    no_snapshots: bool,

    /// Queue it as a task, and watch it when its turn comes
    #[arg(long, conflicts_with_all = ["key", "no_snapshots"])]
    queue: bool,

    /// Do not watch: print the session's id and return
    #[arg(long, short)]
    detach: bool,

    #[command(flatten)]
    session: SessionOptions,
}

pub(super) fn run(context: &Context, args: Args) -> Result<Exit, Failure> {
    let text = prompt(args.prompt.as_deref(), args.file.as_deref())?.ok_or_else(|| {
        Failure::usage("no_prompt", "the prompt is missing".into())
            .hint("rekindle run \"fix the failing test\"")
    })?;
    // Which agents there are is known there.
    let elsewhere = context.elsewhere()?;
    let body = NewSession {
        prompt: Some(Content::text(&text)),
        key: args.key,
        persistence: args
            .no_snapshots
            .then(|| Persistence { enabled: Some(false), ..Persistence::default() }),
        ..args.session.session(context, elsewhere.as_ref())?
    };
    if let (None, AgentChoice::Known(name), false) = (&elsewhere, &body.agent, context.json) {
        note_download(name);
    }
    let mut client = match elsewhere {
        Some(client) => client,
        None => context.daemon_or_start()?,
    };
    if args.queue {
        return run_queue::run(context, client, &body, &text, args.detach);
    }
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
            anstream::eprintln!("queued; runs after the current turn");
        }
        let goal = Goal::Message(message.message_id.to_string());
        return context.watch(&client, session.id.to_string(), message.seq, goal);
    }
    let goal = session.run.map_or(Goal::Next, |run| Goal::Run(run.run_id.to_string()));
    context.watch(&client, session.id.to_string(), 0, goal)
}
