//! Writing the write-ahead log: append, sync, and go on elsewhere when a segment cannot be trusted.
//!
//! After a failed sync nothing is known of the bytes since the last good one, and asking again proves
//! nothing. They are still in memory: a new segment is written from there, whose header says where the old
//! one ends. An append is refused only when it is certain that no replay will see it.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use super::frame::{self, At, HEADER_LEN, Header};
use super::scan::Scan;
use crate::disk::{DiskFile, OpenMode, write_all_at};
use crate::home_files::HomeFiles;
use crate::layout::{DAMAGED_SUFFIX, TEMPORARY_SUFFIX, segment_number};
use crate::meter::Meter;

use rekindle_domain::id::StreamId;
use rekindle_domain::session::Position;

/// Offsets in frames are 32 bits wide; a segment that no checkpoint may drop goes on in another long before.
const MAX_SEGMENT: u64 = 1 << 30;

/// Why an append to the write-ahead log did not succeed.
#[derive(Debug)]
pub(crate) enum WalFailure {
    /// It is certain that it did not happen.
    Refused(io::Error),
    /// It may be seen after a restart.
    Unknown(io::Error),
}

/// The open end of the write-ahead log.
pub(crate) struct Wal {
    home: HomeFiles,
    /// Room to reserve for a segment; also where a checkpoint is due.
    segment_bytes: u64,
    file: Box<dyn DiskFile>,
    number: u64,
    /// The segment's name, and what it leads to as long as nobody removes it; found out with the first sync.
    path: PathBuf,
    identity: Option<(u64, u64)>,
    /// Where the next frame goes.
    end: u64,
    /// How far the segment is known to be on disk.
    synced: u64,
    /// The frames between `synced` and `end`.
    unsynced: Vec<u8>,
    /// Room was asked for; it is when the first append comes, so that the segment of an idle home is short.
    reserved: bool,
    /// Nothing more may be written to this segment.
    poisoned: bool,
    /// A segment was removed by someone: only a checkpoint makes what was in it safe again, by making the logs durable by themselves.
    pub(crate) lost: bool,
    /// The highest number ever tried.
    last_number: u64,
    /// Segments that the next checkpoint has no more use for are put aside, not removed: something may still be got from them.
    keep_older: bool,
    /// Segments before this one that the last checkpoint did not drop, and what was written to them.
    older: (u64, u64),
    /// Where syncs are counted.
    pub(crate) meter: Arc<Meter>,
}

impl Wal {
    /// Begins a new segment with a checkpoint: nothing before it is needed any more.
    pub(crate) fn begin(
        home: HomeFiles,
        segment_bytes: u64,
        last_number: u64,
        positions: &[(StreamId, Position)],
    ) -> io::Result<Wal> {
        let number = last_number + 1;
        let (file, end) = create_checkpoint(&home, number, positions).map_err(|(_, error)| error)?;
        Ok(Wal::at_end(home, segment_bytes, file, number, end))
    }

    /// Stands at the end of a segment that is on disk, with nothing before it that is needed.
    fn at_end(home: HomeFiles, segment_bytes: u64, file: Box<dyn DiskFile>, number: u64, end: u64) -> Wal {
        Wal {
            path: home.segment(number),
            identity: None,
            home,
            segment_bytes,
            file,
            number,
            end,
            synced: end,
            unsynced: Vec::new(),
            reserved: false,
            poisoned: false,
            lost: false,
            last_number: number,
            keep_older: false,
            older: (0, 0),
            meter: Arc::default(),
        }
    }

    /// Goes on from what was found: everything in it is still needed. Nothing is written yet: the next append or sync begins a
    /// new segment, or says that there is no room for one. None if there is nothing to go on from.
    pub(crate) fn resume(home: HomeFiles, segment_bytes: u64, scan: &Scan, keep_older: bool) -> Option<Wal> {
        let found = scan.open_end()?;
        let file = home.disk.open(&home.segment(found.number), OpenMode::Read).ok()?;
        Some(Wal {
            synced: found.synced,
            unsynced: found.unsynced,
            reserved: true,
            poisoned: true,
            last_number: scan.last_number,
            keep_older,
            older: found.older,
            ..Wal::at_end(home, segment_bytes, file, found.number, found.end)
        })
    }

