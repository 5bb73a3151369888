//! A made-up session, one append after another: prompts, launches, messages, tools, waits and their answers,
//! ends. Always legal, whatever state it goes on from.

use rekindle_domain::event::{
    AgentExited, AgentLaunching, AgentReady, AgentStarted, Event, InputKind, InputQueued, InterruptReason,
    MessageAgent, MessageUser, ProcessIdentity, Provider, Raw, ResumeHow, RunAdopted, RunCompleted,
    RunInterrupted, RunResumed, RunStarted, RunWaiting, SessionCreated, TokenConsumed, TokenMinted,
    TokenRevoked, TokenScope, ToolCall, ToolUpdate, UncertainTool, UsageUpdated, WaitKind,
};
use rekindle_domain::id::{BootId, HolderId, MessageId, RunId, SessionId, TokenId, WaitId};
use rekindle_domain::line::{Draft, Source};
use rekindle_domain::session::SessionState;
use rekindle_domain::token::sha256_hex;
use rekindle_seeded::Rng;
use serde_json::json;

/// A session that goes on for ever.
pub struct Script {
    session: SessionId,
    /// When its ids were minted.
    millis: u64,
    rng: Rng,
    boot: BootId,
    created: bool,
    run: Option<Run>,
    holder: Option<Holder>,
}

struct Run {
    id: RunId,
    prompted: bool,
    waits: Vec<(WaitId, TokenId)>,
    tools: Vec<String>,
    /// Its newest boot is this one.
    own: bool,
}

struct Holder {
    id: HolderId,
    ready: bool,
    inputs: u64,
    journal: u64,
}

/// Records for one append, and whether they ought to be on disk when it is answered.
pub struct Step {
    /// The records.
    pub records: Vec<Draft>,
    /// They ought to be on disk.
    pub durable: bool,
}

impl Script {
    /// Begins a session.
    pub fn new(session: SessionId, boot: BootId, millis: u64, rng: Rng) -> Script {
        Script { session, millis, rng, boot, created: false, run: None, holder: None }
    }

    /// Goes on with a session that another life of the process left.
    pub fn from_state(state: &SessionState, boot: BootId, millis: u64, rng: Rng) -> Script {
        let run = state.open_run().map(|run| Run {
            id: run.run_id,
            prompted: run.prompted,
            waits: run.waits.iter().map(|wait| (wait.wait_id, wait.resume_token_id)).collect(),
            tools: run.tools.iter().map(|tool| tool.tool_call_id.clone()).collect(),
            own: run.boot_id == boot,
        });
        let holder = state.agent.as_ref().filter(|agent| !agent.exited).map(|agent| Holder {
            id: agent.holder_id,
            ready: agent.process.is_some(),
            inputs: agent.input_seq,
            journal: agent.journal.seq,
        });
        Script { session: state.id, millis, rng, boot, created: state.is_created(), run, holder }
    }

    /// Returns what happens next.
    pub fn step(&mut self) -> Step {
        let Some(run) = &self.run else { return self.prompt() };
        if !run.own {
            return if self.rng.chance(1, 2) { self.adopt() } else { self.interrupt() };
        }
        let Some(holder) = &self.holder else { return self.launch() };
        if !holder.ready {
            return self.ready();
        }
        if !run.prompted {
            return self.send_prompt();
        }
        if !run.waits.is_empty() {
            return self.answer();
        }
        match self.rng.below(20) {
            0..=7 => self.say(),
            8..=11 => self.begin_tool(),
            12..=15 => self.end_tool(),
            16 => self.count(),
            17 => self.wait(),
            18 => self.complete(),
            _ => {
                if self.rng.chance(1, 4) {
                    self.interrupt()
                } else {
                    self.say()
                }
            }
        }
    }

    /// Brings the session to rest: its run ended and its agent gone. None when it is.
    pub fn finish(&mut self) -> Option<Step> {
        match (&self.run, &self.holder) {
            (Some(run), _) if !run.waits.is_empty() => Some(self.answer()),
            (Some(_), _) => Some(self.complete()),
            (None, Some(_)) => {
                let records = self.exit(Some(0), None).into_iter().collect();
                Some(Step { records, durable: true })
            }
            (None, None) => None,
        }
    }

