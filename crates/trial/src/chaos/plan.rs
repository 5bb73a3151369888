//! The plan: who is visited, what is said, and what strikes when. Pure: the same seed makes the same plan, round for round,
//! however many rounds there are. What comes of it is the machine's timing.

use rekindle_seeded::Rng;
use serde::Serialize;

/// Everything that can strike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Fault {
    KillDaemon,
    KillHolder,
    KillAgent,
    KillAll,
    CrashPoint,
    SecondDaemon,
    Takeover,
    Restart,
    SilentHolder,
    Reboot,
    PowerCut,
    CachesLost,
    DamagedCopy,
    LivingCopy,
    FullDisk,
    FewDescriptors,
}

impl Fault {
    /// Those that strike while agents work.
    pub(super) const LIVE: [Fault; 12] = [
        Fault::KillDaemon,
        Fault::KillHolder,
        Fault::KillAgent,
        Fault::KillAll,
        Fault::CrashPoint,
        Fault::SecondDaemon,
        Fault::Takeover,
        Fault::Restart,
        Fault::SilentHolder,
        Fault::Reboot,
        Fault::PowerCut,
        Fault::CachesLost,
    ];

    /// Those that strike a home apart, when everybody has come to rest.
    pub(super) const QUIET: [Fault; 4] =
        [Fault::DamagedCopy, Fault::LivingCopy, Fault::FullDisk, Fault::FewDescriptors];

    /// Says it in a few words.
    pub(super) fn words(self) -> &'static str {
        match self {
            Fault::KillDaemon => "kill -9 of the daemon",
            Fault::KillHolder => "kill -9 of a holder",
            Fault::KillAgent => "kill -9 of an agent",
            Fault::KillAll => "kill -9 of everybody at once",
            Fault::CrashPoint => "death of the daemon at a chosen step",
            Fault::SecondDaemon => "a second daemon on the same home",
            Fault::Takeover => "takeover from a daemon that hangs",
            Fault::Restart => "orderly restart",
            Fault::SilentHolder => "a holder that hangs over a restart",
            Fault::Reboot => "simulated restart of the machine",
            Fault::PowerCut => "simulated power cut",
            Fault::CachesLost => "caches deleted",
            Fault::DamagedCopy => "a damaged copy of the home",
            Fault::LivingCopy => "commands on a copy of a living home",
            Fault::FullDisk => "a disk that fills up and has room again",
            Fault::FewDescriptors => "a daemon with hardly any file descriptors",
        }
    }
}

/// One strike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Strike {
    pub(super) fault: Fault,
    /// How long after the one before, or the beginning.
    pub(super) after_ms: u64,
    /// How long nobody is there, where someone is replaced.
    pub(super) gap_ms: u64,
    /// The seed of every further choice.
    pub(super) pick: u64,
}

/// What an agent is asked to do. Each script names its turn and ends with a mark that it says once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Script {
    Words { count: u64, every_ms: u64 },
    Tools { every_ms: u64 },
    Ask,
    Pause { ms: u64 },
    Barrier,
}

impl Script {
    /// Returns the prompt.
    pub(super) fn prompt(self, tag: &str) -> String {
        let mark = mark(tag);
        match self {
            Script::Words { count, every_ms } => {
                format!("think {tag}\nwords {count} every {every_ms}ms\nsay {mark}")
            }
            Script::Tools { every_ms } => {
                format!("tool read {tag}\nsleep {every_ms}ms\nappend {tag}.txt step\nsay {mark}")
            }
            Script::Ask => format!("think {tag}\nask may I, {tag}?\nsay {mark}"),
            Script::Pause { ms } => format!("say {tag}\nsleep {ms}ms\nsay {mark}"),
            Script::Barrier => format!("think {tag}\nbarrier {tag}\nsay {mark}"),
        }
    }
}

/// Returns what a turn says at its end, and nobody else.
pub(super) fn mark(tag: &str) -> String {
    format!("{tag}-is-done")
}

/// What a visitor does in a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    /// Says something under a key.
    Say { script: Script, twice: bool },
    /// Gives the session another title.
    Title,
    /// Cancels what goes on.
    Cancel,
}

/// A session and whoever visits it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Visit {
    /// Names the session in everything that is said.
    pub(super) tag: String,
    pub(super) first: Script,
    /// What follows, each with the milliseconds before it.
    pub(super) acts: Vec<(u64, Act)>,
    /// Its agent cannot bring a conversation back.
    pub(super) forgetful: bool,
    /// Answers are given twice, and once otherwise.
    pub(super) insists: bool,
}

