//! The outcomes of steps: what an agent is asked to say at the end of its work, and what its last words, its messages or its exit code
//! amount to.

use serde::Deserialize;
use serde_json::Value;

use crate::event::StageConfig;

/// An agent has done what it was asked, or a check has passed.
pub const COMPLETED: &str = "completed";
/// An agent or a check has failed.
pub const FAILED: &str = "failed";
/// What leads to the stage after this one, or to the end after the last.
pub const NEXT: &str = "next";
/// What ends the run.
pub const FAIL: &str = "fail";

/// What an agent said came of its work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    /// The outcome: `completed`, `failed`, or one of the stage's.
    pub outcome: String,
    /// What it found, if it said that.
    pub findings: Option<String>,
}

/// Why the words of an agent are no outcome.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unclear {
    /// The message does not end with a block.
    #[error("your last message did not end with a fenced json block")]
    NoBlock,
    /// What is in the block is no such object.
    #[error("the json block at the end of your last message is not valid: {0}")]
    NoObject(String),
    /// The outcome is not one of those that were asked for.
    #[error("{0:?} is not one of the outcomes")]
    Unknown(String),
    /// An event says that it is done, and not what came of it.
    #[error("its event ends in .completed, but payload.outcome is missing")]
    NotNamed,
}

/// Tells whether a step of a stage may come to this outcome.
pub fn is_outcome_of(stage: &StageConfig, outcome: &str) -> bool {
    match outcome {
        FAILED => true,
        COMPLETED if stage.outcomes.is_empty() => true,
        other => stage.outcomes.contains_key(other),
    }
}

/// Returns what is added to the prompt of a stage, so that its agent says what came of its work; nothing if it need not.
pub fn request(stage: &StageConfig) -> Option<String> {
    let names: Vec<&str> = stage.outcomes.keys().map(String::as_str).collect();
    (!names.is_empty()).then(|| {
        format!(
            "When you are done, end your last message with exactly one fenced block like this, and write nothing after it:\n\n\
             ```json\n{{\"outcome\": \"{}\", \"findings\": \"…\"}}\n```\n\n\
             `outcome` is one of {}. `findings` says in plain text what you found and what is to be done about it; it may be empty.",
            names.first().unwrap_or(&COMPLETED),
            listed(&names),
        )
    })
}

/// Returns what an agent is told whose last message did not say what came of its work. It is told once.
pub fn reminder(stage: &StageConfig, why: &Unclear) -> String {
    let names: Vec<&str> = stage.outcomes.keys().map(String::as_str).collect();
    format!(
        "I could not read the outcome of your work: {why}. Do no more work. Answer with this block alone, filled in:\n\n\
         ```json\n{{\"outcome\": \"{}\", \"findings\": \"…\"}}\n```\n\n`outcome` is one of {}.",
        names.first().unwrap_or(&COMPLETED),
        listed(&names),
    )
}

fn listed(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// Reads what an agent of a stage said in its last message. Where no outcomes are declared, that it ended its turn is enough, and
/// its words are not looked into.
pub fn of_message(stage: &StageConfig, message: &str) -> Result<Said, Unclear> {
    if stage.outcomes.is_empty() {
        return Ok(Said { outcome: COMPLETED.into(), findings: None });
    }
    let block = last_block(message).ok_or(Unclear::NoBlock)?;
    #[derive(Deserialize)]
    struct Block {
        outcome: String,
        #[serde(default)]
        findings: Option<Value>,
    }
    let block: Block = serde_json::from_str(block).map_err(|error| Unclear::NoObject(error.to_string()))?;
    // Whatever an agent declares, it may also say that it failed.
    if !is_outcome_of(stage, &block.outcome) {
        return Err(Unclear::Unknown(block.outcome.chars().take(64).collect()));
    }
    Ok(Said { outcome: block.outcome, findings: block.findings.and_then(plain_text) })
}

/// Returns a message without the block at its end.
pub fn without_block(message: &str) -> &str {
    match last_fences(message) {
        Some((open, ..)) => message[..open].trim_end(),
        None => message.trim_end(),
    }
}

/// Returns what is in the fenced `json` block that a message ends with.
fn last_block(message: &str) -> Option<&str> {
    last_fences(message).map(|(_, from, to)| &message[from..to])
}

/// Returns where the block at the end of a message begins, where its content does, and where that ends.
fn last_fences(message: &str) -> Option<(usize, usize, usize)> {
    let end = message.trim_end().len();
    let last = message[..end].rfind('\n')? + 1;
    if !is_fence(message[last..end].trim(), "") {
        return None;
    }
    // The opening fence is the last one before it: a block has no fence inside.
    let mut line_end = last;
    while line_end > 0 {
        let start = message[..line_end - 1].rfind('\n').map_or(0, |at| at + 1);
        let line = message[start..line_end - 1].trim();
        if line.starts_with("```") || line.starts_with("~~~") {
            return is_fence(line, "json").then_some((start, line_end, last));
        }
        line_end = start;
    }
    None
}

/// Tells whether a line is a fence that says this and no more.
fn is_fence(line: &str, says: &str) -> bool {
    let rest = line.trim_start_matches('`');
    line.len() - rest.len() >= 3 && rest.trim().eq_ignore_ascii_case(says)
}

/// Returns findings as text, however an agent writes them: a text, or a list of them.
pub(super) fn plain_text(findings: Value) -> Option<String> {
    match findings {
        Value::String(text) => Some(text),
        Value::Null => None,
        Value::Array(items) => {
            let lines = items.into_iter().filter_map(plain_text).map(|line| format!("- {line}"));
            Some(lines.collect::<Vec<_>>().join("\n"))
        }
        other => Some(other.to_string()),
    }
}

/// Reads what the exit code of a command amounts to; none if a signal ended it.
pub fn of_exit(code: Option<i32>) -> &'static str {
    if code == Some(0) { COMPLETED } else { FAILED }
}

/// What an event of an `ndjson` agent means for its command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Terminal {
    /// Nothing: it is not about this command, or says something on the way.
    Not,
    /// It ends the command with this outcome.
    Outcome(String),
    /// It ends the command, and does not say how: the step fails.
    Unclear(Unclear),
}

/// Reads an event of an `ndjson` agent: `builder.completed`, `builder.failed`, `reviewer.<outcome>`, with the `outcome` of its payload.
/// Whether it answers the command at all is told by its correlation id, and by nothing here.
pub fn of_event(outcomes: &[impl AsRef<str>], event_type: &str, said: Option<&str>) -> Terminal {
    let is_declared = |name: &str| outcomes.iter().any(|outcome| outcome.as_ref() == name);
    let Some((_, ending)) = event_type.rsplit_once('.') else { return Terminal::Not };
    match (ending, said) {
        (FAILED, _) => Terminal::Outcome(FAILED.into()),
        (COMPLETED, _) if outcomes.is_empty() => Terminal::Outcome(COMPLETED.into()),
        // Where outcomes are declared, that it is done does not say what came of it.
        (COMPLETED, Some(name)) if is_declared(name) || name == FAILED => Terminal::Outcome(name.into()),
        (COMPLETED, Some(name)) => Terminal::Unclear(Unclear::Unknown(name.chars().take(64).collect())),
        (COMPLETED, None) => Terminal::Unclear(Unclear::NotNamed),
        (ending, _) if is_declared(ending) => Terminal::Outcome(ending.into()),
        _ => Terminal::Not,
    }
}

#[cfg(test)]
mod tests;
