//! Records of older logs, which gave waits no names: what is missing is filled in from what is there.

use serde_json::{Value, json};

/// Returns the text of a legacy record in today's shape, or none if it needs no change.
pub(crate) fn upgrade(kind: &str, text: &str) -> Option<String> {
    let is_concerned = matches!(
        kind,
        "run.waiting" | "run.resumed" | "token.minted" | "token.consumed" | "token.revoked" | "token.expired"
    );
    if !is_concerned {
        return None;
    }
    let mut record: Value = serde_json::from_str(text).ok()?;
    let fields = record.as_object_mut()?;
    // One token to a wait then: the token's name serves for both.
    let token = fields.get("resume_token_id").or_else(|| fields.get("token_id"))?.as_str()?.to_owned();
    let wait = format!("wait_{}", token.strip_prefix("rt_")?);
    fields.entry("resume_token_id").or_insert_with(|| json!(token));
    fields.entry("wait_id").or_insert_with(|| json!(wait));
    match kind {
        "run.waiting" => {
            fields.entry("wait_kind").or_insert_with(|| json!("external"));
        }
        "run.resumed" => {
            fields.entry("how").or_insert_with(|| json!("answered"));
        }
        "token.minted" => {
            // A scope named the kind of its wait only.
            let scope = fields.get_mut("scope")?.as_object_mut()?;
            scope.entry("wait_id").or_insert_with(|| json!(wait));
        }
        _ => {}
    }
    Some(record.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Event;

    #[test]
    fn a_wait_without_a_name_gets_its_tokens() {
        let text = r#"{"seq":146,"ts":"2026-02-21T10:01:25Z","kind":"run.waiting","run_id":"run_9f5","wait_kind":"tool_result","resume_token_id":"rt_5f0"}"#;
        let upgraded = upgrade("run.waiting", text).expect("it is concerned");
        let Ok(Event::RunWaiting(waiting)) = Event::read("run.waiting", &upgraded) else {
            panic!("readable after the upgrade: {upgraded}");
        };
        assert_eq!(waiting.wait_id.as_str(), "wait_5f0");
        assert_eq!(upgrade("message.user", text), None);
        assert_eq!(upgrade("run.waiting", "rubbish"), None);
    }
}
