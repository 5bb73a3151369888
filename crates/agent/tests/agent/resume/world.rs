//! A supervisor in memory: it decides by `next_step`, tells by `ConversationHistory`, judges by `compare`, and records what a connection
//! returns. It does with them what the real one does, without processes, files or a clock of its own.

use std::sync::Arc;
use std::time::Duration;

use rekindle_agent::acp::Acp;
use rekindle_agent::connection::{Connection, Exited, Phase, Taken};
use rekindle_agent::known::{Quirk, Quirks, quirks};
use rekindle_agent::profile::{Answer, Open, Outgoing, Profile};
use rekindle_agent::replay::{Replay, Spoken, Unrecorded, beyond, compare};
use rekindle_domain::event::{
    AgentExited, AgentLaunching, Event, InputKind, InputQueued, InterruptReason, MessageUser, OnUncertain,
    Options, Provider, Raw, ResumeHow, ResumePolicy, RunInterrupted, RunResumed, RunStarted, RunWaiting,
    SessionCreated, SessionRestored,
};
use rekindle_domain::id::{HolderId, MessageId, RunId};
use rekindle_domain::line::{Draft, Source};
use rekindle_domain::recovery::{AgentPresence, Circumstances, Held, Step, next_step};
use rekindle_domain::resume_context::ConversationHistory;
use rekindle_domain::session::SessionState;
use rekindle_domain::time::Timestamp;
use rekindle_holder::journal::{Body, Ctl, InputHead, Items, OutFlags, Part, Record};
use rekindle_holder::stamp::Stamp;

use super::actor::{At, Disk, Load, Process, Told};

/// How long such a session may not be loaded again.
const MINUTE: u64 = 62_000;

/// Things that happen in one case at most: far more than any needs.
const MOST_STEPS: usize = 2_000;

/// A session, its agents, and whoever looks after them.
pub(crate) struct World {
    load: Load,
    pub(crate) disk: Disk,
    pub(crate) events: Vec<Event<'static>>,
    sources: Vec<Option<Source>>,
    pub(crate) state: SessionState,
    spoken: Spoken,
    story: ConversationHistory,
    now: u64,
    ids: u64,
    agent: Option<Living>,
    abandoned: Option<String>,
    /// Where agents are killed, one after the other, and whether the supervisor dies just before.
    kills: Vec<At>,
    restarts: bool,
    /// What held the session whenever a person had to say a word.
    pub(crate) held: Vec<Held>,
    pub(crate) told: Vec<Told>,
    /// How loads went by what is really there, beside the verdicts in the log.
    pub(crate) loaded: Vec<bool>,
}

/// A living agent and what went through its holder.
struct Living {
    process: Process,
    connection: Connection,
    items: Items,
    seq: u64,
    inputs: u64,
    opening: bool,
    journal: Vec<Entry>,
}

/// A record of a journal.
enum Entry {
    Out(Vec<u8>),
    In(Box<InputHead>, Vec<u8>),
    Ctl(Ctl),
}

impl Entry {
    fn body(&self) -> Body<'_> {
        match self {
            Entry::Out(bytes) => Body::Out { part: Part::Whole, flags: OutFlags::default(), bytes },
            Entry::In(head, bytes) => Body::In { head: head.clone(), part: Part::Whole, bytes },
            Entry::Ctl(ctl) => Body::Ctl(ctl.clone()),
        }
    }
}

impl World {
    pub(crate) fn new(load: Load, resume: ResumePolicy, on_uncertain: OnUncertain) -> World {
        let state = SessionState::empty("sess_1".parse().expect("an id"));
        let mut world = World {
            load,
            disk: Disk::default(),
            events: Vec::new(),
            sources: Vec::new(),
            state,
            spoken: Spoken::default(),
            story: ConversationHistory::default(),
            now: 1_700_000_000_000,
            ids: 0,
            agent: None,
            abandoned: None,
            kills: Vec::new(),
            restarts: false,
            held: Vec::new(),
            told: Vec::new(),
            loaded: Vec::new(),
        };
        let options = Options { resume, on_uncertain, ..Options::default() };
        let provider = Provider { profile: "acp".into(), ..Provider::default() };
        world.append(vec![
            SessionCreated {
                parent: None,
                title: "t".into(),
                working_dir: "/work".into(),
                provider,
                options,
                env_names: Vec::new(),
                key: None,
                imported_from: None,
                idempotency_key: None,
                created_at: None,
                forked_from: None,
                restoring: None,
                worktree: None,
            }
            .into(),
        ]);
        world
    }

    /// Has agents killed from now on, one after the other, when they come to these moments.
    pub(crate) fn kill_at(&mut self, moments: &[At], restarts: bool) {
        self.kills = moments.iter().rev().copied().collect();
        self.restarts = restarts;
    }

