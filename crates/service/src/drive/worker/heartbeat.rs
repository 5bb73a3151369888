//! The heartbeat of a holder: whether it answers while its agent is at work. One that was stopped holds its lock and says
//! nothing, which is how one looks whose agent thinks: only a question tells them apart. Nothing is asked while the agent
//! is idle.

use std::time::{Duration, Instant};

/// Silence after which a holder is asked for a sign of life: an agent that says nothing for a moment is the usual case, and
/// a question every few seconds costs nothing.
const EVERY: Duration = Duration::from_secs(2);

/// How long a sign may take: as long as every other answer of a holder.
const WITHIN: Duration = Duration::from_secs(2);

/// What is to be done about a holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Beat {
    /// It is to be asked for a sign of life.
    Ask,
    /// It does not give one.
    Silent,
    /// It does again.
    Back,
}

/// What was heard of a holder, and when.
#[derive(Debug)]
pub(super) struct Pulse {
    heard: Instant,
    asked: Option<Instant>,
    silent: bool,
}

impl Pulse {
    /// Begins with a holder that has just answered.
    pub(super) fn new(now: Instant) -> Pulse {
        Pulse { heard: now, asked: None, silent: false }
    }

    /// Takes in whether anything was heard and whether its agent is at work; returns what is to be done.
    pub(super) fn update(&mut self, now: Instant, heard: bool, busy: bool) -> Option<Beat> {
        if heard {
            (self.heard, self.asked) = (now, None);
            return std::mem::take(&mut self.silent).then_some(Beat::Back);
        }
        match self.asked {
            Some(_) if self.silent => None,
            Some(asked) => {
                self.silent = now.duration_since(asked) >= WITHIN;
                self.silent.then_some(Beat::Silent)
            }
            None if busy && now.duration_since(self.heard) >= EVERY => {
                self.asked = Some(now);
                Some(Beat::Ask)
            }
            None => None,
        }
    }

    /// Returns how long nothing has to be done about it; none if not before it says something.
    pub(super) fn patience(&self, now: Instant, busy: bool) -> Option<Duration> {
        let due = match self.asked {
            Some(_) if self.silent => return None,
            Some(asked) => asked + WITHIN,
            None if busy => self.heard + EVERY,
            None => return None,
        };
        Some(due.saturating_duration_since(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_holder_is_asked_in_silence_and_found_silent_and_back() {
        let begin = Instant::now();
        let at = |millis: u64| begin + Duration::from_millis(millis);
        let mut pulse = Pulse::new(begin);
        assert_eq!(pulse.update(at(1999), false, true), None);
        assert_eq!(pulse.patience(at(1999), true), Some(Duration::from_millis(1)));
        assert_eq!(pulse.update(at(2000), false, true), Some(Beat::Ask));
        assert_eq!(pulse.update(at(3000), false, true), None, "it has its time");
        assert_eq!(pulse.patience(at(3000), true), Some(Duration::from_secs(1)));
        assert_eq!(pulse.update(at(4000), false, true), Some(Beat::Silent));
        assert_eq!(pulse.update(at(9000), false, true), None, "once is enough");
        assert_eq!(pulse.patience(at(9000), true), None);
        assert_eq!(pulse.update(at(9500), true, true), Some(Beat::Back));
        assert_eq!(pulse.update(at(10_000), true, true), None);
        assert_eq!(pulse.update(at(12_000), false, true), Some(Beat::Ask));
    }

    #[test]
    fn an_idle_agent_is_left_in_peace() {
        let begin = Instant::now();
        let mut pulse = Pulse::new(begin);
        let late = begin + Duration::from_secs(3600);
        assert_eq!((pulse.update(late, false, false), pulse.patience(late, false)), (None, None));
    }
}
