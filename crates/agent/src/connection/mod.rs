//! The state of one agent connection, folded from its journal and its session's log.
//!
//! It outlives processes: built from the whole journal, or from the log and the journal from the newest `low` on,
//! it is the same, and so are the records it derives from what comes next. For that, everything it knows is
//! either in the log (`Facts`) or derived from journal records at or behind `low` (`Partial`).

mod facts;
mod fold;
mod heartbeats;
mod message;
mod settings;
mod setup;
mod taken;
mod turn;
mod view;

pub use crate::message_id::message_id;
pub use heartbeats::heartbeats_in;
pub use settings::{NextSetting, Wanted};
pub use taken::{Ask, Delta, Ended, Exited, Heartbeat, Refused, Reply, RequestKey, Restored, Taken};

use std::sync::Arc;

use rekindle_domain::event::{AgentNotice, Event, InputKind, Kind, Raw};
use rekindle_domain::id::{HolderId, RunId};
use rekindle_domain::line::{Line, Source};
use rekindle_domain::time::Timestamp;
use rekindle_holder::journal::Item;

use crate::acp::SessionOptions;
use crate::json::Object;
use crate::known::{Quirk, Quirks, by_name};
use crate::profile::Profile;
use crate::replay::Replay;
use facts::{Facts, OpenTurn};
use message::PartialMessage;
use taken::JournalPosition;

/// Where a connection stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// The agent has not answered a greeting.
    Silent,
    /// It has, and has no session.
    Greeted,
    /// A session is being made or brought back.
    Opening,
    /// It takes prompts.
    Ready,
    /// It works on one.
    InTurn,
    /// It is gone.
    Exited,
}

/// One agent connection.
#[derive(Debug, Clone)]
pub struct Connection {
    holder: HolderId,
    profile: Arc<dyn Profile>,
    quirks: Quirks,
    facts: Facts,
    partial: Partial,
    /// The newest journal record taken in.
    taken: u64,
    /// The newest time of the journal, as far as it was taken in.
    time: Option<Timestamp>,
    /// The newest journal record whose derived records are in the log.
    logged: u64,
    /// Where reading starts.
    low: u64,
    /// The newest journal record, of those, that ended a message.
    flushed: u64,
}

/// What is known only from journal records whose effect is not wholly logged.
#[derive(Debug, Clone, Default)]
struct Partial {
    half: Option<PartialMessage>,
    greeting: Option<Greeted>,
    loading: Option<Loading>,
    /// The agent was to be started.
    asked: bool,
    /// A prompt that was accepted and of whose turn no record says anything yet: number, first record.
    prompt: Option<(u64, u64)>,
}

#[derive(Debug, Clone)]
struct Greeted {
    first: u64,
    version: u64,
    info: Option<Raw<'static>>,
    capabilities: Option<Raw<'static>>,
    auth_methods: Option<Raw<'static>>,
}

#[derive(Debug, Clone)]
struct Loading {
    input: u64,
    replay: Replay,
}