    /// Gives the session a message, and looks after it until there is nothing more to do.
    pub(crate) fn message(&mut self, text: &str) {
        let message_id = self.id::<MessageId>("msg");
        let content = Raw::text(text);
        let message =
            MessageUser { message_id, content, idempotency_key: None, queued: false, wait_id: None };
        self.append(vec![message.into()]);
        self.start_run(Some(message_id));
        for _ in 0..MOST_STEPS {
            if self.agent.is_some() {
                if !self.live() {
                    return;
                }
                continue;
            }
            match next_step(&self.state, &self.circumstances()) {
                Step::Launch => self.launch(),
                Step::Continue { .. } => self.start_run(None),
                Step::Wait(most) | Step::AwaitLoad(most) => {
                    self.now += u64::try_from(most.as_millis()).expect("small") + 1
                }
                // A person looks, and says: go on.
                Step::Rest(Some(held)) => {
                    self.held.push(held);
                    self.start_run(None);
                }
                Step::Rest(None) => return,
                step => panic!("{step:?} is not for here"),
            }
        }
        panic!("it never ends: {:#?}", self.events);
    }

    fn circumstances(&self) -> Circumstances {
        let opened =
            self.state.agent.as_ref().and_then(|agent| agent.opened_at.filter(|_| agent.cursor.is_some()));
        let info = self.state.agent.as_ref().and_then(|agent| agent.info.as_ref());
        let destroys = info.is_some_and(|info| info.get().contains("gemini-cli"))
            && quirks("gemini-cli", None).has(Quirk::LoadWithinAMinuteDestroys);
        let since =
            opened.map_or(MINUTE, |opened| self.now - u64::try_from(opened.as_millis()).expect("past"));
        let load_in = if destroys { MINUTE.saturating_sub(since) } else { 0 };
        Circumstances {
            found: AgentPresence::Nobody,
            has_directory: true,
            has_environment: true,
            failed_launches: 0,
            shortage: None,
            interrupted_for: Duration::from_secs(3600),
            load_in: Duration::from_millis(load_in),
            takes_checkpoints: false,
        }
    }

    fn launch(&mut self) {
        let holder: HolderId = format!("h_{:032x}", self.ids + 1).parse().expect("an id");
        self.ids += 1;
        let run_id = self.state.open_run().map(|run| run.run_id);
        self.append(vec![AgentLaunching { holder_id: holder, run_id, argv: Vec::new() }.into()]);
        let mut connection = Connection::new(holder, Arc::new(Acp::default()), Quirks::default());
        self.events.iter().for_each(|event| connection.note(event, None));
        let process = Process::new(self.load);
        self.agent = Some(Living {
            process,
            connection,
            items: Items::default(),
            seq: 0,
            inputs: 0,
            opening: false,
            journal: Vec::new(),
        });
        self.journal(Entry::Ctl(Ctl::Started { pid: 1, start_ticks: 1 }));
    }

    /// Lets a living agent and its supervisor do one thing each; tells whether there was anything to do.
    fn live(&mut self) -> bool {
        if self.advance() {
            return true;
        }
        let Some(agent) = &mut self.agent else { return true };
        if self.kills.last() == Some(&agent.process.at) {
            self.kills.pop();
            self.now += 10_000;
            if self.restarts {
                self.restart();
            }
            self.die(Some(9));
            return true;
        }
        if let Some(lines) = agent.process.act(&mut self.disk) {
            lines.iter().for_each(|line| self.hear(line));
            return true;
        }
        let asked = agent.connection.asks().next().cloned();
        if let Some(ask) = asked {
            self.answer(&ask);
            return true;
        }
        if agent.opening {
            // It says nothing more: its time is up.
            let cursor = self.state.agent.as_ref().and_then(|agent| agent.cursor.clone());
            self.abandoned = cursor;
            self.die(None);
            return true;
        }
        false
    }

