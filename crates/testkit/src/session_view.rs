//! A session as a daemon shows one, made up for tests of what is shown.

use rekindle_wire::view::SessionView;
use serde_json::{Value, json};

/// Returns a session with a status, its latest run and its holder.
pub fn session(status: &str, run: Value, holder: Value) -> SessionView {
    let at = "2026-02-21T10:01:25.000Z";
    let evidence = json!({"last_seq": 0, "holder": holder, "in_flight": []});
    let run = match run {
        Value::Object(mut run) => {
            run.extend([
                ("started_at".into(), json!(at)),
                ("attempt".into(), json!(1)),
                ("resumable".into(), json!(false)),
            ]);
            run.into()
        }
        other => other,
    };
    serde_json::from_value(json!({
        "id": "sess_1", "title": "", "working_dir": "/", "agent": "claude", "missing_env": [], "profile": "acp",
        "status": status, "since": at, "created_at": at, "updated_at": at, "run": run, "evidence": evidence,
        "connection": "idle", "closed": false, "last_seq": 0, "waits": [], "queued": 0, "health": {"state": "ok"},
        "usage": {"input_tokens": 0, "output_tokens": 0},
    }))
    .expect("a session")
}
