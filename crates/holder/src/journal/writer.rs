//! Writing a journal: whole records or none. What a full disk leaves of a record is cut off again.

use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::fault::sync_data;
use super::reader::{first_line, segment_numbers, segment_path};
use super::{Body, Ctl, MAX_PAYLOAD, Record, SEGMENT_BYTES};
use crate::stamp::Stamp;

/// Where a record's payload stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    /// The record's number.
    pub seq: u64,
    /// Its segment.
    pub segment: u64,
    /// The first byte of its payload there.
    pub offset: u64,
}

/// A segment that is still there.
#[derive(Debug, Clone, Copy)]
struct SegmentNote {
    number: u64,
    first: u64,
    /// Its size, once another follows it.
    bytes: u64,
}

/// The open end of a journal; only the holder has one, under its lock.
#[derive(Debug)]
pub struct JournalWriter {
    dir: PathBuf,
    holder_id: String,
    file: File,
    number: u64,
    end: u64,
    next: u64,
    segment_bytes: u64,
    /// The segments that are still there, oldest first; the last is the open one.
    segments: Vec<SegmentNote>,
    /// Where the segment ended and what came next before the last append.
    before_last: (u64, u64),
    /// Bytes in all, and since the last sync.
    written: u64,
    unsynced: u64,
    /// Reused for header lines.
    headers: String,
}

impl JournalWriter {
    /// Begins a journal in an empty directory.
    pub fn create(dir: &Path, holder_id: &str) -> io::Result<JournalWriter> {
        JournalWriter::create_with(dir, holder_id, SEGMENT_BYTES)
    }

