//! A stage for conversations: a journal that grows, a log, and a supervisor that may die at any point.
//!
//! The supervisor does what the real one must do with what a connection returns, and nothing more. Its log is
//! made of real lines, and after a death everything is read from them and from the journal again.

use std::sync::Arc;

use rekindle_agent::acp::Acp;
use rekindle_agent::connection::{Connection, Exited, NextSetting, Taken, Wanted};
use rekindle_agent::known::Quirks;
use rekindle_agent::profile::{Answer, Open, Outgoing, Profile};
use rekindle_agent::replay::{Spoken, compare};
use rekindle_domain::chain::{ChainHash, Link};
use rekindle_domain::event::{
    AgentExited, AgentLaunching, AgentReady, CancelReason, Event, InputKind, InputQueued, InterruptReason,
    MessageAgent, Raw, ResumeHow, RunCancelRequested, RunCompleted, RunInterrupted, RunResumed, RunStarted,
    RunWaiting, SessionRestored,
};
use rekindle_domain::id::{HolderId, RunId, SessionId, WaitId};
use rekindle_domain::line::{self, Draft, Envelope, Line};
use rekindle_holder::journal::{Body, Ctl, InputHead, Items, OutFlags, Part, Record};
use rekindle_holder::stamp::Stamp;

/// One thing that happens on the stage.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    /// A turn with an earlier process, in the agent's session `s1`.
    Past(&'static str, &'static str),
    /// The supervisor greets.
    Greet,
    /// The supervisor opens a session: new, or by `load s1`, `resume s1`.
    Open(&'static str),
    /// The supervisor wants this mode and this model, and asks for what is to be asked for next.
    Settle(&'static str, &'static str),
    /// The supervisor prompts, in a new run.
    Prompt(&'static str),
    /// The supervisor answers the oldest open request with the option of this kind.
    Answer(&'static str),
    /// The supervisor cancels the run.
    Cancel,
    /// The supervisor gives up on the run without a word of the agent's.
    GiveUp,
    /// The holder takes all inputs that are queued.
    Accept,
    /// The holder takes an input in two parts, and this line comes in between.
    AcceptAround(String),
    /// The agent says a line. `$` is the number of the newest request.
    Say(String),
    /// The agent says a line that the journal keeps in two records.
    SayInParts(String),
    /// The agent says bytes that are odd in some way.
    SayOddly(&'static [u8], OutFlags),
    /// The process starts.
    Start,
    /// The process ends.
    Exit(Option<i32>, Option<i32>),
    /// The holder is gone, and with it the process.
    Vanish,
}

/// A record of the journal.
#[derive(Debug, Clone)]
enum Entry {
    Out(Part, OutFlags, Vec<u8>),
    In(Box<InputHead>, Part, Vec<u8>),
    Ctl(Ctl),
}

/// The stage.
#[derive(Clone)]
pub(crate) struct Stage {
    profile: Arc<dyn Profile>,
    quirks: Quirks,
    holder: HolderId,
    journal: Vec<Entry>,
    dead: bool,
    log: Vec<u8>,
    last: Option<ChainHash>,
    pub(crate) drafts: Vec<Draft>,
    pub(crate) connection: Connection,
    items: Items2,
    read: usize,
    /// Inputs in the log, and how many of them the holder took.
    inputs: Vec<Outgoing>,
    accepted: usize,
    newest_request: u64,
    runs: u64,
    run: Option<RunId>,
    cancel: Option<CancelReason>,
    pub(crate) deltas: String,
    wanted: Wanted,
}

/// `Items` cannot be cloned, but only lives between whole steps.
type Items2 = Arc<std::sync::Mutex<Items>>;

impl Stage {
    pub(crate) fn new(profile: Arc<dyn Profile>, quirks: Quirks) -> Stage {
        let holder: HolderId = "h_00112233445566778899aabbccddeeff".parse().expect("an id");
        let connection = Connection::new(holder, Arc::clone(&profile), quirks);
        let mut stage = Stage {
            profile,
            quirks,
            holder,
            journal: Vec::new(),
            dead: false,
            log: Vec::new(),
            last: None,
            drafts: Vec::new(),
            connection,
            items: Items2::default(),
            read: 0,
            inputs: Vec::new(),
            accepted: 0,
            newest_request: 0,
            runs: 0,
            run: None,
            cancel: None,
            deltas: String::new(),
            wanted: Wanted::default(),
        };
        if stage.profile.prompt_in_command() {
            stage.start_run();
        }
        let launching = AgentLaunching { holder_id: holder, run_id: stage.run, argv: Vec::new() };
        stage.append(vec![launching.into()]);
        stage
    }

    pub(crate) fn acp(quirks: Quirks) -> Stage {
        Stage::new(Arc::new(Acp::new("test", "1")), quirks)
    }

    /// Plays steps, with the supervisor reading after each.
    pub(crate) fn play(&mut self, steps: &[Step]) {
        for step in steps {
            self.happen(step);
            self.read();
        }
    }

    /// The supervisor dies, and another one begins with what is on disk.
    pub(crate) fn die(&mut self) {
        self.connection = Connection::new(self.holder, Arc::clone(&self.profile), self.quirks);
        for line in self.log.split_inclusive(|byte| *byte == b'\n') {
            let line = Line::parse(line.strip_suffix(b"\n").expect("a whole line")).expect("a record");
            self.connection.note_line(&line).expect("a payload");
        }
        self.items = Items2::default();
        self.read = usize::try_from(self.connection.start()).expect("small") - 1;
    }

    /// Lets something happen without the supervisor reading of it.
    pub(crate) fn happen(&mut self, step: &Step) {
        match step {
            Step::Past(prompt, answer) => self.past(prompt, answer),
            Step::Greet => {
                let out = self.profile.greet(self.next_input()).expect("a greeting");
                self.queue(out);
            }
            Step::Open(how) => {
                let how = match how.split_once(' ') {
                    Some(("load", id)) => Open::Load(id),
                    Some((_, id)) => Open::Resume(id),
                    None => Open::New,
                };
                let out = self.profile.open(self.next_input(), how, "/repo").expect("a way to a session");
                self.queue(out);
            }
            Step::Settle(mode, model) => {
                self.wanted = Wanted { mode: Some((*mode).into()), model: Some((*model).into()) };
                if let NextSetting::Ask(setting) = self.next_setting() {
                    let cursor = self.connection.cursor().expect("a session").to_owned();
                    let out = self.profile.set(self.next_input(), &cursor, setting).expect("a setting");
                    self.queue(out);
                }
            }
            // A real supervisor queues a message while a run is open or there is no session.
            Step::Prompt(_) if self.run.is_some() || self.is_without_session() => {}
            Step::Prompt(text) => {
                self.start_run();
                let cursor = self.connection.cursor().map(str::to_owned);
                let out = self.profile.prompt(self.next_input(), cursor.as_deref(), &Raw::text(text));
                self.queue(out.expect("a prompt"));
            }
            Step::Answer(kind) => {
                let Some(ask) = self.connection.asks().next().cloned() else { return };
                let answer = |answer| self.connection.answer(ask.key, answer).expect("it is open");
                let out =
                    answer(Answer::Kind(kind)).or_else(|_| answer(Answer::Cancelled)).expect("an answer");
                let resumed = self.resumed(ask.key.seq, ResumeHow::Answered);
                let queued = self.input_queued(out, ask.wait_id);
                self.append(vec![resumed, queued]);
            }
            Step::Cancel => self.request_cancel(),
            Step::GiveUp => {
                let Some(run_id) = self.run.take() else { return };
                let cancelled = rekindle_domain::event::RunCancelled { run_id, by: Some("user".into()) };
                self.append(vec![cancelled.into()]);
            }
            Step::Accept => {
                while self.accepted < self.inputs.len() {
                    let (head, line) = self.accept_next();
                    self.journal.push(Entry::In(head, Part::Whole, line));
                }
            }
            Step::AcceptAround(line) if self.accepted == self.inputs.len() => {
                self.happen(&Step::Say(line.clone()))
            }
            Step::AcceptAround(line) => {
                let (head, bytes) = self.accept_next();
                let (first, last) = bytes.split_at(bytes.len() / 2);
                self.journal.push(Entry::In(head.clone(), Part::First, first.to_vec()));
                self.happen(&Step::Say(line.clone()));
                self.journal.push(Entry::In(head, Part::Last, last.to_vec()));
            }
            Step::Say(line) => {
                let line = line.replace('$', &self.newest_request.to_string()).into_bytes();
                self.journal.push(Entry::Out(Part::Whole, OutFlags::default(), line));
            }
            Step::SayInParts(line) => {
                let line = line.replace('$', &self.newest_request.to_string()).into_bytes();
                let (first, last) = line.split_at(line.len() / 2);
                self.journal.push(Entry::Out(Part::First, OutFlags::default(), first.to_vec()));
                self.journal.push(Entry::Out(Part::Last, OutFlags::default(), last.to_vec()));
            }
            Step::SayOddly(bytes, flags) => {
                self.journal.push(Entry::Out(Part::Whole, *flags, bytes.to_vec()));
            }
            Step::Start => self.journal.push(Entry::Ctl(Ctl::Started { pid: 1, start_ticks: 1 })),
            Step::Exit(code, signal) => {
                self.journal.push(Entry::Ctl(Ctl::Exit { code: *code, signal: *signal }));
                self.dead = true;
            }
            Step::Vanish => self.dead = true,
        }
    }

    /// Reads the journal to its end and does what has to be done.
    pub(crate) fn read(&mut self) {
        while let Some(entry) = self.journal.get(self.read).cloned() {
            self.read += 1;
            let seq = self.read as u64;
            let body = match &entry {
                Entry::Out(part, flags, bytes) => Body::Out { part: *part, flags: *flags, bytes },
                Entry::In(head, part, bytes) => Body::In { head: head.clone(), part: *part, bytes },
                Entry::Ctl(ctl) => Body::Ctl(ctl.clone()),
            };
            let items = Arc::clone(&self.items);
            let mut items = items.lock().expect("unpoisoned");
            let Some(item) = items.push(Record { seq, time: Stamp(seq), body }) else { continue };
            let taken = self.connection.take(&item, items.low());
            self.carry_out(taken);
        }
        if self.dead {
            let items = Arc::clone(&self.items);
            let half_line = items.lock().expect("unpoisoned").finish();
            if let Some(item) = half_line {
                let taken = self.connection.take(&item, None);
                self.carry_out(taken);
            }
            let taken = self.connection.finish(true);
            self.carry_out(taken);
        }
    }

    fn carry_out(&mut self, mut taken: Taken) {
        for delta in &taken.deltas {
            self.deltas.push_str(&delta.text);
        }
        for ask in std::mem::take(&mut taken.asks) {
            let seq = ask.key.seq;
            let run_id = ask.run_id.expect("a request that someone can wait for");
            taken.add(RunWaiting {
                run_id,
                wait_id: format!("wait_{seq}").parse().expect("an id"),
                wait_kind: ask.kind,
                resume_token_id: format!("rt_{seq}").parse().expect("an id"),
                deadline_at: None,
                tool_call_id: ask.tool_call_id.clone().map(Into::into),
                request: Some(ask.request),
                by: None,
                idempotency_key: None,
            });
        }
        for ask in std::mem::take(&mut taken.withdrawn) {
            let resumed = self.resumed(ask.key.seq, ResumeHow::Withdrawn);
            taken.add(resumed);
        }
        for reply in std::mem::take(&mut taken.replies) {
            let queued = self.input_queued(Outgoing { what: InputKind::Answer, line: reply.line }, None);
            taken.add(queued);
        }
        if let Some(restored) = taken.restored.take() {
            let spoken = self.spoken();
            let (verdict, counts) =
                compare(restored.method, &restored.replay, spoken.turns(), spoken.cut(), restored.goes_on);
            taken.add(SessionRestored {
                method: "load".into(),
                verdict: verdict.as_str().into(),
                counts: Raw::from_value(&counts).ok(),
            });
        }
        if let Some(ended) = taken.ended.take() {
            let cancel = self.cancel.take();
            taken.add(ended.event(cancel).expect("a known run"));
            self.run = None;
        }
        if let Some(exited) = taken.exited.take() {
            if let Exited::Ended { code, signal } = exited {
                taken.add(AgentExited { holder_id: self.holder, code, signal, stderr_tail: None });
            }
            if let Some(run_id) = self.run.take() {
                let uncertain = std::mem::take(&mut taken.uncertain);
                taken.add(RunInterrupted {
                    run_id,
                    reason: InterruptReason::AgentExit,
                    uncertain,
                    uncertain_turn: false,
                    detail: None,
                });
            }
        }
        assert!(
            taken.records.iter().all(|draft| draft.source.is_some()),
            "nothing is added to what was logged"
        );
        self.append_drafts(taken.records);
    }

    fn spoken(&self) -> Spoken {
        let mut spoken = Spoken::default();
        self.drafts.iter().for_each(|draft| spoken.note(&draft.event));
        spoken
    }

    fn start_run(&mut self) {
        self.runs += 1;
        let run_id: RunId = format!("run_{}", self.runs).parse().expect("an id");
        self.run = Some(run_id);
        let boot_id = "boot_1".parse().expect("an id");
        let started = RunStarted {
            run_id,
            boot_id,
            machine_boot: None,
            message_id: None,
            attempt: 1,
            continues: None,
            origin_run_id: None,
            task_id: None,
        };
        self.append(vec![started.into()]);
    }

    fn past(&mut self, prompt: &str, answer: &str) {
        let holder_id: HolderId = "h_99".parse().expect("an id");
        self.start_run();
        let run_id = self.run.take().expect("a run");
        let line = self.profile.prompt(9, Some("s1"), &Raw::text(prompt)).expect("a prompt").line;
        let line = Raw::text(std::str::from_utf8(&line).expect("text"));
        let message_id = format!("msg_{}", self.runs).parse().expect("an id");
        let usage = None;
        self.append(vec![
            AgentReady { holder_id, info: None, capabilities: None, cursor: Some("s1".into()) }.into(),
            InputQueued {
                run_id: Some(run_id),
                holder_id,
                input_seq: self.runs,
                what: InputKind::Prompt,
                wait_id: None,
                line,
                sha256: "".into(),
            }
            .into(),
            MessageAgent { run_id: Some(run_id), message_id, content: Raw::text(answer), partial: false }
                .into(),
            RunCompleted { run_id, stop_reason: Some("end_turn".into()), usage }.into(),
        ]);
    }

    fn is_without_session(&self) -> bool {
        self.profile.name() == "acp" && self.connection.cursor().is_none()
    }

    fn request_cancel(&mut self) {
        if self.run.is_none() {
            return;
        }
        self.cancel = Some(CancelReason::User);
        let mut events: Vec<Event<'static>> = vec![
            RunCancelRequested { run_id: self.run, by: None, why: CancelReason::User, dropped: Vec::new() }
                .into(),
        ];
        for (key, out) in self.connection.cancel() {
            let wait_id = key.and_then(|key| self.connection.asks().find(|ask| ask.key == key)?.wait_id);
            if let Some(key) = key {
                events.push(self.resumed(key.seq, ResumeHow::Cancelled));
            }
            events.push(self.input_queued(out, wait_id));
        }
        self.append(events);
    }

    fn resumed(&self, seq: u64, how: ResumeHow) -> Event<'static> {
        RunResumed {
            run_id: self.run.expect("a run"),
            wait_id: format!("wait_{seq}").parse().expect("an id"),
            answer: None,
            by: None,
            how,
            granted: (how == ResumeHow::Answered).then_some(true),
        }
        .into()
    }

    fn next_input(&self) -> u64 {
        self.inputs.len() as u64 + 1
    }

    fn queue(&mut self, out: Outgoing) {
        self.newest_request = self.next_input();
        let queued = self.input_queued(out, None);
        self.append(vec![queued]);
    }

    fn input_queued(&mut self, out: Outgoing, wait_id: Option<WaitId>) -> Event<'static> {
        let line = Raw::text(std::str::from_utf8(&out.line).expect("text"));
        let input_seq = self.next_input();
        let what = out.what;
        self.inputs.push(out);
        let holder_id = self.holder;
        InputQueued { run_id: self.run, holder_id, input_seq, what, wait_id, line, sha256: "".into() }.into()
    }

    fn accept_next(&mut self) -> (Box<InputHead>, Vec<u8>) {
        let Outgoing { what, line } = self.inputs[self.accepted].clone();
        self.accepted += 1;
        let kind = serde_json::to_value(what).expect("a word");
        let kind = kind.as_str().expect("a word").to_owned();
        (Box::new(InputHead { input: self.accepted as u64, kind, sha256: [0; 32] }), line)
    }

    fn append(&mut self, events: Vec<Event<'static>>) {
        self.append_drafts(events.into_iter().map(Draft::from).collect());
    }

    fn append_drafts(&mut self, drafts: Vec<Draft>) {
        let session: SessionId = "sess_1".parse().expect("an id");
        let count = drafts.len();
        for (index, draft) in drafts.into_iter().enumerate() {
            let seq = self.drafts.len() as u64 + 1;
            let place = Envelope { seq, ts: "2026-02-21T10:00:00.000Z", at: None, more: index + 1 < count };
            let link = Link::new(session, self.last);
            self.last = Some(line::write(&draft, place, link, &mut self.log).expect("a record"));
            self.connection.note(&draft.event, draft.source);
            self.drafts.push(draft);
        }
    }

    /// Returns the log, a record a line, for people: without times and hashes.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        for draft in &self.drafts {
            let mut fields = Vec::new();
            draft.event.write_fields(&mut fields).expect("a payload");
            let source = draft.source.map(|source| format!(" {}.{} low {}", source.1, source.2, source.3));
            text += &format!("{}{} ", draft.event.name(), source.unwrap_or_default());
            text += &format!("{}\n", String::from_utf8(fields).expect("text"));
        }
        text
    }

    /// Returns what is to be done about the settings that were wanted last.
    pub(crate) fn next_setting(&self) -> NextSetting {
        self.connection.next_setting(&self.wanted, self.run)
    }

    /// Returns what the connection knows, as far as anyone can ask it.
    pub(crate) fn knowledge(&self) -> String {
        let connection = &self.connection;
        let asks: Vec<_> = connection.asks().collect();
        format!(
            "{:?} {:?} {:?} {asks:?} {:?} {:?} {:?} {:?} {:?} {:?}",
            connection.phase(),
            connection.in_flight(),
            connection.open_run(),
            connection.open_tools(),
            connection.cursor(),
            connection.info(),
            connection.options(),
            connection.half_message(),
            self.next_setting(),
        )
    }
}
