//! The error numbers the simulated disk answers with: those of Linux, so that callers see the same
//! `io::ErrorKind` and the same raw number as from a real file system.

use std::io;

pub(super) const ENOENT: i32 = 2;
pub(super) const EINTR: i32 = 4;
pub(super) const EIO: i32 = 5;
pub(super) const EBADF: i32 = 9;
pub(super) const EEXIST: i32 = 17;
pub(super) const ENOTDIR: i32 = 20;
pub(super) const EISDIR: i32 = 21;
pub(super) const EINVAL: i32 = 22;
pub(super) const EMFILE: i32 = 24;
pub(super) const EFBIG: i32 = 27;
pub(super) const ENOSPC: i32 = 28;
pub(super) const EROFS: i32 = 30;
pub(super) const ENOTEMPTY: i32 = 39;

/// Returns the error of a number.
pub(super) fn os(number: i32) -> io::Error {
    io::Error::from_raw_os_error(number)
}

/// Returns the error of every call after the freeze.
pub(super) fn frozen() -> io::Error {
    io::Error::other("simulated power cut")
}
