//! `rekindle` at a terminal, without a command: a conversation with this directory's session, or a new one. `attach` holds the same with
//! any session.

use clap::{Args as _, FromArgMatches};
use rekindle_client::run_start::find_run_start;
use rekindle_client::{Client, Exit, Failure};
use rekindle_conversation::{Conversation, Greeting, Letters, is_possible};
use rekindle_display::session_table::home_as_tilde;
use rekindle_terminal::sanitise;
use rekindle_wire::request::{AgentChoice, Content, NewMessage, NewSession, Resume};
use rekindle_wire::view::SessionView;

use super::Context;
use crate::agent_choice::note_download;
use crate::env_arg::{environment_of, umask_for};
use crate::session_arg::{current_dir, find_latest};
use crate::session_options::SessionOptions;

/// What is said at a conversation's beginning, behind what it is about.
const KEYS: &str = "/help lists commands, Ctrl-D leaves";

/// Tells whether somebody sits here whom a conversation can be held with.
pub(super) fn is_possible_for(context: &Context) -> bool {
    !context.json && is_possible()
}

/// Goes on with this directory's latest session, or begins one with the first message.
pub(crate) fn here(context: Context) -> Result<Exit, Failure> {
    let client = context.daemon_or_start()?;
    match find_latest(&client)?.filter(|session| !session.closed) {
        Some(session) => with(context, client, session.id.as_str(), false),
        None => begin(context, client),
    }
}

/// Converses with a session: shown from the beginning of its latest run, or of all.
pub(super) fn with(context: Context, client: Client, id: &str, all: bool) -> Result<Exit, Failure> {
    let session = client.session(id)?;
    let after = match &session.run {
        Some(run) if !all => find_run_start(&client, id, session.last_seq, run.run_id.as_str())?,
        _ => 0,
    };
    let greeting = Greeting {
        title: sanitise::line(&session.title),
        about: about(&session.agent, &session.working_dir),
    };
    let payloads = context.blobs();
    let letters = Box::new(Ours { context, new: None });
    Conversation { client, session: Some(id.to_owned()), after, payloads, letters, greeting }.hold()
}

/// Converses with a session that the first message begins.
fn begin(context: Context, client: Client) -> Result<Exit, Failure> {
    let options = SessionOptions::augment_args(clap::Command::new("rekindle"));
    let options = SessionOptions::from_arg_matches(&options.get_matches_from(["rekindle"]));
    let options = options.map_err(|error| Failure::failed("session_options", error))?;
    let elsewhere = context.server.as_ref().map(|_| &client);
    let new = options.session(&context, elsewhere)?;
    let agent = match &new.agent {
        AgentChoice::Known(name) => {
            if elsewhere.is_none() {
                note_download(name);
            }
            name.clone()
        }
        AgentChoice::Command { command, .. } => command.join(" "),
    };
    let greeting = Greeting { title: "A new session".into(), about: about(&agent, &current_dir()?) };
    let payloads = context.blobs();
    let letters = Box::new(Ours { context, new: Some(new) });
    Conversation { client, session: None, after: 0, payloads, letters, greeting }.hold()
}

/// Says with whom and where one converses, and how.
fn about(agent: &str, dir: &str) -> String {
    format!("{} in {} · {KEYS}", sanitise::line(agent), home_as_tilde(&sanitise::line(dir)))
}

/// What our environment adds to messages.
struct Ours {
    context: Context,
    /// The session that the first one begins.
    new: Option<NewSession>,
}

impl Letters for Ours {
    fn message(&self, session: &SessionView, text: &str) -> Result<NewMessage, Failure> {
        let id = &session.id;
        let env = environment_of(&self.context, session, &[], |env| format!("send {id}{env} TEXT"))?;
        Ok(NewMessage { content: Content::text(text), env, umask: umask_for(&self.context) })
    }

    fn resume(&self, session: &SessionView) -> Result<Resume, Failure> {
        let id = &session.id;
        let env = environment_of(&self.context, session, &[], |env| format!("resume {id}{env}"))?;
        Ok(Resume { env, umask: umask_for(&self.context), ..Resume::default() })
    }

    fn session(&self, text: &str) -> Result<NewSession, Failure> {
        let new = self.new.as_ref().ok_or_else(|| {
            let error = anyhow::Error::msg("this conversation already has a session");
            Failure::failed("session_there", error)
        })?;
        Ok(NewSession {
            prompt: Some(Content::text(text)),
            env: new.env.clone(),
            umask: new.umask,
            ..NewSession::new(new.working_dir.clone(), new.agent.clone())
        })
    }
}
