//! The real root: a directory that stays open, and calls relative to it. Directories below are opened with `openat2`, which
//! resolves no link and leaves no root, or name by name without following links where the kernel or a sandbox has no `openat2`.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{self, AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;

use super::paths::split;
use super::refusal::is_of_one_path;
use super::root::{Root, Seen, SeenKind};
use crate::tree::FileMode;

/// How a directory is opened to work in it; it need not be readable.
const AS_PLACE: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// How a directory is opened to list or sync it.
const AS_LIST: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// How often `openat2` is tried again: it gives up when somebody renames anything at the wrong moment.
const RACES: usize = 16;

/// Bytes that are written to a file at once.
const BUFFER_BYTES: usize = 64 << 10;

/// A directory of the machine.
#[derive(Debug)]
pub struct DirRoot {
    root: OwnedFd,
    opening: Opening,
}

/// How directories below the root are opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Opening {
    /// With one call of `openat2`.
    AtOnce,
    /// Name by name.
    StepByStep,
}

/// The directory that a path is in: the root itself, or one that was opened.
enum Place<'a> {
    Root(BorrowedFd<'a>),
    Below(OwnedFd),
}

impl AsFd for Place<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Place::Root(fd) => *fd,
            Place::Below(fd) => fd.as_fd(),
        }
    }
}

impl DirRoot {
    /// Opens the root. Links above it and the root itself are followed: which directory it is, is the caller's business.
    pub fn open(path: &Path) -> io::Result<DirRoot> {
        let root = fs::openat(fs::CWD, path, AS_LIST, Mode::empty())?;
        let is_there = fs::openat2(&root, ".", AS_PLACE, Mode::empty(), resolve()).is_ok();
        // A sandbox that forbids the call answers as it likes; name by name always works.
        let opening = if is_there { Opening::AtOnce } else { Opening::StepByStep };
        Ok(DirRoot { root, opening })
    }

    /// Opens the root as on a system without `openat2`.
    #[cfg(test)]
    pub(super) fn open_step_by_step(path: &Path) -> io::Result<DirRoot> {
        Ok(DirRoot { opening: Opening::StepByStep, ..DirRoot::open(path)? })
    }

    /// Opens a directory below the root.
    fn directory(&self, path: &[u8], flags: OFlags) -> io::Result<OwnedFd> {
        if path.is_empty() {
            return Ok(fs::openat(&self.root, ".", flags, Mode::empty())?);
        }
        if self.opening == Opening::AtOnce {
            for _ in 0..RACES {
                match fs::openat2(&self.root, as_path(path), flags, Mode::empty(), resolve()) {
                    Err(Errno::AGAIN | Errno::INTR) => {}
                    opened => return Ok(opened?),
                }
            }
        }
        self.step_by_step(path, flags)
    }

    fn step_by_step(&self, path: &[u8], flags: OFlags) -> io::Result<OwnedFd> {
        let mut names = path.split(|byte| *byte == b'/').peekable();
        let mut directory: Option<OwnedFd> = None;
        while let Some(name) = names.next() {
            if name.is_empty() || name == b"." || name == b".." {
                return Err(Errno::XDEV.into());
            }
            let flags = if names.peek().is_some() { AS_PLACE } else { flags };
            let at = directory.as_ref().map_or(self.root.as_fd(), AsFd::as_fd);
            // A link at the last name is an error with `NOFOLLOW`, and so is anything else that is no directory.
            directory = Some(fs::openat(at, as_path(name), flags | OFlags::NOFOLLOW, Mode::empty())?);
        }
        directory.ok_or_else(|| Errno::NOENT.into())
    }

    /// Returns the directory that a path is in, and the path's name there.
    fn place<'a>(&'a self, path: &'a [u8]) -> io::Result<(Place<'a>, &'a Path)> {
        let (directory, name) = split(path);
        if name.is_empty() || name == b"." || name == b".." {
            return Err(Errno::XDEV.into());
        }
        let place = match directory {
            b"" => Place::Root(self.root.as_fd()),
            _ => Place::Below(self.directory(directory, AS_PLACE)?),
        };
        Ok((place, as_path(name)))
    }

    /// Opens a regular file as it is; a pipe or a device is not waited for.
    fn regular(&self, path: &[u8]) -> io::Result<(File, Seen)> {
        let (place, name) = self.place(path)?;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = fs::openat(place, name, flags, Mode::empty())?;
        let seen = seen(&fs::fstat(&file)?);
        if seen.kind != SeenKind::File {
            return Err(Errno::INVAL.into());
        }
        Ok((File::from(file), seen))
    }
}

