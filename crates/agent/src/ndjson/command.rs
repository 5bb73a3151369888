//! The command: all that an `ndjson` agent is told, one JSON object in a line.

use rekindle_domain::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Longest id of a message that is compared: ours are stages, rounds and attempts, and have some dozens of bytes.
pub(super) const MAX_ID: usize = 256;

/// The word by which a line is known as a command.
const KIND: &str = "command";

/// The version of the work that a command is about.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Version {
    /// The snapshot of the files that the work begins with, as people see its name.
    pub snapshot_id: Option<String>,
}

/// A command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Command {
    /// Its own name: events that answer it say it as `correlation_id`.
    pub message_id: String,
    /// The task.
    pub task_id: Option<String>,
    /// What is to be done: the name of a stage.
    pub action: String,
    /// The key of the work. The same work has the same key, whoever asks for it again: an agent that did it may answer at once.
    pub idempotency_key: Option<String>,
    /// What the work begins with.
    #[serde(default)]
    pub version: Version,
    /// Which time the stage is gone through.
    pub round: u32,
    /// Outcomes that an agent is to choose from; none if that it is done is enough.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outcomes: Vec<String>,
    /// What the agent is told: the prompt and the task's own inputs.
    #[serde(default)]
    pub inputs: Map<String, Value>,
    /// When the agent is ended if it is not done by then.
    pub deadline_at: Option<Timestamp>,
}

impl Command {
    /// Reads a command, if a text is one.
    pub fn parse(text: &str) -> Option<Command> {
        #[derive(Deserialize)]
        struct Kind {
            kind: String,
        }
        // Most texts are plain words, of which the first says that they are none.
        let text = text.trim();
        let kind = text.starts_with('{').then(|| serde_json::from_str::<Kind>(text).ok())??;
        let command: Command = serde_json::from_str(text).ok().filter(|_| kind.kind == KIND)?;
        (!command.message_id.is_empty() && command.message_id.len() <= MAX_ID).then_some(command)
    }

    /// Returns the command that has plain words done: what a person says in a session that is no step of anything. It has no key, since
    /// whoever says the same twice means it twice.
    pub fn of_words(message_id: String, words: &str) -> Command {
        Command {
            message_id,
            task_id: None,
            action: "prompt".to_owned(),
            idempotency_key: None,
            version: Version::default(),
            round: 1,
            outcomes: Vec::new(),
            inputs: [("prompt".to_owned(), Value::from(words))].into_iter().collect(),
            deadline_at: None,
        }
    }

    /// Returns it as it is sent, without the end of its line.
    pub fn to_json(&self) -> String {
        #[derive(Serialize)]
        struct Line<'a> {
            kind: &'static str,
            #[serde(flatten)]
            command: &'a Command,
        }
        serde_json::to_string(&Line { kind: KIND, command: self }).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_one_line_as_the_contract_writes_it() {
        let line = r#"{"kind":"command","message_id":"cmd-implement-1-1","task_id":"T-0042","action":"implement","idempotency_key":"ik:00","version":{"snapshot_id":"snap-d0ab7e60b764"},"round":1,"inputs":{"limit":7,"prompt":"a\nb"},"deadline_at":null}"#;
        let command = Command::parse(line).expect("a command");
        assert_eq!(command.to_json(), line);
        let with = Command { outcomes: vec!["approved".into()], ..command };
        let json = with.to_json();
        assert!(json.contains(r#""round":1,"outcomes":["approved"],"inputs""#), "{json}");
        assert_eq!(Command::parse(&json), Some(with));
    }

    #[test]
    fn other_texts_are_no_commands() {
        let long = format!(
            r#"{{"kind":"command","message_id":"{}","task_id":null,"action":"a","idempotency_key":null,"round":1,"deadline_at":null}}"#,
            "x".repeat(300)
        );
        for text in ["", "fix it", "{", "[]", r#"{"kind":"command"}"#, r#"{"kind":"event"}"#, long.as_str()] {
            assert_eq!(Command::parse(text), None, "{text}");
        }
    }

    #[test]
    fn plain_words_become_a_command_without_a_key() {
        let json = Command::of_words("cmd-3".into(), "say \"hi\"\nnow").to_json();
        assert!(!json.contains('\n'), "one line: {json}");
        let read = Command::parse(&json).expect("a command");
        assert_eq!((read.inputs["prompt"].as_str(), read.idempotency_key), (Some("say \"hi\"\nnow"), None));
    }
}
