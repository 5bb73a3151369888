//! How a status is known, in words, from what the daemon says.

use rekindle_domain::projector::{Evidence, HolderProof};
use rekindle_domain::time::Timestamp;

use rekindle_terminal::output::when;

/// Says how a status is known, a sentence each.
pub fn sentences(evidence: &Evidence, now: Timestamp) -> Vec<String> {
    let mut known = vec![format!("record {} of its log", evidence.last_seq)];
    if let Some(holder) = &evidence.holder {
        let process = holder.process.map(|process| format!(", process {}", process.pid)).unwrap_or_default();
        let named = format!("holder {}{process}", holder.id);
        known.push(match holder.proof {
            HolderProof::Lock => format!("agent process is running ({named}, holds its lock)"),
            HolderProof::Unresponsive => format!("agent process is running but does not answer ({named})"),
            HolderProof::Gone => format!("agent process has exited (confirmed; {named})"),
            HolderProof::Pending => {
                format!("agent process is recorded; not checked yet whether it is running ({named})")
            }
        });
    }
    if let Some(at) = evidence.last_output_at {
        known.push(format!("the agent's last words, {}", when(at, now)));
    }
    if let Some(wait) = evidence.open_wait {
        known.push(format!("{wait} is open"));
    }
    known
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn evidence_is_put_into_sentences() {
        let evidence = json!({"last_seq": 7, "holder": {"id": "h_1", "alive": true, "proof": "lock", "pid": 12, "started": 1},
            "last_output_at": "1970-01-01T00:00:00.000Z", "open_wait": null, "in_flight": []});
        let evidence: Evidence = serde_json::from_value(evidence).expect("evidence");
        assert_eq!(
            sentences(&evidence, Timestamp::from_millis(5_000)),
            [
                "record 7 of its log",
                "agent process is running (holder h_1, process 12, holds its lock)",
                "the agent's last words, 5 seconds ago (1970-01-01T00:00:00Z)"
            ]
        );
    }
}
