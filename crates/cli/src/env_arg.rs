//! What of our environment an agent is given: what is on the list, what was named, what its session cannot be without; and
//! our umask, with which it makes files.

use std::collections::BTreeMap;
use std::ffi::OsString;

use rekindle_agent::environment::for_agent;
use rekindle_agent::known::by_id;
use rekindle_client::failure::Failure;
use rekindle_display::hints::ours;
use rekindle_wire::request::Umask;
use rekindle_wire::view::SessionView;

use crate::context::Context;

/// Returns what of our environment goes to an agent. A daemon elsewhere is given only what was named: it has an environment
/// of its own, and ours may have secrets that are none of its business.
pub(crate) fn environment_for(
    context: &Context,
    agent: Option<&str>,
    named: &[String],
) -> Result<BTreeMap<String, String>, Failure> {
    let prefixes = agent.and_then(by_id).map_or(&[][..], |agent| agent.environment);
    let listed = match &context.server {
        None => for_agent(std::env::vars_os(), prefixes),
        Some(_) => Vec::new(),
    };
    environment(listed, named)
}

/// Returns what of our environment goes to the agent of a session that may have to be launched again: also the variables
/// that it was given before and its daemon does not have any more, as far as they are set here. Fails by the names of those
/// that are not: whatever is asked of the session would only wait for them. `again` writes the command with more arguments.
pub(crate) fn environment_of(
    context: &Context,
    session: &SessionView,
    named: &[String],
    again: impl FnOnce(&str) -> String,
) -> Result<BTreeMap<String, String>, Failure> {
    let agent = session.known_agent.as_deref().or(Some(&session.agent));
    let mut env = environment_for(context, agent, named)?;
    // To a daemon elsewhere goes only what was named.
    let ours_too = context.server.is_none();
    for name in session.missing_env.iter().filter(|_| ours_too) {
        if let Ok(value) = std::env::var(name) {
            env.entry(name.clone()).or_insert(value);
        }
    }
    let missing: Vec<&str> =
        session.missing_env.iter().map(String::as_str).filter(|name| !env.contains_key(*name)).collect();
    if missing.is_empty() { Ok(env) } else { Err(lacks(session.id.as_str(), &missing, ours_too, again)) }
}

/// Says which variables a session's agent cannot be launched without, and how it gets them.
fn lacks(id: &str, missing: &[&str], here: bool, again: impl FnOnce(&str) -> String) -> Failure {
    let names = missing.join(", ");
    let nowhere = if here { "neither its daemon nor this shell has" } else { "its daemon does not have" };
    let given: String = missing.iter().map(|name| format!(" --env {name}=VALUE")).collect();
    let message = format!("the agent of {id} needs {names}, which {nowhere}: nothing was sent");
    let again = ours(again(&given));
    let hint = if here {
        format!("set it in this shell and try again, or pass it: {again}")
    } else {
        format!("pass it: {again}; --env NAME alone passes the value from this shell")
    };
    Failure::failed("env_missing", anyhow::Error::msg(message)).hint(hint)
}

/// Returns our umask as it is sent; none to a daemon elsewhere, where files are others' business.
pub(crate) fn umask_for(context: &Context) -> Option<Umask> {
    if context.server.is_some() {
        return None;
    }
    // The kernel tells it without its being changed, which the system call cannot do.
    umask_in(&std::fs::read_to_string("/proc/self/status").ok()?)
}

fn umask_in(status: &str) -> Option<Umask> {
    status.lines().find_map(|line| line.strip_prefix("Umask:"))?.trim().parse().ok()
}

/// Joins what is on the list and what was named.
fn environment(
    listed: Vec<(OsString, OsString)>,
    named: &[String],
) -> Result<BTreeMap<String, String>, Failure> {
    let mut env: BTreeMap<String, String> = listed
        .into_iter()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    for variable in named {
        let (name, value) = match variable.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (variable.as_str(), std::env::var(variable).ok()),
        };
        let value = value.filter(|_| !name.is_empty()).ok_or_else(|| {
            Failure::usage("no_such_variable", format!("--env {variable}: this shell has no such variable"))
                .hint("--env NAME=VALUE gives it a value")
        })?;
        env.insert(name.to_owned(), value);
    }
    Ok(env)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_umask_is_read_as_the_kernel_writes_it() {
        assert_eq!(umask_in("Name:\tx\nUmask:\t0022\nState:\tR\n"), Some(Umask(0o022)));
        assert_eq!((umask_in("Name:\tx\n"), umask_in("Umask:\tx\n")), (None, None));
    }

    #[test]
    fn variables_are_named_with_or_without_a_value() {
        let env = environment(Vec::new(), &["X_KEY=a=b".into()]).expect("a value");
        assert_eq!(env["X_KEY"], "a=b");
        for bad in ["REKINDLE_NO_SUCH_VARIABLE", "=x"] {
            assert_eq!(environment(Vec::new(), &[bad.into()]).expect_err(bad).code(), "no_such_variable");
        }
    }
}
