//! The scripted agent: what it does when it is told something.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

use rekindle_domain::token::sha256_hex;
use serde_json::{Value, json};

use super::life::Life;
use crate::lock::locked;

/// What an agent did.
#[derive(Debug, PartialEq)]
pub(super) enum Deed {
    /// It wrote a line.
    Line(String),
    /// It is gone.
    Gone { code: Option<i32>, signal: Option<i32> },
    /// Its holder is gone with it.
    Lost,
    /// Its holder says nothing any more.
    Mute,
}

/// What agents of one session remember, whichever of them lives: updates as they were sent.
pub(super) type Memory = Vec<Value>;

#[derive(Debug, Default)]
pub(super) struct Agent {
    life: Life,
    is_command: bool,
    /// It takes commands in JSON; this is the newest.
    command: Option<Value>,
    speaks_ndjson: bool,
    /// What it is to say came of that.
    outcome: Option<&'static str>,
    /// The request for a turn that is not answered.
    prompt: Option<Value>,
    /// What is left of the turn.
    words: VecDeque<&'static str>,
    asked: u64,
    waits: bool,
    tools: u64,
    /// The files that it changes, if there are any.
    files: Option<Files>,
}

/// Files of a directory, by their paths.
pub(super) type Files = Arc<Mutex<BTreeMap<String, String>>>;

impl Agent {
    pub(super) fn new(life: Life, profile: &str) -> Agent {
        Agent { life, is_command: profile == "exec", speaks_ndjson: profile == "ndjson", ..Agent::default() }
    }

    /// Has it change these files.
    pub(super) fn in_directory(self, files: Option<Files>) -> Agent {
        Agent { files, ..self }
    }

    /// Takes in a line and acts.
    pub(super) fn hear(&mut self, line: &str, memory: &mut Memory) -> Vec<Deed> {
        if self.is_command {
            self.prompt = Some(Value::Null);
            self.words = self.life.next_turn();
            return self.go_on(memory);
        }
        let told: Value = serde_json::from_str(line).expect("a line of JSON");
        if self.speaks_ndjson {
            assert_eq!(told["kind"], "command", "{told}");
            memory.push(told.clone());
            (self.prompt, self.command) = (Some(Value::Null), Some(told));
            if self.life.setting("cache").is_some() && memory.iter().any(|kept| kept["kept"] == self.key()) {
                return self.end("cached");
            }
            self.words = self.life.next_turn();
            return self.go_on(memory);
        }
        let id = told["id"].clone();
        match told["method"].as_str() {
            Some("initialize") => self.answer("greet", &id, &self.introduction()),
            Some("session/new") => {
                memory.clear();
                self.answer("new", &id, &json!({"sessionId": "own"}))
            }
            Some("session/load") => self.load(&id, memory),
            Some("session/fork") => self.answer("fork", &id, &json!({"sessionId": "forked"})),
            Some("session/prompt") => {
                let text = told["params"]["prompt"][0]["text"].clone();
                memory.push(
                    json!({"sessionUpdate": "user_message_chunk", "content": {"type": "text", "text": text}}),
                );
                (self.prompt, self.words) = (Some(id), self.life.next_turn());
                self.go_on(memory)
            }
            Some("session/cancel") if self.life.setting("cancel").is_none() => {
                (self.waits, self.words) = (false, VecDeque::new());
                self.end("cancelled")
            }
            // Whoever is told that nobody answers waits for the cancel that follows.
            None if self.waits && told["result"]["outcome"]["outcome"] != "cancelled" => {
                self.waits = false;
                self.go_on(memory)
            }
            _ => Vec::new(),
        }
    }

    fn introduction(&self) -> Value {
        let name = self.life.setting("name").unwrap_or("scripted");
        let load = self.life.setting("can").is_none();
        let session = if self.life.setting("fork").is_some() { json!({"fork": {}}) } else { json!({}) };
        let can = json!({"loadSession": load, "sessionCapabilities": session});
        json!({"protocolVersion": 1, "agentCapabilities": can, "agentInfo": {"name": name, "version": "1.0.0"}})
    }

