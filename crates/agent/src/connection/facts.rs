//! What a log says of a connection: everything that is known without reading the journal again.
//!
//! Records may be noted while they are appended or when a log is read after a crash; the facts are the same.

use std::collections::BTreeMap;

use rekindle_domain::event::{
    AgentNotice, AgentReady, Event, InputKind, InputQueued, Raw, ToolCall, ToolUpdate, UncertainTool,
};
use rekindle_domain::id::{RunId, WaitId};

use super::heartbeats::HeartbeatCount;
use super::taken::Ask;
use crate::acp::SessionOptions;
use crate::exec::JSON_RPC;
use crate::json::{Object, parse_raw};
use crate::ndjson::HEARTBEATS;
use crate::profile::{Profile, Sent};
use crate::said::{Request, is_over};

/// Most tool calls that are kept as open; an agent that begins more never ended the others.
const MAX_OPEN_TOOLS: usize = 256;

/// Names of notices that are read again.
pub(super) const OPTIONS: &str = "session_options";
pub(super) const ACCEPTED: &str = "prompt_accepted";
pub(super) const REFUSED: &str = "request_refused";
pub(super) const SET: &str = "setting_accepted";

#[derive(Debug, Clone, Default)]
pub(super) struct Facts {
    /// Inputs by number.
    pub(super) inputs: BTreeMap<u64, SentInput>,
    pub(super) ready: Option<Ready>,
    /// The turn that is going on, if a record of it is logged.
    pub(super) turn: Option<OpenTurn>,
    /// The run that is open in the log, whether or not its prompt has reached the agent.
    pub(super) open: Option<RunId>,
    /// The run that the agent was launched for, while it is open.
    pub(super) launched_for: Option<RunId>,
    /// Requests that nobody has answered, by their journal record.
    pub(super) asks: BTreeMap<u64, Ask>,
    pub(super) tools: Vec<UncertainTool>,
    pub(super) options: Option<SessionOptions>,
    /// What an agent before this one offered: some do not say it again when they bring a session back.
    pub(super) earlier_options: Option<SessionOptions>,
    /// Heartbeats that came, and those of them that the log has.
    pub(super) heartbeats: HeartbeatCount,
    /// What its session has cost, as the agent told last.
    pub(super) cost: Option<f64>,
    pub(super) exited: bool,
    /// It is a command that answers as agents do: it was run as something that it is not.
    pub(super) speaks_json_rpc: bool,
    /// It was gone before it had answered to a load.
    pub(super) died_loading: bool,
    /// The run that it worked for without having been prompted: some agents do inside a load.
    pub(super) worked_for: Option<RunId>,
}

/// An input of ours.
#[derive(Debug, Clone)]
pub(super) struct SentInput {
    pub(super) sent: Sent,
    pub(super) what: InputKind,
    /// The newest journal record from before it was thought of: what came until then is no answer to it.
    pub(super) since: u64,
    pub(super) run: Option<RunId>,
    /// The log has it: then the log also says what it answers.
    pub(super) noted: bool,
    /// Its answer came, or its run ended without one.
    pub(super) over: bool,
    /// Why the agent refused it.
    pub(super) refused: Option<String>,
    /// The agent took the prompt and answers later.
    pub(super) accepted: bool,
    /// A record derived from the journal says that its turn began.
    pub(super) begun: bool,
    /// The journal has it.
    pub(super) heard: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OpenTurn {
    /// The prompt's input; none if the prompt was in the command.
    pub(super) input: Option<u64>,
    pub(super) run: Option<RunId>,
}

#[derive(Debug, Clone)]
pub(super) struct Ready {
    /// The journal record that made it so.
    pub(super) at: u64,
    pub(super) info: Option<Raw<'static>>,
    pub(super) capabilities: Option<Raw<'static>>,
    pub(super) cursor: Option<String>,
    pub(super) version: u64,
    /// How the session came to be.
    pub(super) opened: Request,
}

impl Facts {
    pub(super) fn queue(&mut self, profile: &dyn Profile, queued: &InputQueued<'_>, since: u64) {
        // A line that is kept as a blob is a prompt or an answer: what it is for says enough.
        let line = serde_json::from_str::<String>(queued.line.as_json()).unwrap_or_default();
        let sent = profile.sent(queued.what, line.as_bytes());
        // A request that became no wait is over with its answer.
        let answered = sent.answers.as_ref().filter(|_| queued.wait_id.is_none());
        let ask = self.asks.iter().find(|(_, ask)| ask.wait_id.is_none() && answered == Some(&ask.wire_id));
        if let Some(seq) = ask.map(|(seq, _)| *seq) {
            self.asks.remove(&seq);
        }
        let input = self.input(queued.input_seq, queued.what, sent, since);
        (input.run, input.noted) = (queued.run_id, true);
    }

