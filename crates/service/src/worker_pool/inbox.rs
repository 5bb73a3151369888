//! The inbox of a worker: what it is told, and how it is woken while it waits for something else.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Mutex;
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

use crate::lock::locked;

/// Commands that wait for their worker, in order.
pub(crate) struct Inbox<C> {
    commands: Mutex<VecDeque<C>>,
    bell: OwnedFd,
}

impl<C> Inbox<C> {
    pub(crate) fn new() -> io::Result<Inbox<C>> {
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Inbox { commands: Mutex::default(), bell })
    }

    pub(crate) fn push(&self, command: C) {
        locked(&self.commands).push_back(command);
        // A bell that has rung too often to count rings all the same.
        let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
    }

    pub(crate) fn pop(&self) -> Option<C> {
        locked(&self.commands).pop_front()
    }

    pub(crate) fn is_empty(&self) -> bool {
        locked(&self.commands).is_empty()
    }

    /// Waits until something comes: a command, news on the other descriptor, or the end of the time; tells whether it was the last.
    /// A bell that was rung for a command that is done by now is something too.
    pub(crate) fn wait(&self, other: Option<BorrowedFd<'_>>, most: Option<Duration>) -> bool {
        let mut fds = vec![PollFd::from_borrowed_fd(self.bell.as_fd(), PollFlags::IN)];
        fds.extend(other.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
        let timeout = most.and_then(|most| Timespec::try_from(most).ok());
        // Whatever goes wrong, looking again is all there is to do.
        let came = poll(&mut fds, timeout.as_ref());
        if came.is_ok() && !fds[0].revents().is_empty() {
            let _ = rustix::io::read(&self.bell, &mut [0; 8]);
        }
        came == Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_end_of_the_time_is_waiting_in_vain() {
        let inbox = Inbox::new().expect("a bell");
        inbox.push(());
        assert!(inbox.pop().is_some() && inbox.is_empty());
        assert!(!inbox.wait(None, Some(Duration::from_secs(60))), "it was rung");
        assert!(inbox.wait(None, Some(Duration::from_millis(1))), "once");
    }
}
