//! Notices of a session, from its records one after the other.

use std::collections::HashMap;

use rekindle_domain::event::{CancelReason, Event, Kind, RunCompleted, RunWaiting, WaitKind};
use rekindle_domain::id::{RunId, TaskId};
use rekindle_domain::line::Line;
use rekindle_domain::session::SessionState;
use rekindle_domain::text_excerpt::last_line;

use super::{Derived, budget_text, of_session, one_line};
use crate::notice::{NoticeKind, Question};

/// What decides how the end of a run is told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RunFacts {
    /// The task that it is an attempt of.
    pub task_id: Option<TaskId>,
    /// Why it was to be cancelled.
    pub cancel: Option<CancelReason>,
}

/// What neither new records nor the state say, for whoever can look further.
pub trait SessionLookup {
    /// Returns what is known of a run that began before the records, and is not the latest any more.
    fn run(&self, run: RunId) -> RunFacts;
    /// Returns what is asked, in few words.
    fn question(&self, waiting: &RunWaiting<'_>) -> Option<String>;
    /// Returns the end of what the agent said last.
    fn last_words(&self) -> Option<String>;
}

/// The notices that some records of a session make. The state is that behind the last of them.
pub struct SessionNotices<'a> {
    state: &'a SessionState,
    lookup: &'a dyn SessionLookup,
    /// Runs that the records say something of.
    runs: HashMap<RunId, RunFacts>,
    /// The record with the agent's newest words.
    said: String,
    found: Vec<Derived>,
}

impl<'a> SessionNotices<'a> {
    /// Begins before the first of the records.
    pub fn new(state: &'a SessionState, lookup: &'a dyn SessionLookup) -> SessionNotices<'a> {
        SessionNotices { state, lookup, runs: HashMap::new(), said: String::new(), found: Vec::new() }
    }

    /// Takes in the next record.
    pub fn push(&mut self, line: &Line<'_>) {
        let Some(kind) = Kind::from_name(line.kind) else { return };
        if kind == Kind::MessageAgent {
            self.said.clear();
            self.said.push_str(line.text);
        }
        if kind == Kind::RunCancelRequested || kind.is_news() {
            // What cannot be read was written by another version, and means nothing here.
            if let Ok(event) = line.event() {
                self.take_in(line, &event);
            }
        }
    }

    /// Returns what there is to tell.
    pub fn finish(self) -> Vec<Derived> {
        self.found
    }

    fn take_in(&mut self, line: &Line<'_>, event: &Event<'_>) {
        match event {
            Event::RunStarted(started) => {
                let facts = RunFacts { task_id: started.task_id, cancel: None };
                self.runs.insert(started.run_id, facts);
                if let Some(cut) = started.continues {
                    self.tell(line, NoticeKind::Resumed, started.run_id, None, |derived| {
                        derived.continues = Some(cut);
                    });
                }
            }
            Event::RunCancelRequested(asked) => {
                if let Some(run) = asked.run_id {
                    let facts = RunFacts { cancel: Some(asked.why), ..self.facts(run) };
                    self.runs.insert(run, facts);
                }
            }
            // A program that waits for another needs no person.
            Event::RunWaiting(waiting) if waiting.wait_kind == WaitKind::ToolResult => {}
            Event::RunWaiting(waiting) => {
                let text = self.lookup.question(waiting).map(|text| one_line(&text)).unwrap_or_default();
                let question = Question { wait_id: waiting.wait_id, text };
                self.tell(line, NoticeKind::Waiting, waiting.run_id, None, |derived| {
                    derived.notice.question = Some(question);
                });
            }
            // What becomes of a step that was cut its run decides, and tells.
            Event::RunInterrupted(_)
            | Event::RunFailed(_)
            | Event::RunCancelled(_)
            | Event::RunCompleted(_)
                if self.state.parent.is_some() => {}
            Event::RunInterrupted(cut) => {
                self.tell(line, NoticeKind::Interrupted, cut.run_id, Some(cut.why()), |_| {});
            }
            Event::RunBudget(budget) => {
                let reason = budget_text(&budget.notice);
                self.tell(line, NoticeKind::Budget, budget.run_id, Some(reason), |_| {});
            }
            Event::RunCompleted(completed) => self.complete(line, completed),
            Event::RunFailed(failed) if self.facts(failed.run_id).task_id.is_none() => {
                let reason = Some(failed.error.as_ref().to_owned());
                self.tell(line, NoticeKind::Failed, failed.run_id, reason, |_| {});
            }
            Event::RunCancelled(cancelled) => {
                // Whoever cancels something knows that it ends; what a rule ends has failed.
                let RunFacts { task_id, cancel } = self.facts(cancelled.run_id);
                if let (None, Some(why)) = (task_id, cancel.filter(|why| why.is_rule())) {
                    let reason = Some(why.words().to_owned());
                    self.tell(line, NoticeKind::Failed, cancelled.run_id, reason, |_| {});
                }
            }
            _ => {}
        }
    }

    fn complete(&mut self, line: &Line<'_>, completed: &RunCompleted<'_>) {
        if self.facts(completed.run_id).task_id.is_some() {
            return;
        }
        let is_latest = self.state.run.as_ref().is_some_and(|run| run.run_id == completed.run_id);
        let words = self.words().or_else(|| self.lookup.last_words().filter(|_| is_latest));
        let reason = completed.unusual_stop().map(str::to_owned);
        self.tell(line, NoticeKind::Completed, completed.run_id, reason, |derived| {
            derived.notice.last_words = words;
        });
    }

    /// Returns the agent's newest words, if they are in the records.
    fn words(&self) -> Option<String> {
        match Line::parse(self.said.as_bytes()).ok()?.event().ok()? {
            Event::MessageAgent(said) => last_line(&said.content.plain_text()),
            _ => None,
        }
    }

    fn facts(&self, run_id: RunId) -> RunFacts {
        let latest = self.state.run.as_ref().filter(|run| run.run_id == run_id);
        let known = self.runs.get(&run_id).copied();
        match (known, latest) {
            (_, Some(run)) => RunFacts { task_id: run.task_id, cancel: run.cancel },
            (Some(known), None) => known,
            (None, None) => self.lookup.run(run_id),
        }
    }

    fn tell(
        &mut self,
        line: &Line<'_>,
        kind: NoticeKind,
        run_id: RunId,
        reason: Option<String>,
        more: impl FnOnce(&mut Derived),
    ) {
        let mut notice = of_session(self.state, kind, line.seq, line.happened_at());
        (notice.run_id, notice.task_id) = (Some(run_id), self.facts(run_id).task_id);
        notice.reason = reason.map(|reason| one_line(&reason)).filter(|reason| !reason.is_empty());
        let mut derived = Derived { notice, recorded_at: line.time(), continues: None };
        more(&mut derived);
        self.found.push(derived);
    }
}
