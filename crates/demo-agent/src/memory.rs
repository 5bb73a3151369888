//! What the agent says when it is told of an interruption: what it still knows. A test reads from it whether the
//! conversation came back and whether a step would be done twice.

use std::collections::HashSet;

use crate::record::{Record, interrupted};
use crate::script::{Step, steps_of};

/// Longest part of a prompt that is quoted.
const QUOTED: usize = 80;

/// Returns a sentence or two on a conversation.
pub(crate) fn memory_text(history: &[Record]) -> String {
    let count = |wanted: fn(&Record) -> bool| history.iter().filter(|record| wanted(record)).count();
    let prompts = count(|record| matches!(record, Record::User { .. }));
    if prompts == 0 {
        return "I remember nothing of an earlier conversation.".to_owned();
    }
    let messages = count(|record| matches!(record, Record::Agent { .. } | Record::Huge { .. }));
    let tools: HashSet<&str> = history.iter().filter_map(tool_id).collect();
    let last = history.iter().rev().find_map(|record| match record {
        Record::User { text, .. } => Some(text.as_str()),
        _ => None,
    });
    let last = last.unwrap_or_default();
    format!(
        "I remember {}, {} of mine and {}. {} The last prompt began: {}",
        counted(prompts, "prompt"),
        counted(messages, "message"),
        counted(tools.len(), "tool call"),
        last_turn(history),
        last.lines().next().unwrap_or_default().chars().take(QUOTED).collect::<String>(),
    )
}

/// Returns the steps of an interrupted turn that were never begun. The one that was cut is not among them: whether it
/// was done is not known.
pub(crate) fn unfinished_steps(history: &[Record]) -> Vec<Step> {
    let Some((text, at)) = interrupted(history) else { return Vec::new() };
    // What a prompt that tells of an interruption was to carry on with was begun by an earlier one.
    steps_of(text).unwrap_or_default().into_iter().skip(at.map_or(0, |at| at + 1)).collect()
}

fn tool_id(record: &Record) -> Option<&str> {
    match record {
        Record::Tool { call } => call["toolCallId"].as_str(),
        _ => None,
    }
}

fn last_turn(history: &[Record]) -> String {
    match interrupted(history) {
        None => "The last turn ended by itself.".to_owned(),
        Some((_, None)) => "The last turn was interrupted before its first step.".to_owned(),
        Some((text, Some(at))) => {
            let steps = steps_of(text).map_or(1, |steps| steps.len());
            format!("The last turn was interrupted at step {} of {steps}.", at + 1)
        }
    }
}

fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_how_far_the_last_turn_came() {
        assert_eq!(memory_text(&[]), "I remember nothing of an earlier conversation.");
        let user = Record::User { message_id: "u".into(), text: "say one\nhang".into() };
        let agent = Record::Agent { message_id: "a".into(), text: "one".into() };
        let mut history = vec![user, Record::Step { at: 0 }, agent, Record::Step { at: 1 }];
        assert_eq!(
            memory_text(&history),
            "I remember 1 prompt, 1 message of mine and 0 tool calls. The last turn was interrupted at step 2 of 2. \
             The last prompt began: say one"
        );
        history.push(Record::End { stop_reason: "cancelled".into() });
        assert!(memory_text(&history).contains("The last turn ended by itself."));
    }

    #[test]
    fn what_was_never_begun_is_still_to_be_done() {
        let user = Record::User { message_id: "u".into(), text: "say one\nhang\nsay two".into() };
        let mut history = vec![user, Record::Step { at: 0 }, Record::Step { at: 1 }];
        assert_eq!(unfinished_steps(&history[..1]).len(), 3);
        assert_eq!(unfinished_steps(&history), [Step::Say("two".into())]);
        history.push(Record::End { stop_reason: "end_turn".into() });
        assert_eq!(unfinished_steps(&history), []);
    }
}
