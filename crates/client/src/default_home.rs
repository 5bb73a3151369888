//! Where a home is unless someone names another: below the XDG state directory.

use std::ffi::OsString;
use std::path::PathBuf;

/// Returns the home that is used when none is named.
pub fn default_home() -> Option<PathBuf> {
    // The specification says that a relative path there is to be ignored.
    let state = variable("XDG_STATE_HOME").filter(|path| path.is_absolute());
    let state = state.or_else(|| Some(variable("HOME")?.join(".local/state")))?;
    Some(state.join("rekindle"))
}

/// Returns a variable that is set and not empty.
pub fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value: &OsString| !value.is_empty()).map(PathBuf::from)
}
