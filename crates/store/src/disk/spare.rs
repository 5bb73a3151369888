//! Descriptors kept back for answering: whatever stays open leaves the last ones alone, and some are kept for reading, so that
//! callers can be accepted and logs be shown when everything else has taken what there is.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

/// Files that can be read at once while there is nothing left for anybody else.
const KEPT: usize = 4;

/// Descriptors that whatever stays open leaves to those who come and go: connections, files that are read.
const LAST: usize = 16;

/// What is kept back: open files that nobody uses, each of which makes room for another one.
static SPARE: Mutex<Vec<File>> = Mutex::new(Vec::new());

/// Keeps descriptors back, as far as there are any.
pub(super) fn keep_back() {
    let mut spare = SPARE.lock().unwrap_or_else(PoisonError::into_inner);
    while spare.len() < KEPT {
        match File::open("/dev/null") {
            Ok(file) => spare.push(file),
            Err(_) => return,
        }
    }
}

/// Gives a descriptor back to those that are kept, when it is dropped behind the file that had it.
pub(super) struct GiveBack;

impl Drop for GiveBack {
    fn drop(&mut self) {
        keep_back();
    }
}

/// Opens a file for reading, with a descriptor that was kept back if there is no other.
pub(super) fn open(options: &OpenOptions, path: &Path) -> io::Result<(File, Option<GiveBack>)> {
    let mut give_back = None;
    loop {
        match options.open(path) {
            Err(error) if is_lacking(&error) => {
                let spare = SPARE.lock().unwrap_or_else(PoisonError::into_inner).pop();
                // Closed here; somebody else may be faster, and then there may be another.
                drop(spare.ok_or(error)?);
                give_back = Some(GiveBack);
            }
            opened => return opened.map(|file| (file, give_back)),
        }
    }
}

/// Refuses a file that is meant to stay open if it has one of the last descriptors: the lowest free number is always taken.
pub(super) fn leave_the_last(file: File) -> io::Result<File> {
    let most = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let number = u64::try_from(file.as_raw_fd()).unwrap_or(0);
    if number.saturating_add(LAST as u64) >= most { Err(Errno::MFILE.into()) } else { Ok(file) }
}

/// Checks that there are descriptors for something that stays open: an agent's connection, its journal, a worker. The last ones
/// are not for that.
pub fn check_descriptors() -> io::Result<()> {
    let mut taken = Vec::with_capacity(LAST);
    for _ in 0..LAST {
        taken.push(File::open("/dev/null")?);
    }
    Ok(())
}

/// Tells whether the process, or the machine, has no descriptors left.
fn is_lacking(error: &io::Error) -> bool {
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
        keep_back();
        let limit = getrlimit(Resource::Nofile);
        setrlimit(Resource::Nofile, Rlimit { current: Some(64), ..limit }).expect("a lower limit");
        let mut taken: Vec<File> = std::iter::from_fn(|| File::open(&own).ok()).collect();
        assert!(File::open(&own).is_err());
        for _ in 0..3 {
            let mut read: Vec<_> = (0..KEPT).map(|_| open(&reading, &own).expect("one kept back")).collect();
            assert!(open(&reading, &own).is_err_and(|error| is_lacking(&error)), "no more than were kept");
            assert!(open(&reading, Path::new("/nowhere")).is_err());
            read.pop();
            assert!(File::open(&own).is_err(), "it was given back");
            assert!(open(&reading, &own).is_ok());
        }
        assert!(check_descriptors().is_err_and(|error| is_lacking(&error)));
        taken.truncate(taken.len() - LAST / 2);
        let last = File::open(&own).expect("one of the last");
        assert!(leave_the_last(last).is_err_and(|error| is_lacking(&error)));
        assert!(check_descriptors().is_err());
        taken.truncate(taken.len() - LAST);
        assert!(leave_the_last(File::open(&own).expect("a usual one")).is_ok());
        assert!(check_descriptors().is_ok());
        let (_, give_back) = open(&reading, &own).expect("a usual one");
        assert!(give_back.is_none());
        setrlimit(Resource::Nofile, limit).expect("as before");
    }
}
