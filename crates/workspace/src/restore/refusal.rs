//! Which errors concern one path, which is then left alone and named, and which everything: a full disk, a failing one.

use std::io;

use rustix::io::Errno;

use super::report::LeftWhy;

/// Errors that say something about a path and nothing about the next one.
const OF_ONE_PATH: &[Errno] = &[
    Errno::ACCESS,
    Errno::PERM,
    Errno::ROFS,
    Errno::NOENT,
    Errno::NOTDIR,
    Errno::ISDIR,
    Errno::LOOP,
    Errno::XDEV,
    Errno::EXIST,
    Errno::NOTEMPTY,
    Errno::BUSY,
    Errno::TXTBSY,
    Errno::NAMETOOLONG,
    Errno::INVAL,
    Errno::ILSEQ,
    Errno::MLINK,
    Errno::OPNOTSUPP,
    Errno::STALE,
];

/// Returns true if the error concerns one path.
pub(super) fn is_of_one_path(error: &io::Error) -> bool {
    error.raw_os_error().is_some_and(|code| OF_ONE_PATH.contains(&Errno::from_raw_os_error(code)))
}

/// Returns true if there is nothing at the path.
pub(super) fn is_not_there(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
}

/// Returns the reason to leave a path alone, or the error if it concerns everything.
pub(super) fn of_one_path(error: io::Error) -> io::Result<LeftWhy> {
    if is_of_one_path(&error) { Ok(LeftWhy::Refused(error.to_string())) } else { Err(error) }
}