    /// Returns an input, making it known if it was not.
    pub(super) fn input(&mut self, number: u64, what: InputKind, sent: Sent, since: u64) -> &mut SentInput {
        self.inputs.entry(number).or_insert_with(|| SentInput {
            sent,
            what,
            since,
            run: None,
            noted: false,
            over: false,
            refused: None,
            accepted: false,
            begun: false,
            heard: false,
        })
    }

    /// Returns the newest request for a session that was not refused.
    pub(super) fn opening(&self) -> Option<(u64, &SentInput)> {
        let mut newest = self.inputs.iter().rev();
        newest
            .find(|(_, input)| input.sent.request.opens() && !input.over)
            .map(|(number, input)| (*number, input))
    }

    /// A record derived from the journal names a run: its turn has begun.
    pub(super) fn begin(&mut self, run: RunId) {
        let input = self
            .inputs
            .iter_mut()
            .rev()
            .find(|(_, input)| input.run == Some(run) && input.sent.request == Request::Prompt);
        if let Some((number, input)) = input {
            input.begun = true;
            if !input.over {
                self.turn = Some(OpenTurn { input: Some(*number), run: Some(run) });
            }
        } else {
            self.worked_for = Some(run);
        }
    }

    /// A run ended, by the agent's word or ours.
    pub(super) fn end_run(&mut self, run: RunId) {
        for input in self.inputs.values_mut().filter(|input| input.run == Some(run)) {
            input.over |= input.what == InputKind::Prompt;
        }
        if self.turn.is_some_and(|turn| turn.run == Some(run)) {
            self.turn = None;
            self.tools.clear();
        }
        self.open = self.open.filter(|open| *open != run);
        self.launched_for = self.launched_for.filter(|open| *open != run);
        self.asks.retain(|_, ask| ask.run_id != Some(run));
    }

    pub(super) fn set_ready(&mut self, ready: &AgentReady<'_>, at: u64) {
        let own = |raw: &Option<Raw<'_>>| raw.clone().map(Raw::into_owned);
        let capabilities = own(&ready.capabilities);
        let version = capabilities.as_ref().map_or(1, version_in);
        let opened = self.opening().map_or(Request::Other, |(_, input)| input.sent.request);
        let cursor = ready.cursor.as_ref().map(|cursor| cursor.as_ref().to_owned());
        self.ready = Some(Ready { at, info: own(&ready.info), capabilities, cursor, version, opened });
    }

    /// A call was announced. Outside a turn there is none that its end could be missing from.
    pub(super) fn begin_tool(&mut self, call: &ToolCall<'_>) {
        let before = self.tools.iter().position(|tool| tool.tool_call_id == call.tool_call_id);
        let before = before.map(|at| self.tools.remove(at));
        let over = call.status.as_deref().is_some_and(is_over);
        if call.run_id.is_some() && !over && self.tools.len() < MAX_OPEN_TOOLS {
            let input = call.input.as_deref().map(Into::into);
            self.tools.push(UncertainTool {
                tool_call_id: call.tool_call_id.as_ref().into(),
                title: call.title.as_ref().into(),
                kind: call.tool_kind.as_deref().map(Into::into),
                // Some agents say what they are about to do only when they ask for permission.
                input: input.or_else(|| before.and_then(|before| before.input)),
            });
        }
    }

