//! Which of the known agents are on this machine. Looks at files on a given search path, and starts nothing.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Serialize;

use crate::known::{Command, KnownAgent, TABLE};
use crate::probe::Probed;

/// A known agent, and whether it is here.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "Agent")]
pub struct FoundAgent {
    /// Its name in the table.
    pub id: &'static str,
    /// What a person calls it.
    pub title: &'static str,
    /// How it was found.
    pub how: How,
    /// What starts it, with the program's whole path; empty if it is not here.
    pub command: Vec<String>,
    /// The program that it adapts, by its whole path, if that is here and the adapter is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adapts: Option<String>,
    /// What a person types to install it.
    pub install: &'static str,
    /// What a person types to sign in.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub login: &'static str,
    /// What it said when it was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probed: Option<Probed>,
    /// Why it could not be asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// How an agent was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "AgentPresence")]
pub enum How {
    /// Its program is installed.
    Installed,
    /// It is not installed, but a program that fetches it is: the first start takes long and needs a network.
    Fetched,
    /// It is not here.
    Missing,
}

/// Looks for all known agents on a search path, given as `PATH` is written.
pub fn find_all(path: &OsStr) -> Vec<FoundAgent> {
    TABLE.iter().map(|agent| find(agent, path)).collect()
}

/// Looks for one agent on a search path.
pub fn find(agent: &KnownAgent, path: &OsStr) -> FoundAgent {
    let first = |commands: &[Command]| commands.iter().find_map(|command| locate(command, path));
    let (how, command) = match first(agent.commands) {
        Some(command) => (How::Installed, command),
        None => match first(agent.fetched) {
            Some(command) => (How::Fetched, command),
            None => (How::Missing, Vec::new()),
        },
    };
    let adapted = || which(agent.adapts, path)?.into_os_string().into_string().ok();
    let adapts = if how == How::Installed || agent.adapts.is_empty() { None } else { adapted() };
    let KnownAgent { id, title, install, login, .. } = *agent;
    FoundAgent { id, title, how, command, adapts, install, login, probed: None, problem: None }
}

fn locate(command: &Command, path: &OsStr) -> Option<Vec<String>> {
    if let Some(needed) = command.needs {
        which(needed, path)?;
    }
    // A path that is no text could not be written to a log: such a directory is passed over.
    let program = which(command.program, path)?.into_os_string().into_string().ok()?;
    Some(std::iter::once(program).chain(command.args.iter().map(|arg| (*arg).to_owned())).collect())
}

/// Returns the first executable file of that name on a search path. Parts of the path that are not absolute mean
/// another place in every directory, and are passed over.
pub fn which(program: &str, path: &OsStr) -> Option<PathBuf> {
    let directories = std::env::split_paths(path).filter(|directory| directory.is_absolute());
    directories.map(|directory| directory.join(program)).find(|file| is_executable(file))
}

/// Tells whether there is a file that may be executed.
pub fn is_executable(file: &Path) -> bool {
    file.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;
    use crate::known::by_id;

    fn directory(programs: &[&str]) -> (tempfile::TempDir, OsString) {
        let directory = tempfile::tempdir().expect("a directory");
        for program in programs {
            let file = directory.path().join(program);
            std::fs::write(&file, "#!/bin/sh\n").expect("a file");
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).expect("its mode");
        }
        let path = std::env::join_paths([Path::new("relative"), directory.path()]).expect("a path");
        (directory, path)
    }

    fn agent(id: &str) -> &'static KnownAgent {
        by_id(id).expect("a known agent")
    }

    #[test]
    fn the_interactive_claude_is_not_taken_for_an_agent() {
        let (_directory, path) = directory(&["claude", "codex"]);
        assert_eq!(find(agent("claude"), &path).how, How::Missing);
        assert_eq!(find(agent("codex"), &path).how, How::Missing);
        let (directory, path) = directory(&["claude", "npx"]);
        let found = find(agent("claude"), &path);
        assert_eq!(found.how, How::Fetched);
        assert_eq!(found.command[1..], ["-y", "@agentclientprotocol/claude-agent-acp"]);
        let program = directory.path().join("claude").display().to_string();
        assert_eq!(found.adapts, Some(program), "it is told that the agent is here and its adapter is not");
        assert_eq!(find(agent("codex"), &path).adapts, None);
    }

    #[test]
    fn an_installed_program_is_preferred_and_named_by_its_whole_path() {
        let (directory, path) = directory(&["claude-agent-acp", "npx", "goose"]);
        let found = find(agent("claude"), &path);
        let program = directory.path().join("claude-agent-acp");
        assert_eq!((found.how, found.command), (How::Installed, vec![program.display().to_string()]));
        assert_eq!(found.adapts, None);
        assert_eq!(find(agent("goose"), &path).command[1..], ["acp", "--with-builtin", "developer"]);
        assert_eq!(find_all(&path).len(), TABLE.len());
    }

    #[test]
    fn an_adapter_without_what_it_adapts_is_not_there() {
        let (_directory, path) = directory(&["pi-acp", "npx"]);
        assert_eq!(find(agent("pi"), &path).how, How::Missing);
        let (_directory, path) = directory(&["pi-acp", "pi"]);
        assert_eq!(find(agent("pi"), &path).how, How::Installed);
    }

    #[test]
    fn files_that_cannot_be_run_and_directories_are_passed_over() {
        let (directory, path) = directory(&["npx"]);
        std::fs::create_dir(directory.path().join("goose")).expect("a directory");
        std::fs::write(directory.path().join("gemini"), "").expect("a file");
        assert!(which("goose", &path).is_none() && which("gemini", &path).is_none());
        let json = serde_json::to_value(find(agent("goose"), &path)).expect("JSON");
        assert_eq!(json["how"], "missing");
        assert!(json["install"].as_str().is_some_and(|line| line.starts_with("npm")));
    }
}