    /// Begins a journal whose segments have another size.
    pub fn create_with(dir: &Path, holder_id: &str, segment_bytes: u64) -> io::Result<JournalWriter> {
        if segment_numbers(dir)?.into_iter().next().is_some() {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "there is a journal already"));
        }
        let (file, end) = begin_segment(dir, holder_id, 1, 1)?;
        Ok(JournalWriter {
            dir: dir.into(),
            holder_id: holder_id.into(),
            file,
            number: 1,
            end,
            next: 1,
            segment_bytes,
            segments: vec![SegmentNote { number: 1, first: 1, bytes: 0 }],
            before_last: (end, 1),
            written: 0,
            unsynced: 0,
            headers: String::new(),
        })
    }

    /// Returns the number of the last record; 0 if there is none.
    pub fn head(&self) -> u64 {
        self.next - 1
    }

    /// Returns how many bytes have been written in all.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Returns how many bytes have been written since the last sync.
    pub fn unsynced(&self) -> u64 {
        self.unsynced
    }

    /// Returns how many bytes there are from the segment on that holds a record.
    pub fn bytes_from(&self, seq: u64) -> u64 {
        let closed = self.segments.windows(2).filter(|pair| pair[1].first > seq).map(|pair| pair[0].bytes);
        closed.sum::<u64>() + self.end
    }

    /// Appends something about the holder.
    pub fn ctl(&mut self, ctl: &Ctl) -> io::Result<u64> {
        let payload = serde_json::to_vec(ctl).map_err(io::Error::other)?;
        let body = Body::Ctl(ctl.clone());
        self.append(&[(body, &payload)]).map(|_| self.head())
    }

    /// Appends records in one write, all or none; returns where the first payload stands.
    pub fn append(&mut self, records: &[(Body<'_>, &[u8])]) -> io::Result<Appended> {
        if self.end >= self.segment_bytes {
            self.rotate()?;
        }
        match self.try_append(records) {
            // This file may not grow any more; another one may.
            Err(error) if is_too_large(&error) => {
                self.rotate()?;
                self.try_append(records)
            }
            outcome => outcome,
        }
    }

    fn try_append(&mut self, records: &[(Body<'_>, &[u8])]) -> io::Result<Appended> {
        let time = Stamp::now().to_string();
        self.headers.clear();
        let mut ends = Vec::with_capacity(records.len());
        for (index, (body, payload)) in records.iter().enumerate() {
            debug_assert!(payload.len() <= MAX_PAYLOAD, "a payload that no reader would take");
            if index > 0 {
                // The newline behind the payload before.
                self.headers.push('\n');
            }
            Record::write_header(&mut self.headers, self.next + index as u64, &time, body, payload);
            ends.push(self.headers.len());
        }
        let headers = self.headers.as_bytes();
        let mut slices = Vec::with_capacity(records.len() * 2 + 1);
        let mut start = 0;
        for ((_, payload), end) in records.iter().zip(&ends) {
            slices.push(IoSlice::new(&headers[start..*end]));
            slices.push(IoSlice::new(payload));
            start = *end;
        }
        slices.push(IoSlice::new(b"\n"));
        let total = match write_all_vectored_at(&self.file, &mut slices, self.end) {
            Ok(total) => total,
            Err(error) => {
                // Nobody may find half a record, and the next one must not follow it.
                self.file.set_len(self.end)?;
                return Err(error);
            }
        };
        let offset = self.end + ends.first().copied().unwrap_or(0) as u64;
        self.before_last = (self.end, self.next);
        let appended = Appended { seq: self.next, segment: self.number, offset };
        self.end += total;
        self.written += total;
        self.unsynced += total;
        self.next += records.len() as u64;
        Ok(appended)
    }

    /// Makes everything appended durable. After a failure nothing is known of it, and asking again proves
    /// nothing: the caller goes on in another segment.
    pub fn sync(&mut self) -> io::Result<()> {
        if self.unsynced > 0 {
            sync_data(&self.file)?;
            self.unsynced = 0;
        }
        Ok(())
    }

    /// Takes back what was appended last, which nobody may have been told of.
    pub fn take_back(&mut self) -> io::Result<()> {
        let (end, next) = self.before_last;
        self.file.set_len(end)?;
        (self.end, self.next) = (end, next);
        Ok(())
    }

    /// Begins another segment. Tells whether the old one is on disk: if not, it is suspect from its last sync on.
    pub fn rotate(&mut self) -> io::Result<bool> {
        let (file, end) = begin_segment(&self.dir, &self.holder_id, self.number + 1, self.next)?;
        let synced = sync_data(&self.file).is_ok();
        if let Some(last) = self.segments.last_mut() {
            last.bytes = self.end;
        }
        (self.file, self.end) = (file, end);
        self.number += 1;
        self.segments.push(SegmentNote { number: self.number, first: self.next, bytes: 0 });
        self.unsynced = 0;
        self.before_last = (self.end, self.next);
        Ok(synced)
    }

    /// Removes segments of which everything is below `keep`, except the newest two.
    pub fn trim(&mut self, keep: u64) {
        while self.segments.len() > 2 && self.segments[1].first <= keep {
            match std::fs::remove_file(segment_path(&self.dir, self.segments[0].number)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return,
                _ => drop(self.segments.remove(0)),
            }
        }
    }

    /// Reads back part of a payload that was appended.
    pub fn read_back(&self, at: Appended, skip: u64, buf: &mut [u8]) -> io::Result<usize> {
        let offset = at.offset + skip;
        if at.segment == self.number {
            return self.file.read_at(buf, offset);
        }
        File::open(segment_path(&self.dir, at.segment))?.read_at(buf, offset)
    }
}

fn is_too_large(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::FBIG.raw_os_error())
}

fn begin_segment(dir: &Path, holder_id: &str, number: u64, first: u64) -> io::Result<(File, u64)> {
    let path = segment_path(dir, number);
    let line = first_line(holder_id, first);
    let file =
        OpenOptions::new().read(true).write(true).create(true).truncate(true).mode(0o600).open(&path)?;
    if let Err(error) = file.write_all_at(line.as_bytes(), 0) {
        let _ = std::fs::remove_file(&path);
        return Err(error);
    }
    File::open(dir)?.sync_all()?;
    Ok((file, line.len() as u64))
}

fn write_all_vectored_at(file: &File, slices: &mut [IoSlice<'_>], mut offset: u64) -> io::Result<u64> {
    /// What one call takes.
    const MOST_SLICES: usize = 1024;
    let start = offset;
    let mut slices = slices;
    while !slices.is_empty() {
        let count = slices.len().min(MOST_SLICES);
        match rustix::io::pwritev(file, &slices[..count], offset) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => {
                offset += written as u64;
                IoSlice::advance_slices(&mut slices, written);
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(offset - start)
}
