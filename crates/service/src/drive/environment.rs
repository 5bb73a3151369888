//! The environment of agents: variables that callers bring, whose values are kept in memory only. Their names are in the log, so that
//! after a restart no agent is silently launched without them.

use std::collections::BTreeSet;
use std::ffi::OsStr;

use rekindle_agent::environment::is_for_agents;
use rekindle_domain::event::SessionUpdated;
use rekindle_domain::line::Draft;
use rekindle_domain::session::SessionState;

use crate::code::Code;
use crate::core::{Core, Env, locked};
use crate::error::ServiceError;
use crate::request::Umask;

/// The name of the setting that keeps a caller's umask: it is no secret, and the next agent gets it too.
pub(crate) const UMASK: &str = "umask";

/// Returns the umask that the session's callers brought.
pub(crate) fn umask(state: &SessionState) -> Option<u32> {
    let text = state.options.extra.get(UMASK)?.as_str()?;
    text.parse::<Umask>().ok().map(|umask| umask.0)
}

/// Refuses what no process can have in its environment: it would be found out only when the agent is launched.
pub(crate) fn check(env: &Env) -> Result<(), ServiceError> {
    let wrong = |message: String| Err(ServiceError::new(Code::InvalidEnv, message));
    for (name, value) in env {
        if name.is_empty() || name.contains(['=', '\0']) {
            return wrong(format!(
                "{name:?} is no name of a variable: it is empty, or has a = or a NUL in it"
            ));
        }
        // What a variable is worth is told to nobody.
        if value.contains('\0') {
            return wrong(format!("the value of {name:?} has a NUL in it"));
        }
    }
    Ok(())
}

/// Keeps what a caller brings, and returns the record that adds the names of all that was brought to those that the session
/// has, and a umask that is not the one it has; none if it has them all.
pub(crate) fn bring(core: &Core, state: &SessionState, env: &Env, umask: Option<Umask>) -> Option<Draft> {
    core.bring(state.id, env.clone());
    let brought = locked(&core.brought).get(&state.id).cloned().unwrap_or_default();
    news(state, &brought, umask)
}

fn news(state: &SessionState, env: &Env, brought: Option<Umask>) -> Option<Draft> {
    let known: BTreeSet<&String> = state.env_names.iter().collect();
    let mut names = names_to_keep(env);
    names.retain(|name| !known.contains(name));
    let mut updated = SessionUpdated::default();
    if !names.is_empty() {
        updated.env_names = Some(state.env_names.iter().cloned().chain(names).collect());
    }
    if let Some(brought) = brought.filter(|brought| umask(state) != Some(brought.0)) {
        let mut options = state.options.clone();
        options.extra.insert(UMASK.to_owned(), brought.to_string().into());
        updated.options = Some(options);
    }
    (updated != SessionUpdated::default()).then(|| updated.into())
}

/// Returns those names of what a caller brings that no launch may be without: all that are not everybody's.
pub(crate) fn names_to_keep(env: &Env) -> Vec<String> {
    let names: BTreeSet<&String> = env.keys().filter(|name| !is_for_agents(OsStr::new(name), &[])).collect();
    names.into_iter().cloned().collect()
}

#[cfg(test)]
mod tests {
    use rekindle_domain::event::Event;

    use super::*;

    fn env(name: &str, value: &str) -> Env {
        Env::from([(name.to_owned(), value.to_owned())])
    }

    #[test]
    fn what_no_process_can_have_is_refused_without_telling_its_value() {
        assert_eq!(check(&env("A_KEY", "a = value")), Ok(()));
        for (name, value) in [("", "x"), ("A=B", "x"), ("A\0", "x"), ("A", "secret\0")] {
            let refused = check(&env(name, value)).expect_err(name);
            assert_eq!(refused.code, Code::InvalidEnv);
            assert!(!refused.message.contains("secret"), "{}", refused.message);
        }
    }

    #[test]
    fn only_names_that_a_session_does_not_have_are_added() {
        let mut state = SessionState::empty("sess_1".parse().expect("an id"));
        state.env_names = vec!["OLD".to_owned()];
        assert!(news(&state, &env("OLD", "x"), None).is_none());
        assert!(news(&state, &env("PATH", "x"), None).is_none(), "everybody has it");
        let added = news(&state, &env("NEW", "x"), None).expect("a record");
        let names = Some(vec!["OLD".to_owned(), "NEW".to_owned()]);
        assert!(matches!(added.event, Event::SessionUpdated(updated) if updated.env_names == names));
    }

    #[test]
    fn a_umask_is_recorded_when_it_changes() {
        let mut state = SessionState::empty("sess_1".parse().expect("an id"));
        assert_eq!(umask(&state), None);
        let brought = news(&state, &Env::new(), Some(Umask(0o27))).expect("a record");
        let Event::SessionUpdated(updated) = brought.event else { panic!("a change") };
        state.options = updated.options.expect("options");
        assert_eq!((umask(&state), &state.options.extra[UMASK]), (Some(0o27), &"0027".into()));
        assert!(news(&state, &Env::new(), Some(Umask(0o27))).is_none());
    }
}
