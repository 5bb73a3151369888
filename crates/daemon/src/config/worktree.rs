//! The section `[worktree]` of the configuration: where worktrees of sessions are made, and how they are prepared.

use std::env;
use std::path::{Path, PathBuf};

use rekindle_service::daemon::Preparation;
use serde::Deserialize;

/// The section as it is written; what it does not say is as usual.
#[derive(Debug, Default, Clone, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct WorktreeConfig {
    /// The directory that they are made in: an absolute path outside every home of rekindle.
    dir: Option<PathBuf>,
    /// Files that git ignores and that are copied into each: patterns as in ignore files, from the root of the repository.
    copy: Vec<String>,
    /// A command that is run in each before anybody works there: a line for `sh`, or a program and its arguments.
    setup: Option<Setup>,
}

/// A command, in either way to write one.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
enum Setup {
    Line(String),
    Words(Vec<String>),
}

impl WorktreeConfig {
    /// Returns how worktrees are prepared.
    pub(crate) fn preparation(&self) -> Preparation {
        let setup = match &self.setup {
            None => Vec::new(),
            Some(Setup::Line(line)) => ["sh", "-c", line].map(str::to_owned).to_vec(),
            Some(Setup::Words(words)) => words.clone(),
        };
        Preparation { copy: self.copy.clone(), setup }
    }

    /// Returns the directory that worktrees are made in. One that cannot be used is named, and the usual one stands for it.
    pub(crate) fn directory(&self, home: &Path) -> PathBuf {
        let usual = || usual_directory(env::var_os("XDG_DATA_HOME").map(PathBuf::from), env::home_dir());
        match &self.dir {
            Some(dir) if dir.is_absolute() && !dir.starts_with(home) => dir.clone(),
            Some(dir) => {
                let why = "it is not an absolute path outside the home of Rekindle";
                tracing::warn!("[worktree] dir = {dir:?} is not used: {why}");
                usual()
            }
            None => usual(),
        }
    }
}

/// Returns where worktrees are made if nobody says: among the data of the user.
fn usual_directory(data: Option<PathBuf>, user: Option<PathBuf>) -> PathBuf {
    let data = data.filter(|data| data.is_absolute());
    let data = data.unwrap_or_else(|| user.unwrap_or_else(|| "/".into()).join(".local/share"));
    data.join("rekindle/worktrees")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setup_is_a_line_or_words() {
        let read = |text: &str| toml::from_str::<WorktreeConfig>(text).expect("read").preparation();
        assert_eq!(read(""), Preparation::default());
        assert_eq!(read("setup = \"npm ci\"").setup, ["sh", "-c", "npm ci"]);
        let both = read("setup = [\"npm\", \"ci\"]\ncopy = [\".env\"]");
        assert_eq!((both.setup, both.copy), (vec!["npm".into(), "ci".into()], vec![".env".into()]));
    }

    #[test]
    fn worktrees_are_made_where_somebody_says_or_among_the_users_data() {
        let read = |text: &str| toml::from_str::<WorktreeConfig>(text).expect("read");
        let home = Path::new("/home/a/.rekindle");
        assert_eq!(read("dir = \"/trees\"").directory(home), Path::new("/trees"));
        for unusable in ["dir = \"trees\"", "dir = \"/home/a/.rekindle/trees\"", ""] {
            assert!(read(unusable).directory(home).ends_with("rekindle/worktrees"), "{unusable}");
        }
        let usual = |data: Option<&str>| usual_directory(data.map(Into::into), Some("/home/a".into()));
        assert_eq!(usual(Some("/data")), Path::new("/data/rekindle/worktrees"));
        assert_eq!(usual(Some("data")), Path::new("/home/a/.local/share/rekindle/worktrees"));
        assert_eq!(usual(None), Path::new("/home/a/.local/share/rekindle/worktrees"));
    }
}
