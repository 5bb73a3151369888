//! The script of one agent's life: settings (`load=hang`) and turns, separated by semicolons. Each prompt takes the next
//! turn, a list of words; when there is none left it says something and ends.
//!
//! Words of a turn: `text`, `tool` (a call begins), `done` (it is finished), `ask` (for a permission; the rest follows the
//! answer), `hang` (until told to go on), `end`, `no` (an error instead of an end), `die` (killed), `exit` (with code 1),
//! `lost` (with its holder, which leaves no word of it), `mute` (its holder is there and says nothing), `says:OUTCOME` (as the last
//! message of a step ends), `writes:PATH:CONTENT`. Of agents that take commands in JSON also `beat` (a heartbeat), `event` (on the way),
//! `again` and `late` (an answer after the first one: that it failed, that it is done), `stray` (an answer to no command of ours), `keep`
//! (the answer, which with `cache=yes` is given to the same key at once), `tells:PATH:CONTENT` (an artifact of this content).
//!
//! Settings: `prepare`, `spawn` and `begin` are how a launch fails, by the number of an error or a word (`spawn=died`,
//! `begin=die`), `connect` who answers instead of the holder (`hang`: nobody yet, `old`, `stranger`); `greet`, `new` and `load`
//! how the agent answers these (`die`, `hang`, `no`; a load also `empty`, `work`, `late`); `cancel=ignored`, `stop=ignored`;
//! `can=nothing` is one that brings no session back; `name` is what it calls itself.

use std::collections::{BTreeMap, VecDeque};

#[derive(Debug, Clone, Default)]
pub(super) struct Life {
    settings: BTreeMap<&'static str, &'static str>,
    turns: VecDeque<&'static str>,
}

impl Life {
    pub(super) fn parse(script: &'static str) -> Life {
        let mut life = Life::default();
        for part in script.split(';').map(str::trim).filter(|part| !part.is_empty()) {
            match part.split_once('=') {
                Some((name, value)) => drop(life.settings.insert(name, value)),
                None => life.turns.push_back(part),
            }
        }
        life
    }

    pub(super) fn setting(&self, name: &str) -> Option<&'static str> {
        self.settings.get(name).copied()
    }

    /// Takes a setting back: what it names has happened. Tells whether there was one.
    pub(super) fn settle(&mut self, name: &str) -> bool {
        self.settings.remove(name).is_some()
    }

    /// Returns the number of an error that a setting names.
    pub(super) fn errno(&self, name: &str) -> Option<i32> {
        self.setting(name)?.parse().ok()
    }

    pub(super) fn next_turn(&mut self) -> VecDeque<&'static str> {
        self.turns.pop_front().unwrap_or("text end").split_whitespace().collect()
    }
}
