//! The fold itself: what each item of a journal, and each thing an agent says in it, does to a connection.

use std::borrow::Cow;

use rekindle_domain::event::{
    AgentNotice, Event, InputKind, ModeUpdated, PlanUpdated, Raw, RunWaiting, ToolCall, ToolUpdate,
    UncertainTool, Usage, UsageUpdated,
};
use rekindle_domain::id::RunId;
use rekindle_holder::journal::{Ctl, Item};

use super::message::{PartialMessage, size};
use super::{Ask, Connection, Delta, Exited, Loading, Reply, RequestKey, Taken};
use crate::exec::JSON_RPC;
use crate::json::{parse_raw, to_raw};
use crate::known::Quirk;
use crate::profile::Answer;
use crate::replay::{Replay, ReplayedTool};
use crate::said::{Asked, AskedTool, Content, Failure, PromptOutcome, Request, Said, Voice};

/// What an item leads to, while it is folded.
pub(super) struct FoldResult {
    pub(super) seq: u64,
    pub(super) events: Vec<Event<'static>>,
    pub(super) taken: Taken,
}

impl FoldResult {
    pub(super) fn new(seq: u64) -> FoldResult {
        FoldResult { seq, events: Vec::new(), taken: Taken::default() }
    }

    pub(super) fn push(&mut self, event: impl Into<Event<'static>>) {
        self.events.push(event.into());
    }
}

/// Returns the run that a record says something of, because the agent said it in that run's turn. A wait is no
/// such record: a request between turns is attached to whatever run is open.
pub(super) fn run_of(event: &Event<'_>) -> Option<RunId> {
    match event {
        Event::MessageAgent(message) => message.run_id,
        Event::MessageThought(message) => message.0.run_id,
        Event::ToolCall(call) => call.run_id,
        Event::ToolUpdate(update) => update.run_id,
        Event::PlanUpdated(plan) => plan.run_id,
        Event::AgentNotice(notice) => notice.run_id,
        Event::RunCompleted(completed) => Some(completed.run_id),
        Event::RunFailed(failed) => Some(failed.run_id),
        Event::RunCancelled(cancelled) => Some(cancelled.run_id),
        Event::RunInterrupted(interrupted) => Some(interrupted.run_id),
        _ => None,
    }
}

impl Connection {
    pub(super) fn fold_item(&mut self, item: &Item<'_>, out: &mut FoldResult) {
        self.partial.asked |= match item {
            Item::Line { .. } | Item::Input { .. } | Item::Done { .. } => true,
            Item::Ctl { ctl, .. } => {
                matches!(ctl, Ctl::Start { .. } | Ctl::Started { .. } | Ctl::StartFailed { .. })
            }
        };
        match item {
            Item::Line { first, flags, bytes, .. } => {
                // Bytes that are no text become marks in it: a line is not lost for a broken character.
                let line = String::from_utf8_lossy(bytes);
                let inputs = &self.facts.inputs;
                let known = |number| inputs.get(&number).filter(|input| input.since < out.seq);
                let asked = |number| known(number).map(|input| input.sent.request);
                let said = self.profile.parse_line(&line, *flags, &asked);
                for said in said {
                    self.apply_said(said, *first, &line, out);
                }
            }
            Item::Input { first, head, bytes, .. } => {
                let what = serde_json::from_value(head.kind.as_str().into()).unwrap_or(InputKind::Unknown);
                self.accept(head.input, what, *first, bytes, out);
            }
            Item::Ctl { ctl: Ctl::Started { .. }, .. } if self.profile.ready_at_start() => {
                if self.facts.ready.is_none() {
                    self.become_ready(None, Request::Other, out);
                }
            }
            Item::Ctl { ctl: Ctl::Exit { code, signal }, .. } => {
                let outcome = match code.and_then(|code| self.profile.outcome_of_exit(code)) {
                    Some(PromptOutcome::Stopped(_)) if self.facts.speaks_json_rpc => Some(wrong_profile()),
                    outcome => outcome,
                };
                let ended = Exited::Ended { code: *code, signal: *signal };
                self.end(outcome, if self.was_asked() { ended } else { Exited::NeverAsked }, out);
            }
            Item::Ctl { ctl: Ctl::StartFailed { error }, .. } => {
                self.end(None, Exited::NeverStarted { error: error.clone() }, out);
            }
            Item::Ctl { .. } | Item::Done { .. } => {}
        }
    }

