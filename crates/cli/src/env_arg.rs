//! What of our environment an agent is given: what is on the list, and what was named.

use std::collections::BTreeMap;

use rekindle_agent::environment::for_agent;
use rekindle_agent::known::by_id;
use serde_json::Value;

use crate::failure::Failure;

/// Returns the beginnings of names of variables that an agent needs.
pub(crate) fn agent_prefixes(agent: Option<&str>) -> Vec<&'static str> {
    agent.and_then(by_id).map(|agent| agent.environment.to_vec()).unwrap_or_default()
}

/// Returns what of our environment goes to the agent: what is on the list, and what was named.
pub(crate) fn environment(prefixes: &[&str], named: &[String]) -> Result<BTreeMap<String, Value>, Failure> {
    let listed = for_agent(std::env::vars_os(), prefixes).into_iter();
    let mut env: BTreeMap<String, Value> = listed
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
        let env = environment(&[], &["X_KEY=a=b".into()]).expect("a value");
        assert_eq!(env["X_KEY"], "a=b");
        for bad in ["REKINDLE_NO_SUCH_VARIABLE", "=x"] {
            assert_eq!(environment(&[], &[bad.into()]).expect_err(bad).code(), "no_such_variable");
        }
    }
}
