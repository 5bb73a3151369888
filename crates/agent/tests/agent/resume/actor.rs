//! An agent in memory: a model that does what its request says, behind a protocol that forgets, refuses or hangs as real agents
//! were seen to. What is on its disk outlives its process; what has happened in the world outlives both.

use std::collections::HashMap;

use serde_json::{Value, json};

/// What a load does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Load {
    Honest,
    Merges,
    QuietAfterwards,
    ForgetsCut,
    ForgetsFirst,
    Empty,
    Refuses,
    Hangs,
    /// A load within a minute destroys the session.
    Destroys,
    /// A turn that was cut goes on inside the load.
    Continues,
    /// There is none: only a resume without a replay.
    ResumeOnly,
    /// There is neither.
    Nothing,
}

impl Load {
    pub(crate) const ALL: [Load; 12] = [
        Load::Honest,
        Load::Merges,
        Load::QuietAfterwards,
        Load::ForgetsCut,
        Load::ForgetsFirst,
        Load::Empty,
        Load::Refuses,
        Load::Hangs,
        Load::Destroys,
        Load::Continues,
        Load::ResumeOnly,
        Load::Nothing,
    ];
}

/// What an agent keeps of a conversation.
#[derive(Debug, Clone, PartialEq)]
enum Kept {
    User(String),
    Said(String),
    Tool { id: String, command: String, done: bool },
    End,
}

/// What outlives a process.
#[derive(Debug, Default)]
pub(crate) struct Disk {
    sessions: HashMap<String, Vec<Kept>>,
    opened: HashMap<String, u64>,
    calls: u64,
    /// Commands that were run, in order: the world.
    pub(crate) effects: Vec<String>,
}

/// What a prompt brought, for whoever judges.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) text: String,
    /// The process had replayed the request before.
    pub(crate) shown: bool,
}

/// One step of a turn.
#[derive(Debug, Clone, PartialEq)]
enum Act {
    Count,
    Word(String),
    EndMessage(String),
    Announce(String),
    Ask(String),
    Run(String),
    Finish(String),
}

/// Where a turn stands, for whoever kills.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum At {
    Nothing,
    Prompted,
    /// It has said nothing but what it used so far.
    Counted,
    MidText,
    MidTool,
    Asking,
    GrantedMidTool,
    Ended,
}

/// A process of the agent.
#[derive(Debug)]
pub(crate) struct Process {
    load: Load,
    session: String,
    acts: Vec<Act>,
    next: usize,
    call: String,
    /// The request that the turn answers, and whether it is a load.
    reply: Option<(Value, bool)>,
    asking: bool,
    quiet: bool,
    hangs: bool,
    said: String,
    replayed: Vec<String>,
    pub(crate) at: At,
    pub(crate) told: Vec<Told>,
    /// How a load went, by what is really there: every prompt, in order.
    pub(crate) loaded: Option<bool>,
}

/// The words of a request, and what has to be done for it.
pub(crate) const FIRST: &str = "REQUEST-ONE look at the parser";
pub(crate) const SECOND: &str = "REQUEST-TWO build it\nand ship it";
pub(crate) const BUILD: &str = "make all";
pub(crate) const SHIP: &str = "ship it --now";

impl Process {
    pub(crate) fn new(load: Load) -> Process {
        Process {
            load,
            session: String::new(),
            acts: Vec::new(),
            next: 0,
            call: String::new(),
            reply: None,
            asking: false,
            quiet: false,
            hangs: false,
            said: String::new(),
            replayed: Vec::new(),
            at: At::Nothing,
            told: Vec::new(),
            loaded: None,
        }
    }

