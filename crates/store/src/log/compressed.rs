//! Compressed logs: the bytes of a log to which nothing is added any more, in frames of zstd that are read one by one, so that a reader
//! begins anywhere and holds little. `zstd -d` makes the log of it again. Behind the frames stands a table of their sizes, as zstd's own
//! seekable format has it; a file that has lost its table is read by its frames, as far as these go.

use std::io::{self, Read};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use zstd::zstd_safe::{find_frame_compressed_size, get_frame_content_size};

use super::damage::Damage;
use crate::disk::{
    Disk, DiskFile, OpenMode, ReadOnlyFile, Stat, read_exact_at, read_up_to, temporary, write_all_at,
};

/// How much of a log is in a frame: what one damaged byte takes with it, and what is decompressed to read a line.
const FRAME: usize = 128 << 10;

/// Longest frame that is read: what does not compress is a little longer than it was.
const MAX_STORED: usize = FRAME + (FRAME >> 7) + 64;

/// Good for text, and written once.
const LEVEL: i32 = 6;

/// What heads the table: a frame that decompressors pass over.
const TABLE_MAGIC: [u8; 4] = 0x184d_2a5e_u32.to_le_bytes();
/// The end of a table.
const TABLE_END: [u8; 4] = 0x8f92_eab1_u32.to_le_bytes();
/// Length of the head of a table, of an entry, and of its end.
const HEAD: usize = 8;
const ENTRY: usize = 8;
const TAIL: usize = 9;

/// Most frames of a log: 128 GiB of records.
const MAX_FRAMES: usize = 1 << 20;

/// A frame, and what it is of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Frame {
    /// Where it is in the file, and how long.
    at: u64,
    stored: usize,
    /// Where it begins in the log, and how much of it there is.
    begin: u64,
    len: usize,
}

/// A compressed log that is read as if it were not: a stretch that does not decompress reads as zeros, which are no record.
pub(crate) struct CompressedFile {
    file: Box<dyn DiskFile>,
    frames: Vec<Frame>,
    /// The frame that was read last, and its bytes.
    latest: Mutex<Option<(usize, Vec<u8>)>>,
}

impl CompressedFile {
    /// Opens a compressed log; also tells where its end is missing.
    pub(crate) fn open(disk: &dyn Disk, path: &Path) -> io::Result<(CompressedFile, Option<Damage>)> {
        let file = disk.open(path, OpenMode::Read)?;
        let stored = file.len_at_open()?;
        let (frames, is_whole) = match read_table(&*file, stored)? {
            Some(frames) => (frames, true),
            None => (scan(&*file, stored)?, false),
        };
        let compressed = CompressedFile { file, frames, latest: Mutex::default() };
        let detail = || "the compressed log is cut short, or was changed at its end".to_owned();
        let damage = (!is_whole).then(|| Damage { offset: compressed.len(), detail: detail() });
        Ok((compressed, damage))
    }

    /// Returns the length of the log.
    pub(crate) fn len(&self) -> u64 {
        self.frames.last().map_or(0, |last| last.begin + last.len as u64)
    }

    /// Returns what is in a frame; nothing of one that is damaged.
    fn decompress(&self, frame: Frame) -> io::Result<Option<Vec<u8>>> {
        let mut stored = vec![0; frame.stored];
        read_exact_at(&*self.file, &mut stored, frame.at)?;
        Ok(zstd::bulk::decompress(&stored, frame.len).ok().filter(|plain| plain.len() == frame.len))
    }
}

impl ReadOnlyFile for CompressedFile {
    const REASON: &str = "a compressed log is only read";

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let behind = self.frames.partition_point(|frame| frame.begin <= offset);
        let Some(at) = behind.checked_sub(1) else { return Ok(0) };
        let frame = self.frames[at];
        let from = (offset - frame.begin) as usize;
        if from >= frame.len {
            return Ok(0);
        }
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        let known = latest.take().filter(|(known, _)| *known == at);
        let (_, plain) = match known {
            Some(known) => latest.insert(known),
            None => latest.insert((at, self.decompress(frame)?.unwrap_or_else(|| vec![0; frame.len]))),
        };
        let len = buf.len().min(plain.len() - from);
        buf[..len].copy_from_slice(&plain[from..from + len]);
        Ok(len)
    }

    fn stat(&self) -> io::Result<Stat> {
        self.file.stat().map(|stat| Stat { len: self.len(), ..stat })
    }
}