    /// Cuts the run short.
    pub fn interrupt(&mut self) -> Step {
        let exited = self.exit(None, Some(9));
        let Some(run) = self.run.take() else { return self.prompt() };
        let uncertain = run.tools.iter().map(|id| UncertainTool {
            tool_call_id: id.clone(),
            title: "Run the tests".into(),
            kind: Some("execute".into()),
            input: Some("cargo test".into()),
        });
        let cut = RunInterrupted {
            run_id: run.id,
            reason: if self.rng.chance(1, 2) {
                InterruptReason::AgentExit
            } else {
                InterruptReason::ProcessRestart
            },
            uncertain: uncertain.collect(),
            uncertain_turn: false,
            detail: None,
        };
        let revoked = run.waits.iter().map(|(wait, token)| {
            TokenRevoked {
                resume_token_id: *token,
                wait_id: Some(*wait),
                reason: "interrupted".into(),
                by: None,
            }
            .into()
        });
        let records = exited.into_iter().chain([cut.into()]).chain(revoked).collect();
        Step { records, durable: true }
    }

    /// Says something with a payload that is kept apart.
    pub fn say_with(&mut self, content: Raw<'static>) -> Step {
        let record = self.message(content);
        Step { records: vec![record], durable: false }
    }

    fn prompt(&mut self) -> Step {
        let mut records: Vec<Draft> = Vec::new();
        if !std::mem::replace(&mut self.created, true) {
            let title = TITLES[self.rng.index(TITLES.len())];
            records.push(
                SessionCreated {
                    parent: None,
                    title: title.into(),
                    working_dir: "/home/ada/project".into(),
                    provider: Provider {
                        profile: "acp".into(),
                        agent: Some("claude".into()),
                        ..Provider::default()
                    },
                    options: Default::default(),
                    env_names: vec!["PATH".into(), "HOME".into()],
                    key: None,
                    imported_from: None,
                    idempotency_key: None,
                    created_at: None,
                    forked_from: None,
                    restoring: None,
                    worktree: None,
                }
                .into(),
            );
        }
        let message_id = MessageId::mint(self.millis, self.rng.bits());
        let content = Raw::text(&self.text(60));
        let message =
            MessageUser { message_id, content, idempotency_key: None, queued: false, wait_id: None };
        let id = RunId::mint(self.millis, self.rng.bits());
        let started = RunStarted {
            run_id: id,
            boot_id: self.boot,
            machine_boot: Some("6f1c0b6e-3f5e-4a57-9f0c-2d1b8e7a4c11".into()),
            message_id: Some(message_id),
            attempt: 1,
            continues: None,
            origin_run_id: None,
            task_id: None,
        };
        self.run = Some(Run { id, prompted: false, waits: Vec::new(), tools: Vec::new(), own: true });
        records.extend([message.into(), started.into()]);
        Step { records, durable: true }
    }

    fn launch(&mut self) -> Step {
        let text = format!("h_{:032x}", self.rng.bits());
        // 32 hex digits behind the prefix are always an id.
        let id: HolderId = text.parse().unwrap_or_else(|bad| unreachable!("{bad}"));
        self.holder = Some(Holder { id, ready: false, inputs: 0, journal: 0 });
        let run_id = self.run.as_ref().map(|run| run.id);
        let argv = vec!["claude-code-acp".into()];
        Step { records: vec![AgentLaunching { holder_id: id, run_id, argv }.into()], durable: true }
    }

    fn ready(&mut self) -> Step {
        let pid = 1000 + self.rng.below(30_000) as u32;
        let cursor = format!("{:032x}", self.rng.bits());
        let Some(holder) = &mut self.holder else { return self.launch() };
        holder.ready = true;
        let started = AgentStarted {
            holder_id: holder.id,
            machine_boot: "6f1c0b6e-3f5e-4a57-9f0c-2d1b8e7a4c11".into(),
            holder: ProcessIdentity { pid, started: 4_711_000 + u64::from(pid) },
            agent: ProcessIdentity { pid: pid + 1, started: 4_711_003 + u64::from(pid) },
            argv: vec!["claude-code-acp".into()],
        };
        let ready = AgentReady {
            holder_id: holder.id,
            info: raw(&json!({"name": "claude-code", "version": "1.0.0"})),
            capabilities: raw(&json!({"loadSession": true})),
            cursor: Some(cursor.into()),
        };
        Step { records: vec![started.into(), ready.into()], durable: true }
    }

