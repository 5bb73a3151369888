//! Directories of agents: where each keeps its own files, as the environment of a user says.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use super::table::TABLE;
use super::transcript::TranscriptPlace;

/// Where agents keep their own files, as the environment of a user says.
#[derive(Debug, Clone, Default)]
pub struct AgentDirectories {
    home: Option<PathBuf>,
    named: BTreeMap<&'static str, PathBuf>,
}

impl AgentDirectories {
    /// Reads them from an environment.
    pub fn from_environment(get: impl Fn(&str) -> Option<OsString>) -> AgentDirectories {
        let directory = |name: &str| get(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let variables = TABLE.iter().filter_map(|agent| agent.transcript.as_ref()?.variable);
        let named = variables.filter_map(|name| Some((name, directory(name)?))).collect();
        AgentDirectories { home: directory("HOME"), named }
    }

    /// Returns the directory of an agent, if it can be told.
    pub fn find(&self, place: &TranscriptPlace) -> Option<PathBuf> {
        let named = place.variable.and_then(|name| self.named.get(name)).cloned();
        named.or_else(|| Some(self.home.as_ref()?.join(place.directory)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::by_id;
    use super::*;

    fn place(agent: &str) -> TranscriptPlace {
        by_id(agent).and_then(|agent| agent.transcript).expect("its place is known")
    }

    #[test]
    fn directories_are_below_the_users_own_unless_a_variable_names_another() {
        let get = |name: &str| match name {
            "HOME" => Some("/home/me".into()),
            "CODEX_HOME" => Some("/srv/codex".into()),
            "CLAUDE_CONFIG_DIR" => Some("relative".into()),
            _ => None,
        };
        let directories = AgentDirectories::from_environment(get);
        for (agent, expected) in
            [("claude", "/home/me/.claude"), ("codex", "/srv/codex"), ("gemini", "/home/me/.gemini")]
        {
            assert_eq!(directories.find(&place(agent)), Some(expected.into()), "{agent}");
        }
        assert_eq!(AgentDirectories::default().find(&place("claude")), None);
    }
}
