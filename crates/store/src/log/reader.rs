//! Lines of a log and their offsets, read in pieces.

use std::io;
use std::path::Path;

use rekindle_domain::chain::ChainHash;
use rekindle_domain::line::{Line, peek_seq};
use rekindle_domain::time::Timestamp;

use super::compressed::CompressedFile;
use super::cursor::Cursor;
use super::damage::Damage;
use super::joined_file::JoinedFile;
use crate::disk::{Disk, DiskFile, OpenMode, copy, read_up_to};
use crate::line_codec::Codec;

/// Longest line that is held in memory; a longer one is reported by its place alone.
const MAX_LINE: usize = 64 << 20;

/// How much is read at first: a search looks at one line in each of many places.
const FIRST_CHUNK: usize = 16 << 10;

/// How much is read at a time by whoever reads on.
const CHUNK: usize = 256 << 10;

/// Below this a search by halves is slower than reading on.
const LINEAR: u64 = 64 << 10;

/// A line as it is read, and where it stands in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawLine<'a> {
    /// Where it begins.
    pub start: Cursor,
    /// Where the next one does.
    pub end: Cursor,
    /// Its bytes without the newline; nothing of a line that is too long.
    pub bytes: &'a [u8],
    /// It ends in a newline and is not too long.
    pub whole: bool,
}

/// How a log is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogForm {
    /// As it was written: more may be added.
    #[default]
    Plain,
    /// Compressed: it is only read.
    Compressed,
}

/// An open log.
pub struct LogReader {
    file: Box<dyn DiskFile>,
    len: u64,
    codec: Codec,
    form: LogForm,
    /// Where a compressed log lacks its end.
    cut_short: Option<Damage>,
}

impl LogReader {
    /// Opens a log; what is appended later is not seen by this reader.
    pub fn open(disk: &dyn Disk, path: &Path, codec: Codec) -> io::Result<LogReader> {
        let file = disk.open(path, OpenMode::Read)?;
        let len = file.len_at_open()?;
        Ok(LogReader { file, len, codec, form: LogForm::Plain, cut_short: None })
    }

    /// Opens a log that is kept compressed.
    pub(crate) fn open_compressed(disk: &dyn Disk, path: &Path, codec: Codec) -> io::Result<LogReader> {
        let (file, cut_short) = CompressedFile::open(disk, path)?;
        let len = file.len();
        Ok(LogReader { file: Box::new(file), len, codec, form: LogForm::Compressed, cut_short })
    }

    /// Returns how the log is kept.
    pub fn form(&self) -> LogForm {
        self.form
    }

    /// Returns where a compressed log lacks its end, if it does.
    pub(crate) fn cut_short(&self) -> Option<&Damage> {
        self.cut_short.as_ref()
    }

    /// Returns a reader of another log's beginning, up to byte `end`, and this log behind it, as if they were one.
    pub(crate) fn behind(self, base: LogReader, end: u64) -> LogReader {
        let (codec, len) = (self.codec, end + self.len);
        let file = Box::new(JoinedFile { front: base.file, end, back: self.file });
        LogReader { file, len, codec, form: LogForm::Plain, cut_short: None }
    }

    /// Copies everything up to a byte to the same places of a file, as it is stored.
    pub(crate) fn copy_to(&self, target: &dyn DiskFile, end: u64) -> io::Result<()> {
        copy(&*self.file, target, 0, end)
    }