    /// The journal ends without a word about the process.
    pub(super) fn fold_end(&mut self, out: &mut FoldResult) {
        if !self.facts.exited {
            self.end(None, if self.was_asked() { Exited::Unknown } else { Exited::NeverAsked }, out);
        }
    }

    /// Tells whether the agent may have run: reading begins with the first record until something is logged.
    fn was_asked(&self) -> bool {
        self.partial.asked || self.logged > 0
    }

    fn accept(&mut self, number: u64, what: InputKind, first: u64, bytes: &[u8], out: &mut FoldResult) {
        let sent = self.profile.sent(what, bytes);
        let command = sent.command.clone();
        let input = self.facts.input(number, what, sent, out.seq);
        input.heard = true;
        // The log has no words of a command that is kept apart from it.
        input.sent.command = input.sent.command.take().or(command);
        let input = input.clone();
        match input.sent.request {
            Request::Load | Request::Resume | Request::Fork => {
                // What was said before is no part of what is told again.
                self.flush(false, out);
                // An agent that has answered already does not load any more.
                if self.facts.ready.as_ref().is_none_or(|ready| out.seq < ready.at) {
                    self.partial.loading = Some(Loading { input: number, replay: Replay::default() });
                }
            }
            Request::Prompt => {
                if self.quirks.has(Quirk::ReplaysAfterLoad) && self.is_first_after_load(number) {
                    // What came before it was told again, not said.
                    self.partial.half = None;
                }
                if self.turn().is_none() {
                    // What was said between turns belongs to none.
                    self.flush(false, out);
                }
                if !input.over && !input.begun {
                    self.partial.prompt = Some((number, first));
                }
            }
            Request::Greet | Request::New | Request::Set | Request::Other => {}
        }
        // The log says which wait an answer ends. Of an answer that the log does not have, its id must do.
        if let (false, Some(wire_id)) = (input.noted, &input.sent.answers) {
            let answered = self.facts.asks.iter().find(|(_, ask)| ask.wire_id == *wire_id);
            if let Some(seq) = answered.map(|(seq, _)| *seq) {
                self.facts.asks.remove(&seq);
            }
        }
    }

