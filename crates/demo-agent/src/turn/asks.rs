//! Steps that ask the client: permissions, forms, and a question that is taken back.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Stop, Turn, Wake};
use crate::record::Record;
use crate::sessions::{Session, random_id};
use crate::wire::{chunk, lock};

/// What a permission can be answered with; the ids are the kinds.
const OPTIONS: [(&str, &str); 4] = [
    ("allow_once", "Allow"),
    ("allow_always", "Always allow"),
    ("reject_once", "Reject"),
    ("reject_always", "Always reject"),
];

/// What came of a permission.
enum Verdict {
    Allowed { always: bool },
    Rejected,
    Cancelled,
    Unanswered(String),
}

impl Turn {
    /// Sends a request and returns its id as it is on the wire.
    fn request(&mut self, method: &str, params: &Value) -> String {
        let id = {
            let mut process = lock(&self.shared.process);
            let id = process.next_id;
            process.next_id += 1;
            id
        };
        let key = id.to_string();
        lock(&self.shared.asked).insert(key.clone(), self.job.session.clone());
        self.open.insert(key.clone());
        self.shared.wire.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        key
    }

    fn ask_permission(&mut self, title: &str) -> (String, Value) {
        let call = self.announce("execute", title, json!({ "title": title }));
        let tool_call = json!({"toolCallId": call["toolCallId"], "title": title, "kind": "execute"});
        (self.request_permission(&tool_call), call)
    }

    fn request_permission(&mut self, tool_call: &Value) -> String {
        let options = OPTIONS.map(|(kind, name)| json!({"optionId": kind, "name": name, "kind": kind}));
        let params = json!({"sessionId": self.job.session, "toolCall": tool_call, "options": options});
        self.request("session/request_permission", &params)
    }

    /// Asks permission for a tool call that was not announced, and goes on if it is given.
    pub(super) fn permit(&mut self, tool_call: Value) -> Result<(), Stop> {
        let id = self.request_permission(&tool_call);
        match verdict(self.wait_for_answer(&id)?) {
            Verdict::Allowed { .. } => Ok(()),
            Verdict::Cancelled => Err(Stop::Cancelled),
            Verdict::Rejected | Verdict::Unanswered(_) => Err(Stop::Rejected),
        }
    }

    /// Asks for all of these at once and goes on if all are allowed.
    pub(super) fn ask(&mut self, titles: &[String]) -> Result<(), Stop> {
        let mut waiting = HashMap::new();
        for title in titles {
            let is_free = |session: &mut Session| session.mode == "yolo" || session.allowed.contains(title);
            if self.shared.sessions.with(&self.job.session, is_free) != Some(true) {
                let (id, call) = self.ask_permission(title);
                waiting.insert(id, (title, call));
            }
        }
        let mut end = None;
        while !waiting.is_empty() {
            let Wake::Answer(id, outcome) = self.wait(None)? else { continue };
            let Some((title, call)) = waiting.remove(&id) else { continue };
            let verdict = verdict(outcome);
            let status = if matches!(verdict, Verdict::Allowed { .. }) { "completed" } else { "failed" };
            self.change(call, status, None);
            match verdict {
                Verdict::Allowed { always: false } => {}
                Verdict::Allowed { always: true } => {
                    let remember = |session: &mut Session| session.allowed.insert(title.clone());
                    self.shared.sessions.with(&self.job.session, remember);
                }
                Verdict::Rejected => {
                    self.say_at_once(&format!("Rejected: {title}"));
                    end.get_or_insert(Stop::Rejected);
                }
                Verdict::Unanswered(why) => {
                    self.say_at_once(&format!("Not answered: {title} ({why})"));
                    end.get_or_insert(Stop::Rejected);
                }
                // A client says this when it cancels the turn, be it before or after the cancel itself.
                Verdict::Cancelled => end = Some(Stop::Cancelled),
            }
        }
        end.map_or(Ok(()), Err)
    }

    /// Says something while requests may be open: without a pause, in which an answer could be missed.
    fn say_at_once(&mut self, text: &str) {
        let message_id = random_id();
        self.update(chunk("agent_message_chunk", &message_id, text));
        self.record(Record::Agent { message_id, text: text.to_owned() });
    }

    /// Asks, and takes the question back after a moment. The client still answers it.
    pub(super) fn withdraw(&mut self, text: &str, after: Duration) -> Result<(), Stop> {
        let (id, call) = self.ask_permission(text);
        let until = Instant::now() + after;
        let early = loop {
            match self.wait(Some(until))? {
                Wake::Time => break None,
                Wake::Answer(answered, outcome) if answered == id => break Some(outcome),
                Wake::Answer(..) | Wake::Line => {}
            }
        };
        let said = if early.is_some() {
            format!("Answered before it was withdrawn: {text}")
        } else {
            let request: Value = serde_json::from_str(&id).unwrap_or_default();
            let params = json!({ "requestId": request });
            let message = json!({"jsonrpc": "2.0", "method": "$/cancel_request", "params": params});
            self.shared.wire.send(&message);
            // Whatever the answer is, the question does not stand any more.
            let _ = self.wait_for_answer(&id)?;
            format!("Withdrawn: {text}")
        };
        self.change(call, "failed", None);
        self.say(&said)
    }

    fn wait_for_answer(&mut self, id: &str) -> Result<Result<Value, String>, Stop> {
        loop {
            if let Wake::Answer(answered, outcome) = self.wait(None)?
                && answered == id
            {
                return Ok(outcome);
            }
        }
    }

    /// Asks with a form of one field.
    pub(super) fn question(&mut self, text: &str) -> Result<(), Stop> {
        let answer = json!({"type": "string", "title": "Answer"});
        let schema = json!({"type": "object", "properties": {"answer": answer}, "required": ["answer"]});
        let session = &self.job.session;
        let params =
            json!({"sessionId": session, "mode": "form", "message": text, "requestedSchema": schema});
        let id = self.request("elicitation/create", &params);
        let said = match self.wait_for_answer(&id)? {
            Err(why) => format!("Not answered: {text} ({why})"),
            Ok(result) => match (result["action"].as_str(), &result["content"]["answer"]) {
                (Some("accept"), Value::String(answer)) => format!("You answered: {answer}"),
                (Some("accept"), other) => format!("You answered: {other}"),
                (Some("decline"), _) => format!("You declined: {text}"),
                _ => format!("Not answered: {text}"),
            },
        };
        self.say(&said)
    }

    pub(super) fn repeat_ids(&mut self) {
        let mut process = lock(&self.shared.process);
        process.repeat_ids = true;
        process.next_id = 0;
    }
}

fn verdict(outcome: Result<Value, String>) -> Verdict {
    let result = match outcome {
        Ok(result) => result,
        Err(why) => return Verdict::Unanswered(why),
    };
    let outcome = &result["outcome"];
    match (outcome["outcome"].as_str(), outcome["optionId"].as_str()) {
        (Some("cancelled"), _) => Verdict::Cancelled,
        (Some("selected"), Some("allow_once")) => Verdict::Allowed { always: false },
        (Some("selected"), Some("allow_always")) => Verdict::Allowed { always: true },
        (Some("selected"), Some("reject_once" | "reject_always")) => Verdict::Rejected,
        _ => Verdict::Unanswered("the answer makes no sense".to_owned()),
    }
}
