//! Steps that only talk: messages, thoughts, plans and the other kinds of updates.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Stop, Turn};
use crate::record::Record;
use crate::sessions::random_id;
use crate::wire::{chunk, huge_line};

/// The context that `usage` claims to have.
const CONTEXT_SIZE: u64 = 200_000;

const MESSAGE: &str = "agent_message_chunk";

impl Turn {
    pub(super) fn say(&mut self, text: &str) -> Result<(), Stop> {
        let message_id = self.stream(MESSAGE, text)?;
        self.record(Record::Agent { message_id, text: text.to_owned() });
        Ok(())
    }

    pub(super) fn think(&mut self, text: &str) -> Result<(), Stop> {
        let message_id = self.stream("agent_thought_chunk", text)?;
        self.record(Record::Thought { message_id, text: text.to_owned() });
        Ok(())
    }

    /// Sends a text in words; their parts put together are the text again.
    fn stream(&mut self, kind: &str, text: &str) -> Result<String, Stop> {
        let message_id = random_id();
        for word in text.split_inclusive(char::is_whitespace) {
            self.update(chunk(kind, &message_id, word));
            self.pace()?;
        }
        Ok(message_id)
    }

    pub(super) fn words(&mut self, count: u64, every: Duration) -> Result<(), Stop> {
        let message_id = random_id();
        let mut text = String::new();
        for number in 1..=count {
            let word = if number == count { format!("w{number}") } else { format!("w{number} ") };
            self.update(chunk(MESSAGE, &message_id, &word));
            text.push_str(&word);
            self.pause(every)?;
        }
        self.record(Record::Agent { message_id, text });
        Ok(())
    }

    pub(super) fn huge(&mut self, bytes: u64) {
        let message_id = random_id();
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        let line = huge_line(&self.job.session, &message_id, bytes);
        let len = line.len() - huge_line(&self.job.session, &message_id, 0).len();
        self.shared.wire.raw(line.as_bytes());
        self.record(Record::Huge { message_id, len });
    }

    pub(super) fn plan(&mut self, entries: &[String]) -> Result<(), Stop> {
        for done in 0..=entries.len() {
            self.plan_at(entries, done)?;
        }
        Ok(())
    }

    pub(super) fn plan_at(&mut self, entries: &[String], done: usize) -> Result<(), Stop> {
        let status = |at: usize| match at.cmp(&done) {
            std::cmp::Ordering::Less => "completed",
            std::cmp::Ordering::Equal => "in_progress",
            std::cmp::Ordering::Greater => "pending",
        };
        let entry = |(at, content): (usize, &String)| json!({"content": content, "priority": "medium", "status": status(at)});
        let entries: Vec<Value> = entries.iter().enumerate().map(entry).collect();
        self.update(json!({"sessionUpdate": "plan", "entries": entries}));
        self.pace()
    }

    pub(super) fn usage(&mut self, input: u64, output: u64, cost: f64) {
        let (known_input, known_output) = self.job.carried.tokens.unwrap_or_default();
        self.job.carried.tokens = Some((known_input + input, known_output + output));
        self.update(json!({
            "sessionUpdate": "usage_update",
            "used": input + output,
            "size": CONTEXT_SIZE,
            "cost": {"amount": cost, "currency": "USD"},
        }));
    }

    pub(super) fn mode(&mut self, mode: &str) {
        self.shared.sessions.with(&self.job.session, |session| mode.clone_into(&mut session.mode));
        self.update(json!({"sessionUpdate": "current_mode_update", "currentModeId": mode}));
    }

    pub(super) fn title(&mut self, title: String) {
        self.update(json!({"sessionUpdate": "session_info_update", "title": title}));
        self.record(Record::Title { title });
    }

    pub(super) fn notice(&mut self, text: &str) {
        self.update(json!({"sessionUpdate": "notice", "severity": "info", "title": text}));
    }

    pub(super) fn commands(&mut self) {
        let hint = json!({"hint": "what to look at"});
        self.update(json!({
            "sessionUpdate": "available_commands_update",
            "availableCommands": [
                {"name": "review", "description": "Look at the changes", "input": hint},
                {"name": "tidy", "description": "Put things in order"},
            ],
        }));
    }

    pub(super) fn unknown_updates(&mut self) {
        self.update(json!({
            "sessionUpdate": "demo_unheard_of",
            "depth": {"of": ["the", {"sea": 10_911.5}]},
            "nothing": null,
        }));
        let text = "Known, but with more to it.";
        let message_id = random_id();
        let mut update = chunk(MESSAGE, &message_id, text);
        update["futureField"] = json!({"a": [1, 2, 3]});
        update["content"]["futureNote"] = json!("kept?");
        update["_meta"] = json!({"demo": {"traceparent": "00-0"}});
        self.update(update);
        self.record(Record::Agent { message_id, text: text.to_owned() });
    }
}
