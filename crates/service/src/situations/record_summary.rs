//! Summaries of records, in a few words, for tables of what is expected.

use serde_json::Value;

/// Returns the summary of a record: its kind and what tells it from others; none of those that are the same in every session.
pub(super) fn summary(kind: &str, record: &Value) -> Option<String> {
    let is = |field: &str| record[field].as_bool() == Some(true);
    let word = |field: &str| record[field].as_str().map(|word| format!(" {word}")).unwrap_or_default();
    let more = match kind {
        "session.created" | "agent.started" | "agent.ready" | "status.derived" => return None,
        "input.queued" if record["what"] == "setup" => return None,
        "agent.notice" if record["what"] != "load_timed_out" => return None,
        _ if kind.starts_with("token.") || kind.starts_with("snapshot.") => return None,
        "agent.notice" | "input.queued" => word("what"),
        "message.user" if is("queued") => " queued".to_owned(),
        "run.started" => match record["attempt"].as_u64() {
            Some(attempt) if attempt > 1 => format!(" attempt={attempt}"),
            _ => String::new(),
        },
        "run.interrupted" => {
            let tools = record["uncertain"].as_array().is_some_and(|tools| !tools.is_empty());
            let (tools, turn) =
                (if tools { " tools" } else { "" }, if is("uncertain_turn") { " turn" } else { "" });
            format!("{}{tools}{turn}", word("reason"))
        }
        "run.checkpoint" => {
            let late = if record["how"] == "late" { " late" } else { "" };
            let why = record["not_taken"]["reason"].as_str().map(|why| format!(" {why}"));
            let touched = &record["files_touched"];
            let lines = match (touched["lines_added"].as_u64(), touched["lines_removed"].as_u64()) {
                (Some(0), Some(0)) | (None, _) | (_, None) => String::new(),
                (Some(added), Some(removed)) => format!(" +{added} -{removed}"),
            };
            let files = touched["total"].as_u64().map(|files| format!(" {files} files{lines}"));
            format!("{}{late}{}{}", word("at"), why.unwrap_or_default(), files.unwrap_or_default())
        }
        "run.drift" => format!(" {}", super::drift::what_drifted(record)),
        "run.resumed" => word("how"),
        "session.restored" => word("verdict"),
        _ => String::new(),
    };
    Some(format!("{kind}{more}"))
}
