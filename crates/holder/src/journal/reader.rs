//! Reading a journal, live or dead: only whole records whose checksum matches, in order, each once.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::buffer::spare_capacity;
use rustix::io::Errno;

use super::header::{MAX_HEADER, Times, Unreadable};
use super::{MAX_PAYLOAD, Record};
use crate::file_ops::if_exists;

/// What is read at once: several records of the largest size.
const WINDOW: usize = 4 * (MAX_HEADER + MAX_PAYLOAD);

/// What the next look at a journal brought.
#[derive(Debug)]
pub enum Step<'a> {
    /// A record.
    Record(Record<'a>),
    /// There is nothing more now; of a dead journal there never will be.
    End,
    /// What follows cannot be read, and something valid stands behind it.
    Damaged(Damage),
}

/// Where a journal is broken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path} is damaged at byte {offset}: {why}")]
pub struct Damage {
    /// The segment.
    pub path: PathBuf,
    /// The first byte that cannot be read.
    pub offset: u64,
    /// What is wrong.
    pub why: &'static str,
}

/// A place in a journal.
#[derive(Debug)]
pub struct JournalReader {
    dir: PathBuf,
    segment: Option<Segment>,
    /// The first record that is wanted.
    next: u64,
    /// Bytes of the segment from `base` on.
    window: Vec<u8>,
    base: u64,
    /// How much of the window has been given out.
    used: usize,
    times: Times,
}

#[derive(Debug)]
struct Segment {
    number: u64,
    path: PathBuf,
    file: File,
    /// The first record that is in it, unless it was given out already.
    next: u64,
}

impl JournalReader {
    /// Opens a journal to read from a record on; neither the directory nor the record need exist yet.
    pub fn open(dir: impl Into<PathBuf>, from: u64) -> JournalReader {
        JournalReader {
            dir: dir.into(),
            segment: None,
            next: from,
            window: Vec::new(),
            base: 0,
            used: 0,
            times: Times::default(),
        }
    }

    /// Returns the number of the record that comes next.
    pub fn next_seq(&self) -> u64 {
        self.next
    }

    /// Returns how many bytes have not been given out; looks at the sizes of files alone.
    pub fn unread(&self) -> io::Result<u64> {
        let (mut bytes, mut number) = match &self.segment {
            Some(segment) => {
                let read = self.base + self.used as u64;
                (segment.file.metadata()?.len().saturating_sub(read), segment.number + 1)
            }
            None => match segment_numbers(&self.dir)?.into_iter().min() {
                Some(oldest) => (0, oldest),
                None => return Ok(0),
            },
        };
        while let Ok(metadata) = std::fs::metadata(segment_path(&self.dir, number)) {
            (bytes, number) = (bytes + metadata.len(), number + 1);
        }
        Ok(bytes)
    }

    /// Returns the next record, if it is there.
    pub fn step(&mut self) -> io::Result<Step<'_>> {
        loop {
            if self.segment.is_none() && !self.enter(None)? {
                return Ok(Step::End);
            }
            let (record, payload, len) = match Record::scan(&self.window[self.used..], &mut self.times) {
                Ok(scanned) => scanned,
                Err(Unreadable::Incomplete) if self.fill()? => continue,
                Err(unreadable) => {
                    if self.advance()? || self.read_again()? {
                        continue;
                    }
                    return self.end_or_damage(unreadable);
                }
            };
            let Some(segment) = &mut self.segment else { continue };
            let seq = record.seq;
            if seq != segment.next {
                return self.end_or_damage(Unreadable::Damaged("a record is missing"));
            }
            segment.next += 1;
            let start = self.used;
            self.used += len;
            if seq < self.next {
                continue;
            }
            self.next = seq + 1;
            return Ok(Step::Record(record.with_bytes(&self.window[start..][payload])));
        }
    }

    /// Reads more of the segment; tells whether there was more.
    fn fill(&mut self) -> io::Result<bool> {
        let Some(segment) = &self.segment else { return Ok(false) };
        self.window.drain(..self.used);
        self.base += self.used as u64;
        self.used = 0;
        let have = self.window.len();
        // Not zeroed first: that would cost more than the read.
        self.window.reserve(WINDOW);
        let offset = self.base + have as u64;
        loop {
            match rustix::io::pread(&segment.file, spare_capacity(&mut self.window), offset) {
                Err(Errno::INTR) => {}
                read => return Ok(read? > 0),
            }
        }
    }

    /// Goes on to the next segment if this one has been read to its end.
    fn advance(&mut self) -> io::Result<bool> {
        let Some(current) = &self.segment else { return Ok(false) };
        if self.used < self.window.len() {
            return Ok(false);
        }
        let number = current.number + 1;
        // A segment is only begun when the one before is complete: look once more at that one first.
        if !segment_path(&self.dir, number).exists() || self.fill()? {
            return Ok(self.used < self.window.len());
        }
        self.enter(Some(number))
    }

    /// Reads once more what could not be understood, if another segment follows: a write that found no room is taken
    /// back before that, and we may have seen it. Tells whether something else stands there now.
    fn read_again(&mut self) -> io::Result<bool> {
        let Some(segment) = &self.segment else { return Ok(false) };
        if !segment_path(&self.dir, segment.number + 1).exists() {
            return Ok(false);
        }
        let seen = self.window.split_off(self.used);
        while self.fill()? && self.window.len() < seen.len() {}
        Ok(self.window[self.used..] != seen)
    }

    /// Opens a segment: a given one, or the last that does not begin behind what is wanted.
    fn enter(&mut self, number: Option<u64>) -> io::Result<bool> {
        let candidates = match number {
            Some(number) => vec![number],
            None => {
                let mut numbers = segment_numbers(&self.dir)?;
                numbers.sort_unstable_by(|a, b| b.cmp(a));
                numbers
            }
        };
        let oldest = candidates.last().copied();
        for number in candidates {
            let path = segment_path(&self.dir, number);
            let Some(file) = if_exists(File::open(&path))? else { continue };
            let mut head = [0; MAX_HEADER];
            let read = read_at(&file, &mut head, 0)?;
            // A segment without its first line is only just being made.
            let Some((first, len)) = parse_first_line(&head[..read]) else { continue };
            if first > self.next && Some(number) != oldest {
                continue;
            }
            // What was trimmed is not there to be read; the caller knows that it had it.
            self.next = self.next.max(first);
            self.window.clear();
            (self.base, self.used) = (len as u64, 0);
            self.segment = Some(Segment { number, path, file, next: first });
            return Ok(true);
        }
        Ok(false)
    }

    /// Nothing can be read here: is it the end, or is something valid behind it?
    fn end_or_damage(&mut self, unreadable: Unreadable) -> io::Result<Step<'_>> {
        let Some(segment) = &self.segment else { return Ok(Step::End) };
        let offset = self.base + self.used as u64;
        let next_exists = segment_path(&self.dir, segment.number + 1).exists();
        let rest = &self.window[self.used..];
        let behind = matches!(unreadable, Unreadable::Damaged(_))
            && (1..rest.len()).any(|at| rest[at - 1] == b'\n' && Record::read(&rest[at..]).is_ok());
        if behind || (next_exists && !rest.is_empty()) {
            let why = match unreadable {
                Unreadable::Damaged(why) => why,
                Unreadable::Incomplete => "the record is cut short",
            };
            return Ok(Step::Damaged(Damage { path: segment.path.clone(), offset, why }));
        }
        // The bytes may still be on their way: they are read again from the record's start next time.
        self.window.truncate(self.used);
        Ok(Step::End)
    }
}

