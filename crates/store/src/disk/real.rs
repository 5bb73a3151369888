//! The operating system's file system behind the [`Disk`] seam.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::time::SystemTime;

use rustix::fs::{Advice, FallocateFlags};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::reserved_descriptors::{self, RefillOnDrop};
use super::{Disk, DiskFile, Entry, EntryKind, OpenMode, Stat};

/// More open files than this gain nothing.
const MOST_DESCRIPTORS: u64 = 16_384;

const FILE_MODE: u32 = 0o600;
const DIR_MODE: u32 = 0o700;

/// The operating system's files.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealDisk;

impl RealDisk {
    /// Raises the limit of open files as far as we may, and returns it; some descriptors are kept back for reading.
    ///
    /// Between two checkpoints every log that was written to stays open; the usual limit of 1,024 would make
    /// checkpoints frequent in a home with many busy sessions.
    pub fn raise_descriptor_limit() -> u64 {
        reserved_descriptors::fill_reserve();
        let limit = getrlimit(Resource::Nofile);
        let wanted = limit.maximum.unwrap_or(MOST_DESCRIPTORS).min(MOST_DESCRIPTORS);
        match limit.current {
            Some(current) if current < wanted => {
                let raised = Rlimit { current: Some(wanted), maximum: limit.maximum };
                if setrlimit(Resource::Nofile, raised).is_ok() { wanted } else { current }
            }
            current => current.unwrap_or(wanted),
        }
    }
}

impl Disk for RealDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Box<dyn DiskFile>> {
        let mut options = OpenOptions::new();
        options.read(true).mode(FILE_MODE);
        // A link in place of one of our files could lead a write outside the home; opening a FIFO would wait for
        // ever for its other end.
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        options.custom_flags(flags.bits() as i32);
        options.write(mode != OpenMode::Read).create_new(mode == OpenMode::CreateNew);
        options
            .create(matches!(mode, OpenMode::Create | OpenMode::Replace))
            .truncate(mode == OpenMode::Replace);
        let (file, refill) = match mode {
            OpenMode::Read => reserved_descriptors::open(&options, path)?,
            // Logs stay open. What is replaced is closed at once, or must not wait: the write-ahead log.
            OpenMode::Write | OpenMode::Create => {
                (reserved_descriptors::leave_the_last_free(options.open(path)?)?, None)
            }
            OpenMode::CreateNew | OpenMode::Replace => (options.open(path)?, None),
        };
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        // The umask may have taken bits away, or an older file may have too many.
        if mode != OpenMode::Read && metadata.mode() & 0o777 != FILE_MODE {
            file.set_permissions(fs::Permissions::from_mode(FILE_MODE))?;
        }
        Ok(Box::new(RealFile { file, len_at_open: metadata.len(), _refill: refill }))
    }

    fn stat(&self, path: &Path) -> io::Result<Stat> {
        fs::symlink_metadata(path).map(|metadata| stat_of(&metadata))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<Entry>> {
        fs::read_dir(dir)?
            .map(|entry| {
                let entry = entry?;
                let kind = entry.file_type()?;
                let name = entry.file_name().to_string_lossy().into_owned();
                Ok(Entry { name, kind: kind_of(kind) })
            })
            .collect()
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        match fs::DirBuilder::new().mode(DIR_MODE).create(path) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => {}
            Err(error) => return Err(error),
        }
        if fs::metadata(path)?.mode() & 0o777 != DIR_MODE {
            self.set_mode(path, DIR_MODE)?;
        }
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }

    fn set_mode(&self, path: &Path, mode: u32) -> io::Result<()> {
        fs::set_permissions(path, fs::Permissions::from_mode(mode))
    }

    fn parallel_syncs(&self) -> usize {
        8
    }
}

struct RealFile {
    file: File,
    len_at_open: u64,
    /// Dropped behind the file.
    _refill: Option<RefillOnDrop>,
}

impl DiskFile for RealFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(buf, offset)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<usize> {
        self.file.write_at(buf, offset)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        match rustix::fs::fallocate(&self.file, FallocateFlags::empty(), 0, len) {
            Ok(()) => Ok(()),
            // Some file systems cannot reserve; a sparse file is then all there is.
            Err(rustix::io::Errno::OPNOTSUPP) => {
                if self.file.metadata()?.len() < len {
                    self.file.set_len(len)?;
                }
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    fn begin_write_back(&self, from: u64) {
        // What is on disk already may leave the page cache; what is not begins to be written. Where that is unknown, the
        // sync writes it.
        let _ = rustix::fs::fadvise(&self.file, from, None, Advice::DontNeed);
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn stat(&self) -> io::Result<Stat> {
        self.file.metadata().map(|metadata| stat_of(&metadata))
    }

    fn len_at_open(&self) -> io::Result<u64> {
        Ok(self.len_at_open)
    }

    fn try_lock(&self) -> io::Result<bool> {
        match self.file.try_lock() {
            Ok(()) => Ok(true),
            Err(fs::TryLockError::WouldBlock) => Ok(false),
            Err(fs::TryLockError::Error(error)) => Err(error),
        }
    }

    fn share(&self) -> io::Result<OwnedFd> {
        self.file.try_clone().map(OwnedFd::from)
    }
}

fn stat_of(metadata: &fs::Metadata) -> Stat {
    Stat {
        len: metadata.len(),
        kind: kind_of(metadata.file_type()),
        mode: metadata.mode() & 0o777,
        identity: (metadata.dev(), metadata.ino()),
        modified: metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH),
    }
}

fn kind_of(kind: fs::FileType) -> EntryKind {
    if kind.is_file() {
        EntryKind::File
    } else if kind.is_dir() {
        EntryKind::Dir
    } else {
        EntryKind::Other
    }
}
