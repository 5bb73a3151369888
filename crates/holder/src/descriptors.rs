//! File descriptors of a detached process: inherited ones are closed, and the limit on their number is raised.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// More than this gains nobody anything; programs that go through all possible descriptors suffer from more.
const MOST: u64 = 16_384;

/// Closes every descriptor but the three standard ones: a lock, a pipe or a socket of whoever started this process would stay
/// open as long as it lives.
///
/// To be called before the process opens anything that it means to keep, on its only thread.
#[expect(unsafe_code, reason = "closing descriptors by number")]
pub fn close_inherited() {
    let Ok(entries) = std::fs::read_dir("/proc/self/fd") else { return };
    let open: Vec<i32> =
        entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    for fd in open.into_iter().filter(|fd| *fd > 2) {
        // SAFETY: nothing of ours is open yet, on the only thread: no object owns a descriptor above 2. The one that
        // listed the directory is closed by now, so each is looked at first.
        unsafe {
            if rustix::io::fcntl_getfd(BorrowedFd::borrow_raw(fd)).is_ok() {
                rustix::io::close(fd);
            }
        }
    }
}

/// Waits until a descriptor can be read from, or has come to its end; false once the deadline has passed.
pub fn wait_readable(fd: impl AsFd, deadline: Instant) -> io::Result<bool> {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).map_err(io::Error::other)?;
        match poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&timeout)) {
            Err(Errno::INTR) => {}
            ready => return Ok(ready? > 0),
        }
    }
}

/// Raises the limit on open descriptors as far as this process may.
pub fn raise_limit() {
    let limit = getrlimit(Resource::Nofile);
    let wanted = limit.maximum.unwrap_or(MOST).min(MOST);
    if limit.current.is_some_and(|current| current < wanted) {
        // One that may not is left with what it has.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum: limit.maximum });
    }
}
