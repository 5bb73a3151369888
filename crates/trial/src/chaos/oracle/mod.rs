//! The oracle: is what was promised what is so? Pure: a log, what agents and visitors wrote down, and what the daemon says
//! go in, checks come out. It knows nothing of how things went but what struck.

mod agents;
mod log;
mod runs;
mod scene;
mod shortage;
mod writes;

use std::collections::BTreeMap;

use serde_json::Value;

pub(super) use self::log::{comes_by_itself, place};
pub(super) use self::scene::{Copy, Sight, judge_sight};
pub(super) use self::shortage::{Acknowledged, Moment, Shortage, Shown, is_explained, unanswered};
use super::ledger::{Heard, Ledger};
use super::matrix::Check;

/// What there is to judge one session by, when everything has come to rest.
#[derive(Debug, Clone)]
pub(super) struct Evidence {
    pub(super) id: String,
    /// Its log, line by line.
    pub(super) lines: Vec<String>,
    /// Every line that its agents were told, as they wrote it down themselves, each life behind its pid.
    pub(super) told: String,
    pub(super) ledger: Ledger,
    /// What a subscriber heard across the lives of daemons.
    pub(super) heard: Vec<Heard>,
    /// Records that were on disk before something struck: number and hash.
    pub(super) witnesses: Vec<(u64, String)>,
    /// What the daemon says of it.
    pub(super) view: Value,
    /// Its holder lives.
    pub(super) holder_lives: bool,
    /// How often its agent or holder was killed.
    pub(super) hits: usize,
    /// Power was cut: what agents said just before may be gone.
    pub(super) power_cut: bool,
    /// Its newest record after another daemon came although nothing was to be done.
    pub(super) after_restart: Option<(u64, String)>,
}

/// Judges a session.
pub(super) fn judge(evidence: &Evidence) -> Vec<Check> {
    let records: Vec<Value> =
        evidence.lines.iter().map(|line| serde_json::from_str(line).unwrap_or(Value::Null)).collect();
    let story = ConversationHistory::new(&records);
    let mut checks = log::judge(evidence);
    checks.extend(writes::judge(evidence, &story));
    checks.extend(runs::judge(evidence, &story));
    checks.extend(agents::judge(evidence, &story));
    checks
}

/// What became of a run.
#[derive(Debug, Default)]
struct Run<'a> {
    message_id: Option<&'a str>,
    continues: Option<&'a str>,
    /// The kinds of its ends: one, if all is well.
    ends: Vec<&'a str>,
    cancelled_by: Option<&'a str>,
    /// Its agent was told of the conversation instead of remembering it: its prompt is within another one.
    primed: bool,
    started_seq: u64,
    ended_seq: u64,
}

impl Run<'_> {
    /// Tells whether nothing happened to it: its agent did all that it was asked.
    fn is_clean(&self) -> bool {
        let undisturbed = self.cancelled_by.is_none() && self.continues.is_none() && !self.primed;
        self.ends == ["run.completed"] && undisturbed
    }
}

/// A log, read.
struct ConversationHistory<'a> {
    records: &'a [Value],
    runs: BTreeMap<&'a str, Run<'a>>,
}

impl<'a> ConversationHistory<'a> {
    fn new(records: &'a [Value]) -> ConversationHistory<'a> {
        let mut runs: BTreeMap<&str, Run<'_>> = BTreeMap::new();
        for record in records {
            let (kind, seq) = (text(&record["kind"]), record["seq"].as_u64().unwrap_or(0));
            let Some(run_id) = record["run_id"].as_str() else { continue };
            let run = runs.entry(run_id).or_default();
            match kind {
                "run.started" => {
                    run.message_id = record["message_id"].as_str();
                    run.continues = record["continues"].as_str();
                    run.started_seq = seq;
                }
                "run.cancel_requested" => run.cancelled_by = record["why"].as_str(),
                "run.completed" | "run.failed" | "run.cancelled" | "run.interrupted" => {
                    run.ends.push(kind);
                    run.ended_seq = seq;
                }
                _ => {}
            }
        }
        for restored in records.iter().filter(|record| record["kind"] == "session.restored") {
            let (seq, primed) = (restored["seq"].as_u64().unwrap_or(0), restored["verdict"] == "reprimed");
            let within =
                |run: &&mut Run<'_>| run.started_seq < seq && (run.ended_seq == 0 || seq < run.ended_seq);
            runs.values_mut().filter(within).for_each(|run| run.primed |= primed);
        }
        runs.retain(|_, run| run.started_seq > 0 || !run.ends.is_empty());
        ConversationHistory { records, runs }
    }

    fn of_kind(&self, kind: &str) -> impl Iterator<Item = &'a Value> {
        self.records.iter().filter(move |record| record["kind"] == kind)
    }

    fn run_of(&self, message_id: &str) -> Option<&Run<'a>> {
        self.runs.values().find(|run| run.message_id == Some(message_id) && run.continues.is_none())
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests;
