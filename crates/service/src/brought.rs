//! What callers bring for their agents: variables whose values are kept in memory only. Their names are in the log, so that
//! after a restart no agent is silently launched without them.

use std::collections::BTreeSet;

use rekindle_domain::event::SessionUpdated;
use rekindle_domain::line::Draft;
use rekindle_domain::session::SessionState;

use crate::agents::names_to_keep;
use crate::code::Code;
use crate::core::{Core, Env, locked};
use crate::error::ServiceError;

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
/// has; none if it has them all.
pub(crate) fn bring(core: &Core, state: &SessionState, env: &Env) -> Option<Draft> {
    core.bring(state.id, env.clone());
    locked(&core.brought).get(&state.id).and_then(|brought| new_names(state, brought))
}

fn new_names(state: &SessionState, env: &Env) -> Option<Draft> {
    let known: BTreeSet<&String> = state.env_names.iter().collect();
    let mut names = names_to_keep(env);
    names.retain(|name| !known.contains(name));
    if names.is_empty() {
        return None;
    }
    let env_names = Some(state.env_names.iter().cloned().chain(names).collect());
    Some(SessionUpdated { env_names, ..SessionUpdated::default() }.into())
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
        assert!(new_names(&state, &env("OLD", "x")).is_none());
        assert!(new_names(&state, &env("PATH", "x")).is_none(), "everybody has it");
        let added = new_names(&state, &env("NEW", "x")).expect("a record");
        let names = Some(vec!["OLD".to_owned(), "NEW".to_owned()]);
        assert!(matches!(added.event, Event::SessionUpdated(updated) if updated.env_names == names));
    }
}