    fn send_prompt(&mut self) -> Step {
        if let Some(run) = &mut self.run {
            run.prompted = true;
        }
        let line = json!({"jsonrpc": "2.0", "method": "session/prompt", "params": {"prompt": self.text(60)}});
        let record = self.input(InputKind::Prompt, None, &line.to_string());
        Step { records: record.into_iter().collect(), durable: true }
    }

    fn say(&mut self) -> Step {
        let content = Raw::text(&self.text(300));
        self.say_with(content)
    }

    fn begin_tool(&mut self) -> Step {
        let id = format!("toolu_{:016x}", self.rng.next_u64());
        let title = TOOLS[self.rng.index(TOOLS.len())];
        let run_id = self.run.as_mut().map(|run| {
            run.tools.push(id.clone());
            run.id
        });
        let call = ToolCall {
            run_id,
            tool_call_id: id.into(),
            title: title.into(),
            tool_kind: Some("execute".into()),
            status: Some("pending".into()),
            input: None,
            files: Vec::new(),
            raw: None,
        };
        let records = self.derived([call.into()]);
        Step { records, durable: false }
    }

    fn end_tool(&mut self) -> Step {
        let ended = self.run.as_mut().and_then(|run| run.tools.pop().map(|tool| (run.id, tool)));
        let Some((run, tool)) = ended else { return self.say() };
        let update = ToolUpdate {
            run_id: Some(run),
            tool_call_id: tool.into(),
            title: None,
            status: Some(if self.rng.chance(9, 10) { "completed" } else { "failed" }.into()),
            input: None,
            files: Vec::new(),
            raw: None,
        };
        let records = self.derived([update.into()]);
        Step { records, durable: false }
    }

    fn count(&mut self) -> Step {
        let record = self.usage_record();
        let records = self.derived([record]);
        Step { records, durable: false }
    }

