//! Reading what goes through a holder, whether it lives or not. Nothing here waits: a living holder tells when
//! there is more, and the caller looks again.

use std::io;
use std::path::PathBuf;

use crate::dir::HolderDir;
use crate::file_ops::{AtPath, PathError};
use crate::journal::{Damage, Item, Items, JournalReader, Step};

/// A place in a holder's journal, and the halves of what is not complete there yet.
#[derive(Debug)]
pub struct Follower {
    reader: JournalReader,
    items: Items,
    journal: PathBuf,
}

/// Why a journal cannot be read on.
#[derive(Debug, thiserror::Error)]
pub enum FollowError {
    /// It is broken, and something valid stands behind the break: what came before was given out.
    #[error("the journal is damaged: what was read so far is right, the rest needs a person to check it")]
    Damaged(#[from] Damage),
    /// It could not be read.
    #[error(transparent)]
    Io(#[from] PathError),
}

impl Follower {
    /// Follows a holder's journal from a record on; the journal need not exist yet.
    pub fn new(dir: &HolderDir, from: u64) -> Follower {
        let journal = dir.journal();
        Follower { reader: JournalReader::open(&journal, from), items: Items::default(), journal }
    }

    /// Returns the next whole thing; none if there is none now.
    pub fn next_item(&mut self) -> Result<Option<Item<'static>>, FollowError> {
        loop {
            match self.reader.step().at_path("read the journal in", &self.journal)? {
                Step::Record(record) => {
                    if let Some(item) = self.items.push(record) {
                        return Ok(Some(owned(item)));
                    }
                }
                Step::End => return Ok(None),
                Step::Damaged(damage) => return Err(damage.into()),
            }
        }
    }

    /// Ends the journal of a dead holder: returns the line that was not finished, if there is one.
    pub fn finish(&mut self) -> Option<Item<'static>> {
        self.items.finish()
    }

    /// Returns the number of the record that comes next.
    pub fn next_seq(&self) -> u64 {
        self.reader.next_seq()
    }

    /// Returns how many bytes of the journal have not been read; looks at the sizes of its files alone.
    pub fn unread(&self) -> io::Result<u64> {
        self.reader.unread()
    }

    /// Returns the oldest record that is still needed: everything below it has been given out.
    pub fn low(&self) -> u64 {
        self.items.low().unwrap_or_else(|| self.next_seq())
    }
}

/// Only what fits into one record is copied: the rest was put together and is owned already.
fn owned(item: Item<'_>) -> Item<'static> {
    match item {
        Item::Line { first, seq, time, flags, bytes } => {
            Item::Line { first, seq, time, flags, bytes: bytes.into_owned().into() }
        }
        Item::Input { first, seq, time, head, bytes } => {
            Item::Input { first, seq, time, head, bytes: bytes.into_owned().into() }
        }
        Item::Done { seq, input, delivery } => Item::Done { seq, input, delivery },
        Item::Ctl { seq, time, ctl } => Item::Ctl { seq, time, ctl },
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Home, out, out_part};
    use super::*;
    use crate::journal::{OutFlags, Part};

    fn line(item: Option<Item<'static>>) -> (u64, Vec<u8>) {
        match item {
            Some(Item::Line { seq, bytes, .. }) => (seq, bytes.into_owned()),
            other => panic!("a line, not {other:?}"),
        }
    }

    #[test]
    fn a_live_journal_is_followed_as_it_grows() {
        let home = Home::new();
        let dir = home.holder("h_1");
        let mut follower = Follower::new(&dir, 1);
        assert!(follower.next_item().expect("no journal yet").is_none());
        let mut journal = home.journal(&dir);
        assert!(follower.next_item().expect("an empty one").is_none());
        out(&mut journal, b"one");
        assert_eq!(line(follower.next_item().expect("readable")), (1, b"one".to_vec()));
        assert_eq!(follower.low(), 2);
        out_part(&mut journal, Part::First, b"tw");
        assert!(follower.next_item().expect("readable").is_none());
        assert_eq!((follower.low(), follower.next_seq()), (2, 3));
        out_part(&mut journal, Part::Last, b"o");
        assert_eq!(line(follower.next_item().expect("readable")), (3, b"two".to_vec()));
        assert_eq!(follower.low(), 4);
    }

    #[test]
    fn a_dead_journal_ends_with_its_half_line() {
        let home = Home::new();
        let dir = home.holder("h_1");
        let mut journal = home.journal(&dir);
        out(&mut journal, b"one");
        out_part(&mut journal, Part::First, b"hal");
        let mut follower = Follower::new(&dir, 2);
        assert!(follower.next_item().expect("readable").is_none());
        let half = follower.finish();
        let odd = OutFlags { unterminated: true, ..OutFlags::default() };
        assert!(matches!(&half, Some(Item::Line { flags, .. }) if *flags == odd));
        assert_eq!(line(half), (2, b"hal".to_vec()));
        assert!(follower.finish().is_none());
    }

    #[test]
    fn what_comes_before_a_break_is_given_out_first() {
        let home = Home::new();
        let dir = home.holder("h_1");
        let mut journal = home.journal(&dir);
        ["one", "two", "three"].iter().for_each(|text| out(&mut journal, text.as_bytes()));
        home.spoil(&dir, b"two");
        let mut follower = Follower::new(&dir, 1);
        assert_eq!(line(follower.next_item().expect("readable")).1, b"one");
        for _ in 0..2 {
            assert!(matches!(follower.next_item(), Err(FollowError::Damaged(_))));
        }
    }
}
