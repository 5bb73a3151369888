//! Reads one file into the sink, as it is at one moment: a file that changes meanwhile is read again.

use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};

use rekindle_domain::blob_id::BlobId;
use rustix::fs::{AtFlags, FileType, Mode, Stat, fstat, openat, statat};
use rustix::io::Errno;

use super::open::{FILE, is_exhausted, is_gone, retry};
use crate::objects::ObjectSink;
use crate::skipped::SkipReason;
use crate::stamp::{FileStamp, now_ns};

/// How often a file that changes is read before it is left out.
const TRIES: usize = 3;

/// Files up to this size are read whole and handed over in one piece, as most are; larger ones are streamed.
pub(super) const WHOLE_BYTES: usize = 128 << 10;

/// What became of reading a file.
pub(super) enum ReadFile {
    /// It was read, and was the same before and after.
    Content { stamp: FileStamp, content: BlobId, is_settled: bool },
    /// It is not there any more.
    Gone,
    /// It cannot be in the tree.
    Skip(SkipReason),
}

/// Why reading a file ends the capture.
pub(super) enum ReadError {
    Exhausted(Errno),
    Sink(io::Error),
    Stopped,
}

/// A file to read.
pub(super) struct FileToRead<'a> {
    pub(super) directory: &'a OwnedFd,
    pub(super) name: &'a [u8],
    pub(super) max_file: u64,
    pub(super) sink: &'a dyn ObjectSink,
    pub(super) stop: &'a (dyn Fn() -> bool + Sync),
}

/// What one try came to.
enum Try {
    Done(ReadFile),
    Changed,
}

impl FileToRead<'_> {
    /// Reads the file, from a stamp that was taken just now, at the time given.
    pub(super) fn read(
        &self,
        mut stat: Stat,
        mut before_ns: i64,
        buffer: &mut Vec<u8>,
    ) -> Result<ReadFile, ReadError> {
        for attempt in 0..TRIES {
            if attempt > 0 {
                before_ns = now_ns();
                match retry(|| statat(self.directory, self.name, AtFlags::SYMLINK_NOFOLLOW)) {
                    Ok(again) => stat = again,
                    Err(error) => return failure(error),
                }
            }
            if let Try::Done(result) = self.read_once(&stat, before_ns, buffer)? {
                return Ok(result);
            }
        }
        Ok(ReadFile::Skip(SkipReason::Changing))
    }

    fn read_once(&self, stat: &Stat, before_ns: i64, buffer: &mut Vec<u8>) -> Result<Try, ReadError> {
        let stamp = FileStamp::of(stat);
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Ok(Try::Changed);
        }
        if stamp.size > self.max_file {
            return Ok(Try::Done(ReadFile::Skip(SkipReason::TooLarge)));
        }
        let file = match retry(|| openat(self.directory, self.name, FILE, Mode::empty())) {
            Ok(file) => file,
            Err(Errno::LOOP | Errno::AGAIN | Errno::NXIO) => return Ok(Try::Changed),
            Err(error) => return failure(error).map(Try::Done),
        };
        let read = if stamp.size as usize <= WHOLE_BYTES {
            self.read_whole(&file, &stamp, buffer)?
        } else {
            self.stream(&file, &stamp)?
        };
        Ok(match read {
            Pass::Content(content) => {
                let is_settled = stamp.is_settled(before_ns);
                Try::Done(ReadFile::Content { stamp, content, is_settled })
            }
            Pass::Changed => Try::Changed,
            Pass::Unreadable => Try::Done(ReadFile::Skip(SkipReason::Unreadable)),
        })
    }

    fn read_whole(&self, file: &OwnedFd, stamp: &FileStamp, buffer: &mut Vec<u8>) -> Result<Pass, ReadError> {
        let size = stamp.size as usize;
        if buffer.len() < WHOLE_BYTES + 1 {
            buffer.resize(WHOLE_BYTES + 1, 0);
        }
        let mut length = 0;
        // Up to one byte more than there should be, to notice that there are more.
        while length <= size {
            match retry(|| rustix::io::read(file, &mut buffer[length..=size])) {
                Ok(0) => break,
                Ok(count) => length += count,
                Err(error) => return broken(error),
            }
            if length == size {
                // The stamp afterwards tells whether there is more; another call would say no more than that.
                break;
            }
        }
        if length != size || !is_still(file, stamp) {
            return Ok(Pass::Changed);
        }
        self.sink.put(&buffer[..length]).map(Pass::Content).map_err(ReadError::Sink)
    }

    fn stream(&self, file: &OwnedFd, stamp: &FileStamp) -> Result<Pass, ReadError> {
        let mut content = Content {
            file,
            left: stamp.size.saturating_add(1),
            failed: None,
            stop: self.stop,
            is_stopped: false,
        };
        let kept = self.sink.put_reader(&mut content);
        if content.is_stopped {
            return Err(ReadError::Stopped);
        }
        if let Some(error) = content.failed {
            return broken(error);
        }
        let (content, length) = kept.map_err(ReadError::Sink)?;
        Ok(if length == stamp.size && is_still(file, stamp) { Pass::Content(content) } else { Pass::Changed })
    }
}

/// What reading from an open file came to.
enum Pass {
    Content(BlobId),
    Changed,
    Unreadable,
}

fn is_still(file: &OwnedFd, stamp: &FileStamp) -> bool {
    fstat(file).is_ok_and(|stat| FileStamp::of(&stat) == *stamp)
}

fn broken(error: Errno) -> Result<Pass, ReadError> {
    if is_exhausted(error) { Err(ReadError::Exhausted(error)) } else { Ok(Pass::Unreadable) }
}

/// Returns what becomes of a file that cannot be opened or looked at.
pub(super) fn failure(error: Errno) -> Result<ReadFile, ReadError> {
    if is_exhausted(error) {
        return Err(ReadError::Exhausted(error));
    }
    Ok(if is_gone(error) { ReadFile::Gone } else { ReadFile::Skip(SkipReason::Unreadable) })
}

/// The content of a file for a sink. It remembers what went wrong here, to tell it from what goes wrong in the sink.
struct Content<'a> {
    file: &'a OwnedFd,
    left: u64,
    failed: Option<Errno>,
    stop: &'a (dyn Fn() -> bool + Sync),
    is_stopped: bool,
}

impl Read for Content<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if (self.stop)() {
            self.is_stopped = true;
            return Err(io::Error::other("the capture was stopped"));
        }
        let wanted = buffer.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let read = retry(|| rustix::io::read(self.file.as_fd(), &mut buffer[..wanted]));
        let count = read.inspect_err(|error| self.failed = Some(*error))?;
        self.left -= count as u64;
        Ok(count)
    }
}
