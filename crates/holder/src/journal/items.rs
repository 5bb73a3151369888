//! Whole lines and whole inputs from records: what a reader of a journal wants to know. Pure.

use std::borrow::Cow;

use super::{Body, Ctl, Delivery, InputHead, OutFlags, Part, Record};
use crate::stamp::Stamp;

/// One whole thing that went through a holder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item<'a> {
    /// A line of the agent, without its newline.
    Line {
        /// The record that holds its beginning.
        first: u64,
        /// The record that holds its end: the line's own number.
        seq: u64,
        /// When it ended.
        time: Stamp,
        /// What is odd about it.
        flags: OutFlags,
        /// The bytes.
        bytes: Cow<'a, [u8]>,
    },
    /// An input that the holder accepted.
    Input {
        /// The record that holds its beginning.
        first: u64,
        /// The record that holds its end.
        seq: u64,
        /// When it was accepted.
        time: Stamp,
        /// Which input.
        head: Box<InputHead>,
        /// The bytes, with their newline.
        bytes: Cow<'a, [u8]>,
    },
    /// The end of an input's way.
    Done {
        /// The record.
        seq: u64,
        /// Which input.
        input: u64,
        /// Where it ended.
        delivery: Delivery,
    },
    /// Something about the holder.
    Ctl {
        /// The record.
        seq: u64,
        /// When.
        time: Stamp,
        /// What.
        ctl: Ctl,
    },
}

impl Item<'_> {
    /// Returns the number of the record that completed it.
    pub fn seq(&self) -> u64 {
        match self {
            Item::Line { seq, .. }
            | Item::Input { seq, .. }
            | Item::Done { seq, .. }
            | Item::Ctl { seq, .. } => *seq,
        }
    }

    /// Returns when it was complete; the end of an input's way has no time of its own.
    pub fn time(&self) -> Option<Stamp> {
        match self {
            Item::Line { time, .. } | Item::Input { time, .. } | Item::Ctl { time, .. } => Some(*time),
            Item::Done { .. } => None,
        }
    }
}

/// Puts parts together.
#[derive(Debug, Default)]
pub struct Items {
    line: Option<Unfinished<OutFlags>>,
    input: Option<Unfinished<Box<InputHead>>>,
}

/// A line or an input of which the last part has not come yet.
#[derive(Debug)]
struct Unfinished<H> {
    first: u64,
    /// The last part that has come.
    seq: u64,
    time: Stamp,
    head: H,
    bytes: Vec<u8>,
}

impl Items {
    /// Takes in the next record; returns what it completes.
    pub fn push<'a>(&mut self, record: Record<'a>) -> Option<Item<'a>> {
        let Record { seq, time, body } = record;
        match body {
            Body::Out { part, flags, bytes } => {
                let all = |all: &mut OutFlags, more: OutFlags| {
                    all.unterminated |= more.unterminated;
                    all.noise |= more.noise;
                    all.truncated |= more.truncated;
                };
                let (first, flags, bytes) = join(&mut self.line, (seq, time), part, flags, bytes, all)?;
                Some(Item::Line { first, seq, time, flags, bytes })
            }
            // A first part while another input is unfinished: its controller died, and a new one sends again.
            Body::In { head, part, bytes } => {
                let (first, head, bytes) = join(&mut self.input, (seq, time), part, head, bytes, |_, _| {})?;
                Some(Item::Input { first, seq, time, head, bytes })
            }
            Body::InDone { input, delivery } => Some(Item::Done { seq, input, delivery }),
            Body::Ctl(ctl) => Some(Item::Ctl { seq, time, ctl }),
            Body::Unknown { .. } => None,
        }
    }

    /// Returns the oldest record that is part of something not complete yet.
    pub fn low(&self) -> Option<u64> {
        let line = self.line.as_ref().map(|line| line.first);
        let input = self.input.as_ref().map(|input| input.first);
        line.into_iter().chain(input).min()
    }

    /// Ends a dead journal: returns the line that its holder did not live to finish. An unfinished input was
    /// never accepted.
    pub fn finish(&mut self) -> Option<Item<'static>> {
        self.input = None;
        let Unfinished { first, seq, time, head, bytes } = self.line.take()?;
        let flags = OutFlags { unterminated: true, ..head };
        Some(Item::Line { first, seq, time, flags, bytes: bytes.into() })
    }
}

/// Adds a part to what came before; returns the whole once it is there, with the record that it began in. `add` adds what a later
/// part says of the whole.
fn join<'a, H>(
    unfinished: &mut Option<Unfinished<H>>,
    (seq, time): (u64, Stamp),
    part: Part,
    head: H,
    bytes: &'a [u8],
    add: impl FnOnce(&mut H, H),
) -> Option<(u64, H, Cow<'a, [u8]>)> {
    match part {
        Part::Whole => return Some((seq, head, bytes.into())),
        Part::First => *unfinished = Some(Unfinished { first: seq, seq, time, head, bytes: bytes.to_vec() }),
        Part::Middle | Part::Last => {
            let whole = unfinished.as_mut()?;
            add(&mut whole.head, head);
            whole.bytes.extend_from_slice(bytes);
            (whole.seq, whole.time) = (seq, time);
        }
    }
    let whole = unfinished.take_if(|_| part == Part::Last)?;
    Some((whole.first, whole.head, whole.bytes.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn out(seq: u64, part: Part, bytes: &[u8]) -> Record<'_> {
        Record { seq, time: Stamp(seq), body: Body::Out { part, flags: OutFlags::default(), bytes } }
    }

    fn input(seq: u64, part: Part, bytes: &[u8]) -> Record<'_> {
        let head = Box::new(InputHead { input: 1, kind: "prompt".into(), sha256: [0; 32] });
        Record { seq, time: Stamp(seq), body: Body::In { head, part, bytes } }
    }

    #[test]
    fn parts_of_a_line_and_of_an_input_may_alternate() {
        let mut items = Items::default();
        assert_eq!(items.push(out(1, Part::First, b"he")), None);
        assert_eq!(items.push(input(2, Part::First, b"pro")), None);
        assert_eq!(items.low(), Some(1));
        let line = items.push(out(3, Part::Last, b"llo")).expect("a line");
        assert!(matches!(&line, Item::Line { first: 1, seq: 3, bytes, .. } if **bytes == *b"hello"));
        assert_eq!(items.low(), Some(2));
        let whole = items.push(input(4, Part::Last, b"mpt")).expect("an input");
        assert!(matches!(&whole, Item::Input { first: 2, seq: 4, bytes, .. } if **bytes == *b"prompt"));
        assert_eq!(items.low(), None);
    }

    #[test]
    fn an_input_that_is_begun_again_starts_over() {
        let mut items = Items::default();
        items.push(input(1, Part::First, b"half"));
        items.push(input(2, Part::First, b"who"));
        let whole = items.push(input(3, Part::Last, b"le"));
        assert!(matches!(whole, Some(Item::Input { first: 2, bytes, .. }) if *bytes == *b"whole"));
    }

    #[test]
    fn a_line_without_its_end_is_given_out_when_the_journal_is_dead() {
        let mut items = Items::default();
        items.push(out(5, Part::First, b"half"));
        let item = items.finish().expect("the half line");
        assert!(matches!(item, Item::Line { first: 5, flags: OutFlags { unterminated: true, .. }, .. }));
        assert_eq!(items.finish(), None);
    }

    #[test]
    fn a_part_without_its_beginning_is_passed_over() {
        let mut items = Items::default();
        assert_eq!(items.push(out(9, Part::Last, b"tail")), None);
    }
}
