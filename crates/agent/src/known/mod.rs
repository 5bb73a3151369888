//! What is known of particular agents, as data: how they are started, what to install, and what they do that
//! others do not. Nothing here is code about one agent.

mod agent_directories;
mod quirk;
mod table;
mod transcript;
mod version;

pub use agent_directories::AgentDirectories;
pub use quirk::{Quirk, Quirks};
pub use table::TABLE;
pub use transcript::{Segment, TranscriptPlace, is_plain_id};
pub use version::{Version, Versions};

/// An agent in the table.
#[derive(Debug, Clone, Copy)]
pub struct KnownAgent {
    /// Its name in commands and configuration.
    pub id: &'static str,
    /// What a person calls it.
    pub title: &'static str,
    /// Names by which it introduces itself.
    pub names: &'static [&'static str],
    /// Commands that speak the protocol, in the order in which they are tried.
    pub commands: &'static [Command],
    /// Commands that fetch it first, tried when it is not installed.
    pub fetched: &'static [Command],
    /// The program that people know the agent by, where that does not speak the protocol itself and an adapter does; else empty.
    pub adapts: &'static str,
    /// Its package, on npm or PyPI.
    pub package: &'static str,
    /// What a person types to install it.
    pub install: &'static str,
    /// What a person types to sign in; empty if a key in the environment is the only way.
    pub login: &'static str,
    /// Beginnings of names of environment variables that it needs.
    pub environment: &'static [&'static str],
    /// Environment variables that it gets from us.
    pub set: &'static [(&'static str, &'static str)],
    /// Where it keeps what it wrote down of a session itself, if that is one file whose place is known.
    pub transcript: Option<TranscriptPlace>,
    /// What it does that others do not, and in which versions.
    pub quirks: &'static [(Quirk, Versions)],
}

/// A program and its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Command {
    /// The program, to be looked for.
    pub program: &'static str,
    /// Its arguments.
    pub args: &'static [&'static str],
    /// Another program that must be there too, because this one only adapts it.
    pub needs: Option<&'static str>,
}

/// Tells whether a command seems to speak the protocol: all that are known to say so in their words, as `gemini --acp` and
/// `claude-agent-acp` do. A script is not looked into.
pub fn seems_acp(command: &[String]) -> bool {
    let says = |word: &str| {
        word == "demo-agent" || word.split(|c: char| !c.is_alphanumeric()).any(|part| part == "acp")
    };
    let mut names = command.iter().filter(|word| !word.contains(char::is_whitespace));
    names.any(|word| says(base(word)))
}

/// Finds an agent by its name in the table.
pub fn by_id(id: &str) -> Option<&'static KnownAgent> {
    TABLE.iter().find(|agent| agent.id == id)
}

/// Finds an agent by how it introduces itself.
pub fn by_name(name: &str) -> Option<&'static KnownAgent> {
    TABLE.iter().find(|agent| agent.names.iter().any(|known| known.eq_ignore_ascii_case(name)))
}

/// Finds an agent by the command that starts it. That is a guess until it has introduced itself.
pub fn by_command(command: &[String]) -> Option<&'static KnownAgent> {
    let (program, arguments) = command.split_first()?;
    let program = base(program);
    let is = |known: &&Command| {
        known.program == program
            && known.args.iter().zip(arguments).filter(|(a, b)| a == b).count() == known.args.len()
    };
    TABLE.iter().find(|agent| agent.commands.iter().chain(agent.fetched).any(|known| is(&known)))
}

/// Programs that run another one, which is among their arguments.
const RUNNERS: &[&str] =
    &["npx", "bunx", "pnpx", "uvx", "node", "bun", "deno", "python", "python3", "env", "exec"];

/// Finds an agent by the program of a command, whatever its arguments are: so it is known which variables it needs.
/// Programs that only run another are looked behind, as in `npx -y PACKAGE` and `node …/node_modules/PACKAGE/…`.
pub fn by_program(command: &[String]) -> Option<&'static KnownAgent> {
    let (program, arguments) = command.split_first()?;
    let program = base(program);
    if !RUNNERS.contains(&program) {
        return named(program);
    }
    arguments.iter().find_map(|argument| published(argument).or_else(|| named(base(argument))))
}

fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Finds an agent by the name of its program, or its own.
fn named(program: &str) -> Option<&'static KnownAgent> {
    let starts = |agent: &&KnownAgent| agent.commands.iter().any(|command| command.program == program);
    TABLE.iter().find(starts).or_else(|| by_id(program))
}

/// Finds an agent by its package, which may have a version behind it or be part of a path.
fn published(argument: &str) -> Option<&'static KnownAgent> {
    TABLE.iter().find(|agent| {
        let package = agent.package;
        let behind = argument.strip_prefix(package);
        let whole = behind.is_some_and(|rest| rest.is_empty() || rest.starts_with(['@', '=', '[']));
        whole || argument.contains(&format!("node_modules/{package}/"))
    })
}

