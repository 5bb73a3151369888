//! How a status is known, in words, from what the daemon says.

use rekindle_domain::time::Timestamp;
use serde_json::Value;

use crate::output::when;
use crate::sanitise;

/// Says how a status is known, a sentence each.
pub(crate) fn sentences(evidence: &Value, now: Timestamp) -> Vec<String> {
    let mut known = Vec::new();
    if let Some(seq) = evidence["last_seq"].as_u64() {
        known.push(format!("record {seq} of its log"));
    }
    let holder = &evidence["holder"];
    if let Some(id) = holder["id"].as_str() {
        let process = holder["pid"].as_u64().map(|pid| format!(" (process {pid})")).unwrap_or_default();
        let proof = match holder["proof"].as_str() {
            Some("lock") => "lives: its lock is held",
            Some("unresponsive") => "lives and does not answer",
            Some("gone") => "is gone: its end is proven",
            _ => "is recorded, and nobody has looked whether it lives",
        };
        known.push(sanitise::line(&format!("holder {id}{process} {proof}")));
    }
    let at = evidence["last_output_at"].as_str().and_then(|text| text.parse::<Timestamp>().ok());
    if let Some(at) = at {
        known.push(format!("the agent's last words, {}", when(at, now)));
    }
    if let Some(wait) = evidence["open_wait"].as_str() {
        known.push(sanitise::line(&format!("{wait} is open")));
    }
    known
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn evidence_is_put_into_sentences() {
        let evidence = json!({"last_seq": 7, "holder": {"id": "h_1", "proof": "lock", "pid": 12},
            "last_output_at": "1970-01-01T00:00:00.000Z", "open_wait": null});
        assert_eq!(
            sentences(&evidence, Timestamp::from_millis(5_000)),
            [
                "record 7 of its log",
                "holder h_1 (process 12) lives: its lock is held",
                "the agent's last words, 5 seconds ago (1970-01-01T00:00:00Z)"
            ]
        );
        assert!(sentences(&Value::Null, Timestamp::from_millis(0)).is_empty());
    }
}
