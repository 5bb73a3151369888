//! Writing a journal: whole records or none. What a full disk leaves of a record is cut off again.

use std::fs::File;
use std::io::{self, IoSlice};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::fault::sync_data;
use super::header::MAX_HEADER;
use super::reader::{first_line, segment_numbers, segment_path};
use super::{Body, Ctl, MAX_PAYLOAD, Record};
use crate::file_ops;
use crate::stamp::Stamp;

/// A payload of at most so many bytes may be staged with others; a larger one is written from where it is.
pub const SMALL: usize = 4 << 10;

/// What is written at once, about: few writes, in a holder that stays small.
const AT_ONCE: usize = 32 << 10;

/// The kernel is asked to begin writing after so many bytes, so that a sync has less to wait for.
const BEGIN_WRITING: u64 = 256 << 10;

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
    /// Up to where the kernel was asked to begin writing.
    begun: u64,
    /// Records that are ready to be written, and how many; see [`JournalWriter::stage`].
    staged: Vec<u8>,
    count: u64,
    /// What time they have.
    time: [u8; 24],
}

impl JournalWriter {
    /// Begins a journal in an empty directory, with segments of about this size.
    pub fn create(dir: &Path, holder_id: &str, segment_bytes: u64) -> io::Result<JournalWriter> {
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
            begun: 0,
            // Never more than this, and memory that was never needed is never touched.
            staged: Vec::with_capacity(AT_ONCE + SMALL + MAX_HEADER),
            count: 0,
            time: Stamp::default().text(),
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
        self.append(&Body::Ctl(ctl.clone()), &payload).map(|at| at.seq)
    }

    /// Appends a record; returns where its payload stands.
    pub fn append(&mut self, body: &Body<'_>, payload: &[u8]) -> io::Result<Appended> {
        debug_assert!(self.count == 0, "what was staged is written first");
        self.stage_header(body, payload);
        let header = self.staged.len() as u64;
        let seq = self.next;
        self.write(Some(payload))?;
        let offset = self.before_last.0 + header;
        Ok(Appended { seq, segment: self.number, offset })
    }

    /// Makes a small record ready: many of them cost one write. Nothing is appended before
    /// [`JournalWriter::commit`].
    pub fn stage(&mut self, body: &Body<'_>, payload: &[u8]) {
        debug_assert!(payload.len() <= SMALL, "a large payload is not copied");
        self.stage_header(body, payload);
        self.staged.extend_from_slice(payload);
        self.staged.push(b'\n');
    }

    /// Tells whether enough is staged to be worth a write; more should not be.
    pub fn is_ready(&self) -> bool {
        self.staged.len() >= AT_ONCE
    }

    /// Appends what is ready, all or none; if it fails, nothing is ready any more.
    pub fn commit(&mut self) -> io::Result<()> {
        if self.count == 0 { Ok(()) } else { self.write(None) }
    }

    fn stage_header(&mut self, body: &Body<'_>, payload: &[u8]) {
        debug_assert!(payload.len() <= MAX_PAYLOAD, "a payload that no reader would take");
        if self.count == 0 {
            self.time = Stamp::now().text();
        }
        Record::write_header(&mut self.staged, self.next + self.count, &self.time, body, payload);
        self.count += 1;
    }

    /// Writes what is ready, and a payload that the last header is for.
    fn write(&mut self, payload: Option<&[u8]>) -> io::Result<()> {
        let outcome = self.write_or_rotate(payload);
        let count = std::mem::take(&mut self.count);
        self.staged.clear();
        let (start, total) = outcome?;
        self.before_last = (start, self.next);
        self.end = start + total;
        self.written += total;
        self.unsynced += total;
        self.next += count;
        if self.end - self.begun >= BEGIN_WRITING {
            self.begin_writing();
        }
        Ok(())
    }

    /// Has the kernel begin to write what it has. The advice says that we do not need these pages any more: dirty
    /// ones are sent to the disk at once, and whoever reads along has read them, or reads them again.
    fn begin_writing(&mut self) {
        let len = std::num::NonZeroU64::new(self.end - self.begun);
        let _ = rustix::fs::fadvise(&self.file, self.begun, len, rustix::fs::Advice::DontNeed);
        self.begun = self.end;
    }

    fn write_or_rotate(&mut self, payload: Option<&[u8]>) -> io::Result<(u64, u64)> {
        if self.end >= self.segment_bytes {
            self.rotate()?;
        }
        match self.try_write(payload) {
            // This file may not grow any more; another one may.
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                self.rotate()?;
                self.try_write(payload)
            }
            outcome => outcome,
        }
    }

    fn try_write(&self, payload: Option<&[u8]>) -> io::Result<(u64, u64)> {
        let newline: &[u8] = if payload.is_some() { b"\n" } else { b"" };
        let mut slices = [&self.staged, payload.unwrap_or_default(), newline].map(IoSlice::new);
        match write_all_vectored_at(&self.file, &mut slices, self.end) {
            Ok(total) => Ok((self.end, total)),
            Err(error) => {
                // Nobody may find half a record, and the next one must not follow it.
                self.file.set_len(self.end)?;
                Err(error)
            }
        }
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
        self.begun = self.begun.min(end);
        Ok(())
    }

    /// Begins another segment. Tells whether the old one is on disk: if not, it is suspect from its last sync on.
    pub fn rotate(&mut self) -> io::Result<bool> {
        let (file, end) = begin_segment(&self.dir, &self.holder_id, self.number + 1, self.next)?;
        let synced = sync_data(&self.file).is_ok();
        if let Some(last) = self.segments.last_mut() {
            last.bytes = self.end;
        }
        (self.file, self.end, self.begun) = (file, end, 0);
        self.number += 1;
        self.segments.push(SegmentNote { number: self.number, first: self.next, bytes: 0 });
        self.unsynced = 0;
        self.before_last = (self.end, self.next);
        Ok(synced)
    }

    /// Removes segments of which everything is below `keep`, except the newest two.
    pub fn trim(&mut self, keep: u64) {
        while self.segments.len() > 2 && self.segments[1].first <= keep {
            let path = segment_path(&self.dir, self.segments[0].number);
            if file_ops::if_exists(std::fs::remove_file(path)).is_err() {
                return;
            }
            self.segments.remove(0);
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

fn begin_segment(dir: &Path, holder_id: &str, number: u64, first: u64) -> io::Result<(File, u64)> {
    let path = segment_path(dir, number);
    let line = first_line(holder_id, first);
    let file = file_ops::create(&path)?;
    if let Err(error) = file.write_all_at(line.as_bytes(), 0) {
        let _ = std::fs::remove_file(&path);
        return Err(error);
    }
    file_ops::sync_dir(dir)?;
    Ok((file, line.len() as u64))
}

fn write_all_vectored_at(file: &File, slices: &mut [IoSlice<'_>], mut offset: u64) -> io::Result<u64> {
    let start = offset;
    let mut slices = slices;
    // Empty ones at the front are not written: the call would do nothing, and say so.
    IoSlice::advance_slices(&mut slices, 0);
    while !slices.is_empty() {
        match rustix::io::pwritev(file, slices, offset) {
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
