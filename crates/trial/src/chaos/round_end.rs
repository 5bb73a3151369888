//! The end of a round: everybody is done, and everything that there is to judge by is gathered and judged.

use std::path::Path;
use std::time::Duration;

use rekindle_client::failure::Failure;
use serde_json::Value;

use super::faults::Toll;
use super::matrix::Check;
use super::oracle::{Evidence, Sight, comes_by_itself, judge, place};
use super::retrying_client::{PATIENCE, RetryingClient};
use super::round::{Field, Visited};
use crate::ground::look::{doctor, lines};

/// How long a session that rests must have had nothing new.
const SETTLED: u64 = 120;

impl Field<'_> {
    /// Everybody has come to rest: another daemon comes and must find nothing to do; then everything is judged.
    pub(super) fn rest(
        &mut self,
        number: u64,
        visited: &[Visited],
        toll: &Toll,
        witnesses: &[(String, u64, String)],
    ) -> Result<(), Failure> {
        let home = self.ground.home();
        let asker = self.processes.asker()?;
        let mut all = Vec::new();
        for one in visited {
            let Some(id) = one.id.clone() else {
                if self.processes.cancel.is_cancelled() {
                    continue;
                }
                let wrong = one.ledger.refused.first().cloned();
                let wrong = wrong.unwrap_or_else(|| "a session could not be made in time".into());
                self.matrix.take(number, "a new session", vec![Check { promise: 8, wrong: Some(wrong) }]);
                continue;
            };
            let (view, lines) = self.settled(&asker, &id, &home);
            let heard = one
                .follower
                .as_ref()
                .map(|follower| follower.end(lines.len() as u64, &self.processes.cancel));
            let own = witnesses.iter().filter(|(session, ..)| *session == id);
            let told = self.ground.at(&format!("told-{}", tag_of(&view)));
            all.push(Evidence {
                told: std::fs::read_to_string(told).unwrap_or_default(),
                ledger: one.ledger.clone(),
                heard: heard.unwrap_or_default(),
                witnesses: own.map(|(_, seq, hash)| (*seq, hash.clone())).collect(),
                holder_lives: self.processes.pairs().iter().any(|pair| pair.session == id),
                hits: toll.of(&id),
                power_cut: toll.power_cut,
                after_restart: None,
                id,
                lines,
                view,
            });
        }
        self.processes.kill();
        self.processes.sights.push(Sight::Doctor(doctor(&home)?));
        if self.processes.start() && self.processes.recovered()? {
            for evidence in &mut all {
                let after = lines(&home, &evidence.id)?;
                let last = after.iter().rfind(|line| !comes_by_itself(line));
                evidence.after_restart = last.and_then(|line| place(line));
            }
        }
        for evidence in all {
            self.matrix.take(number, &evidence.id, judge(&evidence));
        }
        Ok(())
    }

    /// Returns what the daemon says of a session and its log, both of one moment: nothing is added any more, and the end of
    /// an agent that died when nothing went on is recorded too, and so is what a run's directory contained at its end.
    fn settled(&self, asker: &RetryingClient, id: &str, home: &Path) -> (Value, Vec<String>) {
        let path = format!("/api/sessions/{id}");
        let mut last = None;
        let settled = self.processes.cancel.wait_for(PATIENCE / 4, || {
            let view = asker.get(&path)?;
            let seq = view["last_seq"].as_u64();
            if last.replace(seq) == Some(seq) {
                let lines = lines(home, id).ok()?;
                let lives = self.processes.pairs().iter().any(|pair| pair.session == id);
                // Something may have come just between the two looks.
                let whole = Some(lines.len() as u64) == seq;
                let is_still = has_agent(&lines) == lives && !owes_checkpoint(&view);
                return (whole && is_still).then_some((view, lines));
            }
            std::thread::sleep(Duration::from_millis(SETTLED));
            None
        });
        let now = || (asker.get(&path).unwrap_or(Value::Null), lines(home, id).unwrap_or_default());
        settled.unwrap_or_else(now)
    }
}

/// Tells whether the latest run has ended, and what its directory contains is still to be recorded.
fn owes_checkpoint(view: &Value) -> bool {
    let run = &view["run"];
    let [start, end] = ["start", "end"].map(|at| !run["checkpoints"][at].is_null());
    start && !end && !run["ended_at"].is_null()
}

/// Tells whether a log has an agent whose end is not in it.
fn has_agent(lines: &[String]) -> bool {
    let count = |kind: &str| {
        let kind = format!("\"kind\":\"{kind}\"");
        lines.iter().filter(|line| line.contains(&kind)).count()
    };
    count("agent.launching") > count("agent.exited")
}

/// Returns a session's tag: its title begins with it, whatever was added.
fn tag_of(view: &Value) -> &str {
    view["title"].as_str().unwrap_or_default().split(' ').next().unwrap_or_default()
}
