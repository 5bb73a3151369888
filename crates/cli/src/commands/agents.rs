//! `rekindle agents`: which agents are on this machine, what they can do, and how to get the others.

use std::ffi::OsString;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use clap::builder::styling::Style;
use indicatif::{ProgressBar, ProgressStyle};
use rekindle_agent::acp::{Acp, Offered};
use rekindle_agent::environment;
use rekindle_agent::find::{FoundAgent, How, find_all};
use rekindle_agent::known::{Quirk, by_id};
use rekindle_agent::probe::{Probe, Probed, TIMEOUT, probe_all};
use rekindle_client::{Client, Exit, Failure};
use rekindle_terminal::output::{self, BAD, BOLD, DIM, GOOD, PLAIN, WARN, columns, plural, styled, wrap};
use rekindle_terminal::sanitise;
use serde_json::json;

use super::Context;
use crate::agent_choice::found_by;

/// Show which agents are on this machine, and how to get the others
///
/// Looks for known agents on PATH and starts none of them. With --probe each one found is started, greeted and ended
/// again: that shows its version, what it can do, and whether it can be signed in to. With --models and --modes it is asked for
/// a session, too, in the directory for temporary files: only then does an agent say what it offers.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle agents
  rekindle agents --probe
  rekindle agents --probe claude
  rekindle agents claude --models --modes
  rekindle agents --json | jq -r '.agents[] | select(.how == \"installed\") | .id'")]
pub(crate) struct Args {
    /// Only these agents, by their names in the first column
    #[arg(value_name = "AGENT")]
    names: Vec<String>,

    /// Start each agent found, and ask what it can do
    #[arg(long)]
    probe: bool,

    /// List the models that `--model` takes
    #[arg(long)]
    models: bool,

    /// List the modes that `--mode` takes
    #[arg(long)]
    modes: bool,

    /// How many seconds an agent may take to answer
    #[arg(long, value_name = "SECONDS", default_value_t = TIMEOUT.as_secs())]
    timeout: u64,
}

impl Args {
    /// Tells whether agents are started.
    fn probes(&self) -> bool {
        self.probe || self.asks_for_session()
    }

    /// Tells whether they are asked for a session, too.
    fn asks_for_session(&self) -> bool {
        self.models || self.modes
    }
}

pub(super) fn run(context: &Context, args: &Args) -> Result<Exit, Failure> {
    for name in &args.names {
        if by_id(name).is_none() {
            let message = format!("there is no known agent named {name:?}");
            return Err(Failure::usage("unknown_agent", message)
                .hint("`rekindle agents` lists the names; any other command can be run as an agent too"));
        }
    }
    let mut agents = match &context.server {
        None => find_all(&std::env::var_os("PATH").unwrap_or_default()),
        Some(server) if args.probes() => {
            let message =
                format!("agents are probed on their own machine, and {} is another one", server.url);
            return Err(Failure::usage("only_here", message)
                .hint("leave out --probe, --models and --modes, or run it there"));
        }
        Some(server) => found_by(&Client::elsewhere(Arc::clone(server))?.get("/api/agents")?),
    };
    agents.retain(|agent| args.names.is_empty() || args.names.iter().any(|name| name == agent.id));
    if args.probes() {
        probe(&mut agents, args, context.json);
    }
    context.print(&json!({ "agents": agents }), |out| Ok(write_agents(out, &agents, args)?))
}

/// Asks each agent that is installed; one that must be fetched first only if it was asked for by name.
fn probe(agents: &mut [FoundAgent], args: &Args, json: bool) {
    let named = agents.len() == 1;
    let asked = |agent: &&mut FoundAgent| agent.how == How::Installed || (named && agent.how == How::Fetched);
    let mut agents: Vec<&mut FoundAgent> = agents.iter_mut().filter(asked).collect();
    let probe = |agent: &&mut FoundAgent| Probe {
        command: agent.command.clone(),
        environment: environment_of(agent.id),
        directory: std::env::temp_dir(),
        timeout: Duration::from_secs(args.timeout),
        session: args.asks_for_session(),
    };
    let probes: Vec<Probe> = agents.iter().map(probe).collect();
    // Only a person wants to see it move; it hides itself when stderr is no terminal.
    let progress = if json { ProgressBar::hidden() } else { ProgressBar::new(probes.len() as u64) };
    let style = ProgressStyle::with_template("{spinner} asking agents ({pos} of {len} have answered)");
    progress.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
    progress.enable_steady_tick(Duration::from_millis(100));
    let outcomes = probe_all(&probes, &Acp::default(), &|_| progress.inc(1));
    for (agent, outcome) in agents.iter_mut().zip(outcomes) {
        match outcome {
            Ok(probed) => agent.probed = Some(probed),
            Err(failure) => agent.problem = Some(failure.text()),
        }
    }
    progress.finish_and_clear();
}

fn environment_of(id: &str) -> Vec<(OsString, OsString)> {
    let known = by_id(id);
    let mut environment =
        environment::for_agent(std::env::vars_os(), known.map_or(&[], |agent| agent.environment));
    environment
        .extend(known.iter().flat_map(|agent| agent.set).map(|(name, value)| (name.into(), value.into())));
    environment
}

