//! Where a home is unless someone names another: below the XDG state directory; and where settings are.

use std::path::PathBuf;

/// Returns the home that is used when none is named.
pub fn default_home() -> Option<PathBuf> {
    Some(xdg_directory("XDG_STATE_HOME", ".local/state")?.join("rekindle"))
}

/// Returns the directory for settings of all programs.
pub fn config_home() -> Option<PathBuf> {
    xdg_directory("XDG_CONFIG_HOME", ".config")
}

fn xdg_directory(name: &str, usual: &str) -> Option<PathBuf> {
    // The specification says that a relative path there is to be ignored.
    let named = variable(name).filter(|path| path.is_absolute());
    named.or_else(|| Some(variable("HOME")?.join(usual)))
}

/// Returns a variable that is set and not empty.
pub fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}