    pub(super) fn update_tool(&mut self, update: &ToolUpdate<'_>) {
        if update.status.as_deref().is_some_and(is_over) {
            self.tools.retain(|tool| tool.tool_call_id != update.tool_call_id);
            return;
        }
        let known = self.tools.iter_mut().find(|tool| tool.tool_call_id == update.tool_call_id);
        if let Some(tool) = known {
            if let Some(title) = &update.title {
                tool.title = title.as_ref().into();
            }
            if let Some(input) = &update.input {
                tool.input = Some(input.as_ref().into());
            }
        } else {
            // Some agents begin a call with its first update.
            self.begin_tool(&ToolCall {
                run_id: update.run_id,
                tool_call_id: update.tool_call_id.as_ref().into(),
                title: update.title.as_deref().unwrap_or_default().into(),
                tool_kind: None,
                status: update.status.as_deref().map(Into::into),
                input: update.input.as_deref().map(Into::into),
                files: Vec::new(),
                raw: None,
            });
        }
    }

    /// A wait ended. What was refused does not begin, and some agents say nothing more of it; anything else counts as begun.
    pub(super) fn end_wait(&mut self, wait: WaitId, granted: Option<bool>) {
        let asked = self.asks.values().find(|ask| ask.wait_id == Some(wait));
        let tool = asked.and_then(|ask| ask.tool_call_id.clone()).filter(|_| granted == Some(false));
        if let Some(tool) = tool {
            self.tools.retain(|open| open.tool_call_id != tool);
        }
        self.asks.retain(|_, ask| ask.wait_id != Some(wait));
    }

    /// Returns the calls that may have had an effect: announced, not ended, and not waiting for permission.
    pub(super) fn begun_tools(&self) -> Vec<UncertainTool> {
        let waits = |id: &str| self.asks.values().any(|ask| ask.tool_call_id.as_deref() == Some(id));
        self.tools.iter().filter(|tool| !waits(&tool.tool_call_id)).cloned().collect()
    }

    /// Returns the request of ours that a notice says to be answered.
    fn answered_by(&mut self, notice: &AgentNotice<'_>) -> Option<&mut SentInput> {
        let number = Object::parse(notice.raw.as_ref()?.as_json())?.number("input")?;
        self.inputs.get_mut(&number)
    }

    /// Takes in a record that was derived from the journal, beyond what it says of runs.
    pub(super) fn note_derived(&mut self, event: &Event<'_>) {
        match event {
            Event::ToolCall(call) => self.begin_tool(call),
            Event::ToolUpdate(update) => self.update_tool(update),
            Event::AgentNotice(notice) => match notice.what.as_ref() {
                OPTIONS => {
                    self.options = notice.raw.as_ref().and_then(|raw| SessionOptions::parse(raw.as_json()));
                }
                ACCEPTED => {
                    let prompts = self.inputs.values_mut().filter(|input| input.what == InputKind::Prompt);
                    for input in prompts.filter(|input| input.run.is_some() && input.run == notice.run_id) {
                        input.accepted = true;
                    }
                }
                REFUSED => {
                    if let Some(input) = self.answered_by(notice) {
                        input.over = true;
                        input.refused = Some(notice.text.as_deref().unwrap_or_default().to_owned());
                    }
                }
                JSON_RPC => self.speaks_json_rpc = true,
                HEARTBEATS => self.heartbeats.note(notice),
                SET => {
                    if let Some(input) = self.answered_by(notice) {
                        input.over = true;
                    }
                }
                _ => {}
            },
            _ => {}
        }
    }
}

/// Tells the protocol's version from what a log kept of capabilities: the second is written there.
fn version_in(capabilities: &Raw<'_>) -> u64 {
    Object::parse(capabilities.as_json()).and_then(|object| object.number("protocolVersion")).unwrap_or(1)
}

/// Writes a later version into capabilities, so that the log says which rules its turns follow.
pub(super) fn capabilities_with(version: u64, json: Option<&str>) -> Option<Raw<'static>> {
    if version == 1 {
        return json.and_then(parse_raw);
    }
    let rest = json.unwrap_or("{}").trim_start().strip_prefix('{')?.trim_start();
    let comma = if rest.starts_with('}') { "" } else { "," };
    parse_raw(&format!(r#"{{"protocolVersion":{version}{comma}{rest}"#))
}
