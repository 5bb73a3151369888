//! A caller brings what a session's agent needs in its environment: the names of variables, never their values, and a umask.

use crate::event::SessionUpdated;
use crate::line::Draft;
use crate::session::SessionState;

/// Returns the record that adds names of variables to those that the session has, and sets a umask that is not the one it has;
/// none if it has them all.
pub fn update_environment(state: &SessionState, names: Vec<String>, umask: Option<u32>) -> Option<Draft> {
    let mut updated = SessionUpdated::default();
    let new: Vec<String> = names.into_iter().filter(|name| !state.env_names.contains(name)).collect();
    if !new.is_empty() {
        updated.env_names = Some([state.env_names.as_slice(), &new].concat());
    }
    if let Some(umask) = umask.filter(|umask| state.options.umask() != Some(*umask)) {
        updated.options.insert(state.options.clone()).set_umask(umask);
    }
    (updated != SessionUpdated::default()).then(|| updated.into())
}