    /// Returns how many segments there are since the last checkpoint, and how many bytes in them.
    pub(crate) fn size(&self) -> (u64, u64) {
        (self.older.0 + 1, self.older.1 + self.end)
    }

    /// Tells whether it is time for a checkpoint.
    pub(crate) fn is_full(&self) -> bool {
        self.end >= self.segment_bytes
    }

    /// Tells whether anything written is not known to be on disk.
    pub(crate) fn is_dirty(&self) -> bool {
        self.poisoned || !self.unsynced.is_empty()
    }

    /// Appends whole frames, wherever their place was before, and syncs them if asked.
    pub(crate) fn append(&mut self, frames: &mut [u8], sync: bool) -> Result<(), WalFailure> {
        if self.end >= MAX_SEGMENT {
            self.sync()?;
            self.poisoned = true;
        }
        if self.poisoned {
            self.replace(&[]).map_err(WalFailure::Refused)?;
        }
        frame::place(frames, At { segment: self.number, offset: self.end, synced: self.synced });
        if !self.reserved {
            // Reserved room makes each sync cheaper and a full disk in mid-segment less likely; it is no need.
            self.reserved = true;
            let _ = self.file.allocate(self.segment_bytes);
        }
        if let Err(error) = write_all_at(&*self.file, frames, self.end) {
            return Err(self.cut_off(error));
        }
        if !sync {
            self.unsynced.extend_from_slice(frames);
            self.end += frames.len() as u64;
            return Ok(());
        }
        match self.sync_segment() {
            Ok(()) => {
                self.end += frames.len() as u64;
                self.mark_synced();
                Ok(())
            }
            Err(error) => {
                self.poisoned = true;
                if self.replace(frames).is_ok() {
                    return Ok(());
                }
                // Without these frames it may fit; then they are certainly gone.
                match self.replace(&[]) {
                    Ok(()) => Err(WalFailure::Refused(error)),
                    Err(_) => Err(WalFailure::Unknown(error)),
                }
            }
        }
    }

    /// Makes everything appended durable.
    pub(crate) fn sync(&mut self) -> Result<(), WalFailure> {
        if !self.is_dirty() {
            return Ok(());
        }
        if !self.poisoned && self.sync_segment().is_ok() {
            self.mark_synced();
            return Ok(());
        }
        self.poisoned = true;
        self.replace(&[]).map_err(WalFailure::Unknown)
    }

    /// Begins a new segment with a checkpoint and drops the older ones.
    ///
    /// Everything appended so far must be on disk in the logs. After an error the old segment goes
    /// on, or, where the new one may have become visible, is replaced before the next append.
    pub(crate) fn checkpoint(&mut self, positions: &[(StreamId, Position)]) -> io::Result<()> {
        self.last_number += 1;
        let number = self.last_number;
        match create_checkpoint(&self.home, number, positions) {
            Ok((file, end)) => {
                self.adopt(file, number, end);
                self.older = (0, 0);
                self.lost = false;
                self.drop_older();
                self.keep_older = false;
                Ok(())
            }
            Err((visible, error)) => {
                self.poisoned |= visible;
                Err(error)
            }
        }
    }

    /// Makes the segment durable, where it can be found.
    fn sync_segment(&mut self) -> io::Result<()> {
        let begin = Instant::now();
        let synced = self.file.sync();
        self.meter.syncs.observe(begin.elapsed());
        synced.and_then(|()| self.check_in_place())
    }

    /// Checks that the segment's name still leads to it: a file that someone removed takes every write, and
    /// nobody would ever read them.
    fn check_in_place(&mut self) -> io::Result<()> {
        let identity = match self.identity {
            Some(identity) => identity,
            None => *self.identity.insert(self.file.stat()?.identity),
        };
        if self.home.disk.stat(&self.path).is_ok_and(|named| named.identity == identity) {
            return Ok(());
        }
        self.lost = true;
        Err(io::Error::other("the write-ahead log was removed"))
    }

