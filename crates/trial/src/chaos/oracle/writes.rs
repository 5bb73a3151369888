//! I1, I7, I13: what was acknowledged is in the log; what was repeated had one effect; what was cancelled stays so.

use rekindle_client::content_text::value_text;
use serde_json::Value;

use super::super::ledger::Write;
use super::super::matrix::Check;
use super::{ConversationHistory, Evidence, text};

pub(super) fn judge(evidence: &Evidence, story: &ConversationHistory<'_>) -> Vec<Check> {
    let mut checks: Vec<Check> =
        evidence.ledger.writes.iter().flat_map(|write| judge_write(write, story)).collect();
    checks.extend(tokens(story));
    checks
}

fn judge_write(write: &Write, story: &ConversationHistory<'_>) -> Vec<Check> {
    let has = |kind: &str, test: &dyn Fn(&Value) -> bool| story.of_kind(kind).any(test);
    match write {
        Write::Message { tag, message_id, prompt } => {
            let same = |record: &Value| {
                record["message_id"] == **message_id && value_text(&record["content"]) == *prompt
            };
            vec![Check::that(1, has("message.user", &same), || {
                format!("message {tag} ({message_id}) was acknowledged and is not in the log")
            })]
        }
        Write::Again { tag, message_id, first } => vec![Check::that(1, message_id == first, || {
            format!("message {tag} under the same key is {message_id} and was {first}")
        })],
        Write::Title { title } => {
            vec![Check::that(1, has("session.updated", &|record| record["title"] == **title), || {
                format!("the title {title} was acknowledged and is not in the log")
            })]
        }
        Write::Cancel { run_id } => {
            let same = |record: &Value| record["run_id"].as_str() == run_id.as_deref();
            vec![Check::that(1, has("run.cancel_requested", &same), || {
                format!("the cancel of {run_id:?} was acknowledged and is not in the log")
            })]
        }
        Write::Answer { wait_id, token } => {
            let consumed = |record: &Value| record["resume_token_id"].as_str() == token.as_deref();
            let message = |record: &Value| record["wait_id"] == **wait_id;
            let there = token.is_some() && has("token.consumed", &consumed) || has("message.user", &message);
            vec![Check::that(1, there, || {
                format!("the answer to {wait_id} was acknowledged and is not in the log")
            })]
        }
        Write::AnswerAgain { wait_id, token, first } => vec![Check::that(7, token == first, || {
            format!("the same answer to {wait_id} consumed {token:?} and, before, {first:?}")
        })],
        Write::AnswerOtherwise { wait_id } => {
            vec![Check::that(7, false, || format!("{wait_id} was answered, and then otherwise"))]
        }
    }
}

/// Each token is consumed once at most, each wait ended once at most.
fn tokens(story: &ConversationHistory<'_>) -> Vec<Check> {
    let once = |kind: &'static str, field: &'static str| {
        let mut ids: Vec<&str> = story.of_kind(kind).map(|record| text(&record[field])).collect();
        let count = ids.len();
        ids.sort_unstable();
        ids.dedup();
        let twice = count - ids.len();
        (count > 0)
            .then(|| Check::that(7, twice == 0, || format!("{twice} times {kind} of the same {field}")))
    };
    [once("token.consumed", "resume_token_id"), once("run.resumed", "wait_id")]
        .into_iter()
        .flatten()
        .collect()
}
