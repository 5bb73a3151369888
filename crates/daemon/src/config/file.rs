//! The file that the configuration is read from: `config.toml` in `$XDG_CONFIG_HOME/rekindle`, or wherever `$REKINDLE_CONFIG` says.

use std::io::ErrorKind;
use std::path::PathBuf;

use rekindle_client::default_home::{config_home, variable};
use rekindle_client::failure::Failure;

/// The file of the configuration, which need not be there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigFile {
    /// Where it is.
    pub path: PathBuf,
    /// `$REKINDLE_CONFIG` names it: it is meant to be there.
    is_named: bool,
}

impl ConfigFile {
    /// Finds out which file it is; none if neither `$REKINDLE_CONFIG` nor `$XDG_CONFIG_HOME` nor `$HOME` is set.
    pub fn find() -> Option<ConfigFile> {
        let named = variable("REKINDLE_CONFIG").map(|path| ConfigFile { path, is_named: true });
        let usual =
            || Some(ConfigFile { path: config_home()?.join("rekindle/config.toml"), is_named: false });
        named.or_else(usual)
    }

    /// Reads it; none if there is no file and nobody named one.
    pub fn text(&self) -> Result<Option<String>, Failure> {
        match std::fs::read_to_string(&self.path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == ErrorKind::NotFound && !self.is_named => Ok(None),
            Err(error) => {
                let message = format!("{} cannot be read: {error}", self.path.display());
                Err(Failure::usage("config_unreadable", message).hint("$REKINDLE_CONFIG names another one"))
            }
        }
    }
}
