//! Records by what they say. Counted where a record is committed and nowhere else, so that no way into a log is missed.
//! What may be counted is a closed list: never an id, never words of an agent.

use rekindle_domain::event::{Event, InterruptReason, Kind, ResumeHow, SessionRestored};
use rekindle_domain::line::Draft;

use super::Counter;

/// How many records there were.
#[derive(Debug)]
pub struct Records {
    kinds: [Counter; Kind::ALL.len()],
    reasons: [Counter; InterruptReason::ALL.len()],
    ways: [Counter; ResumeHow::ALL.len()],
    /// By verdict, and one for those that are on no list.
    verdicts: [Counter; SessionRestored::VERDICTS.len() + 1],
    /// Steps of pipeline runs whose result was there before.
    cached_steps: Counter,
}

impl Default for Records {
    fn default() -> Records {
        Records {
            kinds: counters(),
            reasons: counters(),
            ways: counters(),
            verdicts: counters(),
            cached_steps: Counter::default(),
        }
    }
}

fn counters<const N: usize>() -> [Counter; N] {
    std::array::from_fn(|_| Counter::default())
}

impl Records {
    /// Counts what was committed.
    pub(crate) fn count(&self, committed: &[Draft]) {
        for draft in committed {
            // Those of kinds that this version does not know are never appended.
            if let Some(kind) = draft.event.kind() {
                self.kinds[kind as usize].inc();
            }
            match &draft.event {
                Event::RunInterrupted(cut) => self.reasons[cut.reason as usize].inc(),
                Event::RunResumed(resumed) => self.ways[resumed.how as usize].inc(),
                Event::SessionRestored(restored) => {
                    let known = SessionRestored::VERDICTS.iter().position(|known| *known == restored.verdict);
                    self.verdicts[known.unwrap_or(SessionRestored::VERDICTS.len())].inc();
                }
                Event::StepFinished(finished) if finished.cached => self.cached_steps.inc(),
                _ => {}
            }
        }
    }

    /// Returns how many of a kind were committed.
    pub fn of(&self, kind: Kind) -> u64 {
        self.kinds[kind as usize].get()
    }

    /// Returns how many attempts at steps of pipeline runs came to what, and how many results were there before.
    pub fn steps(&self) -> [(&'static str, u64); 3] {
        let cached = self.cached_steps.get();
        let finished = self.of(Kind::StepFinished).saturating_sub(cached);
        [("finished", finished), ("cached", cached), ("interrupted", self.of(Kind::StepInterrupted))]
    }

    /// Returns how many runs were cut short by each reason.
    pub fn interruptions(&self) -> impl Iterator<Item = (&'static str, u64)> {
        InterruptReason::ALL.iter().map(|reason| (reason.as_str(), self.reasons[*reason as usize].get()))
    }

    /// Returns how many waits ended in each way.
    pub fn ended_waits(&self) -> impl Iterator<Item = (&'static str, u64)> {
        ResumeHow::ALL.iter().map(|how| (how.as_str(), self.ways[*how as usize].get()))
    }

    /// Returns how many conversations were brought back, by verdict.
    pub fn restored(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let names = SessionRestored::VERDICTS.into_iter().chain(["other"]);
        names.zip(self.verdicts.iter().map(Counter::get))
    }
}

#[cfg(test)]
mod tests {
    use rekindle_domain::event::{RunInterrupted, SessionRestored};
    use rekindle_domain::id::RunId;

    use super::*;

    #[test]
    fn each_record_is_counted_under_its_own_words() {
        let records = Records::default();
        let run_id = RunId::mint(1, 1);
        let cut = |reason| {
            let (uncertain, uncertain_turn, detail) = (Vec::new(), false, None);
            Draft::from(RunInterrupted { run_id, reason, uncertain, uncertain_turn, detail })
        };
        let restored = |verdict: &'static str| {
            Draft::from(SessionRestored { method: "load".into(), verdict: verdict.into(), counts: None })
        };
        for reason in InterruptReason::ALL {
            records.count(&[cut(reason), cut(reason)]);
        }
        records.count(&[restored("shorter"), restored("of a newer version"), restored("shorter")]);
        assert!(records.interruptions().all(|(_, count)| count == 2));
        assert_eq!(records.of(Kind::RunInterrupted), 2 * InterruptReason::ALL.len() as u64);
        let said: Vec<_> = records.restored().filter(|(_, count)| *count > 0).collect();
        assert_eq!(said, [("shorter", 2), ("other", 1)]);
        assert_eq!(records.of(Kind::RunStarted), 0);
    }
}