    fn usage_record(&mut self) -> Event<'static> {
        let input_tokens = 500 + self.rng.below(2000);
        let output_tokens = input_tokens / 7;
        UsageUpdated { input_tokens, output_tokens, cost: Some(input_tokens as f64 / 100_000.0), raw: None }
            .into()
    }

    /// Tells whether an agent is at work.
    pub fn is_prompted(&self) -> bool {
        self.run.as_ref().is_some_and(|run| run.prompted)
    }

    /// Blocks the run on someone outside.
    pub fn wait(&mut self) -> Step {
        let wait_id = WaitId::mint(self.millis, self.rng.bits());
        let token = TokenId::mint(self.millis, self.rng.bits());
        let content = Raw::text(&self.text(120));
        let message_id = MessageId::mint(self.millis, self.rng.bits());
        let secret_hash = sha256_hex(&self.rng.next_u64().to_le_bytes());
        let title = TOOLS[self.rng.index(TOOLS.len())];
        let Some(run) = &mut self.run else { return self.prompt() };
        run.waits.push((wait_id, token));
        let run_id = run.id;
        let said = MessageAgent { run_id: Some(run_id), message_id, content, partial: false };
        let waiting = RunWaiting {
            run_id,
            wait_id,
            wait_kind: WaitKind::Permission,
            resume_token_id: token,
            deadline_at: None,
            tool_call_id: None,
            request: raw(&json!({"toolCall": {"title": title}, "options": [{"optionId": "allow_once"}]})),
            by: None,
            idempotency_key: None,
        };
        let minted = TokenMinted {
            resume_token_id: token,
            wait_id,
            secret_hash: secret_hash.into(),
            scope: TokenScope { session_id: self.session, run_id, wait_id, option_id: None },
            expires_at: None,
            by: None,
        };
        let records = self.derived([said.into(), waiting.into(), minted.into()]);
        Step { records, durable: true }
    }

    fn answer(&mut self) -> Step {
        let open = self.run.as_mut().and_then(|run| run.waits.pop().map(|wait| (run.id, wait)));
        let Some((run_id, (wait_id, token))) = open else { return self.say() };
        let consumed = TokenConsumed {
            resume_token_id: token,
            wait_id,
            answer_hash: Some(sha256_hex(b"allow_once").into()),
            by: Some("ada".into()),
        };
        let answer = raw(&json!({"option_id": "allow_once"}));
        let how = ResumeHow::Answered;
        let resumed = RunResumed { run_id, wait_id, answer, by: Some("ada".into()), how, granted: None };
        let line = json!({"jsonrpc": "2.0", "id": 7, "result": {"outcome": "selected"}}).to_string();
        let input = self.input(InputKind::Answer, Some(wait_id), &line);
        Step { records: [consumed.into(), resumed.into()].into_iter().chain(input).collect(), durable: true }
    }

    fn complete(&mut self) -> Step {
        let usage = self.usage_record();
        let Some(run) = self.run.take() else { return self.prompt() };
        let completed = RunCompleted { run_id: run.id, stop_reason: Some("end_turn".into()), usage: None };
        let records = match self.holder {
            Some(_) => self.derived([usage, completed.into()]),
            None => vec![completed.into()],
        };
        Step { records, durable: true }
    }

    fn adopt(&mut self) -> Step {
        let Some(run) = &mut self.run else { return self.prompt() };
        run.own = true;
        let holder_id = self.holder.as_ref().map(|holder| holder.id);
        let adopted = RunAdopted { run_id: run.id, boot_id: self.boot, holder_id, gap: 3 };
        Step { records: vec![adopted.into()], durable: true }
    }

    fn exit(&mut self, code: Option<i32>, signal: Option<i32>) -> Option<Draft> {
        let holder = self.holder.take()?;
        Some(AgentExited { holder_id: holder.id, code, signal, stderr_tail: None }.into())
    }

    fn input(&mut self, what: InputKind, wait_id: Option<WaitId>, line: &str) -> Option<Draft> {
        let holder = self.holder.as_mut()?;
        holder.inputs += 1;
        let queued = InputQueued {
            run_id: self.run.as_ref().map(|run| run.id),
            holder_id: holder.id,
            input_seq: holder.inputs,
            what,
            wait_id,
            line: Raw::text(line),
            sha256: sha256_hex(line.as_bytes()).into(),
        };
        Some(queued.into())
    }

    fn message(&mut self, content: Raw<'static>) -> Draft {
        let message_id = MessageId::mint(self.millis, self.rng.bits());
        let run_id = self.run.as_ref().map(|run| run.id);
        let event = Event::from(MessageAgent { run_id, message_id, content, partial: false });
        match self.derived([event.clone()]).pop() {
            Some(record) => record,
            None => event.into(),
        }
    }

    /// Says of records that they come from the next record of the holder's journal.
    fn derived<const N: usize>(&mut self, events: [Event<'static>; N]) -> Vec<Draft> {
        let source = self.holder.as_mut().map(|holder| {
            holder.journal += 1;
            (holder.id, holder.journal)
        });
        let records = events.into_iter().enumerate().map(|(n, event)| {
            let source = source.map(|(holder, seq)| Source(holder, seq, n as u64, seq + 1));
            Draft { event, source, at: None }
        });
        records.collect()
    }

    /// Returns about so many bytes of sentences.
    fn text(&mut self, len: usize) -> String {
        let mut text = String::with_capacity(len + 12);
        while text.len() < len {
            if !text.is_empty() {
                text.push(' ');
            }
            text.push_str(WORDS[self.rng.index(WORDS.len())]);
        }
        text
    }
}

fn raw(value: &serde_json::Value) -> Option<Raw<'static>> {
    Raw::from_value(value).ok()
}

const TITLES: &[&str] =
    &["Fix the flaky test", "Add a retry", "Explain the build", "Upgrade the parser", "Write the changelog"];

const TOOLS: &[&str] =
    &["Run the tests", "Read src/main.rs", "Edit README.md", "Search for TODO", "git status"];

const WORDS: &[&str] = &[
    "the",
    "test",
    "fails",
    "because",
    "a",
    "clock",
    "is",
    "read",
    "twice",
    "and",
    "then",
    "compared",
    "so",
    "I",
    "moved",
    "it",
    "into",
    "one",
    "place",
    "ran",
    "everything",
    "again",
    "which",
    "passes",
    "now",
    "for",
    "every",
    "seed",
    "naïve",
    "“quoted”",
    "\n",
    "漢字",
];