    /// Says the next thing to the agent: greet, open, prompt.
    fn advance(&mut self) -> bool {
        let Some(agent) = &self.agent else { return false };
        let profile = Acp::default();
        match agent.connection.phase() {
            Phase::Silent if agent.inputs == 0 => self.send(profile.greet(1).expect("a greeting"), None),
            Phase::Greeted if !agent.opening => {
                let can = agent.connection.capabilities();
                let cursor = self.state.agent.as_ref().and_then(|agent| agent.cursor.clone());
                let cursor = cursor.filter(|cursor| self.abandoned.as_ref() != Some(cursor));
                let how = match cursor.as_deref() {
                    Some(cursor) if can.load => Open::Load(cursor),
                    Some(cursor) if can.resume => Open::Resume(cursor),
                    _ => Open::New,
                };
                let out = profile.open(agent.inputs + 1, how, "/work").expect("a way to a session");
                if let Some(agent) = &mut self.agent {
                    agent.opening = true;
                }
                self.send(out, None);
            }
            Phase::Ready => {
                let Some(run) = self.state.open_run().filter(|run| !run.prompted).cloned() else {
                    return false;
                };
                let request = self.request();
                let (words, told) = match run.message_id {
                    Some(_) => {
                        let preface = self.story.preface(None);
                        (format!("{}{request}", preface.clone().unwrap_or_default()), preface.is_some())
                    }
                    None => {
                        let told = self.story.continuation(run.attempt, None);
                        let middle = if told.with_request { format!("{request}\n\n") } else { String::new() };
                        (format!("{}{middle}{}", told.before, told.after), true)
                    }
                };
                let told = told && self.story.memory().is_nothing();
                let number = agent.inputs + 1;
                let out =
                    profile.prompt(number, agent.connection.cursor(), &Raw::text(&words)).expect("a prompt");
                if told {
                    let (method, verdict) = ("context".into(), "reprimed".into());
                    self.append(vec![SessionRestored { method, verdict, counts: None }.into()]);
                }
                self.send(out, Some(run.run_id));
            }
            _ => return false,
        }
        true
    }

    /// Returns the newest message of a person's.
    fn request(&self) -> String {
        let message = self.events.iter().rev().find_map(|event| match event {
            Event::MessageUser(message) => serde_json::from_str::<String>(message.content.as_json()).ok(),
            _ => None,
        });
        message.expect("a message")
    }

    fn answer(&mut self, ask: &rekindle_agent::connection::Ask) {
        let Some(agent) = &self.agent else { return };
        let answer = Answer::Kind("allow_once");
        let out = agent.connection.answer(ask.key, answer).expect("it is open").expect("it fits");
        let (run_id, wait_id) = (ask.run_id.expect("a run"), ask.wait_id.expect("a wait"));
        let (how, granted) = (ResumeHow::Answered, ask.grants(answer));
        self.append(vec![RunResumed { run_id, wait_id, answer: None, by: None, how, granted }.into()]);
        self.send(out, Some(run_id));
    }

    fn send(&mut self, out: Outgoing, run_id: Option<RunId>) {
        let Some(agent) = &mut self.agent else { return };
        agent.inputs += 1;
        let (input, holder_id) = (agent.inputs, agent.connection.holder());
        let text = String::from_utf8(out.line).expect("text");
        let line = Raw::text(&text);
        let queued = InputQueued {
            run_id,
            holder_id,
            input_seq: input,
            what: out.what,
            wait_id: None,
            line,
            sha256: "".into(),
        };
        self.append(vec![queued.into()]);
        let kind = serde_json::to_value(out.what).expect("a word").as_str().expect("a word").to_owned();
        let head = Box::new(InputHead { input, kind, sha256: [0; 32] });
        self.journal(Entry::In(head, text.clone().into_bytes()));
        let Some(agent) = &mut self.agent else { return };
        let lines = agent.process.hear(text.trim_end(), &mut self.disk, self.now);
        if out.what == InputKind::Prompt {
            self.told.extend(agent.process.told.last().cloned());
        }
        lines.iter().for_each(|line| self.hear(line));
    }

    fn hear(&mut self, line: &str) {
        self.journal(Entry::Out(line.as_bytes().to_vec()));
    }

    /// The process ends, by a signal or because it was ended.
    fn die(&mut self, signal: Option<i32>) {
        self.journal(Entry::Ctl(Ctl::Exit { code: None, signal: signal.or(Some(15)) }));
        self.agent = None;
    }

    fn journal(&mut self, entry: Entry) {
        let Some(agent) = &mut self.agent else { return };
        agent.seq += 1;
        let record = Record { seq: agent.seq, time: Stamp(self.now), body: entry.body() };
        let taken = match agent.items.push(record) {
            Some(item) => agent.connection.take(&item, agent.items.low()),
            None => Taken::default(),
        };
        agent.journal.push(entry);
        self.carry_out(taken);
    }

    /// The supervisor dies, and another one begins with the log and the journal.
    fn restart(&mut self) {
        let Some(agent) = &mut self.agent else { return };
        let holder = agent.connection.holder();
        let mut connection = Connection::new(holder, Arc::new(Acp::default()), Quirks::default());
        for (event, source) in self.events.iter().zip(&self.sources) {
            connection.note(event, *source);
        }
        let mut items = Items::default();
        let from = usize::try_from(connection.start()).expect("small") - 1;
        for (index, entry) in agent.journal.iter().enumerate().skip(from) {
            let record = Record { seq: index as u64 + 1, time: Stamp(self.now), body: entry.body() };
            if let Some(item) = items.push(record) {
                let taken = connection.take(&item, items.low());
                assert!(taken.records.is_empty(), "everything was recorded: {:?}", taken.records);
            }
        }
        (agent.connection, agent.items) = (connection, items);
    }

