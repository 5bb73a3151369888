//! The section `[worktree]` of the configuration: where worktrees of sessions are made.

use std::env;
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// The section as it is written; what it does not say is as usual.
#[derive(Debug, Default, Clone, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct WorktreeConfig {
    /// The directory that they are made in: an absolute path outside every home of rekindle.
    dir: Option<PathBuf>,
}

impl WorktreeConfig {
    /// Returns the directory that worktrees are made in. One that cannot be used is named, and the usual one stands for it.
    pub(crate) fn directory(&self, home: &Path) -> PathBuf {
        let usual = || usual_directory(env::var_os("XDG_DATA_HOME").map(PathBuf::from), env::home_dir());
        match &self.dir {
            Some(dir) if dir.is_absolute() && !dir.starts_with(home) => dir.clone(),
            Some(dir) => {
                let why = "it is no absolute path outside the home of rekindle";
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
