//! Reserved descriptors: whatever stays open leaves the last ones alone, and some are kept for reading, so that
//! callers can be accepted and logs be shown when everything else has taken what there is.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

/// Files that can be read at once while there is nothing left for anybody else.
const RESERVED: usize = 4;

/// Descriptors that whatever stays open leaves to those who come and go: connections, files that are read.
const LEFT_FREE: usize = 16;

/// The reserve: open files that nobody uses, each of which makes room for another one.
static RESERVE: Mutex<Vec<File>> = Mutex::new(Vec::new());

/// Fills the reserve, as far as there are descriptors.
pub(super) fn fill_reserve() {
    let mut reserve = RESERVE.lock().unwrap_or_else(PoisonError::into_inner);
    while reserve.len() < RESERVED {
        match File::open("/dev/null") {
            Ok(file) => reserve.push(file),
            Err(_) => return,
        }
    }
}

/// Fills the reserve again when it is dropped, behind the file that had a reserved descriptor.
pub(super) struct RefillOnDrop;

impl Drop for RefillOnDrop {
    fn drop(&mut self) {
        fill_reserve();
    }
}

/// Opens a file for reading, with a reserved descriptor if there is no other.
pub(super) fn open(options: &OpenOptions, path: &Path) -> io::Result<(File, Option<RefillOnDrop>)> {
    let mut refill = None;
    loop {
        match options.open(path) {
            Err(error) if is_out_of_descriptors(&error) => {
                let reserve = RESERVE.lock().unwrap_or_else(PoisonError::into_inner).pop();
                // Closed here; somebody else may be faster, and then there may be another.
                drop(reserve.ok_or(error)?);
                refill = Some(RefillOnDrop);
            }
            opened => return opened.map(|file| (file, refill)),
        }
    }
}

/// Refuses a file that is meant to stay open if it has one of the last descriptors: the lowest free number is always taken.
pub(super) fn leave_the_last_free(file: File) -> io::Result<File> {
    let most = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let number = u64::try_from(file.as_raw_fd()).unwrap_or(0);
    if number.saturating_add(LEFT_FREE as u64) >= most { Err(Errno::MFILE.into()) } else { Ok(file) }
}

/// Checks that there are descriptors for something that stays open: an agent's connection, its journal, a worker. The last ones
/// are not for that.
pub fn check_descriptors() -> io::Result<()> {
    let mut taken = Vec::with_capacity(LEFT_FREE);
    for _ in 0..LEFT_FREE {
        taken.push(File::open("/dev/null")?);
    }
    Ok(())
}

/// Tells whether a call failed because the process, or the machine, has no descriptors left.
pub fn is_out_of_descriptors(error: &io::Error) -> bool {
    [Errno::MFILE, Errno::NFILE].iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

#[cfg(test)]
mod tests {
    use rustix::process::{Rlimit, setrlimit};

    use super::*;

    // The whole process goes short, so this is one test in a process of its own.
    #[test]
    fn files_can_be_read_when_nothing_else_can_be_opened() {
        let own = std::env::current_exe().expect("a path");
        let mut reading = OpenOptions::new();
        reading.read(true);
        fill_reserve();
        let limit = getrlimit(Resource::Nofile);
        setrlimit(Resource::Nofile, Rlimit { current: Some(64), ..limit }).expect("a lower limit");
        let mut taken: Vec<File> = std::iter::from_fn(|| File::open(&own).ok()).collect();
        assert!(File::open(&own).is_err());
        for _ in 0..3 {
            let mut read: Vec<_> =
                (0..RESERVED).map(|_| open(&reading, &own).expect("one kept back")).collect();
            assert!(
                open(&reading, &own).is_err_and(|error| is_out_of_descriptors(&error)),
                "no more than were kept"
            );
            assert!(open(&reading, Path::new("/nowhere")).is_err());
            read.pop();
            assert!(File::open(&own).is_err(), "it was given back");
            assert!(open(&reading, &own).is_ok());
        }
        assert!(check_descriptors().is_err_and(|error| is_out_of_descriptors(&error)));
        taken.truncate(taken.len() - LEFT_FREE / 2);
        let last = File::open(&own).expect("one of the last");
        assert!(leave_the_last_free(last).is_err_and(|error| is_out_of_descriptors(&error)));
        assert!(check_descriptors().is_err());
        taken.truncate(taken.len() - LEFT_FREE);
        assert!(leave_the_last_free(File::open(&own).expect("a usual one")).is_ok());
        assert!(check_descriptors().is_ok());
        let (_, refill) = open(&reading, &own).expect("a usual one");
        assert!(refill.is_none());
        setrlimit(Resource::Nofile, limit).expect("as before");
    }
}