    fn apply_said(&mut self, said: Said<'_>, first: u64, line: &str, out: &mut FoldResult) {
        if self.collect_replayed(&said, first) {
            return;
        }
        match said {
            Said::Chunk { voice, message, content, replaces } => {
                self.chunk(voice, message, &content, replaces, first, out);
            }
            Said::Tool { begins: true, id, title, kind, status, gist, raw } => {
                self.flush(false, out);
                let call = ToolCall {
                    run_id: self.run(),
                    tool_call_id: into_static(id),
                    title: title.map(into_static).unwrap_or_default(),
                    tool_kind: kind.map(into_static),
                    status: status.map(into_static),
                    input: gist.input.map(Cow::Owned),
                    files: gist.files.into_iter().map(Cow::Owned).collect(),
                    raw: raw.map(to_raw),
                };
                self.facts.begin_tool(&call);
                out.push(call);
            }
            Said::Tool { begins: false, id, title, status, gist, raw, .. } => {
                let update = ToolUpdate {
                    run_id: self.run(),
                    tool_call_id: into_static(id),
                    title: title.map(into_static),
                    status: status.map(into_static),
                    input: gist.input.map(Cow::Owned),
                    files: gist.files.into_iter().map(Cow::Owned).collect(),
                    raw: raw.map(to_raw),
                };
                self.facts.update_tool(&update);
                out.push(update);
            }
            Said::Plan(entries) => out.push(PlanUpdated { run_id: self.run(), entries: to_raw(entries) }),
            Said::Usage { input, output, cost, raw } => {
                self.facts.cost = cost.or(self.facts.cost);
                let (input_tokens, output_tokens) = (input.unwrap_or_default(), output.unwrap_or_default());
                let cost = self.facts.cost;
                out.push(UsageUpdated { input_tokens, output_tokens, cost, raw: Some(to_raw(raw)) });
                if let Some(ended) = &mut out.taken.ended {
                    ended.usage = Some(Usage { input_tokens, output_tokens, cost });
                }
            }
            Said::Mode(mode) => out.push(ModeUpdated { mode_id: into_static(mode) }),
            // Told once: an agent says it to every line that it does not understand.
            Said::Notice { what: JSON_RPC, .. } if self.facts.speaks_json_rpc => {}
            Said::Notice { what, text, raw, .. } => {
                self.facts.speaks_json_rpc |= what == JSON_RPC;
                self.notice(what, text, raw.map(to_raw), out);
            }
            Said::Asked(asked) => self.ask(&asked, line, out),
            Said::Unserved { method, raw, reply } => {
                self.flush(false, out);
                self.notice("unserved_request", Some(method), Some(to_raw(raw)), out);
                out.taken.replies.push(Reply { key: self.key(out), line: reply });
            }
            Said::Withdrew { wire_id, reply } => {
                // Ids come again: the newest is meant.
                let found = self.facts.asks.iter().rev().find(|(_, ask)| ask.wire_id == wire_id);
                if let Some(ask) = found.map(|(seq, _)| *seq).and_then(|seq| self.facts.asks.remove(&seq)) {
                    out.taken.replies.push(Reply { key: ask.key, line: reply });
                    out.taken.withdrawn.push(ask);
                }
            }
            Said::Greeted(_, greeting) => self.greeted(&greeting, first, out),
            Said::Opened { input, cursor, options } => self.opened(input, cursor, options.map(to_raw), out),
            Said::Refused { input, failure } => self.refused(input, failure, out),
            Said::Set { input } => self.was_set(input, out),
            Said::Answered { input, outcome, raw } => self.answered(input, outcome, to_raw(raw), out),
            Said::Idle { stop_reason } => self.idle(stop_reason, out),
            Said::Event { about, event_type, outcome, text, raw } => {
                let event = (event_type, outcome, text, to_raw(raw));
                self.event(about.as_deref(), event, out);
            }
            Said::Heartbeat { status } => self.note_heartbeat(&status, out),
            Said::Stray { raw, .. } => self.notice("unknown_reply", None, Some(to_raw(raw)), out),
        }
    }

    /// Keeps apart what is told again while a session is brought back, or after it by agents that answer first.
    fn collect_replayed(&mut self, said: &Said<'_>, first: u64) -> bool {
        // A call that permission was asked for while a session is brought back is no part of what is told again.
        let open = |id: &str| self.facts.tools.iter().any(|tool| tool.tool_call_id == id);
        let update = match said {
            Said::Tool { id, .. } if open(id) => false,
            Said::Chunk { .. } | Said::Tool { .. } => true,
            // What a session is like now may also be told between its last turn and the next.
            Said::Plan(_) | Said::Usage { .. } | Said::Mode(_) | Said::Idle { .. } => {
                self.partial.loading.is_some()
            }
            Said::Notice { update, .. } => *update && self.partial.loading.is_some(),
            _ => false,
        };
        if !update {
            return false;
        }
        let late = self.may_replay();
        let Some(loading) = &mut self.partial.loading else { return late };
        match said {
            Said::Chunk { voice, content, .. } => {
                let text = content.iter().filter_map(|content| match content {
                    Content::Text(text) => Some(text.as_ref()),
                    Content::Block(_) => None,
                });
                loading.replay.push_text(*voice, text.collect(), first);
            }
            Said::Tool { id, title, kind, status, gist, .. } => {
                let text = |text: &Option<Cow<'_, str>>| text.as_deref().map(str::to_owned);
                let call = UncertainTool {
                    tool_call_id: id.as_ref().to_owned(),
                    title: text(title).unwrap_or_default(),
                    kind: text(kind),
                    input: gist.input.clone(),
                };
                let files = gist.files.clone();
                loading.replay.push_tool(ReplayedTool { call, status: text(status), files });
            }
            _ => {}
        }
        true
    }

