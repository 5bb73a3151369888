//! Which agent is run when none is named: the one that was set, else the only one that is here, else a person is asked.
//! The demo agent is never run on a real prompt.

use std::io::{self, BufRead, IsTerminal, Write};

use rekindle_agent::find::{FoundAgent, How, find, find_all};
use rekindle_agent::known::by_id;
use rekindle_agent::npx_cache::is_fetched;
use rekindle_client::{Client, Failure};
use rekindle_daemon::config::{Config, ConfigFile};
use rekindle_display::session_table::home_as_tilde;
use rekindle_terminal::output::{BOLD, DIM, for_stderr, styled};
use rekindle_terminal::sanitise;
use serde_json::Value;

use crate::confirm::confirmed;

/// Install lines that are shown when no agent is here: those of the agents most people have.
const SHOWN: usize = 4;

/// What is to be done about the choice.
#[derive(Debug, PartialEq, Eq)]
enum Choice {
    /// This one.
    Take(String),
    /// A person chooses from these.
    Ask(Vec<&'static str>),
    /// These lack only their adapters, which are downloaded if a person says so.
    Download(Vec<&'static str>),
    /// There is none.
    None,
}

/// Chooses from what is installed. An agent that would have to be fetched first is taken only by name, or if a person agrees.
fn choose(found: &[FoundAgent]) -> Choice {
    let ids = |wanted: fn(&FoundAgent) -> bool| -> Vec<&'static str> {
        found.iter().filter(|agent| wanted(agent)).map(|agent| agent.id).collect()
    };
    let here = ids(|agent| agent.how == How::Installed);
    let lacking = ids(lacks_only_adapter);
    match here.as_slice() {
        [one] => Choice::Take((*one).to_owned()),
        [] if lacking.is_empty() => Choice::None,
        [] => Choice::Download(lacking),
        _ => Choice::Ask(here),
    }
}

/// Tells whether an agent is here but for its adapter, and that can be downloaded.
pub(crate) fn lacks_only_adapter(agent: &FoundAgent) -> bool {
    agent.how == How::Fetched && agent.adapts.is_some()
}

/// Returns the name of the agent to run.
///
/// A daemon elsewhere knows which agents are there.
pub(crate) fn agent(named: Option<&str>, elsewhere: Option<&Client>) -> Result<String, Failure> {
    if let Some(name) = named {
        return known(name, "--agent");
    }
    let config = Config::read()?;
    if let Some(set) = &config.agent {
        return known(set, "the configuration");
    }
    let found = match elsewhere {
        Some(client) => found_by(&client.get("/api/agents")?),
        None => find_all(&std::env::var_os("PATH").unwrap_or_default()),
    };
    let can_ask = io::stdin().is_terminal() && io::stderr().is_terminal();
    match choose(&found) {
        Choice::Take(name) => Ok(name),
        Choice::Ask(names) if can_ask => ask(&names),
        Choice::Ask(names) => Err(several(&names)),
        Choice::Download(names) if can_ask => download(&names, &found),
        Choice::Download(_) | Choice::None => Err(none(&found)),
    }
}

/// Reads which agents a daemon has found.
pub(crate) fn found_by(told: &Value) -> Vec<FoundAgent> {
    let told = told["agents"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut all = find_all("".as_ref());
    for agent in &mut all {
        let Some(there) = told.iter().find(|there| there["id"] == agent.id) else { continue };
        agent.how = match there["how"].as_str() {
            Some("installed") => How::Installed,
            Some("fetched") => How::Fetched,
            _ => How::Missing,
        };
        let words = there["command"].as_array().into_iter().flatten();
        agent.command = words.filter_map(|word| Some(word.as_str()?.to_owned())).collect();
        agent.adapts = there["adapts"].as_str().map(str::to_owned);
    }
    all
}

fn known(name: &str, by: &str) -> Result<String, Failure> {
    if by_id(name).is_some() {
        return Ok(name.to_owned());
    }
    Err(Failure::usage("unknown_agent", format!("there is no known agent named {name:?} (named by {by})"))
        .hint("`rekindle agents` lists the names; any other command can be run as an agent: rekindle run TEXT -- COMMAND"))
}

fn ask(names: &[&'static str]) -> Result<String, Failure> {
    let most = names.iter().map(|name| name.len()).max().unwrap_or(0);
    anstream::eprintln!("Which agent?");
    for (index, name) in names.iter().enumerate() {
        let title = by_id(name).map_or("", |agent| agent.title);
        let name = format!("{name:most$}");
        anstream::eprintln!("  {}  {}  {}", index + 1, styled(BOLD, name), styled(DIM, title));
    }
    anstream::eprint!("1-{}: ", names.len());
    io::stderr().flush()?;
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    let word = line.trim();
    let number = word.parse::<usize>().ok().and_then(|number| names.get(number.checked_sub(1)?));
    let name = number.or_else(|| names.iter().find(|name| **name == word)).ok_or_else(|| several(names))?;
    Ok(chosen(name))
}

/// Asks whether an adapter is to be downloaded, and which.
fn download(names: &[&'static str], found: &[FoundAgent]) -> Result<String, Failure> {
    let [name] = names else {
        let programs = names.join(" and ");
        let text = format!(
            "{programs} are installed, but not the adapters that Rekindle needs: the one you choose is downloaded with npx."
        );
        anstream::eprintln!("{}", for_stderr(&text));
        return ask(names);
    };
    let text = format!("{name} is installed, but not the adapter that Rekindle talks to it through.");
    anstream::eprintln!("{}", for_stderr(&text));
    if confirmed("Download it with npx now?")? { Ok(chosen(name)) } else { Err(none(found)) }
}

/// Says how a choice is made for good.
fn chosen(name: &str) -> String {
    let path = ConfigFile::find().map(|file| sanitise::line(&file.path.display().to_string()));
    let file = path.map_or("config.toml".into(), |path| home_as_tilde(&path));
    anstream::eprintln!(
        "{}",
        styled(DIM, format_args!("to skip this question, put into {file}: agent = \"{name}\""))
    );
    name.to_owned()
}

fn several(names: &[&str]) -> Failure {
    Failure::usage("which_agent", format!("several agents are installed: {}", names.join(", "))).hint(
        format!("name one with --agent {}, or put it into config.toml: agent = \"{}\"", names[0], names[0]),
    )
}

/// Says that an agent is downloaded before it begins, where it is: nothing else is heard until then.
pub(crate) fn note_download(name: &str) {
    let Some(known) = by_id(name) else { return };
    let found = find(known, &std::env::var_os("PATH").unwrap_or_default());
    if found.how == How::Fetched && !is_fetched(&found.command, |name| std::env::var_os(name)) {
        let program =
            found.command.first().map_or("", |program| program.rsplit('/').next().unwrap_or(program));
        let what = if found.adapts.is_some() { "the adapter for it is" } else { "it is" };
        let text = format!(
            "{name}: {what} not installed; {program} downloads it on first use, which may take half a minute. To install it for good: {}",
            found.install
        );
        anstream::eprintln!("{}", styled(DIM, for_stderr(&text)));
    }
}

/// Says which agent is here and only lacks its adapter.
fn without_adapter(agent: &FoundAgent) -> Option<Failure> {
    let (program, FoundAgent { id, install, .. }) = (agent.adapts.as_ref()?, agent);
    let message = format!(
        "no agent can be run yet: {program} is installed, but not the adapter through which Rekindle talks to it"
    );
    let hint = match agent.how {
        How::Fetched => {
            format!("rekindle run -a {id} TEXT downloads it on first use; to install it now: {install}")
        }
        How::Installed | How::Missing => format!("install it with: {install}"),
    };
    Some(Failure::usage("no_agent", message).hint(hint))
}

fn none(found: &[FoundAgent]) -> Failure {
    if let Some(failure) = found.iter().find_map(without_adapter) {
        return failure;
    }
    let lines: String =
        found.iter().take(SHOWN).map(|agent| format!("\n  {:10}  {}", agent.id, agent.install)).collect();
    let fetched = found.iter().find(|agent| agent.how == How::Fetched);
    let fetched = fetched.map(|agent| {
        let FoundAgent { id, command, .. } = agent;
        let program = command.first().and_then(|program| program.rsplit('/').next()).unwrap_or("npx");
        format!("\nor: rekindle run -a {id} TEXT downloads it with {program} on first use")
    });
    let fetched = fetched.unwrap_or_default();
    Failure::usage("no_agent", "no known agent is installed".into()).hint(format!(
        "install one of these and sign in (rekindle agents lists all):{lines}{fetched}\nany other command works too: rekindle run TEXT -- COMMAND; \
         to see what Rekindle does without an agent: rekindle demo"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(installed: &[&str], fetched: &[&str]) -> Vec<FoundAgent> {
        let mut all = find_all("".as_ref());
        for agent in &mut all {
            if installed.contains(&agent.id) {
                agent.how = How::Installed;
            } else if fetched.contains(&agent.id) {
                agent.how = How::Fetched;
            }
        }
        all
    }

    #[test]
    fn the_only_one_is_taken() {
        let take = |name: &str| Choice::Take(name.into());
        assert_eq!(choose(&found(&["claude"], &["codex", "gemini"])), take("claude"));
        assert_eq!(choose(&found(&[], &["codex"])), Choice::None, "nothing is fetched unasked");
        assert_eq!(choose(&found(&["codex", "claude"], &[])), Choice::Ask(vec!["claude", "codex"]));
        assert_eq!(choose(&found(&[], &[])), Choice::None);
    }

    #[test]
    fn an_agent_that_lacks_only_its_adapter_is_offered_if_nothing_is_installed() {
        let lacking = |installed: &[&str]| {
            let mut found = found(installed, &["claude", "codex", "gemini"]);
            let here = found.iter_mut().filter(|agent| ["claude", "codex"].contains(&agent.id));
            here.for_each(|agent| agent.adapts = Some("/usr/bin/it".into()));
            choose(&found)
        };
        assert_eq!(lacking(&[]), Choice::Download(vec!["claude", "codex"]));
        assert_eq!(lacking(&["goose"]), Choice::Take("goose".into()));
    }

    #[test]
    fn what_a_daemon_has_found_is_read_with_what_is_known_of_it() {
        let told = serde_json::json!({"agents": [{"id": "claude", "how": "installed", "command": ["/x/claude", "-a"]}]});
        let found = found_by(&told);
        let claude = found.iter().find(|agent| agent.id == "claude").expect("a known agent");
        assert_eq!((claude.how, claude.command.join(" ").as_str()), (How::Installed, "/x/claude -a"));
        assert_eq!(choose(&found), Choice::Take("claude".into()));
        assert_eq!(choose(&found_by(&Value::Null)), Choice::None);
    }

    #[test]
    fn whoever_has_no_agent_is_told_how_to_get_one() {
        let failure = none(&found(&[], &[])).to_json().to_string();
        assert!(failure.contains("npm") && failure.contains("rekindle demo"), "{failure}");
        assert!(!failure.contains("downloads it"), "{failure}");
        let failure = none(&found(&[], &["claude"])).to_json().to_string();
        let offer = "or: rekindle run -a claude TEXT downloads it with npx on first use";
        assert!(failure.contains(offer), "{failure}");
    }

    #[test]
    fn whoever_has_an_agent_without_its_adapter_is_told_so() {
        let mut found = found(&[], &["claude"]);
        let claude = found.iter_mut().find(|agent| agent.id == "claude").expect("a known agent");
        claude.adapts = Some("/usr/bin/claude".into());
        let failure = none(&found).to_json().to_string();
        assert!(
            failure.contains("/usr/bin/claude is installed") && failure.contains("rekindle run -a claude"),
            "{failure}"
        );
    }
}
