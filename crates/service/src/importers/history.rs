//! A session of another program as records of ours: each prompt with what was answered is a run that is over, and what else the source
//! has is kept word for word.

use std::path::PathBuf;

use rekindle_domain::blob_id::BlobId;
use rekindle_domain::event::{
    AgentExited, AgentLaunching, AgentNotice, AgentReady, Event, InterruptReason, MessageAgent, MessageUser,
    Options, Provider, Raw, ResumePolicy, RunCompleted, RunInterrupted, RunStarted, SessionCreated,
};
use rekindle_domain::id::{BootId, HolderId, MessageId, RunId, SessionId};
use rekindle_domain::line::Draft;
use rekindle_domain::time::Timestamp;
use serde_json::Value;

use super::{ImportedSession, NotImported};

/// Characters of a first message that make a title.
const TITLE: usize = 72;

/// A session as another program left it.
#[derive(Debug, Default)]
pub(super) struct Foreign {
    pub(super) source: PathBuf,
    /// Its name there.
    pub(super) source_id: String,
    pub(super) title: Option<String>,
    pub(super) working_dir: Option<String>,
    pub(super) provider: Provider,
    pub(super) created_at: Option<Timestamp>,
    /// The agent's own session.
    pub(super) cursor: Option<String>,
    pub(super) entries: Vec<(Option<Timestamp>, Entry)>,
    /// Something was going on when it was left.
    pub(super) is_open: bool,
    /// Lines that could not be read.
    pub(super) damaged: Vec<NotImported>,
}

/// Something that happened there.
#[derive(Debug, PartialEq)]
pub(super) enum Entry {
    User(Value),
    Agent(Value),
    /// Anything else: its kind, and the whole of it.
    Other(String, Value),
}

impl Foreign {
    /// Returns the id that it has here: its own if that is one of ours, else always the same one.
    pub(super) fn id(&self, created_at: Timestamp) -> SessionId {
        let made = || SessionId::mint(millis(created_at), self.number("session"));
        self.source_id.parse().unwrap_or_else(|_| made())
    }

    /// Returns when it began, by the earliest time that is known.
    pub(super) fn began(&self) -> Option<Timestamp> {
        self.created_at.or_else(|| self.entries.iter().filter_map(|(at, _)| *at).min())
    }

    pub(super) fn title(&self) -> String {
        let text = |entry: &(Option<Timestamp>, Entry)| match &entry.1 {
            Entry::User(content) => plain_text(content),
            _ => None,
        };
        let given = self.title.clone().filter(|title| !title.trim().is_empty());
        let title = given.or_else(|| self.entries.iter().find_map(text)).unwrap_or_default();
        let line = title.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
        match line.char_indices().nth(TITLE) {
            Some((at, _)) => format!("{}…", &line[..at]),
            None => line.to_owned(),
        }
    }

    pub(super) fn messages(&self) -> usize {
        self.entries.iter().filter(|(_, entry)| !matches!(entry, Entry::Other(..))).count()
    }

    /// Returns bits for an id that are always the same for the same thing of the same session.
    fn number(&self, what: &str) -> u128 {
        let name = format!("{} {what}", self.source_id);
        let hash = BlobId::of(name.as_bytes());
        hash.as_bytes()[..16].iter().fold(0, |bits, byte| bits << 8 | u128::from(*byte))
    }
}

/// Returns the text of a message's content.
pub(super) fn plain_text(content: &Value) -> Option<String> {
    match content {
        Value::String(text) => Some(text.clone()),
        Value::Array(blocks) => {
            let texts: Vec<&str> = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
            (!texts.is_empty()).then(|| texts.join("\n"))
        }
        _ => None,
    }
}

fn millis(at: Timestamp) -> u64 {
    u64::try_from(at.as_millis()).unwrap_or(0)
}