    fn answer(&self, request: &str, id: &Value, result: &Value) -> Vec<Deed> {
        match self.life.setting(request) {
            Some("die") => vec![Deed::Gone { code: None, signal: Some(9) }],
            Some("hang") => Vec::new(),
            Some("no") => {
                vec![line(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32602, "message": "no"}}))]
            }
            _ => vec![line(&json!({"jsonrpc": "2.0", "id": id, "result": result}))],
        }
    }

    fn load(&mut self, id: &Value, memory: &mut Memory) -> Vec<Deed> {
        let answer = line(&json!({"jsonrpc": "2.0", "id": id, "result": {}}));
        let replay: Vec<Deed> = memory.iter().map(update).collect();
        match self.life.setting("load") {
            Some("die" | "hang" | "no") => self.answer("load", id, &Value::Null),
            Some("empty") => vec![answer],
            Some("late") => [answer].into_iter().chain(replay).collect(),
            Some("work") => {
                let more =
                    [update(&tool("t9", "in_progress")), update(&tool_update("t9")), update(&said("more"))];
                replay.into_iter().chain(more).chain([answer]).collect()
            }
            _ => replay.into_iter().chain([answer]).collect(),
        }
    }

    /// Goes on with its turn until there is something to wait for.
    pub(super) fn go_on(&mut self, memory: &mut Memory) -> Vec<Deed> {
        let mut deeds = Vec::new();
        while let Some(word) = self.words.pop_front() {
            match word {
                "text" if self.speaks_ndjson => {
                    deeds.push(line(&json!({"kind": "log", "level": "info", "message": "hello"})));
                }
                "beat" => deeds.push(line(&json!({"kind": "heartbeat", "status": "busy"}))),
                "event" => deeds.push(self.event("moved", &Value::Null)),
                "again" => deeds.push(self.event("failed", &Value::Null)),
                "late" => deeds.push(self.event("completed", &Value::Null)),
                "stray" => {
                    let id = "cmd-implement-1-9";
                    deeds.push(line(
                        &json!({"kind": "event", "correlation_id": id, "event_type": "x.completed"}),
                    ));
                }
                "keep" => memory.push(json!({"kept": self.key()})),
                "no" if self.speaks_ndjson => {
                    self.prompt = None;
                    deeds.push(
                        self.event("failed", &json!({"error": "rate limit exceeded, try again later"})),
                    );
                }
                "text" if self.is_command => deeds.push(Deed::Line("hello".to_owned())),
                "text" => deeds.push(tell(memory, said("hello"))),
                "tool" => {
                    self.tools += 1;
                    deeds.push(tell(memory, tool(&format!("t{}", self.tools), "in_progress")));
                }
                "done" => deeds.push(tell(memory, tool_update(&format!("t{}", self.tools)))),
                "ask" => {
                    self.asked += 1;
                    self.waits = true;
                    deeds.push(line(&permission(900 + self.asked)));
                    break;
                }
                "hang" => break,
                "end" => deeds.extend(self.end("end_turn")),
                "no" => {
                    let id = self.prompt.take();
                    deeds.push(line(
                        &json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32000, "message": "broken"}}),
                    ));
                }
                "die" => deeds.push(Deed::Gone { code: None, signal: Some(9) }),
                "exit" => deeds.push(Deed::Gone { code: Some(1), signal: None }),
                "lost" => deeds.push(Deed::Lost),
                "mute" => deeds.push(Deed::Mute),
                other => match other.split(':').collect::<Vec<_>>()[..] {
                    ["says", outcome] if self.speaks_ndjson => self.outcome = Some(outcome),
                    ["tells", path, content] => {
                        let sha256 = sha256_hex(content.as_bytes());
                        deeds.push(line(&json!({"kind": "artifact", "path": path, "sha256": sha256})));
                    }
                    ["says", outcome] => {
                        let words = format!(
                            "Done.\n```json\n{{\"outcome\":\"{outcome}\",\"findings\":\"it is {outcome}\"}}\n```"
                        );
                        deeds.push(tell(memory, said(&words)));
                    }
                    ["writes", path, content] => {
                        let files = self.files.as_ref().expect("a directory");
                        locked(files).insert(path.to_owned(), content.to_owned());
                    }
                    _ => panic!("no word of a turn: {other}"),
                },
            }
        }
        deeds
    }

    /// Returns the key of its command.
    fn key(&self) -> Value {
        self.command.as_ref().map(|command| command["idempotency_key"].clone()).unwrap_or_default()
    }

    fn event(&self, ending: &str, payload: &Value) -> Deed {
        let command = self.command.as_ref().map(|command| command["message_id"].clone());
        let event_type = format!("agent.{ending}");
        line(
            &json!({"kind": "event", "correlation_id": command, "event_type": event_type, "payload": payload}),
        )
    }

    fn end(&mut self, reason: &str) -> Vec<Deed> {
        match self.prompt.take() {
            Some(_) if self.speaks_ndjson => {
                let payload = json!({"outcome": self.outcome, "findings": "as found", "summary": reason});
                vec![self.event("completed", &payload)]
            }
            Some(_) if self.is_command => vec![Deed::Gone { code: Some(0), signal: None }],
            Some(id) => vec![line(&json!({"jsonrpc": "2.0", "id": id, "result": {"stopReason": reason}}))],
            None => Vec::new(),
        }
    }
}

fn line(value: &Value) -> Deed {
    Deed::Line(value.to_string())
}

fn update(update: &Value) -> Deed {
    line(
        &json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "own", "update": update}}),
    )
}

fn tell(memory: &mut Memory, what: Value) -> Deed {
    let deed = update(&what);
    memory.push(what);
    deed
}

fn said(text: &str) -> Value {
    json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}})
}

fn tool(id: &str, status: &str) -> Value {
    json!({"sessionUpdate": "tool_call", "toolCallId": id, "title": "Write", "kind": "edit", "status": status})
}

fn tool_update(id: &str) -> Value {
    json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "status": "completed"})
}

fn permission(id: u64) -> Value {
    let options = json!([
        {"optionId": "yes", "name": "Allow", "kind": "allow_once"},
        {"optionId": "no", "name": "Reject", "kind": "reject_once"}
    ]);
    let params = json!({"sessionId": "own", "toolCall": {"toolCallId": format!("asked{id}"), "title": "Write"}, "options": options});
    json!({"jsonrpc": "2.0", "id": id, "method": "session/request_permission", "params": params})
}
