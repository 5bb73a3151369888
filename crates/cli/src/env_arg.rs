//! What of our environment an agent is given: what is on the list, and what was named.

use std::collections::BTreeMap;
use std::ffi::OsString;

use rekindle_agent::environment::for_agent;
use rekindle_agent::known::by_id;
use serde_json::Value;

use crate::commands::Context;
use crate::failure::Failure;

/// Returns what of our environment goes to an agent. A daemon elsewhere is given only what was named: it has an environment
/// of its own, and ours may have secrets that are none of its business.
pub(crate) fn environment_for(
    context: &Context,
    agent: Option<&str>,
    named: &[String],
) -> Result<BTreeMap<String, Value>, Failure> {
    let listed: Vec<(OsString, OsString)> = match &context.server {
        None => for_agent(std::env::vars_os(), &agent_prefixes(agent)),
        Some(_) => Vec::new(),
    };
    environment(listed, named)
}

/// Returns the beginnings of names of variables that an agent needs.
fn agent_prefixes(agent: Option<&str>) -> Vec<&'static str> {
    agent.and_then(by_id).map(|agent| agent.environment.to_vec()).unwrap_or_default()
}

/// Joins what is on the list and what was named.
fn environment(
    listed: Vec<(OsString, OsString)>,
    named: &[String],
) -> Result<BTreeMap<String, Value>, Failure> {
    let mut env: BTreeMap<String, Value> = listed
        .into_iter()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, Value::from(value.into_string().ok()?))))
        .collect();
    for variable in named {
        let (name, value) = match variable.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (variable.as_str(), std::env::var(variable).ok()),
        };
        let value = value.filter(|_| !name.is_empty()).ok_or_else(|| {
            Failure::usage("no_such_variable", format!("--env {variable}: there is no such variable here"))
                .hint("--env NAME=VALUE gives it a value")
        })?;
        env.insert(name.to_owned(), Value::from(value));
    }
    Ok(env)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_named_with_or_without_a_value() {
        let env = environment(Vec::new(), &["X_KEY=a=b".into()]).expect("a value");
        assert_eq!(env["X_KEY"], "a=b");
        for bad in ["REKINDLE_NO_SUCH_VARIABLE", "=x"] {
            assert_eq!(environment(Vec::new(), &[bad.into()]).expect_err(bad).code(), "no_such_variable");
        }
    }
}