/// One round.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Round {
    /// From 1.
    pub(super) number: u64,
    pub(super) visits: Vec<Visit>,
    pub(super) strikes: Vec<Strike>,
    /// What strikes a home apart at the end.
    pub(super) quiet: Option<Strike>,
}

/// Rounds without an end.
pub(super) struct Plan {
    rng: Rng,
    number: u64,
    /// What is still to come before anything comes again: so that a short run sees as much as it can.
    live: Vec<Fault>,
    quiet: Vec<Fault>,
}

impl Plan {
    pub(super) fn new(seed: u64) -> Plan {
        Plan { rng: Rng::new(seed), number: 0, live: Vec::new(), quiet: Vec::new() }
    }

    fn strike(&mut self, fault: Fault) -> Strike {
        let (after_ms, gap_ms) = (20 + self.rng.below(380), self.rng.below(200));
        Strike { fault, after_ms, gap_ms, pick: self.rng.next_u64() }
    }

    fn script(&mut self) -> Script {
        match self.rng.below(6) {
            0 | 1 => Script::Words { count: 40 + self.rng.below(160), every_ms: 1 + self.rng.below(5) },
            2 => Script::Tools { every_ms: 20 + self.rng.below(200) },
            3 => Script::Ask,
            4 => Script::Pause { ms: 50 + self.rng.below(400) },
            _ => Script::Barrier,
        }
    }

    fn visit(&mut self, session: u64) -> Visit {
        let first = self.script();
        let mut acts = Vec::new();
        for _ in 0..self.rng.below(4) {
            let act = match self.rng.below(8) {
                0 => Act::Cancel,
                1 | 2 => Act::Title,
                _ => Act::Say { script: self.script(), twice: self.rng.chance(1, 3) },
            };
            acts.push((self.rng.below(300), act));
        }
        let (forgetful, insists) = (self.rng.chance(1, 4), self.rng.chance(1, 2));
        Visit { tag: format!("r{}s{session}", self.number), first, acts, forgetful, insists }
    }
}

/// Takes a card; a new deck is shuffled when there is none.
fn deal(rng: &mut Rng, deck: &mut Vec<Fault>, all: &[Fault]) -> Option<Fault> {
    if deck.is_empty() {
        deck.extend_from_slice(all);
        for at in (1..deck.len()).rev() {
            deck.swap(at, rng.index(at + 1));
        }
    }
    deck.pop()
}

impl Iterator for Plan {
    type Item = Round;

    fn next(&mut self) -> Option<Round> {
        self.number += 1;
        let visits = (0..2 + self.rng.below(3)).map(|session| self.visit(session)).collect();
        let mut strikes = Vec::new();
        for _ in 0..2 + self.rng.below(2) {
            let fault = deal(&mut self.rng, &mut self.live, &Fault::LIVE)?;
            strikes.push(self.strike(fault));
        }
        // Two rounds of three, so that six see them all.
        let quiet = !self.number.is_multiple_of(3);
        let quiet = quiet.then(|| deal(&mut self.rng, &mut self.quiet, &Fault::QUIET));
        let quiet = quiet.flatten().map(|fault| self.strike(fault));
        Some(Round { number: self.number, visits, strikes, quiet })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_same_seed_makes_the_same_plan_and_another_another() {
        for seed in 0..50 {
            let long: Vec<Round> = Plan::new(seed).take(30).collect();
            let short: Vec<Round> = Plan::new(seed).take(7).collect();
            assert_eq!(long[..7], short, "seed {seed}");
            assert_ne!(Plan::new(seed + 1).take(7).collect::<Vec<_>>(), short, "seed {seed}");
        }
    }

    #[test]
    fn six_rounds_see_every_fault() {
        for seed in 0..50 {
            let rounds: Vec<Round> = Plan::new(seed).take(6).collect();
            let strikes = rounds.iter().flat_map(|round| round.strikes.iter().chain(&round.quiet));
            let seen: BTreeSet<Fault> = strikes.map(|strike| strike.fault).collect();
            assert_eq!(seen.len(), Fault::LIVE.len() + Fault::QUIET.len(), "seed {seed}");
        }
    }

    #[test]
    fn nobody_says_what_another_says() {
        let tags: Vec<String> =
            Plan::new(3).take(20).flat_map(|round| round.visits).map(|visit| visit.tag).collect();
        assert_eq!(tags.iter().collect::<BTreeSet<_>>().len(), tags.len());
        let prompt = Script::Pause { ms: 5 }.prompt("r1s2m3");
        assert_eq!(prompt.matches(&mark("r1s2m3")).count(), 1);
        assert!(!prompt.lines().next().is_some_and(|line| line.contains(&mark("r1s2m3"))));
    }
}
