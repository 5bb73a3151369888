//! The resumer: what becomes, after a start, of a task whose attempt was going on, decided by what is found of it.

use std::fmt;

/// What is found of an attempt that was going on when the daemon died.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Evidence {
    /// Its agent lives.
    pub agent_lives: bool,
    /// Its agent is gone, and left a journal in which the end of its turn may be.
    pub left_journal: bool,
    /// Its session can be gone on with: what was asked and what was done is known.
    pub has_session: bool,
    /// It made tool calls, or its command was started: it may have had effects.
    pub may_have_effects: bool,
    /// The task may be attempted once more.
    pub has_attempts: bool,
    /// Doing it twice does no harm.
    pub is_repeatable: bool,
}

/// What becomes of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Its agent is taken over, in whatever it is doing.
    Adopt,
    /// What its agent still did is taken from its journal, and decides.
    Harvest,
    /// It is gone on with in its session, by an agent that is told what was done.
    RetryWithContext,
    /// It is begun again in a session of its own.
    RetryFresh,
    /// It has failed.
    MarkFailed,
}

/// Decides what becomes of a task.
pub fn resume_outcome(evidence: &Evidence) -> Outcome {
    if evidence.agent_lives {
        return Outcome::Adopt;
    }
    if evidence.left_journal && evidence.has_session {
        return Outcome::Harvest;
    }
    if !evidence.has_attempts {
        return Outcome::MarkFailed;
    }
    if evidence.has_session {
        return Outcome::RetryWithContext;
    }
    // Nobody knows what was done: it is only done again if that does no harm.
    if evidence.is_repeatable || !evidence.may_have_effects {
        return Outcome::RetryFresh;
    }
    Outcome::MarkFailed
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Outcome::Adopt => "adopted",
            Outcome::Harvest => "harvested",
            Outcome::RetryWithContext => "retry with context",
            Outcome::RetryFresh => "retry in a new session",
            Outcome::MarkFailed => "given up",
        })
    }
}

impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match (self.agent_lives, self.left_journal) {
            (true, _) => return f.write_str("its agent lives"),
            (false, true) => "its agent is gone and left a journal",
            (false, false) => "nothing is left of its agent",
        })?;
        f.write_str(if self.has_session { "" } else { ", its session cannot be continued" })?;
        f.write_str(if self.may_have_effects { ", it may have had effects" } else { ", it had no effects" })?;
        f.write_str(if self.has_attempts { "" } else { ", no attempt is left" })
    }
}

/// Says what becomes of a task and why, as its history has it.
pub fn resume_reason(evidence: &Evidence) -> String {
    format!("{}: {evidence}", resume_outcome(evidence))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every combination of evidence, as the bits of a number: lives, journal, session, effects, attempts, repeatable.
    fn evidence(bits: u8) -> Evidence {
        let is = |bit: u8| bits & (1 << (5 - bit)) != 0;
        Evidence {
            agent_lives: is(0),
            left_journal: is(1),
            has_session: is(2),
            may_have_effects: is(3),
            has_attempts: is(4),
            is_repeatable: is(5),
        }
    }

    #[test]
    fn every_combination_of_evidence_has_its_outcome() {
        use Outcome::{Adopt, Harvest, MarkFailed, RetryFresh, RetryWithContext};
        for bits in 0..64 {
            let found = resume_outcome(&evidence(bits));
            let expected = match bits {
                0b10_0000.. => Adopt,
                0b01_1000..=0b01_1111 => Harvest,
                // A journal alone, or nothing: without a session the attempts and the effects count.
                0b01_0000 | 0b01_0001 | 0b01_0100 | 0b01_0101 => MarkFailed,
                0b01_0010 | 0b01_0011 => RetryFresh,
                0b01_0110 => MarkFailed,
                0b01_0111 => RetryFresh,
                0b00_1000 | 0b00_1001 | 0b00_1100 | 0b00_1101 => MarkFailed,
                0b00_1010 | 0b00_1011 | 0b00_1110 | 0b00_1111 => RetryWithContext,
                0b00_0000 | 0b00_0001 | 0b00_0100 | 0b00_0101 => MarkFailed,
                0b00_0010 | 0b00_0011 => RetryFresh,
                0b00_0110 => MarkFailed,
                0b00_0111 => RetryFresh,
            };
            assert_eq!(found, expected, "{bits:06b}");
        }
    }

    #[test]
    fn the_reason_has_the_action_and_the_evidence() {
        assert_eq!(resume_reason(&evidence(0b10_1110)), "adopted: its agent lives");
        assert_eq!(
            resume_reason(&evidence(0b00_1110)),
            "retry with context: nothing is left of its agent, it may have had effects"
        );
        assert_eq!(
            resume_reason(&evidence(0b00_0100)),
            "given up: nothing is left of its agent, its session cannot be continued, it may have had effects, no attempt is left"
        );
    }
}
