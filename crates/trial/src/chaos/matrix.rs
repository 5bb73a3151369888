//! The matrix of promises: how often each was checked, held or broken, and why some were not looked at. Pure.

use serde::Serialize;
use serde_json::{Value, json};

use super::plan::Fault;

/// The promises, by number, in few words.
pub(super) const PROMISES: [&str; 14] = [
    "acknowledged is durable",
    "the append is the commit point; caches are caches",
    "records are numbered without gaps and never change",
    "a dead supervisor interrupts nobody",
    "an input reaches an agent at most once",
    "a run ends exactly once",
    "a resume token is consumed at most once",
    "status is derived and true",
    "unknown is not dead",
    "one bad file hides nobody else",
    "a finished pipeline step never runs again",
    "nothing is lost silently",
    "a cancel is durable and beats every resume",
    "recovery is bounded and idempotent",
];

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Check {
    /// The number of the promise.
    pub(super) promise: u8,
    /// What was found instead; nothing if it held.
    pub(super) wrong: Option<String>,
}

impl Check {
    /// Something that holds, or else is wrong in some way.
    pub(super) fn that(promise: u8, holds: bool, wrong: impl FnOnce() -> String) -> Check {
        Check { promise, wrong: (!holds).then(wrong) }
    }
}

/// A promise that was broken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Violation {
    pub(super) promise: u8,
    pub(super) round: u64,
    /// The session or part of the home it is about.
    pub(super) place: String,
    pub(super) what: String,
}

/// Most violations that are kept in words; all are counted.
const MOST: usize = 100;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Row {
    held: u64,
    violated: u64,
}

/// All of it.
#[derive(Debug, Default)]
pub(super) struct Matrix {
    rows: [Row; PROMISES.len()],
    violations: Vec<Violation>,
    faults: std::collections::BTreeMap<Fault, u64>,
    skipped: std::collections::BTreeMap<Fault, String>,
}

/// A promise as it stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Line {
    pub(super) promise: String,
    pub(super) name: &'static str,
    pub(super) checked: u64,
    pub(super) held: u64,
    pub(super) violated: u64,
    pub(super) not_exercised: Option<&'static str>,
}

impl Matrix {
    /// Takes what was found at a place.
    pub(super) fn take(&mut self, round: u64, place: &str, checks: Vec<Check>) {
        for Check { promise, wrong } in checks {
            let Some(row) = self.rows.get_mut(usize::from(promise).wrapping_sub(1)) else { continue };
            match wrong {
                None => row.held += 1,
                Some(what) => {
                    row.violated += 1;
                    if self.violations.len() < MOST {
                        let place = place.to_owned();
                        self.violations.push(Violation { promise, round, place, what });
                    }
                }
            }
        }
    }

    /// Counts something that struck.
    pub(super) fn struck(&mut self, fault: Fault) {
        *self.faults.entry(fault).or_default() += 1;
    }

    /// Keeps why something could not strike here.
    pub(super) fn skip(&mut self, fault: Fault, why: String) {
        self.skipped.insert(fault, why);
    }

    /// Tells whether every promise that was looked at was kept.
    pub(super) fn holds(&self) -> bool {
        self.rows.iter().all(|row| row.violated == 0)
    }

    pub(super) fn checked(&self) -> u64 {
        self.rows.iter().map(|row| row.held + row.violated).sum()
    }

    pub(super) fn violations(&self) -> &[Violation] {
        &self.violations
    }

    /// Returns a line for each promise.
    pub(super) fn lines(&self) -> Vec<Line> {
        let line = |(at, row): (usize, &Row)| {
            let checked = row.held + row.violated;
            let why = match at + 1 {
                11 => "pipelines are not built yet",
                _ => "nothing that struck was about it; more rounds will be",
            };
            Line {
                promise: format!("I{}", at + 1),
                name: PROMISES[at],
                checked,
                held: row.held,
                violated: row.violated,
                not_exercised: (checked == 0).then_some(why),
            }
        };
        self.rows.iter().enumerate().map(line).collect()
    }

    /// Returns what struck how often, and what could not, and why.
    pub(super) fn faults(&self) -> Vec<(Fault, u64, Option<&str>)> {
        let all = Fault::LIVE.iter().chain(&Fault::QUIET);
        all.map(|fault| {
            let times = self.faults.get(fault).copied().unwrap_or(0);
            (*fault, times, self.skipped.get(fault).map(String::as_str))
        })
        .collect()
    }

    /// Returns all of it for programs.
    pub(super) fn to_json(&self) -> Value {
        let faults: Vec<Value> = self
            .faults()
            .into_iter()
            .map(|(fault, times, skipped)| {
                json!({"fault": fault, "what": fault.words(), "times": times, "skipped": skipped})
            })
            .collect();
        json!({"ok": self.holds(), "promises": self.lines(), "faults": faults, "violations": self.violations})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_counted_and_kept_and_what_was_not_looked_at_says_why() {
        let mut matrix = Matrix::default();
        matrix.take(1, "sess_1", vec![Check::that(1, true, String::new), Check::that(14, true, String::new)]);
        assert!(matrix.holds());
        matrix.take(2, "sess_2", vec![Check::that(1, false, || "lost".into())]);
        assert!(!matrix.holds());
        let lines = matrix.lines();
        assert_eq!((lines[0].checked, lines[0].held, lines[0].violated), (2, 1, 1));
        assert_eq!(lines[10].not_exercised, Some("pipelines are not built yet"));
        assert!(lines[1].not_exercised.is_some() && lines[13].not_exercised.is_none());
        let kept = &matrix.violations()[0];
        assert_eq!((kept.promise, kept.round, kept.what.as_str()), (1, 2, "lost"));
        for _ in 0..1000 {
            matrix.take(3, "x", vec![Check::that(2, false, || "again".into())]);
        }
        assert_eq!((matrix.violations().len(), matrix.lines()[1].violated), (MOST, 1000));
    }
}