    /// Tells whether the agent may go on to tell again what was said, though its session is there: it answers first.
    pub fn may_replay(&self) -> bool {
        self.quirks.has(Quirk::ReplaysAfterLoad) && self.is_loaded() && self.turn().is_none()
    }

    /// Tells whether the session was loaded and nothing was asked in it since.
    fn is_loaded(&self) -> bool {
        let loaded = self.facts.ready.as_ref().is_some_and(|ready| ready.opened == Request::Load);
        let mut inputs = self.facts.inputs.values();
        loaded && !inputs.any(|input| input.begun || input.over && input.what == InputKind::Prompt)
    }

    /// Tells whether a prompt is the first in a session that was loaded.
    fn is_first_after_load(&self, number: u64) -> bool {
        let loaded = self.facts.ready.as_ref().is_some_and(|ready| ready.opened == Request::Load);
        let first = self.facts.inputs.iter().find(|(_, input)| input.sent.request == Request::Prompt);
        loaded && first.is_some_and(|(first, _)| *first == number)
    }

    fn chunk(
        &mut self,
        voice: Voice,
        message: Option<Cow<'_, str>>,
        content: &[Content<'_>],
        replaces: bool,
        first: u64,
        out: &mut FoldResult,
    ) {
        let added: usize = content.iter().map(size).sum();
        let limit = self.profile.message_limit();
        let goes_on = self.partial.half.as_ref().is_some_and(|half| {
            half.voice == voice
                && half.key.as_deref() == message.as_deref()
                && (replaces || half.len + added <= limit)
        });
        if !goes_on {
            self.flush(false, out);
        }
        // An echo of a prompt is in the log already, and nothing is no message.
        if voice == Voice::User || added == 0 {
            return;
        }
        let run_id = self.run();
        let (holder, said_at) = (self.holder, self.time);
        let half = self.partial.half.get_or_insert_with(|| {
            let key = message.map(Cow::into_owned);
            PartialMessage::new(voice, key, first, holder)
        });
        if replaces {
            half.clear();
        }
        for content in content {
            let at = half.len;
            half.push(content);
            if let Content::Text(text) = content
                && voice != Voice::Summary
            {
                let text = text.as_ref().to_owned();
                out.taken.deltas.push(Delta { run_id, message_id: half.id, voice, at, text, said_at });
            }
        }
    }

    /// Ends a message that is half said. Of items that were logged before, the log says which one did that last.
    pub(super) fn flush(&mut self, partial: bool, out: &mut FoldResult) {
        if out.seq <= self.logged {
            return;
        }
        let run = self.run();
        let half = self.partial.half.take();
        out.events.extend(half.and_then(|half| half.event(run, partial)));
    }

    pub(super) fn notice(
        &self,
        what: &'static str,
        text: Option<Cow<'_, str>>,
        raw: Option<Raw<'static>>,
        out: &mut FoldResult,
    ) {
        out.push(AgentNotice { run_id: self.run(), what: what.into(), text: text.map(into_static), raw });
    }

    fn key(&self, out: &FoldResult) -> RequestKey {
        RequestKey { holder: self.holder, seq: out.seq }
    }

    fn ask(&mut self, asked: &Asked<'_>, line: &str, out: &mut FoldResult) {
        self.flush(false, out);
        let Some(request) = parse_raw(line) else { return };
        // Between prompt and turn, and while a session is brought back, the open run waits. Without one nobody
        // does, and the agent must not.
        let run_id = self.run().or(self.facts.open);
        if run_id.is_none() {
            let reply = self.profile.answer(&request, Answer::Cancelled);
            self.notice("request_without_run", Some(asked.method.as_ref().into()), Some(request), out);
            let key = self.key(out);
            out.taken.replies.extend(reply.ok().map(|reply| Reply { key, line: reply.line }));
            return;
        }
        if let Some(tool) = &asked.tool {
            // Of a request between turns it is not known which run it belongs to.
            let loading = self.facts.open.filter(|_| self.partial.loading.is_some());
            self.announce(self.run().or(loading), tool, out);
        }
        let ask = Ask {
            key: self.key(out),
            run_id,
            wait_id: None,
            kind: asked.kind,
            tool_call_id: asked.tool.as_ref().map(|tool| tool.call.tool_call_id.clone()),
            wire_id: asked.wire_id.as_ref().to_owned(),
            request,
            options: asked.options.clone(),
        };
        self.facts.asks.insert(out.seq, ask.clone());
        out.taken.asks.push(ask);
    }

    /// Records a call that permission is asked for, where nothing was said of it before, or not what it is about.
    fn announce(&mut self, run_id: Option<RunId>, tool: &AskedTool, out: &mut FoldResult) {
        let AskedTool { call: asked, files } = tool;
        let known = self.facts.tools.iter().find(|known| known.tool_call_id == asked.tool_call_id);
        let (input, files) =
            (asked.input.clone().map(Cow::Owned), files.iter().cloned().map(Cow::Owned).collect());
        let tool_call_id = Cow::Owned(asked.tool_call_id.clone());
        match known {
            None => {
                let call = ToolCall {
                    run_id,
                    tool_call_id,
                    title: asked.title.clone().into(),
                    tool_kind: asked.kind.clone().map(Cow::Owned),
                    status: Some("pending".into()),
                    input,
                    files,
                    raw: None,
                };
                if let Some(run) = run_id.filter(|_| self.partial.loading.is_some()) {
                    self.facts.begin(run);
                }
                self.facts.begin_tool(&call);
                out.push(call);
            }
            Some(known) if known.input.is_none() && input.is_some() => {
                let update =
                    ToolUpdate { run_id, tool_call_id, title: None, status: None, input, files, raw: None };
                self.facts.update_tool(&update);
                out.push(update);
            }
            Some(_) => {}
        }
    }

    /// A wait is in the log: it names a request that was taken in, or one that only the log still knows.
    pub(super) fn note_wait(&mut self, waiting: &RunWaiting<'_>, seq: u64) {
        if let Some(ask) = self.facts.asks.get_mut(&seq) {
            (ask.wait_id, ask.run_id) = (Some(waiting.wait_id), Some(waiting.run_id));
            return;
        }
        let Some(request) = waiting.request.clone().filter(|_| seq > self.taken) else { return };
        let Some(asked) = self.profile.asked(request.as_json()) else { return };
        let ask = Ask {
            key: RequestKey { holder: self.holder, seq },
            run_id: Some(waiting.run_id),
            wait_id: Some(waiting.wait_id),
            kind: waiting.wait_kind,
            tool_call_id: waiting.tool_call_id.as_deref().map(Into::into),
            wire_id: asked.wire_id.into_owned(),
            options: asked.options,
            request: request.clone().into_owned(),
        };
        self.facts.asks.insert(seq, ask);
    }
}

/// Ends the run of a command that is an agent, and was not spoken with as one.
fn wrong_profile() -> PromptOutcome {
    let message = "the command answers in JSON-RPC, as agents of the Agent Client Protocol do, and ended with exit code 0 \
                   without reading its prompt: run it with --profile acp";
    PromptOutcome::Failed(Failure { code: 0, message: message.into() })
}

fn into_static(text: Cow<'_, str>) -> Cow<'static, str> {
    Cow::Owned(text.into_owned())
}