    fn mark_synced(&mut self) {
        self.synced = self.end;
        self.unsynced.clear();
    }

    fn adopt(&mut self, file: Box<dyn DiskFile>, number: u64, end: u64) {
        (self.file, self.number, self.end) = (file, number, end);
        (self.path, self.identity) = (self.home.segment(number), None);
        self.reserved = false;
        self.poisoned = false;
        self.mark_synced();
    }

    /// Writes what is not known to be on disk, and `extra`, into a new segment that goes on from this one.
    fn replace(&mut self, extra: &[u8]) -> io::Result<()> {
        self.last_number += 1;
        let number = self.last_number;
        let mut frames = [&self.unsynced, extra].concat();
        frame::place(&mut frames, At::first(number));
        let header = Header { number, previous: self.number, previous_end: self.synced };
        let created = create_segment(&self.home, header, &frames);
        let (file, end) = created.map_err(|(_, error)| error)?;
        self.older = (self.older.0 + 1, self.older.1 + self.synced);
        self.adopt(file, number, end);
        Ok(())
    }

    /// Takes a failed write back: whole frames of it may stand in the file and must not be seen again.
    fn cut_off(&mut self, error: io::Error) -> WalFailure {
        let cut = self.file.set_len(self.end).and_then(|()| self.file.sync());
        if cut.is_ok() {
            self.mark_synced();
            return WalFailure::Refused(error);
        }
        self.poisoned = true;
        match self.replace(&[]) {
            Ok(()) => WalFailure::Refused(error),
            Err(_) => WalFailure::Unknown(error),
        }
    }

    /// Removes the segments before this one. What cannot be removed is not looked at again either: this
    /// segment does not lead to them, and the next checkpoint tries once more.
    pub(crate) fn drop_older(&self) {
        let Ok(entries) = self.home.disk.list(&self.home.wal()) else { return };
        for entry in entries {
            let path = self.home.wal().join(&entry.name);
            let older = segment_number(&entry.name).is_some_and(|number| number < self.number);
            if older && self.keep_older {
                let aside = self.home.wal().join(format!("{}{DAMAGED_SUFFIX}", entry.name));
                let _ = self.home.disk.rename(&path, &aside);
            } else if older || entry.name.ends_with(TEMPORARY_SUFFIX) {
                let _ = self.home.disk.remove_file(&path);
            }
        }
    }
}

/// A segment that was made, and where its frames end; an error says whether its name may be visible: then nothing may be written to
/// an older segment any more.
type Created = Result<(Box<dyn DiskFile>, u64), (bool, io::Error)>;

/// Makes a segment that begins with a checkpoint.
fn create_checkpoint(home: &HomeFiles, number: u64, positions: &[(StreamId, Position)]) -> Created {
    let mut frames = Vec::new();
    frame::write_checkpoint(&mut frames, At::first(number), positions);
    create_segment(home, Header { number, previous: 0, previous_end: 0 }, &frames)
}

/// Makes a segment whole under another name, then gives it its own, durably.
fn create_segment(home: &HomeFiles, header: Header, frames: &[u8]) -> Created {
    let path = home.segment(header.number);
    let temporary = path.with_extension(format!("wal{TEMPORARY_SUFFIX}"));
    let write = || {
        let file = home.disk.open(&temporary, OpenMode::Replace)?;
        write_all_at(&*file, &header.write(), 0)?;
        write_all_at(&*file, frames, HEADER_LEN as u64)?;
        file.sync()?;
        Ok(file)
    };
    let file = write().map_err(|error| {
        let _ = home.disk.remove_file(&temporary);
        (false, error)
    })?;
    home.disk.rename(&temporary, &path).map_err(|error| (true, error))?;
    home.disk.sync_dir(&home.wal()).map_err(|error| (true, error))?;
    Ok((file, (HEADER_LEN + frames.len()) as u64))
}