impl Root for DirRoot {
    fn stat(&self, path: &[u8]) -> io::Result<Option<Seen>> {
        if path.is_empty() {
            return Ok(Some(seen(&fs::fstat(&self.root)?)));
        }
        let found = self.place(path).and_then(|(place, name)| {
            fs::statat(place, name, AtFlags::SYMLINK_NOFOLLOW).map_err(io::Error::from)
        });
        match found {
            Ok(stat) => Ok(Some(seen(&stat))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn list(&self, directory: &[u8]) -> io::Result<Vec<Vec<u8>>> {
        let mut names = Vec::new();
        for entry in Dir::new(self.directory(directory, AS_LIST)?)? {
            let name = entry?.file_name().to_bytes().to_vec();
            if name != b"." && name != b".." {
                names.push(name);
            }
        }
        Ok(names)
    }

    fn open(&self, path: &[u8]) -> io::Result<(Box<dyn Read + '_>, Seen)> {
        let (file, seen) = self.regular(path)?;
        Ok((Box::new(file), seen))
    }

    fn read_link(&self, path: &[u8]) -> io::Result<Vec<u8>> {
        let (place, name) = self.place(path)?;
        Ok(fs::readlinkat(place, name, Vec::new())?.into_bytes())
    }

    fn write_file(
        &self,
        path: &[u8],
        mode: FileMode,
        fill: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<()> {
        let (place, name) = self.place(path)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        // Nobody else sees a content before it is known who may.
        let file = File::from(fs::openat(place, name, flags, Mode::RUSR | Mode::WUSR)?);
        let mut writer = BufWriter::with_capacity(BUFFER_BYTES, file);
        fill(&mut writer)?;
        let file = writer.into_inner().map_err(io::IntoInnerError::into_error)?;
        Ok(fs::fchmod(&file, Mode::from_raw_mode(mode.permissions()))?)
    }

    fn make_link(&self, path: &[u8], target: &[u8]) -> io::Result<()> {
        let (place, name) = self.place(path)?;
        Ok(fs::symlinkat(as_path(target), place, name)?)
    }

    fn make_dir(&self, path: &[u8]) -> io::Result<()> {
        let (place, name) = self.place(path)?;
        Ok(fs::mkdirat(place, name, Mode::from_raw_mode(0o777))?)
    }

    fn set_mode(&self, path: &[u8], mode: FileMode) -> io::Result<()> {
        let (file, _) = self.regular(path)?;
        Ok(fs::fchmod(&file, Mode::from_raw_mode(mode.permissions()))?)
    }

    fn rename(&self, directory: &[u8], from: &[u8], to: &[u8]) -> io::Result<()> {
        let place = self.directory(directory, AS_PLACE)?;
        Ok(fs::renameat(&place, as_path(from), &place, as_path(to))?)
    }

    fn remove_file(&self, path: &[u8]) -> io::Result<()> {
        let (place, name) = self.place(path)?;
        Ok(fs::unlinkat(place, name, AtFlags::empty())?)
    }

    fn remove_dir(&self, path: &[u8]) -> io::Result<()> {
        let (place, name) = self.place(path)?;
        Ok(fs::unlinkat(place, name, AtFlags::REMOVEDIR)?)
    }

    fn sync_dir(&self, directory: &[u8]) -> io::Result<()> {
        Ok(fs::fsync(self.directory(directory, AS_LIST)?)?)
    }

    fn sync_file_systems(&self, directories: &mut dyn Iterator<Item = &[u8]>) -> io::Result<()> {
        let mut synced = BTreeSet::from([fs::fstat(&self.root)?.st_dev]);
        fs::syncfs(&self.root)?;
        for directory in directories {
            // Something else may be mounted below the root.
            match self.directory(directory, AS_LIST) {
                Ok(directory) => {
                    if synced.insert(fs::fstat(&directory)?.st_dev) {
                        fs::syncfs(&directory)?;
                    }
                }
                // It was moved away, or may not be read.
                Err(error) if is_of_one_path(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

fn resolve() -> ResolveFlags {
    ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS
}

fn seen(stat: &Stat) -> Seen {
    let kind = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => SeenKind::File,
        FileType::Symlink => SeenKind::Link,
        FileType::Directory => SeenKind::Directory,
        _ => SeenKind::Special,
    };
    let nanoseconds =
        |seconds: i64, fraction: i64| seconds.saturating_mul(1_000_000_000).saturating_add(fraction);
    Seen {
        kind,
        permissions: stat.st_mode & 0o7777,
        size: u64::try_from(stat.st_size).unwrap_or(0),
        inode: stat.st_ino,
        mtime_ns: nanoseconds(stat.st_mtime, stat.st_mtime_nsec as i64),
        ctime_ns: nanoseconds(stat.st_ctime, stat.st_ctime_nsec as i64),
        has_other_names: stat.st_nlink > 1,
    }
}

fn as_path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}
