//! From the agent's standard output to the journal: line by line, byte for byte, in bounded memory.
//!
//! What has been read stays here until the journal has it: a full disk loses nothing, it only stops the reading.

use std::io;
use std::os::fd::BorrowedFd;

use rustix::buffer::spare_capacity;

use crate::journal::{Body, JournalWriter, OutFlags, Part, SMALL};

/// Read at once: less than a pipe holds, so that a holder stays small; lines of the usual length fit into one write.
const BUFFER: usize = 24 << 10;

/// A read of the agent's pipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PipeRead {
    Some,
    /// Something, and there is no more now.
    Last,
    Nothing,
    End,
}

pub(super) struct Pump {
    /// What was read and is not in the journal yet. Never zeroed: memory that was never needed is never touched.
    buffer: Vec<u8>,
    /// How much of the current line the journal has.
    line: u64,
    /// The current line has a part in the journal.
    begun: bool,
    /// The current line does not begin like a JSON object.
    noise: bool,
    /// Longest line that is kept.
    line_bytes: u64,
    /// Most lines in one write.
    most: usize,
}

impl Pump {
    pub(super) fn new(line_bytes: u64) -> Pump {
        Pump {
            buffer: Vec::with_capacity(BUFFER),
            line: 0,
            begun: false,
            noise: false,
            line_bytes,
            most: usize::MAX,
        }
    }

    /// Tells whether bytes wait for the journal.
    pub(super) fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// Reads what the pipe has and the buffer can take.
    pub(super) fn read(&mut self, pipe: BorrowedFd<'_>) -> PipeRead {
        if self.buffer.len() == BUFFER {
            return PipeRead::Nothing;
        }
        let outcome = rustix::io::read(pipe, spare_capacity(&mut self.buffer));
        match outcome {
            Ok(0) => PipeRead::End,
            // A pipe that gave less than was asked for is empty, or nearly: poll tells.
            Ok(_) if self.buffer.len() < BUFFER => PipeRead::Last,
            Ok(_) => PipeRead::Some,
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => PipeRead::Nothing,
            Err(_) => PipeRead::End,
        }
    }

    /// Puts whole lines into the journal; also the beginning of one that fills the buffer.
    pub(super) fn flush(&mut self, journal: &mut JournalWriter) -> io::Result<()> {
        let mut done = 0;
        let outcome = loop {
            match self.some_lines(done, journal) {
                Ok(0) => break Ok(()),
                Ok(used) => done += used,
                // No file may hold so many: one at a time may still find room.
                Err(error) if error.kind() == io::ErrorKind::FileTooLarge && self.most > 1 => self.most = 1,
                Err(error) => break Err(error),
            }
        };
        self.buffer.drain(..done);
        outcome?;
        if self.buffer.len() == BUFFER { self.flush_part(journal) } else { Ok(()) }
    }

    /// Puts some whole lines into the journal; returns how many bytes they took.
    fn some_lines(&mut self, from: usize, journal: &mut JournalWriter) -> io::Result<usize> {
        let pending = &self.buffer[from..];
        let mut start = 0;
        for end in memchr::memchr_iter(b'\n', pending).take(self.most) {
            // Only the first of them may have begun earlier.
            let (line, begun) = if start == 0 { (self.line, self.begun) } else { (0, false) };
            let bytes = &pending[start..end];
            let kept = &bytes[..kept(self.line_bytes, line, bytes.len())];
            let flags = OutFlags {
                unterminated: false,
                noise: if begun { self.noise } else { is_noise(bytes) },
                truncated: line + bytes.len() as u64 > self.line_bytes,
            };
            let part = if begun { Part::Last } else { Part::Whole };
            let body = Body::Out { part, flags, bytes: b"" };
            if kept.len() > SMALL && start == 0 {
                journal.append(&body, kept)?;
                start = end + 1;
                break;
            }
            if kept.len() > SMALL || journal.is_ready() {
                break;
            }
            journal.stage(&body, kept);
            start = end + 1;
        }
        journal.commit()?;
        if start > 0 {
            (self.line, self.begun, self.noise) = (0, false, false);
        }
        Ok(start)
    }