    /// Takes a line in; returns what is said to it at once.
    pub(crate) fn hear(&mut self, line: &str, disk: &mut Disk, now: u64) -> Vec<String> {
        let message: Value = serde_json::from_str(line).expect("a message");
        let id = message["id"].clone();
        let params = &message["params"];
        let result = |result: Value| vec![json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string()];
        let refuse = || {
            let error = json!({"code": -32603, "message": "no such session"});
            vec![json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string()]
        };
        match message["method"].as_str() {
            Some("initialize") => {
                let can_load = !matches!(self.load, Load::ResumeOnly | Load::Nothing);
                let resume = if self.load == Load::ResumeOnly { json!({"resume": {}}) } else { json!({}) };
                let name = if self.load == Load::Destroys { "gemini-cli" } else { "actor" };
                result(json!({"protocolVersion": 1, "agentInfo": {"name": name, "version": "0.61.0"},
                    "agentCapabilities": {"loadSession": can_load, "sessionCapabilities": resume}}))
            }
            Some("session/new") => {
                self.session = format!("s{}", disk.opened.len() + 1);
                disk.opened.insert(self.session.clone(), now);
                result(json!({"sessionId": self.session}))
            }
            Some("session/load") => {
                let session = params["sessionId"].as_str().expect("an id").to_owned();
                self.session.clone_from(&session);
                match self.load {
                    Load::Refuses => return refuse(),
                    Load::Hangs => {
                        self.hangs = true;
                        return Vec::new();
                    }
                    Load::Destroys => {
                        let last = disk.opened.insert(session.clone(), now);
                        if last.is_some_and(|last| now - last < 60_000) {
                            disk.sessions.remove(&session);
                            return refuse();
                        }
                    }
                    _ => {}
                }
                let all = disk.sessions.get(&session).cloned().unwrap_or_default();
                let kept = match self.load {
                    Load::Empty => Vec::new(),
                    Load::ForgetsCut => without_cut(&all, false),
                    Load::ForgetsFirst => without_cut(&all, true),
                    _ => all.clone(),
                };
                self.loaded = Some(prompts(&kept) == prompts(&all));
                self.quiet = self.load == Load::QuietAfterwards;
                let mut lines = self.replay(&kept);
                disk.sessions.insert(session, kept);
                if self.load == Load::Continues && self.is_cut(disk) {
                    self.begin(disk, (id, true), "");
                    return lines;
                }
                lines.extend(result(json!({})));
                lines
            }
            Some("session/resume") => {
                self.session = params["sessionId"].as_str().expect("an id").to_owned();
                result(json!({}))
            }
            Some("session/prompt") => {
                let blocks = params["prompt"].as_array().expect("blocks");
                let text: Vec<&str> = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
                let text = text.join("\n");
                let shown = self.replayed.iter().any(|text| text.contains(SECOND));
                self.told.push(Told { text: text.clone(), shown });
                disk.sessions.entry(self.session.clone()).or_default().push(Kept::User(text.clone()));
                self.begin(disk, (id, false), &text);
                self.at = At::Prompted;
                Vec::new()
            }
            Some(_) => Vec::new(),
            // The answer to our only question.
            None => {
                self.asking = false;
                Vec::new()
            }
        }
    }

    /// Does the next thing; returns what it says, or nothing if there is nothing to do.
    pub(crate) fn act(&mut self, disk: &mut Disk) -> Option<Vec<String>> {
        if self.asking || self.hangs {
            return None;
        }
        let Some(act) = self.acts.get(self.next).cloned() else { return self.end(disk) };
        self.next += 1;
        let keep = |disk: &mut Disk, kept: Kept| {
            disk.sessions.entry(self.session.clone()).or_default().push(kept);
        };
        let lines = match act {
            Act::Count => {
                self.at = At::Counted;
                let cost = json!({"amount": 0.1, "currency": "USD"});
                vec![
                    self.update(
                        &json!({"sessionUpdate": "usage_update", "used": 1, "size": 9, "cost": cost}),
                    ),
                ]
            }
            Act::Word(word) => {
                self.said.push_str(&word);
                self.at = At::MidText;
                vec![self.chunk("agent_message_chunk", &word)]
            }
            Act::EndMessage(text) => {
                keep(disk, Kept::Said(text));
                Vec::new()
            }
            Act::Announce(command) => {
                disk.calls += 1;
                self.call = format!("call-{}", disk.calls);
                keep(disk, Kept::Tool { id: self.call.clone(), command: command.clone(), done: false });
                self.tool("tool_call", &command, "in_progress")
            }
            Act::Ask(command) => {
                disk.calls += 1;
                self.call = format!("call-{}", disk.calls);
                (self.asking, self.at) = (true, At::Asking);
                keep(disk, Kept::Tool { id: self.call.clone(), command: command.clone(), done: false });
                let call =
                    json!({"toolCallId": self.call, "title": "Shell", "rawInput": {"command": command}});
                let options = json!([{"optionId": "once", "name": "Allow once", "kind": "allow_once"}]);
                let params = json!({"sessionId": self.session, "toolCall": call, "options": options});
                let ask = json!({"jsonrpc": "2.0", "id": 0, "method": "session/request_permission", "params": params});
                vec![ask.to_string()]
            }
            Act::Run(command) => {
                self.at = if command == SHIP { At::GrantedMidTool } else { At::MidTool };
                disk.effects.push(command);
                Vec::new()
            }
            Act::Finish(command) => {
                let call = &self.call;
                for kept in disk.sessions.entry(self.session.clone()).or_default() {
                    if let Kept::Tool { id, done, .. } = kept {
                        *done |= id == call;
                    }
                }
                self.tool("tool_call_update", &command, "completed")
            }
        };
        Some(lines)
    }

    fn end(&mut self, disk: &mut Disk) -> Option<Vec<String>> {
        let (id, load) = self.reply.take()?;
        disk.sessions.entry(self.session.clone()).or_default().push(Kept::End);
        self.at = At::Ended;
        let result = if load { json!({}) } else { json!({"stopReason": "end_turn"}) };
        Some(vec![json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string()])
    }

    fn is_cut(&self, disk: &Disk) -> bool {
        let kept = disk.sessions.get(&self.session).map(Vec::as_slice).unwrap_or_default();
        !prompts(kept).is_empty() && !matches!(kept.last(), Some(Kept::End))
    }

