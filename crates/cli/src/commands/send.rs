//! `rekindle send`: gives a session a message, and watches what comes of it.

use crate::completers::ids;
use rekindle_client::completion::IdKind;
use std::path::PathBuf;

use rekindle_client::{Exit, Failure, read};
use rekindle_display::hints::{attach, ours};
use rekindle_display::live::Goal;
use rekindle_wire::request::{Change, Content, NewMessage};
use rekindle_wire::view::MessageTaken;

use super::Context;
use crate::env_arg::{environment_of, umask_for};
use crate::prompt_arg::prompt;
use crate::session_arg::{find_live, is_like_an_id};

/// Send a message to a session
///
/// If the session's agent is not running, it is started first and its conversation restored. While a run goes on the message is
/// queued; while the agent asks something the message takes the place of an answer.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "rekindle send [OPTIONS] [SESSION] TEXT",
    after_help = "Examples:
  rekindle send \"now the tests\"
  rekindle send 01khz0p6r8 \"now the tests\"
  git diff | rekindle send 01khz0p6r8 -
  rekindle send 01khz0p6r8 -f notes.md --detach
  rekindle send \"think harder\" --model opus"
)]
pub(crate) struct Args {
    /// The message, behind the session's id if it is not this directory's latest; `-` reads it from stdin
    #[arg(value_name = "TEXT", num_args = 0..=2, add = ids(IdKind::Session))]
    words: Vec<String>,

    /// Read the message, or what follows it, from a file; `-` is stdin
    #[arg(long, short, value_name = "FILE")]
    file: Option<PathBuf>,

    /// The model from now on, as the agent names it
    #[arg(long)]
    model: Option<String>,

    /// The agent's mode from now on, as the agent names it
    #[arg(long)]
    mode: Option<String>,

    /// Pass an environment variable to the agent: NAME from this shell, or NAME=VALUE
    #[arg(long, value_name = "NAME[=VALUE]")]
    env: Vec<String>,

    /// Do not watch: return as soon as it is sent
    #[arg(long, short)]
    detach: bool,
}

pub(super) fn run(context: &Context, args: &Args) -> Result<Exit, Failure> {
    let (session, text) = match (args.words.as_slice(), &args.file) {
        ([session, text], None) => (Some(session.as_str()), Some(text.as_str())),
        // Half a command: nobody says an id to an agent. The message may come from stdin, as without any words.
        ([session], None) if is_like_an_id(session) => (Some(session.as_str()), None),
        ([text], None) => (None, Some(text.as_str())),
        ([session], Some(_)) => (Some(session.as_str()), None),
        ([], _) => (None, None),
        _ => {
            return Err(Failure::usage("two_messages", "give either a message or a file, not both".into()));
        }
    };
    let text = prompt(text, args.file.as_deref())?.ok_or_else(|| match session {
        Some(session) => {
            let message = format!("the message to {session} is missing: give it after the id");
            Failure::usage("no_message", message).hint(ours(format_args!("send {session} TEXT")))
        }
        None => {
            Failure::usage("no_message", "the message is missing".into()).hint("rekindle send [SESSION] TEXT")
        }
    })?;
    let mut client = context.daemon_or_start()?;
    let id = find_live(session, context, &client)?;
    let session = client.session(&id)?;
    let env = environment_of(context, &session, &args.env, |env| format!("send {id}{env} TEXT"))?;
    let change = Change { model: args.model.clone(), mode: args.mode.clone(), ..Change::default() };
    if change.names_settings() {
        client.patch(&format!("/api/sessions/{id}"), &change)?;
    }
    let body = NewMessage { content: Content::text(&text), env, umask: umask_for(context) };
    let body = client.post_once(&format!("/api/sessions/{id}/messages"), &body)?;
    let receipt: MessageTaken = read(&body)?;
    if args.detach {
        let how = if receipt.queued { "queued" } else { "sent" };
        return context.acknowledge(&body, format_args!("{how}; watch it with: {}", attach(&id)));
    }
    if receipt.queued {
        anstream::eprintln!("queued; runs after the current turn");
    }
    context.watch(&client, id, receipt.seq, Goal::Message(receipt.message_id.to_string()))
}