fn read_at(file: &File, buf: &mut [u8], offset: u64) -> io::Result<usize> {
    loop {
        match file.read_at(buf, offset) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            outcome => return outcome,
        }
    }
}

/// Returns the path of a segment.
pub(crate) fn segment_path(dir: &Path, number: u64) -> PathBuf {
    dir.join(format!("{number:08}.log"))
}

/// Returns the numbers of all segments of a journal, in no order.
pub(crate) fn segment_numbers(dir: &Path) -> io::Result<Vec<u64>> {
    let mut numbers = Vec::new();
    for entry in if_exists(std::fs::read_dir(dir))?.into_iter().flatten() {
        let name = entry?.file_name();
        let stem = name.to_str().and_then(|name| name.strip_suffix(".log"));
        numbers.extend(stem.and_then(|stem| stem.parse::<u64>().ok()));
    }
    Ok(numbers)
}

const FIRST_WORDS: &str = "rekindle-journal 1 ";

/// Returns a segment's first line.
pub(crate) fn first_line(holder_id: &str, first: u64) -> String {
    format!("{FIRST_WORDS}{holder_id} {first}\n")
}

/// Reads a segment's first line: the number of its first record, and its own length.
fn parse_first_line(bytes: &[u8]) -> Option<(u64, usize)> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    let rest = std::str::from_utf8(&bytes[..end]).ok()?.strip_prefix(FIRST_WORDS)?;
    let first = rest.split(' ').nth(1)?.parse().ok()?;
    Some((first, end + 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::{Ctl, JournalWriter, SEGMENT_BYTES};

    #[test]
    fn what_was_not_read_is_counted_over_all_segments() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut journal = JournalWriter::create(dir.path(), "h_1", SEGMENT_BYTES).expect("a journal");
        let note = |name: &str| Ctl::Signal { name: name.into() };
        let size = |number| std::fs::metadata(segment_path(dir.path(), number)).expect("there").len();
        journal.ctl(&note("one")).expect("written");
        let one = size(1);
        journal.ctl(&note("two")).expect("written");
        journal.rotate().expect("another segment");
        journal.ctl(&note("three")).expect("written");
        let mut reader = JournalReader::open(dir.path(), 1);
        assert_eq!(reader.unread().expect("looked"), size(1) + size(2));
        assert!(matches!(reader.step(), Ok(Step::Record(Record { seq: 1, .. }))));
        assert_eq!(reader.unread().expect("looked"), size(1) - one + size(2));
        while matches!(reader.step(), Ok(Step::Record(_))) {}
        assert_eq!(reader.unread().expect("looked"), 0);
        let nobody = JournalReader::open(dir.path().join("none"), 1);
        assert_eq!(nobody.unread().expect("looked"), 0);
    }

    #[test]
    fn a_write_that_was_taken_back_while_we_looked_is_no_damage() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut journal = JournalWriter::create(dir.path(), "h_1", SEGMENT_BYTES).expect("a journal");
        let note = |name: &str| Ctl::Signal { name: name.into() };
        for name in ["one", "two"] {
            journal.ctl(&note(name)).expect("written");
        }
        let path = segment_path(dir.path(), 1);
        let whole = std::fs::metadata(&path).expect("there").len();
        let half = std::fs::OpenOptions::new().write(true).open(&path).expect("opened");
        half.write_all_at(b"CTL 3 2026-11-15T0", whole).expect("written");
        let mut reader = JournalReader::open(dir.path(), 1);
        assert!(matches!(reader.step(), Ok(Step::Record(Record { seq: 1, .. }))));
        half.set_len(whole).expect("cut");
        journal.rotate().expect("another segment");
        journal.ctl(&note("three")).expect("written");
        for seq in [2, 3] {
            assert!(matches!(reader.step(), Ok(Step::Record(record)) if record.seq == seq), "record {seq}");
        }
        assert!(matches!(reader.step(), Ok(Step::End)));
    }
}