/// Reads the table at the end of a file, if there is one that fits it.
fn read_table(file: &dyn DiskFile, stored: u64) -> io::Result<Option<Vec<Frame>>> {
    let Some(tail_at) = stored.checked_sub(TAIL as u64) else { return Ok(None) };
    let mut tail = [0; TAIL];
    read_exact_at(file, &mut tail, tail_at)?;
    let [n0, n1, n2, n3, flags, end @ ..] = tail;
    let count = u32::from_le_bytes([n0, n1, n2, n3]) as usize;
    let body = count.saturating_mul(ENTRY);
    let Some(table_at) = tail_at.checked_sub((body + HEAD) as u64) else { return Ok(None) };
    if end != TABLE_END || flags != 0 || count > MAX_FRAMES {
        return Ok(None);
    }
    let mut table = vec![0; HEAD + body];
    read_exact_at(file, &mut table, table_at)?;
    let (head, entries) = table.split_at(HEAD);
    let (mut at, mut begin, mut frames) = (0, 0, Vec::with_capacity(count));
    for entry in entries.chunks_exact(ENTRY) {
        let [stored, len] = [&entry[..4], &entry[4..]]
            .map(|bytes| bytes.try_into().map(u32::from_le_bytes).unwrap_or_default() as usize);
        if stored > MAX_STORED || len > FRAME {
            return Ok(None);
        }
        frames.push(Frame { at, stored, begin, len });
        (at, begin) = (at + stored as u64, begin + len as u64);
    }
    let size = ((body + TAIL) as u32).to_le_bytes();
    let fits = head[..4] == TABLE_MAGIC && head[4..] == size && at == table_at;
    Ok(fits.then_some(frames))
}

/// Finds the frames of a file from its beginning, as far as they are whole.
fn scan(file: &dyn DiskFile, stored: u64) -> io::Result<Vec<Frame>> {
    let (mut at, mut begin, mut frames) = (0, 0, Vec::new());
    let mut buffer = vec![0; MAX_STORED];
    while at < stored && frames.len() < MAX_FRAMES {
        let read = read_up_to(file, &mut buffer, at)?;
        let bytes = &buffer[..read];
        let Ok(size) = find_frame_compressed_size(bytes) else { break };
        let Ok(Some(len)) = get_frame_content_size(bytes) else { break };
        if size > read || len == 0 || len > FRAME as u64 {
            break;
        }
        frames.push(Frame { at, stored: size, begin, len: len as usize });
        (at, begin) = (at + size as u64, begin + len);
    }
    Ok(frames)
}

/// Writes the bytes of a log compressed, durably.
pub(super) fn write_frames(disk: &dyn Disk, bytes: &mut dyn Read, path: &Path) -> io::Result<()> {
    let file = disk.open(path, OpenMode::Replace)?;
    let mut compressor = zstd::bulk::Compressor::new(LEVEL)?;
    compressor.include_checksum(true)?;
    let (mut plain, mut at, mut entries) = (Vec::with_capacity(FRAME), 0, Vec::new());
    loop {
        plain.clear();
        (&mut *bytes).take(FRAME as u64).read_to_end(&mut plain)?;
        if plain.is_empty() {
            break;
        }
        let stored = compressor.compress(&plain)?;
        write_all_at(&*file, &stored, at)?;
        at += stored.len() as u64;
        entries.extend_from_slice(&(stored.len() as u32).to_le_bytes());
        entries.extend_from_slice(&(plain.len() as u32).to_le_bytes());
    }
    let count = entries.len() / ENTRY;
    if count > MAX_FRAMES {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let mut table = TABLE_MAGIC.to_vec();
    table.extend_from_slice(&((entries.len() + TAIL) as u32).to_le_bytes());
    table.extend_from_slice(&entries);
    table.extend_from_slice(&(count as u32).to_le_bytes());
    table.push(0);
    table.extend_from_slice(&TABLE_END);
    write_all_at(&*file, &table, at)?;
    file.sync()
}

/// Writes a compressed log as it was, whole and durably. One that is damaged stays as it is.
pub(crate) fn decompress(disk: &dyn Disk, compressed: &Path, path: &Path) -> io::Result<()> {
    let damaged = |what: String| io::Error::new(io::ErrorKind::InvalidData, what);
    let (source, damage) = CompressedFile::open(disk, compressed)?;
    if let Some(damage) = damage {
        return Err(damaged(damage.to_string()));
    }
    let temporary = temporary(path);
    let written = (|| {
        let file = disk.open(&temporary, OpenMode::Replace)?;
        for frame in &source.frames {
            let plain = source.decompress(*frame)?;
            let plain = plain.ok_or_else(|| damaged(format!("it is damaged at byte {}", frame.begin)))?;
            write_all_at(&*file, &plain, frame.begin)?;
        }
        file.sync()?;
        disk.rename(&temporary, path)
    })();
    if let Err(error) = written {
        let _ = disk.remove_file(&temporary);
        return Err(error);
    }
    disk.sync_dir(path.parent().unwrap_or(Path::new("/")))
}