    /// Begins a turn: what is asked for is in the prompt, or in what the agent remembers of a turn that was cut. What it is told
    /// or remembers to be done, or to be uncertain, it looks at first; of anything else it knows nothing, and does it.
    fn begin(&mut self, disk: &Disk, reply: (Value, bool), text: &str) {
        self.reply = Some(reply);
        (self.next, self.acts) = (0, vec![Act::Count]);
        let kept = disk.sessions.get(&self.session).cloned().unwrap_or_default();
        let recalled =
            || kept.iter().rev().any(|kept| matches!(kept, Kept::User(said) if said.contains(SECOND)));
        let again = text.contains("[Resume Context]") || text.is_empty();
        if text.contains(SECOND) || again && recalled() {
            let knows = |command: &str| {
                let kept =
                    kept.iter().any(|kept| matches!(kept, Kept::Tool { command: of, .. } if of == command));
                text.contains(&format!("- Shell: {command}\n")) || kept
            };
            let done = |command: &str| disk.effects.iter().any(|effect| effect == command);
            self.say(if again { ["again", "at", "it"] } else { ["alpha", "beta", "gamma"] });
            if !(knows(BUILD) && done(BUILD)) {
                self.acts.extend([
                    Act::Announce(BUILD.into()),
                    Act::Run(BUILD.into()),
                    Act::Finish(BUILD.into()),
                ]);
            }
            if !(knows(SHIP) && done(SHIP)) {
                self.acts.extend([Act::Ask(SHIP.into()), Act::Run(SHIP.into()), Act::Finish(SHIP.into())]);
            }
            self.say(["omega", "and", "out"]);
        } else if text.contains(FIRST) {
            self.say(["a", "fine", "parser"]);
        } else {
            self.say(["what", "request", "please"]);
        }
    }

    fn say(&mut self, words: [&str; 3]) {
        let words = words.map(|word| format!("{word} "));
        self.acts.extend(words.iter().cloned().map(Act::Word));
        self.acts.push(Act::EndMessage(words.concat()));
    }

    fn chunk(&self, kind: &str, text: &str) -> String {
        let update = json!({"sessionUpdate": kind, "content": {"type": "text", "text": text}});
        self.update(&update)
    }

    fn update(&self, update: &Value) -> String {
        let params = json!({"sessionId": self.session, "update": update});
        json!({"jsonrpc": "2.0", "method": "session/update", "params": params}).to_string()
    }

    fn tool(&self, kind: &str, command: &str, status: &str) -> Vec<String> {
        if self.quiet {
            return Vec::new();
        }
        let input = json!({"command": command});
        vec![self.update(&json!({"sessionUpdate": kind, "toolCallId": self.call, "title": "Shell",
            "kind": "execute", "status": status, "rawInput": input}))]
    }

    fn replay(&mut self, kept: &[Kept]) -> Vec<String> {
        let mut texts: Vec<(&str, String)> = Vec::new();
        for kept in kept {
            let (kind, text) = match kept {
                Kept::User(text) => ("user_message_chunk", text.clone()),
                Kept::Said(text) => ("agent_message_chunk", text.clone()),
                Kept::Tool { id, command, done } => {
                    let status = if *done { "completed" } else { "failed" };
                    let call = json!({"sessionUpdate": "tool_call", "toolCallId": id, "title": "Shell",
                        "kind": "execute", "status": status, "rawInput": {"command": command}});
                    ("", call.to_string())
                }
                Kept::End => continue,
            };
            match texts.last_mut() {
                Some((last, joined)) if *last == kind && !kind.is_empty() && self.load == Load::Merges => {
                    joined.push('\n');
                    joined.push_str(&text);
                }
                _ => texts.push((kind, text)),
            }
        }
        let line = |(kind, text): &(&str, String)| match *kind {
            "" => self.update(&serde_json::from_str(text).expect("a call")),
            kind => self.chunk(kind, text),
        };
        let lines = texts.iter().map(line).collect();
        let prompts = texts.iter().filter(|(kind, _)| *kind == "user_message_chunk");
        self.replayed = prompts.map(|(_, text)| text.clone()).collect();
        lines
    }
}

fn prompts(kept: &[Kept]) -> Vec<&String> {
    kept.iter()
        .filter_map(|kept| match kept {
            Kept::User(text) => Some(text),
            _ => None,
        })
        .collect()
}

fn without_cut(all: &[Kept], only_first: bool) -> Vec<Kept> {
    let mut turns: Vec<Vec<Kept>> = Vec::new();
    for kept in all {
        if matches!(kept, Kept::User(_)) || turns.is_empty() {
            turns.push(Vec::new());
        }
        if let Some(turn) = turns.last_mut() {
            turn.push(kept.clone());
        }
    }
    let stays = |index: usize, turn: &[Kept]| turn.contains(&Kept::End) || only_first && index > 0;
    turns
        .into_iter()
        .enumerate()
        .filter(|(index, turn)| stays(*index, turn))
        .flat_map(|(_, turn)| turn)
        .collect()
}