    /// Puts what there is of an unfinished line into the journal, so that it is not lost with us.
    pub(super) fn flush_part(&mut self, journal: &mut JournalWriter) -> io::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let noise = if self.begun { self.noise } else { is_noise(&self.buffer) };
        let kept = kept(self.line_bytes, self.line, self.buffer.len());
        let part = if self.begun { Part::Middle } else { Part::First };
        let flags = OutFlags { noise, ..OutFlags::default() };
        if kept > 0 || !self.begun {
            journal.append(&Body::Out { part, flags, bytes: b"" }, &self.buffer[..kept])?;
        }
        self.line += self.buffer.len() as u64;
        (self.begun, self.noise) = (true, noise);
        self.buffer.clear();
        Ok(())
    }

    /// The agent will write no more: what it left without a newline is a line too.
    pub(super) fn finish(&mut self, journal: &mut JournalWriter) -> io::Result<()> {
        self.flush(journal)?;
        if self.buffer.is_empty() && !self.begun {
            return Ok(());
        }
        let noise = if self.begun { self.noise } else { is_noise(&self.buffer) };
        let kept = kept(self.line_bytes, self.line, self.buffer.len());
        let truncated = self.line + self.buffer.len() as u64 > self.line_bytes;
        let flags = OutFlags { unterminated: true, noise, truncated };
        let part = if self.begun { Part::Last } else { Part::Whole };
        journal.append(&Body::Out { part, flags, bytes: b"" }, &self.buffer[..kept])?;
        self.buffer.clear();
        (self.line, self.begun, self.noise) = (0, false, false);
        Ok(())
    }
}

/// Returns how many of the next `len` bytes of a line are kept.
fn kept(most: u64, before: u64, len: usize) -> usize {
    usize::try_from(most.saturating_sub(before)).map_or(len, |room| room.min(len))
}

/// A look at the first byte that says something: the holder does not know the protocol.
fn is_noise(line: &[u8]) -> bool {
    line.iter().find(|byte| !byte.is_ascii_whitespace()) != Some(&b'{')
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::AsFd;

    use super::*;
    use crate::journal::{Item, Items, JournalReader, Step};

    fn journaled(pieces: &[&[u8]], line_bytes: u64) -> Vec<(Vec<u8>, OutFlags)> {
        let dir = tempfile::tempdir().expect("a directory");
        let mut journal = JournalWriter::create(dir.path(), "h_1", 4096).expect("a journal");
        let (reader, mut writer) = std::io::pipe().expect("a pipe");
        let mut pump = Pump::new(line_bytes);
        for piece in pieces {
            for part in piece.chunks(10_000) {
                writer.write_all(part).expect("room in the pipe");
                assert!(matches!(pump.read(reader.as_fd()), PipeRead::Some | PipeRead::Last));
                pump.flush(&mut journal).expect("written");
            }
            pump.flush_part(&mut journal).expect("written");
        }
        pump.finish(&mut journal).expect("written");
        let (mut reader, mut items, mut lines) =
            (JournalReader::open(dir.path(), 1), Items::default(), Vec::new());
        while let Step::Record(record) = reader.step().expect("readable") {
            if let Some(Item::Line { bytes, flags, .. }) = items.push(record) {
                lines.push((bytes.into_owned(), flags));
            }
        }
        lines
    }

    const PLAIN: OutFlags = OutFlags { unterminated: false, noise: false, truncated: false };

    #[test]
    fn lines_arrive_byte_for_byte_however_they_are_cut() {
        let lines = journaled(&[b"{\"a\":1}\r\n{\"b\"", b":2}\n\nnoi", b"se\n{\"c\":3}"], 1 << 20);
        let expected: Vec<(Vec<u8>, OutFlags)> = vec![
            (b"{\"a\":1}\r".to_vec(), PLAIN),
            (b"{\"b\":2}".to_vec(), PLAIN),
            (b"".to_vec(), OutFlags { noise: true, ..PLAIN }),
            (b"noise".to_vec(), OutFlags { noise: true, ..PLAIN }),
            (b"{\"c\":3}".to_vec(), OutFlags { unterminated: true, ..PLAIN }),
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn a_long_line_is_whole_and_one_that_is_too_long_is_cut_and_marked() {
        let long: Vec<u8> =
            b"{".iter().copied().chain((0..300_000_u32).map(|n| (n % 251 + 11) as u8 | 0x80)).collect();
        let text = [&long[..], b"\n{\"next\":1}\n"].concat();
        let lines = journaled(&[&text], 1 << 20);
        assert_eq!(lines, [(long.clone(), PLAIN), (b"{\"next\":1}".to_vec(), PLAIN)]);
        let lines = journaled(&[&text], 100_000);
        assert_eq!(lines[0], (long[..100_000].to_vec(), OutFlags { truncated: true, ..PLAIN }));
        assert_eq!(lines[1], (b"{\"next\":1}".to_vec(), PLAIN), "the next line is itself again");
    }
}
