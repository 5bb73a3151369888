//! Opens what lies below the root of a capture, through no link, whatever happens to the directories meanwhile.

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{Mode, OFlags, ResolveFlags, fstat, fstatfs, open, openat, openat2};
use rustix::io::Errno;

use crate::rules::{IgnoreFiles, MAX_IGNORE_FILE_BYTES};
use crate::stamp::has_exact_directories;

/// The root of a capture.
pub(super) struct Root {
    path: PathBuf,
    directory: OwnedFd,
    /// The device whose directories change their times whenever their names change, if the root's does.
    exact_device: Option<u64>,
    /// The kernel has no `openat2`, or somebody forbids it.
    steps_only: AtomicBool,
}

/// How directories are opened.
const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// How files are opened: a pipe or a device in a file's place is not waited for.
pub(super) const FILE: OFlags = OFlags::RDONLY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY);

impl Root {
    /// Opens the root by its path, which has no links in it any more.
    pub(super) fn open(path: &Path) -> rustix::io::Result<Root> {
        let directory = open(path, DIRECTORY, Mode::empty())?;
        // Whoever does not say what it is, is not trusted.
        let file_system =
            fstatfs(&directory).ok().filter(|system| has_exact_directories(system.f_type as u64));
        let exact_device = file_system.and_then(|_| fstat(&directory).ok()).map(|stat| stat.st_dev);
        Ok(Root { path: path.to_owned(), directory, exact_device, steps_only: AtomicBool::new(false) })
    }

    /// Returns true if directories of a device need not be listed again while they look the same.
    pub(super) fn has_exact_directories(&self, device: u64) -> bool {
        self.exact_device == Some(device)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens a directory by its path from the root, with or without a slash at its end; the root itself has none.
    pub(super) fn directory(&self, path: &[u8]) -> rustix::io::Result<OwnedFd> {
        self.open_beneath(path.strip_suffix(b"/").unwrap_or(path), DIRECTORY)
    }

    fn open_beneath(&self, path: &[u8], flags: OFlags) -> rustix::io::Result<OwnedFd> {
        let target = if path.is_empty() { b".".as_slice() } else { path };
        if !self.steps_only.load(Ordering::Relaxed) {
            let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
            match retry(|| openat2(&self.directory, target, flags, Mode::empty(), resolve)) {
                Err(Errno::NOSYS) => self.steps_only.store(true, Ordering::Relaxed),
                // A filter of system calls may say EPERM to all of them; a path may be longer than one call takes; a rename
                // somewhere may have made the kernel unsure.
                Err(Errno::PERM | Errno::NAMETOOLONG | Errno::AGAIN | Errno::XDEV) => {}
                result => return result,
            }
        }
        let mut here: Option<OwnedFd> = None;
        let mut names = target.split(|byte| *byte == b'/').peekable();
        while let Some(name) = names.next() {
            let base = here.as_ref().unwrap_or(&self.directory).as_fd();
            let flags = if names.peek().is_some() { DIRECTORY } else { flags };
            here = Some(retry(|| openat(base, name, flags, Mode::empty()))?);
        }
        here.ok_or(Errno::NOENT)
    }
}

impl IgnoreFiles for Root {
    fn read(&self, path: &[u8]) -> Option<Vec<u8>> {
        let file = File::from(self.open_beneath(path, FILE).ok()?);
        let metadata = file.metadata().ok().filter(|file| file.is_file())?;
        let mut content = Vec::with_capacity(metadata.len().min(MAX_IGNORE_FILE_BYTES) as usize);
        file.take(MAX_IGNORE_FILE_BYTES + 1).read_to_end(&mut content).ok()?;
        (content.len() as u64 <= MAX_IGNORE_FILE_BYTES).then_some(content)
    }
}

/// Calls again while a signal interrupts.
pub(super) fn retry<T>(call: impl FnMut() -> rustix::io::Result<T>) -> rustix::io::Result<T> {
    rustix::io::retry_on_intr(call)
}

/// Returns true if an error is of this process or machine, not of the file that was opened.
pub(super) fn is_exhausted(error: Errno) -> bool {
    matches!(error, Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::NOBUFS)
}

/// Returns true if an error means that what was listed is not there any more, or is something else now.
pub(super) fn is_gone(error: Errno) -> bool {
    matches!(error, Errno::NOENT | Errno::NOTDIR | Errno::LOOP)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn no_link_is_followed_below_the_root_with_or_without_openat2() {
        let place = tempfile::tempdir().expect("a directory");
        fs::create_dir_all(place.path().join("root/a/b")).expect("directories");
        fs::create_dir(place.path().join("outside")).expect("a directory");
        fs::write(place.path().join("root/a/b/.gitignore"), "x").expect("a file");
        fs::write(place.path().join("outside/.gitignore"), "y").expect("a file");
        symlink("../outside", place.path().join("root/out")).expect("a link");
        symlink("a", place.path().join("root/inside")).expect("a link");
        let root = Root::open(&place.path().join("root")).expect("a root");
        for steps_only in [false, true] {
            root.steps_only.store(steps_only, Ordering::Relaxed);
            assert!(
                root.directory(b"").is_ok()
                    && root.directory(b"a/b/").is_ok()
                    && root.directory(b"a").is_ok()
            );
            for link in [b"out/".as_slice(), b"inside/", b"inside/b/"] {
                assert!(is_gone(root.directory(link).expect_err("a link")), "{steps_only}");
            }
            assert_eq!(root.read(b"a/b/.gitignore").as_deref(), Some(b"x".as_slice()));
            assert_eq!((root.read(b"out/.gitignore"), root.read(b"a")), (None, None));
        }
    }
}
