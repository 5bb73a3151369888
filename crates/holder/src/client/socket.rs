//! A connection to a holder's socket that never waits longer than it is told to. It reads while it writes, because
//! a holder that cannot get rid of its words hangs up.

use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, sockopt};

/// Read at once.
const PIECE: usize = 64 << 10;

/// Activity at a socket within a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Activity {
    /// Bytes came or went.
    Moved,
    /// The other side has closed it, and everything it said before is in the inbox.
    Closed,
    /// Nothing happened in time.
    Late,
}

/// A holder's socket, with buffers for both directions.
#[derive(Debug)]
pub(super) struct Socket {
    stream: UnixStream,
    inbox: Vec<u8>,
    outbox: Vec<u8>,
    closed: bool,
}

impl Socket {
    /// Connects. A listener that is stopped and has a full queue lets nobody in: that is waited for, but not longer
    /// than until the deadline.
    pub(super) fn connect(path: &Path, deadline: Instant) -> io::Result<Socket> {
        let address = SocketAddrUnix::new(path)?;
        let flags = SocketFlags::CLOEXEC;
        let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        loop {
            let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
            sockopt::set_socket_timeout(&socket, sockopt::Timeout::Send, Some(left))?;
            match rustix::net::connect(&socket, &address) {
                Ok(()) => break,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Err(io::ErrorKind::TimedOut.into()),
                Err(error) => return Err(error.into()),
            }
        }
        Socket::new(UnixStream::from(socket))
    }

    pub(super) fn new(stream: UnixStream) -> io::Result<Socket> {
        stream.set_nonblocking(true)?;
        Ok(Socket { stream, inbox: Vec::new(), outbox: Vec::new(), closed: false })
    }

    /// Returns the user whose process listens there.
    pub(super) fn peer_uid(&self) -> io::Result<u32> {
        Ok(sockopt::socket_peercred(&self.stream)?.uid.as_raw())
    }

    /// Queues bytes to be sent.
    pub(super) fn queue(&mut self, bytes: &[u8]) {
        self.outbox.extend_from_slice(bytes);
    }

    /// Takes what has come.
    pub(super) fn take_received(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.inbox)
    }

    /// Sends everything that is queued.
    pub(super) fn flush(&mut self, deadline: Instant) -> io::Result<Activity> {
        while !self.outbox.is_empty() {
            match self.turn(deadline)? {
                Activity::Moved => {}
                other => return Ok(other),
            }
        }
        Ok(Activity::Moved)
    }

    /// Waits until something has come.
    pub(super) fn receive(&mut self, deadline: Instant) -> io::Result<Activity> {
        while self.inbox.is_empty() {
            match self.turn(deadline)? {
                Activity::Moved => {}
                other => return Ok(other),
            }
        }
        Ok(Activity::Moved)
    }

    fn turn(&mut self, deadline: Instant) -> io::Result<Activity> {
        if self.closed {
            return Ok(Activity::Closed);
        }
        let mut events = PollFlags::IN;
        events.set(PollFlags::OUT, !self.outbox.is_empty());
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).map_err(io::Error::other)?;
        let mut fds = [PollFd::new(&self.stream, events)];
        match poll(&mut fds, Some(&timeout)) {
            Ok(0) => return Ok(Activity::Late),
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(Activity::Moved),
            Err(error) => return Err(error.into()),
        }
        let ready = fds[0].revents();
        if ready.intersects(PollFlags::OUT | PollFlags::ERR) && !self.outbox.is_empty() {
            self.write();
        }
        // The end of the stream is readable too.
        self.read()
    }

    fn write(&mut self) {
        match self.stream.write(&self.outbox) {
            Ok(count) => drop(self.outbox.drain(..count)),
            Err(error) if is_passing(&error) => {}
            // The other side has gone; what it said before it went is still to be read.
            Err(_) => self.outbox.clear(),
        }
    }

    fn read(&mut self) -> io::Result<Activity> {
        self.inbox.reserve(PIECE);
        match rustix::io::read(&self.stream, spare_capacity(&mut self.inbox)).map_err(io::Error::from) {
            Ok(0) => {
                self.closed = true;
                Ok(Activity::Closed)
            }
            Ok(_) => Ok(Activity::Moved),
            Err(error) if is_passing(&error) => Ok(Activity::Moved),
            // Killed with words of ours unread: the same as an end.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {
                self.closed = true;
                Ok(Activity::Closed)
            }
            Err(error) => Err(error),
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