    /// Reads a stretch byte for byte, as it is stored; a log that has become shorter is an error.
    pub fn stored(&self, from: Cursor, to: Cursor) -> StoredBytes<'_> {
        StoredBytes { reader: self, at: from.offset(), end: to.offset() }
    }

    /// Returns where the log ends.
    pub fn end(&self) -> Cursor {
        Cursor::at(self.len)
    }

    /// Returns the length of the log in bytes.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Tells whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the open file's identity.
    pub(crate) fn identity(&self) -> io::Result<(u64, u64)> {
        self.file.stat().map(|stat| stat.identity)
    }

    /// Reads a stretch of bytes as they are stored; fewer at the end.
    pub(crate) fn bytes(&self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; len.min(self.len.saturating_sub(offset) as usize)];
        let read = read_up_to(&*self.file, &mut bytes, offset)?;
        bytes.truncate(read);
        Ok(bytes)
    }

    /// Reads lines from a place on.
    pub fn forward(&self, from: Cursor) -> Forward<'_> {
        let offset = from.offset();
        Forward {
            reader: self,
            buffer: Vec::new(),
            chunk: FIRST_CHUNK,
            used: 0,
            offset,
            read_to: offset,
            decoded: Vec::new(),
        }
    }

    /// Returns the last lines before `end`, oldest first; fewer if they would take more than the limit of
    /// memory that lines are held in.
    pub fn last(&self, end: Cursor, count: usize) -> io::Result<Vec<(Cursor, Vec<u8>)>> {
        let end = end.offset().min(self.len);
        let mut window = LINEAR;
        loop {
            let from = end.saturating_sub(window);
            let bytes = self.bytes(from, (end - from) as usize)?;
            let body = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
            let mut starts: Vec<usize> =
                memchr::memrchr_iter(b'\n', body).map(|at| at + 1).take(count).collect();
            if starts.len() < count && from == 0 && !body.is_empty() {
                starts.push(0);
            }
            if starts.len() >= count || from == 0 || window >= MAX_LINE as u64 {
                starts.reverse();
                let ends = starts.iter().skip(1).map(|start| start - 1).chain([body.len()]);
                let mut room = Vec::new();
                let mut line = |stored: &[u8]| self.codec.decode(stored, &mut room).to_vec();
                return Ok(starts
                    .iter()
                    .zip(ends)
                    .map(|(start, end)| (Cursor::at(from + *start as u64), line(&body[*start..end])))
                    .collect());
            }
            window *= 4;
        }
    }

    /// Reads the hash of the record that ends at `offset`, without reading the record.
    pub(crate) fn hash_before(&self, offset: u64) -> io::Result<Option<ChainHash>> {
        let len = self.codec.hash_len();
        let Some(from) = offset.checked_sub(len as u64) else { return Ok(None) };
        Ok(self.codec.hash(&self.bytes(from, len)?))
    }

    /// Finds where a record begins, by halves: numbers rise along the file.
    pub fn find(&self, seq: u64) -> io::Result<Option<Cursor>> {
        let (mut low, mut high) = (0, self.len);
        while high - low > LINEAR {
            let middle = low + (high - low) / 2;
            match self.first_record_after(middle, high, peek_seq)? {
                Some((start, found)) if found <= seq => low = start,
                Some(_) | None => high = middle,
            }
        }
        let mut lines = self.forward(Cursor::at(low));
        while let Some(line) = lines.next()? {
            match peek_seq(line.bytes).filter(|_| line.whole) {
                Some(found) if found == seq => return Ok(Some(line.start)),
                // Past it, and past where it could be.
                Some(found) if found > seq && line.start.offset() > high => return Ok(None),
                Some(_) | None => {}
            }
        }
        Ok(None)
    }

    /// Finds a place near the first record that was written at a time or later, and not behind it, by halves: times rise along
    /// the file, unless a clock was set back.
    pub fn find_time(&self, time: Timestamp) -> io::Result<Cursor> {
        let (mut low, mut high) = (0, self.len);
        while high - low > LINEAR {
            let middle = low + (high - low) / 2;
            let written = |line: &[u8]| Line::parse(line).ok().map(|line| line.time());
            match self.first_record_after(middle, high, written)? {
                Some((start, found)) if found < time => low = start,
                Some(_) | None => high = middle,
            }
        }
        Ok(Cursor::at(low))
    }

    /// Finds the first record after the line that `offset` is in, and what is read from it.
    fn first_record_after<T>(
        &self,
        offset: u64,
        end: u64,
        read: impl Fn(&[u8]) -> Option<T>,
    ) -> io::Result<Option<(u64, T)>> {
        let mut lines = self.forward(Cursor::at(offset));
        // The first is the rest of a line that began before.
        let mut line = lines.next()?.map(|line| line.end.offset());
        while line.is_some_and(|start| start < end) {
            let Some(next) = lines.next()? else { break };
            if let Some(found) = read(next.bytes).filter(|_| next.whole) {
                let start = next.start.offset();
                return Ok((start < end).then_some((start, found)));
            }
            line = Some(next.end.offset());
        }
        Ok(None)
    }
}

