//! Turns: how they end, by the agent's word or with its process.

use std::borrow::Cow;

use rekindle_domain::event::{AgentNotice, MessageAgent, Raw};
use rekindle_domain::pipeline::outcome::{FAILED, Terminal, of_event};

use super::facts::{ACCEPTED, OpenTurn, SentInput};
use super::fold::FoldResult;
use super::{Connection, Ended, Exited, Partial};
use crate::json::cut;
use crate::message_id::message_id;
use crate::ndjson::{EVENT, LATE_EVENT, TERMINAL_EVENT};
use crate::said::{Failure, PromptOutcome};

/// How much of what an event says stands in its notice: the rest is in the event.
const MAX_SHOWN: usize = 4 << 10;

impl Connection {
    pub(super) fn answered(
        &mut self,
        number: u64,
        outcome: PromptOutcome,
        raw: Raw<'static>,
        out: &mut FoldResult,
    ) {
        let Some(input) = self.facts.inputs.get_mut(&number) else { return };
        if input.over {
            return self.notice("late_reply", None, Some(raw), out);
        }
        let second = self.facts.ready.as_ref().is_some_and(|ready| ready.version >= 2);
        match outcome {
            // Since version 2 the answer only says that the prompt was taken.
            PromptOutcome::Stopped(None) if second => {
                input.accepted = true;
                let run_id = input.run;
                out.push(AgentNotice { run_id, what: ACCEPTED.into(), text: None, raw: Some(raw) });
            }
            outcome => self.end_turn(Some(number), outcome, out),
        }
    }

    /// Nothing to do: since version 2 that is how a turn ends, once its prompt was taken.
    pub(super) fn idle(&mut self, stop_reason: Option<String>, out: &mut FoldResult) {
        if self.facts.ready.as_ref().is_none_or(|ready| ready.version < 2) {
            return self.notice("unknown_update", Some("state_update".into()), None, out);
        }
        let turn = self.turn().and_then(|turn| turn.input);
        let Some(number) =
            turn.filter(|number| self.facts.inputs.get(number).is_some_and(|input| input.accepted))
        else {
            return;
        };
        let outcome = match stop_reason {
            Some(reason) if reason == "error" => {
                PromptOutcome::Failed(Failure { code: 0, message: "the agent stopped with an error".into() })
            }
            reason => PromptOutcome::Stopped(reason),
        };
        self.end_turn(Some(number), outcome, out);
    }

    /// Something happened. The first event about a command of ours that says what came of it ends that; later ones, and those about
    /// what is no command of ours, are recorded and change nothing.
    pub(super) fn event(
        &mut self,
        about: Option<&str>,
        (event_type, said, text, raw): (Cow<'_, str>, Option<Cow<'_, str>>, Option<String>, Raw<'static>),
        out: &mut FoldResult,
    ) {
        // What came before a command was thought of is nothing about it.
        let is_meant = |input: &SentInput| {
            let command = input.sent.command.as_ref().filter(|_| input.since < out.seq);
            command.is_some_and(|command| about == Some(command.message_id.as_str()))
        };
        let found = self.facts.inputs.iter().find(|(_, input)| is_meant(input));
        let found = found.map(|(number, input)| {
            let command = input.sent.command.as_ref();
            let outcomes = command.map(|command| command.outcomes.as_slice()).unwrap_or_default();
            (*number, input.over, of_event(outcomes, &event_type, said.as_deref()))
        });
        let shown = match &text {
            Some(text) => format!("{event_type}: {}", cut(text, MAX_SHOWN)),
            None => event_type.as_ref().to_owned(),
        };
        let (number, is_over, terminal) = match found {
            None | Some((.., Terminal::Not)) => {
                return self.notice(EVENT, Some(shown.into()), Some(raw), out);
            }
            Some(found) => found,
        };
        if is_over {
            return self.notice(LATE_EVENT, Some(shown.into()), Some(raw), out);
        }
        self.notice(TERMINAL_EVENT, Some(shown.clone().into()), Some(raw), out);
        if let Some(text) = text {
            // Its last words, for whoever reads what was said and knows of no events.
            let (run_id, message_id) = (self.run(), message_id(self.holder, out.seq));
            out.push(MessageAgent { run_id, message_id, content: Raw::text(&text), partial: false });
        }
        let failed = |message| PromptOutcome::Failed(Failure { code: 0, message });
        let outcome = match terminal {
            Terminal::Outcome(name) if name == FAILED => failed(shown),
            Terminal::Unclear(why) => failed(why.to_string()),
            Terminal::Outcome(_) | Terminal::Not => PromptOutcome::Stopped(Some(event_type.into_owned())),
        };
        self.end_turn(Some(number), outcome, out);
    }

    /// Ends a turn by the agent's word: a prompt's, or that of a command.
    pub(super) fn end_turn(&mut self, number: Option<u64>, outcome: PromptOutcome, out: &mut FoldResult) {
        self.flush(false, out);
        let turn = self.turn();
        let input = number.and_then(|number| self.facts.inputs.get_mut(&number));
        let run_id = match input {
            Some(input) => {
                input.over = true;
                input.run
            }
            None => turn.and_then(|turn| turn.run),
        };
        out.taken.ended = Some(Ended { run_id, outcome, usage: None });
        // Requests of a turn that is over are answered by nobody any more.
        let open = std::mem::take(&mut self.facts.asks);
        let (withdrawn, open) = open.into_iter().partition(|(_, ask)| ask.run_id == run_id);
        self.facts.asks = open;
        out.taken.withdrawn.extend(withdrawn.into_values());
        if turn.is_some_and(|turn| turn.input == number) {
            self.facts.turn = None;
            self.facts.tools.clear();
        }
    }

    /// The process is gone.
    pub(super) fn end(&mut self, outcome: Option<PromptOutcome>, exited: Exited, out: &mut FoldResult) {
        if self.turn().is_none() && self.profile.process_is_turn() && exited != Exited::NeverAsked {
            // It did not wait for its prompt.
            self.facts.turn = self.facts.launched_for.map(|run| OpenTurn { input: None, run: Some(run) });
        }
        match (outcome, self.turn()) {
            (Some(outcome), Some(turn)) => self.end_turn(turn.input, outcome, out),
            (Some(_), None) => self.flush(false, out),
            (None, _) => self.flush(true, out),
        }
        // A permission that was given inside a load is given, whether or not there is a turn.
        out.taken.uncertain = self.facts.begun_tools();
        self.facts.tools.clear();
        out.taken.unfinished_load = self.partial.loading.take().map(|loading| loading.replay);
        out.taken.exited = Some(exited);
        self.facts.exited = true;
        self.facts.turn = None;
        self.facts.died_loading = out.taken.unfinished_load.is_some();
        self.partial = Partial::default();
    }
}