fn write_agents(out: &mut dyn Write, agents: &[FoundAgent], args: &Args) -> std::io::Result<()> {
    let column = agents.iter().map(|agent| columns(agent.id)).max().unwrap_or(0) + 2;
    let asked = |agent: &FoundAgent| agent.probed.is_some() || agent.problem.is_some();
    let (here, elsewhere): (Vec<&FoundAgent>, Vec<&FoundAgent>) = agents
        .iter()
        .partition(|agent| agent.how == How::Installed || agent.adapts.is_some() || asked(agent));
    if here.is_empty() {
        writeln!(out, "No known agent is installed.")?;
    }
    for agent in &here {
        write_agent(out, agent, column, args)?;
    }
    for (how, words) in
        [(How::Fetched, "downloaded on first use, or install one now"), (How::Missing, "to install one")]
    {
        let of: Vec<_> = elsewhere.iter().filter(|agent| agent.how == how).collect();
        if !of.is_empty() {
            writeln!(out, "\nNot installed; {words} ({}):", plural(of.len() as u64, "agent"))?;
        }
        for agent in of {
            writeln!(out, "{:column$}{}", agent.id, styled(DIM, agent.install))?;
        }
    }
    if here.is_empty() {
        writeln!(out, "\nInstall one of them, sign in, and run `rekindle agents --probe`.")?;
    }
    Ok(())
}

fn write_agent(out: &mut dyn Write, agent: &FoundAgent, column: usize, args: &Args) -> std::io::Result<()> {
    let width = output::width();
    let (style, state) = state(agent);
    let name = format!("{:column$}", agent.id);
    writeln!(out, "{}{}  {}", styled(BOLD, name), styled(style, state), styled(DIM, agent.title))?;
    let indent = " ".repeat(column);
    let mut line = |style: Style, text: &str| -> std::io::Result<()> {
        writeln!(out, "{}", styled(style, wrap(&sanitise::line(text), width, &indent, &indent)))
    };
    match &agent.adapts {
        Some(program) => {
            line(PLAIN, &adapter_needed(agent, program))?;
            // Alone on its line, so that it can be copied.
            line(DIM, agent.install)?;
        }
        None => line(DIM, &agent.command.join(" "))?,
    }
    if let Some(probed) = &agent.probed {
        line(PLAIN, &abilities(probed))?;
        let needs_login = probed.auth_methods.as_ref().is_some_and(|methods| methods.as_json() != "[]");
        if needs_login && !agent.login.is_empty() {
            line(DIM, &format!("sign in, if it asks for it: {}", agent.login))?;
        }
        if let Some(offers) = &probed.offers {
            let asked = [(args.modes, "modes", &offers.modes), (args.models, "models", &offers.models)];
            for (_, what, offered) in asked.into_iter().filter(|(is_asked, ..)| *is_asked) {
                line(PLAIN, &format!("{what}: {}", choices(offered)))?;
            }
        }
    }
    if let Some(problem) = &agent.problem {
        line(BAD, problem)?;
    }
    Ok(())
}

/// Says how to get the adapter of an agent that is here without it.
fn adapter_needed(agent: &FoundAgent, program: &str) -> String {
    let how = match agent.how {
        How::Fetched => {
            format!("`rekindle run -a {}` downloads it on first use; to install it now:", agent.id)
        }
        How::Installed | How::Missing => "To install it:".into(),
    };
    format!("{program} is installed; Rekindle talks to it through an adapter. {how}")
}

/// Lists what can be chosen, by what has to be given.
fn choices(offered: &[Offered]) -> String {
    let one = |one: &Offered| {
        let name = if one.name == one.id { String::new() } else { format!(" ({})", one.name) };
        format!("{}{name}{}", one.id, if one.current { ", the default" } else { "" })
    };
    if offered.is_empty() {
        return "it offers no choice".into();
    }
    offered.iter().map(one).collect::<Vec<_>>().join("; ")
}

fn state(agent: &FoundAgent) -> (Style, String) {
    match (&agent.probed, agent.how) {
        (Some(probed), _) => {
            let version = probed.version.as_deref().unwrap_or("version unknown");
            (GOOD, format!("{} ({} ms)", sanitise::line(version), probed.millis))
        }
        (None, _) if agent.problem.is_some() => (BAD, "does not answer".into()),
        (None, How::Installed) => (GOOD, "installed".into()),
        (None, _) if agent.adapts.is_some() => (WARN, "needs an adapter".into()),
        (None, How::Fetched) => (WARN, "downloaded on first use".into()),
        (None, How::Missing) => (DIM, "not found".into()),
    }
}

/// Says what can be done with an agent that matters to whoever runs it for long.
fn abilities(probed: &Probed) -> String {
    let can = &probed.can;
    let back = match (can.load, can.resume) {
        (true, true) => "its sessions can be loaded and resumed",
        (true, false) => "its sessions can be loaded",
        (false, true) => "its sessions can be resumed",
        (false, false) => "its sessions end with it",
    };
    let quirks: Vec<&str> = probed.quirks.iter().map(Quirk::as_str).collect();
    if quirks.is_empty() { back.into() } else { format!("{back}; known for: {}", quirks.join(", ")) }
}
