//! Signing in to an agent, in words for people: only they can, and only with the agent's own program.

use rekindle_agent::connection::Connection;
use rekindle_agent::known::{KnownAgent, by_id, by_name};
use rekindle_agent::said::Failure;
use rekindle_domain::event::{Provider, Raw};
use serde_json::Value;

/// Ways to sign in that are told, and characters of each: they are an agent's own words.
const MOST_WAYS: usize = 5;
const MOST_WORDS: usize = 60;

/// Returns what an agent refused in words for people, and what to do about it if someone has to sign in.
pub(crate) fn refusal_text(failure: &Failure, provider: &Provider, connection: &Connection) -> String {
    if !failure.is_auth_required() {
        return failure.to_string();
    }
    let known = provider.agent.as_deref().and_then(by_id).or_else(|| introduced(connection.info()));
    format!("{failure}; {}", sign_in_advice(known, connection.auth_methods()))
}

/// Finds an agent that someone started by a command of their own, by how it introduces itself.
fn introduced(info: Option<&Raw<'_>>) -> Option<&'static KnownAgent> {
    let info: Value = serde_json::from_str(info?.as_json()).ok()?;
    by_name(info["name"].as_str()?)
}

fn sign_in_advice(known: Option<&KnownAgent>, ways: Option<&Raw<'_>>) -> String {
    match known {
        Some(known) if !known.login.is_empty() => format!("sign in with: {}", known.login),
        Some(known) => {
            let names: Vec<String> = known.environment.iter().map(|front| format!("{front}…")).collect();
            format!("it takes its key from one of these environment variables: {}", names.join(", "))
        }
        None => format!("sign in with the agent's own program, then try again{}", offered_ways(ways)),
    }
}

/// Says which ways the agent itself offers.
fn offered_ways(ways: Option<&Raw<'_>>) -> String {
    let ways: Vec<Value> =
        ways.and_then(|ways| serde_json::from_str(ways.as_json()).ok()).unwrap_or_default();
    let name = |way: &Value| {
        let name = way["name"].as_str().or_else(|| way["id"].as_str())?;
        Some(name.chars().take(MOST_WORDS).collect::<String>())
    };
    let names: Vec<String> = ways.iter().filter_map(name).take(MOST_WAYS).collect();
    if names.is_empty() { String::new() } else { format!(" (it offers: {})", names.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_has_to_sign_in_is_told_how() {
        let ways = Raw::from_value(&serde_json::json!([
            {"id": "a", "name": "Log in"}, {"id": "key"}, {"name": 7}, {"name": "x".repeat(200)}
        ]))
        .expect("JSON");
        let long = "x".repeat(MOST_WORDS);
        let by = |id: &str| by_id(id);
        for (known, ways, expected) in [
            (by("codex"), Some(&ways), "sign in with: codex login".to_owned()),
            (
                by("nanocoder"),
                None,
                "it takes its key from one of these environment variables: NANOCODER_…, OPENAI_…, ANTHROPIC_…, OPENROUTER_…"
                    .into(),
            ),
            (None, None, "sign in with the agent's own program, then try again".into()),
            (
                None,
                Some(&ways),
                format!("sign in with the agent's own program, then try again (it offers: Log in, key, {long})"),
            ),
            (
                None,
                Some(&Raw::text("no list")),
                "sign in with the agent's own program, then try again".into(),
            ),
        ] {
            assert_eq!(sign_in_advice(known, ways), expected);
        }
        let info = Raw::from_value(&serde_json::json!({"name": "gemini-cli"})).expect("JSON");
        assert_eq!(introduced(Some(&info)).map(|known| known.id), Some("gemini"));
        assert!(introduced(Some(&Raw::text("x"))).is_none() && introduced(None).is_none());
    }
}
