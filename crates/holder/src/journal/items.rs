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
    line: Option<PartLine>,
    input: Option<PartInput>,
}

#[derive(Debug)]
struct PartLine {
    first: u64,
    seq: u64,
    time: Stamp,
    flags: OutFlags,
    bytes: Vec<u8>,
}

#[derive(Debug)]
struct PartInput {
    first: u64,
    head: Box<InputHead>,
    bytes: Vec<u8>,
}

impl Items {
    /// Takes in the next record; returns what it completes.
    pub fn push<'a>(&mut self, record: Record<'a>) -> Option<Item<'a>> {
        let Record { seq, time, body } = record;
        match body {
            Body::Out { part, flags, bytes } => self.line(seq, time, part, flags, bytes),
            Body::In { head, part, bytes } => self.input(seq, time, part, head, bytes),
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
        let PartLine { first, seq, time, flags, bytes } = self.line.take()?;
        let flags = OutFlags { unterminated: true, ..flags };
        Some(Item::Line { first, seq, time, flags, bytes: bytes.into() })
    }

    fn line<'a>(
        &mut self,
        seq: u64,
        time: Stamp,
        part: Part,
        flags: OutFlags,
        bytes: &'a [u8],
    ) -> Option<Item<'a>> {
        if part == Part::Whole {
            return Some(Item::Line { first: seq, seq, time, flags, bytes: bytes.into() });
        }
        if part == Part::First {
            self.line = Some(PartLine { first: seq, seq, time, flags, bytes: Vec::new() });
        }
        let line = self.line.as_mut()?;
        line.bytes.extend_from_slice(bytes);
        line.flags.unterminated |= flags.unterminated;
        line.flags.noise |= flags.noise;
        line.flags.truncated |= flags.truncated;
        (line.seq, line.time) = (seq, time);
        if part != Part::Last {
            return None;
        }
        let PartLine { first, seq, time, flags, bytes } = self.line.take()?;
        Some(Item::Line { first, seq, time, flags, bytes: bytes.into() })
    }

    fn input<'a>(
        &mut self,
        seq: u64,
        time: Stamp,
        part: Part,
        head: Box<InputHead>,
        bytes: &'a [u8],
    ) -> Option<Item<'a>> {
        if part == Part::Whole {
            return Some(Item::Input { first: seq, seq, time, head, bytes: bytes.into() });
        }
        // A first part while another input is unfinished: its controller died, and a new one sends again.
        if part == Part::First {
            self.input = Some(PartInput { first: seq, head, bytes: Vec::new() });
        }
        let input = self.input.as_mut()?;
        input.bytes.extend_from_slice(bytes);
        if part != Part::Last {
            return None;
        }
        let PartInput { first, head, bytes } = self.input.take()?;
        Some(Item::Input { first, seq, time, head, bytes: bytes.into() })
    }
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
