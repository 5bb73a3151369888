//! What is kept of a conversation: a record a line. Messages and tool calls are kept whole, so what was streaming
//! when the process died is not there, as with most agents.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::wire::{chunk, huge_text};

/// One line of a conversation's file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub(crate) enum Record {
    /// The first line.
    Session { cwd: String },
    /// A prompt.
    User { message_id: String, text: String },
    /// A message of the agent.
    Agent { message_id: String, text: String },
    /// A thought of the agent.
    Thought { message_id: String, text: String },
    /// A message whose text is [`huge_text`] of a length.
    Huge { message_id: String, len: usize },
    /// A tool call as it is now; later ones with the same `toolCallId` replace it.
    Tool { call: Value },
    /// The session's name.
    Title { title: String },
    /// A step of the running turn begins.
    Step { at: usize },
    /// The turn ended by itself.
    End { stop_reason: String },
}

/// Returns the updates that show a conversation again.
pub(crate) fn replay(history: &[Record]) -> Vec<Value> {
    let mut updates: Vec<Value> = Vec::new();
    let mut tools: HashMap<String, usize> = HashMap::new();
    for record in history {
        let update = match record {
            Record::User { message_id, text } => chunk("user_message_chunk", message_id, text),
            Record::Agent { message_id, text } => chunk("agent_message_chunk", message_id, text),
            Record::Thought { message_id, text } => chunk("agent_thought_chunk", message_id, text),
            Record::Huge { message_id, len } => chunk("agent_message_chunk", message_id, &huge_text(*len)),
            Record::Tool { call } => {
                let id = call["toolCallId"].as_str().unwrap_or_default().to_owned();
                let at = *tools.entry(id).or_insert(updates.len());
                if let Some(earlier) = updates.get_mut(at) {
                    *earlier = shown_again(call);
                    continue;
                }
                shown_again(call)
            }
            Record::Session { .. } | Record::Title { .. } | Record::Step { .. } | Record::End { .. } => {
                continue;
            }
        };
        updates.push(update);
    }
    updates
}

/// Joins messages of the same voice that follow each other, a line each.
pub(crate) fn merge(updates: Vec<Value>) -> Vec<Value> {
    let mut merged: Vec<Value> = Vec::new();
    for update in updates {
        let joins = |last: &Value| {
            last["sessionUpdate"] == update["sessionUpdate"] && update["content"]["text"].is_string()
        };
        match merged.last_mut().filter(|last| joins(last)) {
            Some(last) => {
                let text = |update: &Value| update["content"]["text"].as_str().unwrap_or_default().to_owned();
                last["content"]["text"] = json!(format!("{}\n{}", text(last), text(&update)));
            }
            None => merged.push(update),
        }
    }
    merged
}

/// Returns a conversation without the turns that never ended: all of them, or only the first turn if it is one.
pub(crate) fn without_cut(history: Vec<Record>, only_first: bool) -> Vec<Record> {
    let mut turns: Vec<Vec<Record>> = vec![Vec::new()];
    for record in history {
        if matches!(record, Record::User { .. }) {
            turns.push(Vec::new());
        }
        if let Some(turn) = turns.last_mut() {
            turn.push(record);
        }
    }
    let ended = |turn: &[Record]| turn.iter().any(|record| matches!(record, Record::End { .. }));
    let kept = turns.into_iter().enumerate().filter(|(index, turn)| match index {
        0 => true,
        1 => ended(turn),
        _ => only_first || ended(turn),
    });
    kept.flat_map(|(_, turn)| turn).collect()
}

/// A tool call whose end was never kept is one that failed: nobody is left to run it.
fn shown_again(call: &Value) -> Value {
    let mut call = call.clone();
    call["sessionUpdate"] = json!("tool_call");
    if !matches!(call["status"].as_str(), Some("completed" | "failed")) {
        call["status"] = json!("failed");
    }
    call
}

/// Returns the beginning of a conversation, up to so many messages and tool calls.
pub(crate) fn first(history: Vec<Record>, most: usize) -> Vec<Record> {
    let mut kept = Vec::new();
    for record in history {
        kept.push(record);
        if replay(&kept).len() > most {
            kept.pop();
            break;
        }
    }
    kept
}

/// Returns the last prompt and the step it had come to, if its turn never ended.
pub(crate) fn interrupted(history: &[Record]) -> Option<(&str, Option<usize>)> {
    let is_prompt = |record: &Record| matches!(record, Record::User { .. });
    let (at, prompt) = history.iter().enumerate().rfind(|(_, record)| is_prompt(record))?;
    let Record::User { text, .. } = prompt else { return None };
    let since = &history[at..];
    if since.iter().any(|record| matches!(record, Record::End { .. })) {
        return None;
    }
    let step = since.iter().rev().find_map(|record| match record {
        Record::Step { at } => Some(*at),
        _ => None,
    });
    Some((text, step))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(text: &str) -> Record {
        Record::User { message_id: "u".into(), text: text.into() }
    }

    fn tool(id: &str, status: &str) -> Record {
        Record::Tool { call: json!({"toolCallId": id, "title": "t", "status": status}) }
    }

    #[test]
    fn a_tool_call_is_replayed_once_in_its_last_state() {
        let history =
            [user("go"), tool("a", "in_progress"), tool("b", "in_progress"), tool("a", "completed")];
        let shown: Vec<String> = replay(&history)
            .iter()
            .map(|update| format!("{} {}", update["sessionUpdate"], update["status"]).replace('"', ""))
            .collect();
        assert_eq!(shown, ["user_message_chunk null", "tool_call completed", "tool_call failed"]);
    }

    #[test]
    fn messages_are_joined_and_cut_turns_forgotten() {
        let agent = |text: &str| Record::Agent { message_id: "a".into(), text: text.into() };
        let end = || Record::End { stop_reason: "end_turn".into() };
        let history = vec![user("one"), agent("a"), agent("b"), end(), user("two"), agent("half")];
        let texts: Vec<String> =
            merge(replay(&history)).iter().map(|update| update["content"]["text"].to_string()).collect();
        assert_eq!(texts, [r#""one""#, r#""a\nb""#, r#""two""#, r#""half""#]);
        assert_eq!(without_cut(history.clone(), false), history[..4]);
        assert_eq!(without_cut(history.clone(), true), history, "only the first is forgotten");
        assert_eq!(without_cut(history[4..].to_vec(), true), []);
    }

    #[test]
    fn a_short_history_ends_after_so_many_things_shown() {
        let history = vec![user("go"), Record::Step { at: 0 }, tool("a", "completed"), user("on")];
        assert_eq!(first(history.clone(), 0), []);
        assert_eq!(first(history.clone(), 1), history[..2]);
        assert_eq!(first(history.clone(), 2), history[..3]);
        assert_eq!(first(history.clone(), 9), history);
    }

    #[test]
    fn a_turn_without_an_end_was_interrupted_at_its_last_step() {
        let end = Record::End { stop_reason: "end_turn".into() };
        let mut history = vec![user("one"), Record::Step { at: 0 }, end, user("two")];
        assert_eq!(interrupted(&history[..3]), None);
        assert_eq!(interrupted(&history), Some(("two", None)));
        history.extend([Record::Step { at: 0 }, Record::Step { at: 1 }]);
        assert_eq!(interrupted(&history), Some(("two", Some(1))));
        assert_eq!(interrupted(&[]), None);
    }
}