    fn carry_out(&mut self, mut taken: Taken) {
        for ask in std::mem::take(&mut taken.asks) {
            self.ids += 1;
            taken.add(RunWaiting {
                run_id: ask.run_id.expect("a run"),
                wait_id: format!("wait_{}", self.ids).parse().expect("an id"),
                wait_kind: ask.kind,
                resume_token_id: format!("rt_{}", self.ids).parse().expect("an id"),
                deadline_at: None,
                tool_call_id: ask.tool_call_id.clone().map(Into::into),
                request: Some(ask.request),
                by: None,
                idempotency_key: None,
            });
        }
        if let Some(restored) = taken.restored.take() {
            let (turns, cut) = (self.spoken.turns(), self.spoken.cut());
            let (verdict, counts) = compare(restored.method, &restored.replay, turns, cut, restored.goes_on);
            let agent = self.agent.as_ref().expect("an agent");
            self.loaded.extend(agent.process.loaded);
            let method = if agent.process.loaded.is_some() { "load" } else { "resume" };
            let counts = Raw::from_value(&counts).ok();
            taken.add(SessionRestored { method: method.into(), verdict: verdict.as_str().into(), counts });
            self.record_work(&mut taken, &restored.replay);
        }
        if let Some(replay) = taken.unfinished_load.take() {
            self.record_work(&mut taken, &replay);
        }
        if taken.refused.take().is_some()
            && let Some(agent) = &mut self.agent
        {
            (agent.opening, self.abandoned) =
                (false, self.state.agent.as_ref().and_then(|agent| agent.cursor.clone()));
        }
        if let Some(ended) = taken.ended.take() {
            taken.add(ended.event(None).expect("a known run"));
        }
        if let Some(Exited::Ended { code, signal }) = taken.exited.take() {
            let agent = self.agent.as_ref().expect("an agent");
            let holder_id = agent.connection.holder();
            let run = self.state.open_run().map(|run| run.run_id);
            if let Some(run_id) = run.filter(|run| agent.connection.may_have_reached(*run)) {
                let (reason, uncertain) = (InterruptReason::AgentExit, std::mem::take(&mut taken.uncertain));
                taken.add(RunInterrupted { run_id, reason, uncertain, uncertain_turn: false, detail: None });
            }
            taken.add(AgentExited { holder_id, code, signal, stderr_tail: None });
        }
        self.append_drafts(taken.records);
    }

    fn record_work(&mut self, taken: &mut Taken, replay: &Replay) {
        let work = self.spoken.cut().map(|cut| beyond(replay, cut)).unwrap_or_default();
        let (Some(run), Some(agent)) = (self.state.open_run(), &mut self.agent) else { return };
        let (run_id, holder) = (run.run_id, agent.connection.holder());
        taken.uncertain.extend(work.iter().filter_map(Unrecorded::unfinished).cloned());
        let events: Vec<_> = work.into_iter().map(|work| work.event(run_id, holder)).collect();
        agent.connection.note_work(&events);
        events.into_iter().for_each(|event| taken.add(event));
    }

    fn start_run(&mut self, message_id: Option<MessageId>) {
        let run_id = self.id::<RunId>("run");
        let cut = self.state.run.as_ref().filter(|_| message_id.is_none());
        let started = RunStarted {
            run_id,
            boot_id: "boot_1".parse().expect("an id"),
            machine_boot: None,
            message_id,
            attempt: cut.map_or(1, |cut| cut.attempt + 1),
            continues: cut.map(|cut| cut.run_id),
            origin_run_id: cut.map(|cut| cut.origin_run_id),
            task_id: None,
        };
        self.append(vec![started.into()]);
    }

    fn id<T: std::str::FromStr<Err: std::fmt::Debug>>(&mut self, prefix: &str) -> T {
        self.ids += 1;
        format!("{prefix}_{}", self.ids).parse().expect("an id")
    }

    fn append(&mut self, events: Vec<Event<'static>>) {
        self.append_drafts(events.into_iter().map(Draft::from).collect());
    }

    fn append_drafts(&mut self, drafts: Vec<Draft>) {
        for Draft { event, source, .. } in drafts {
            let seq = self.events.len() as u64 + 1;
            let ts = Timestamp::from_millis(i64::try_from(self.now).expect("small"));
            // What is refused here would be refused by the log.
            self.state.apply(seq, ts, &event).expect("a record that can follow");
            self.state.note(ts, None, source);
            if let Some(agent) = &mut self.agent {
                agent.connection.note(&event, source);
            }
            self.spoken.note(&event);
            self.story.note(&event);
            self.events.push(event);
            self.sources.push(source);
        }
    }
}