/// Returns what an agent that introduces itself like this does that others do not.
///
/// A version that cannot be read counts as every version: a quirk too many costs care, one too few costs work.
pub fn quirks(name: &str, version: Option<&str>) -> Quirks {
    let Some(agent) = by_name(name) else { return Quirks::default() };
    agent.quirks(version)
}

impl KnownAgent {
    /// Returns what this agent does in a version that others do not.
    pub fn quirks(&self, version: Option<&str>) -> Quirks {
        let version = version.and_then(Version::parse);
        let here = |versions: &Versions| version.is_none_or(|version| versions.contain(version));
        self.quirks.iter().filter(|(_, versions)| here(versions)).map(|(quirk, _)| *quirk).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_table_is_consistent() {
        assert_eq!(TABLE.len(), 18);
        let ids: BTreeSet<_> = TABLE.iter().map(|agent| agent.id).collect();
        assert_eq!(ids.len(), TABLE.len(), "an id comes twice");
        let names: Vec<_> = TABLE.iter().flat_map(|agent| agent.names).collect();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "a name comes twice");
        for agent in TABLE {
            let clean = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            assert!(agent.id.chars().all(clean), "{}", agent.id);
            assert!(
                !agent.commands.is_empty() || !agent.fetched.is_empty(),
                "{} cannot be started",
                agent.id
            );
            assert!(!agent.install.is_empty() && !agent.names.is_empty(), "{}", agent.id);
            assert!(agent.environment.iter().all(|prefix| prefix.ends_with('_')), "{}", agent.id);
            let package = agent.package;
            assert!(agent.install.contains(package), "{}: {}", agent.id, agent.install);
        }
    }

    #[test]
    fn the_interactive_programs_are_no_agents() {
        let programs: Vec<_> = TABLE.iter().flat_map(|agent| agent.commands).collect();
        for program in ["claude", "codex", "pi"] {
            assert!(
                programs.iter().all(|command| command.program != program),
                "{program} does not speak the protocol"
            );
        }
        let claude = by_id("claude").expect("it is in the table");
        assert_eq!(claude.commands[0].program, "claude-agent-acp");
        assert_eq!(claude.fetched[0].args, ["-y", "@agentclientprotocol/claude-agent-acp"]);
    }

    #[test]
    fn an_agent_is_known_by_its_program_and_behind_what_runs_it() {
        let by = |command: &str| {
            let command: Vec<String> = command.split(' ').map(str::to_owned).collect();
            by_program(&command).map(|agent| agent.id)
        };
        for (command, agent) in [
            ("gemini --acp", Some("gemini")),
            ("/opt/bin/gemini --experimental-acp", Some("gemini")),
            ("claude-agent-acp", Some("claude")),
            ("claude -p", Some("claude")),
            ("npx -y @google/gemini-cli@latest --acp", Some("gemini")),
            ("node /usr/lib/node_modules/@google/gemini-cli/dist/index.js --acp", Some("gemini")),
            ("env X=1 goose acp", Some("goose")),
            ("sh -c gemini", None),
            ("my-gemini --acp", None),
            ("npx -y @google/gemini-cli-other", None),
        ] {
            assert_eq!(by(command), agent, "{command}");
        }
    }

    #[test]
    fn quirks_are_found_by_name_and_version() {
        let vibe = quirks("@mistralai/mistral-vibe", Some("3.0.1"));
        assert!(vibe.has(Quirk::LoadContinuesTurn) && !vibe.has(Quirk::RerunsInterruptedTool));
        assert!(quirks("OpenHands CLI ACP Agent", None).has(Quirk::RerunsInterruptedTool));
        assert!(quirks("gemini-cli", Some("0.61.0")).has(Quirk::ReplaysAfterLoad));
        assert_eq!(quirks("something else", Some("1.0")), Quirks::default());
        let started = |command: &str| {
            let command: Vec<String> = command.split(' ').map(str::to_owned).collect();
            by_command(&command).map(|agent| agent.id)
        };
        assert_eq!(started("/usr/bin/vibe-acp --verbose"), Some("vibe"));
        assert_eq!(started("npx -y @google/gemini-cli --acp"), Some("gemini"));
        assert_eq!((started("gemini --version"), started("gemini")), (None, None));
        // The two adapters for codex are told apart by how they introduce themselves.
        assert_eq!(by_name("codex-acp").map(|agent| agent.id), Some("codex-zed"));
        assert_eq!(by_name("@agentclientprotocol/codex-acp").map(|agent| agent.id), Some("codex"));
    }
}