/// A stretch of a log, byte for byte.
pub struct StoredBytes<'a> {
    reader: &'a LogReader,
    at: u64,
    end: u64,
}

impl StoredBytes<'_> {
    /// Returns how many bytes are left.
    pub fn left(&self) -> u64 {
        self.end.saturating_sub(self.at)
    }
}

impl io::Read for StoredBytes<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let len = usize::try_from(self.left()).map_or(buf.len(), |left| left.min(buf.len()));
        if len == 0 {
            return Ok(0);
        }
        match self.reader.file.read_at(&mut buf[..len], self.at)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            read => {
                self.at += read as u64;
                Ok(read)
            }
        }
    }
}

/// Lines one after another.
pub struct Forward<'a> {
    reader: &'a LogReader,
    buffer: Vec<u8>,
    /// How much is read next.
    chunk: usize,
    /// How much of the buffer was given out.
    used: usize,
    /// The file offset of the first byte not given out.
    offset: u64,
    /// The file offset behind the buffer.
    read_to: u64,
    /// Room for a line that is not stored as it is read.
    decoded: Vec<u8>,
}

impl Forward<'_> {
    /// Returns the next line, or none at the end.
    pub fn next(&mut self) -> io::Result<Option<RawLine<'_>>> {
        let mut searched = self.used;
        loop {
            if let Some(at) = memchr::memchr(b'\n', &self.buffer[searched..]) {
                let (from, to) = (self.used, searched + at);
                self.used = to + 1;
                let start = self.offset;
                self.offset += (self.used - from) as u64;
                let whole = to - from <= MAX_LINE;
                let stored = if whole { &self.buffer[from..to] } else { &[] };
                let bytes = self.reader.codec.decode(stored, &mut self.decoded);
                return Ok(Some(RawLine {
                    start: Cursor::at(start),
                    end: Cursor::at(self.offset),
                    bytes,
                    whole,
                }));
            }
            searched = self.buffer.len() - self.used;
            if searched > MAX_LINE {
                return self.skip_long().map(Some);
            }
            if !self.fill()? {
                break;
            }
        }
        let start = self.offset;
        let from = self.used;
        self.used = self.buffer.len();
        self.offset = self.read_to;
        let rest = &self.buffer[from..];
        let (start, end) = (Cursor::at(start), Cursor::at(self.offset));
        if rest.is_empty() {
            return Ok(None);
        }
        let bytes = self.reader.codec.decode(rest, &mut self.decoded);
        Ok(Some(RawLine { start, end, bytes, whole: false }))
    }

    /// Reads more behind what was not given out; false at the end of the file.
    fn fill(&mut self) -> io::Result<bool> {
        self.buffer.drain(..self.used);
        self.used = 0;
        let left = self.reader.len.saturating_sub(self.read_to).min(self.chunk as u64) as usize;
        self.chunk = (self.chunk * 4).min(CHUNK);
        let old = self.buffer.len();
        self.buffer.resize(old + left, 0);
        let read = read_up_to(&*self.reader.file, &mut self.buffer[old..], self.read_to)?;
        self.buffer.truncate(old + read);
        self.read_to += read as u64;
        Ok(read > 0)
    }

    /// Passes over a line that is too long to hold.
    fn skip_long(&mut self) -> io::Result<RawLine<'_>> {
        let start = self.offset;
        loop {
            self.used = self.buffer.len();
            if !self.fill()? {
                self.offset = self.read_to;
                break;
            }
            if let Some(at) = memchr::memchr(b'\n', &self.buffer) {
                self.used = at + 1;
                self.offset = self.read_to - (self.buffer.len() - self.used) as u64;
                break;
            }
        }
        let (start, end) = (Cursor::at(start), Cursor::at(self.offset));
        Ok(RawLine { start, end, bytes: &[], whole: false })
    }
}