impl Connection {
    /// Takes in work that was told beyond a replay, which the caller records: whoever reads the log later finds it there.
    pub fn note_work(&mut self, events: &[Event<'static>]) {
        for event in events {
            if let Some(run) = fold::run_of(event) {
                self.facts.begin(run);
            }
            self.facts.note_derived(event);
        }
    }

    /// Returns the connection to an agent that has said nothing yet; `quirks` are those that it is supposed to have.
    pub fn new(holder: HolderId, profile: Arc<dyn Profile>, quirks: Quirks) -> Connection {
        Connection {
            holder,
            profile,
            quirks,
            facts: Facts::default(),
            partial: Partial::default(),
            taken: 0,
            time: None,
            logged: 0,
            low: 1,
            flushed: 0,
        }
    }

    /// The agent has introduced itself. What is known by its own name and version is surer than what was supposed.
    fn set_quirks(&mut self, info: Option<&Raw<'_>>) {
        let info = info.and_then(|info| Object::parse(info.as_json())).unwrap_or_default();
        if let Some(agent) = info.text("name").and_then(|name| by_name(&name)) {
            self.quirks = agent.quirks(info.text("version").as_deref());
        }
    }

    /// Takes in a record of the log: every one since the holder's `agent.launching`, in order, be it read after
    /// a crash or just appended; of what comes before it, only what an earlier agent offered counts. If an append fails, the connection is ahead of the log and must be built anew.
    pub fn note(&mut self, event: &Event<'_>, source: Option<Source>) {
        let own = source.filter(|source| source.0 == self.holder);
        if let (Some(source), Event::RunWaiting(waiting)) = (own, event) {
            self.note_wait(waiting, source.1);
        }
        if let Some(Source(_, seq, _, low)) = own {
            if seq <= self.taken {
                // Taking in the item did the rest; what was added to its list by others did not pass here.
                return self.note_decision(event);
            }
            self.logged = self.logged.max(seq);
            self.low = low;
            if let Some(run) = fold::run_of(event) {
                self.facts.begin(run);
            }
            let message = matches!(event, Event::MessageAgent(_) | Event::MessageThought(_))
                || matches!(event, Event::AgentNotice(notice) if notice.what == message::SUMMARY);
            if message {
                self.flushed = seq;
            }
            self.facts.note_derived(event);
        } else {
            self.note_earlier(event);
        }
        self.note_fact(event, own.map_or(0, |source| source.1));
        self.note_decision(event);
    }

    /// Tells whether a line of the log says what an agent offers: it may also count for one that comes later.
    pub fn is_offer(line: &Line<'_>) -> bool {
        let offers =
            |event: Event<'_>| matches!(event, Event::AgentNotice(notice) if notice.what == facts::OPTIONS);
        Kind::from_name(line.kind) == Some(Kind::AgentNotice) && line.event().is_ok_and(offers)
    }

    /// Takes in what an agent before this one said.
    fn note_earlier(&mut self, event: &Event<'_>) {
        if let Event::AgentNotice(AgentNotice { what, raw: Some(raw), .. }) = event
            && what == facts::OPTIONS
        {
            self.facts.earlier_options = SessionOptions::parse(raw.as_json());
        }
    }

    /// Takes in what a supervisor decided.
    fn note_decision(&mut self, event: &Event<'_>) {
        match event {
            Event::InputQueued(queued) if queued.holder_id == self.holder => {
                self.facts.queue(self.profile.as_ref(), queued, self.taken.max(self.logged));
            }
            Event::RunResumed(resumed) => {
                self.facts.end_wait(resumed.wait_id, resumed.granted);
            }
            Event::RunCompleted(completed) => self.facts.end_run(completed.run_id),
            Event::RunFailed(failed) => self.facts.end_run(failed.run_id),
            Event::RunCancelled(cancelled) => self.facts.end_run(cancelled.run_id),
            Event::RunInterrupted(interrupted) => self.facts.end_run(interrupted.run_id),
            _ => {}
        }
    }

    /// Takes in what became of the agent.
    fn note_fact(&mut self, event: &Event<'_>, seq: u64) {
        match event {
            Event::AgentLaunching(launching) if launching.holder_id == self.holder => {
                let turn = launching.run_id.map(|run| OpenTurn { input: None, run: Some(run) });
                self.facts.turn = turn.filter(|_| self.profile.prompt_in_command());
                self.facts.open = launching.run_id.or(self.facts.open);
                self.facts.launched_for = launching.run_id;
            }
            Event::RunStarted(started) => self.facts.open = Some(started.run_id),
            Event::AgentReady(ready) if ready.holder_id == self.holder => {
                self.set_quirks(ready.info.as_ref());
                self.facts.set_ready(ready, seq);
            }
            Event::AgentExited(exited) if exited.holder_id == self.holder => {
                self.facts.exited = true;
                self.facts.turn = None;
                self.facts.tools.clear();
            }
            // What another agent's session cost is none of this one's.
            Event::UsageUpdated(usage) if seq > 0 => self.facts.cost = usage.cost.or(self.facts.cost),
            _ => {}
        }
    }

    /// Takes in a line of the log; kinds that say nothing of a connection are not even parsed.
    pub fn note_line(&mut self, line: &Line<'_>) -> Result<(), serde_json::Error> {
        let needed = match Kind::from_name(line.kind) {
            Some(
                Kind::AgentLaunching
                | Kind::RunStarted
                | Kind::AgentReady
                | Kind::AgentExited
                | Kind::InputQueued
                | Kind::RunWaiting
                | Kind::RunResumed
                | Kind::RunCompleted
                | Kind::RunFailed
                | Kind::RunCancelled
                | Kind::RunInterrupted
                | Kind::AgentNotice,
            ) => true,
            _ => line.source.is_some_and(|source| source.0 == self.holder),
        };
        if needed {
            self.note(&line.event()?, line.source);
        }
        if line.source.is_some_and(|source| source.0 == self.holder) {
            self.time = Some(line.happened_at());
        }
        Ok(())
    }

    /// Returns the journal record from which reading goes on after the log was noted.
    pub fn start(&self) -> u64 {
        self.low
    }

    /// Takes in the next item of the journal. `unfinished` is the oldest record that is part of a line or an
    /// input not complete yet, as [`rekindle_holder::journal::Items::low`] tells it after this item.
    pub fn take(&mut self, item: &Item<'_>, unfinished: Option<u64>) -> Taken {
        let seq = item.seq();
        if seq <= self.taken {
            return Taken::default();
        }
        let at = item.time().map(|time| Timestamp::from_millis(i64::try_from(time.0).unwrap_or(i64::MAX)));
        self.time = at.or(self.time);
        self.fold_at(seq, at, unfinished, |connection, out| connection.fold_item(item, out))
    }

    /// Tells whether a run's prompt may have reached the agent: the journal has it, or the agent needs none to begin.
    /// What is not read again after a restart was logged, and so has begun. Some agents are at work as soon as they load.
    pub fn may_have_reached(&self, run: RunId) -> bool {
        let mut prompts = self.facts.inputs.values().filter(|input| input.what == InputKind::Prompt);
        let loaded = self.partial.loading.is_some()
            || self.facts.died_loading
            || self.facts.ready.as_ref().is_some_and(|ready| ready.opened.brings_back());
        let worked = loaded && self.quirks.has(Quirk::LoadContinuesTurn);
        self.profile.process_is_turn()
            || worked && self.facts.launched_for == Some(run)
            || self.facts.worked_for == Some(run)
            || prompts.any(|input| input.run == Some(run) && (input.heard || input.begun || input.over))
    }

    /// Ends a dead journal: what was half said is recorded as such. Nothing may be taken in afterwards.
    ///
    /// Such a journal does not say when its holder ended. If nobody was there, the newest time in it is what is known:
    /// the last sign of life. Whoever was there noticed it at once, and `unattended` is false.
    pub fn finish(&mut self, unattended: bool) -> Taken {
        // No record will ever have this number, so that those derived here are told apart.
        let seq = self.taken.max(self.logged) + 1;
        let at = self.time.filter(|_| unattended);
        self.fold_at(seq, at, None, |connection, out| connection.fold_end(out))
    }

    fn fold_at(
        &mut self,
        seq: u64,
        at: Option<Timestamp>,
        unfinished: Option<u64>,
        fold: impl FnOnce(&mut Connection, &mut fold::FoldResult),
    ) -> Taken {
        self.taken = seq;
        let mut out = fold::FoldResult::new(seq);
        if seq <= self.logged {
            // The log has what this item led to, and all facts. Only what is partial is gathered again; of a
            // message that this item ended, there may be the end without the beginning.
            if seq == self.flushed {
                self.partial.half = None;
            }
            let facts = self.facts.clone();
            fold(self, &mut out);
            let read = std::mem::replace(&mut self.facts, facts);
            // What the journal has and no record says: a record may name no run, and that which would has not come yet.
            for (number, _) in read.inputs.iter().filter(|(_, input)| input.heard) {
                if let Some(input) = self.facts.inputs.get_mut(number) {
                    input.heard = true;
                }
            }
            return Taken { deltas: out.taken.deltas, ..Taken::default() };
        }
        fold(self, &mut out);
        if self.facts.ready.is_some() {
            self.partial.greeting = None;
        }
        self.count_heartbeats(&mut out);
        let fold::FoldResult { mut taken, events, .. } = out;
        self.begin_turn(&taken, &events);
        let low = self.low_after(seq, unfinished);
        taken.place = Some(JournalPosition { holder: self.holder, seq, low, at });
        events.into_iter().for_each(|event| taken.add(event));
        taken
    }

    /// A turn counts as begun in the log with the first record that names its run.
    fn begin_turn(&mut self, taken: &Taken, events: &[Event<'static>]) {
        let Some((input, _)) = self.partial.prompt else { return };
        let Some(input) = self.facts.inputs.get(&input) else { return };
        let (over, run) = (input.over, input.run);
        let named = |of: Option<RunId>| of.is_some() && of == run;
        let says = events.iter().any(|event| named(fold::run_of(event)))
            || taken.ended.as_ref().is_some_and(|ended| named(ended.run_id));
        if let Some(run) = run.filter(|_| says) {
            self.facts.begin(run);
        }
        if over || says {
            self.partial.prompt = None;
        }
    }

    /// Returns the oldest journal record whose effect is not wholly logged once this item's is.
    fn low_after(&self, seq: u64, unfinished: Option<u64>) -> u64 {
        let half = self.partial.half.as_ref().map(|half| half.first);
        let greeting = self.partial.greeting.as_ref().map(|greeting| greeting.first);
        let greeting = greeting.filter(|_| self.facts.ready.is_none());
        let prompt = self.partial.prompt.map(|(_, first)| first);
        [half, greeting, prompt, unfinished].into_iter().flatten().min().unwrap_or(seq + 1)
    }

    /// Returns the turn that is going on.
    fn turn(&self) -> Option<OpenTurn> {
        let prompt = self.partial.prompt.and_then(|(number, _)| {
            let input = self.facts.inputs.get(&number).filter(|input| !input.over)?;
            Some(OpenTurn { input: Some(number), run: input.run })
        });
        prompt.or(self.facts.turn)
    }

    fn run(&self) -> Option<RunId> {
        self.turn().and_then(|turn| turn.run)
    }
}