/// Returns the records of a session, each with its time. Times never go back: what has none, or an earlier one than what came before
/// it, happened right after that.
pub(super) fn records(
    foreign: &Foreign,
    session: &ImportedSession,
    provider: Provider,
) -> Vec<(Timestamp, Draft)> {
    let mut history = History { foreign, at: session.created_at, records: Vec::new(), run: None, ids: 0 };
    history.push(SessionCreated {
        parent: None,
        title: session.title.clone().into(),
        working_dir: session.working_dir.clone().into(),
        provider,
        // Nothing of it goes on without a person's word.
        options: Options { resume: ResumePolicy::Ask, ..Options::default() },
        env_names: Vec::new(),
        key: None,
        imported_from: Some(foreign.source.display().to_string().into()),
        idempotency_key: None,
        created_at: None,
        forked_from: None,
        restoring: None,
        worktree: None,
    });
    for (at, entry) in &foreign.entries {
        history.at = history.at.max(at.unwrap_or(history.at));
        history.entry(entry);
    }
    history.finish();
    history.records
}

struct History<'a> {
    foreign: &'a Foreign,
    at: Timestamp,
    records: Vec<(Timestamp, Draft)>,
    run: Option<RunId>,
    ids: u32,
}

impl History<'_> {
    fn push(&mut self, event: impl Into<Event<'static>>) {
        self.records.push((self.at, Draft::from(event)));
    }

    /// Returns when and what the next id is made of.
    fn next_id(&mut self) -> (u64, u128) {
        self.ids += 1;
        (millis(self.at), self.foreign.number(&self.ids.to_string()))
    }

    fn entry(&mut self, entry: &Entry) {
        match entry {
            Entry::User(content) => {
                self.end_run();
                let (at, bits) = self.next_id();
                let message_id = MessageId::mint(at, bits);
                self.push(MessageUser {
                    message_id,
                    content: raw(content),
                    idempotency_key: None,
                    queued: false,
                    wait_id: None,
                });
                self.start_run(Some(message_id));
            }
            Entry::Agent(content) => {
                if self.run.is_none() {
                    self.start_run(None);
                }
                let (at, bits) = self.next_id();
                self.push(MessageAgent {
                    run_id: self.run,
                    message_id: MessageId::mint(at, bits),
                    content: raw(content),
                    partial: false,
                });
            }
            Entry::Other(kind, record) => self.push(AgentNotice {
                run_id: self.run,
                what: "imported".into(),
                text: Some(kind.clone().into()),
                raw: Some(raw(record)),
            }),
        }
    }

    fn start_run(&mut self, message_id: Option<MessageId>) {
        let (at, bits) = self.next_id();
        let run_id = RunId::mint(at, bits);
        let boot_id = BootId::mint(millis(self.at), self.foreign.number("boot"));
        self.push(RunStarted {
            run_id,
            boot_id,
            machine_boot: None,
            message_id,
            attempt: 1,
            continues: None,
            origin_run_id: None,
            task_id: None,
        });
        self.run = Some(run_id);
    }

    fn end_run(&mut self) {
        if let Some(run_id) = self.run.take() {
            self.push(RunCompleted { run_id, stop_reason: Some("imported".into()), usage: None });
        }
    }

    /// Ends the history: who answered is gone, whatever was left open was cut, and the next agent has to be told what was before.
    fn finish(&mut self) {
        let hex: String =
            self.foreign.number("holder").to_be_bytes().map(|byte| format!("{byte:02x}")).concat();
        if let Ok(holder_id) = format!("h_{hex}").parse::<HolderId>()
            && self.foreign.messages() > 0
        {
            self.push(AgentLaunching { holder_id, run_id: None, argv: Vec::new() });
            if let Some(cursor) = self.foreign.cursor.clone() {
                let cursor = Some(cursor.into());
                self.push(AgentReady { holder_id, info: None, capabilities: None, cursor });
            }
            self.push(AgentExited { holder_id, code: None, signal: None, stderr_tail: None });
        }
        match self.run.take_if(|_| self.foreign.is_open) {
            Some(run_id) => self.push(RunInterrupted {
                run_id,
                reason: InterruptReason::ProcessRestart,
                uncertain: Vec::new(),
                uncertain_turn: true,
                detail: Some("it was in progress when it was imported".into()),
            }),
            None => self.end_run(),
        }
    }
}

fn raw(value: &Value) -> Raw<'static> {
    // What was read as JSON can be written as JSON; a text can be in any case.
    Raw::from_value(value)
        .or_else(|_| Raw::from_value(&""))
        .unwrap_or_else(|_| unreachable!("a text is JSON"))
}
