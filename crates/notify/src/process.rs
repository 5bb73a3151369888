//! A program run for a moment: fed, listened to within limits, and ended with everything it began when its time is up.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

/// How much of what it says is kept: the end, where errors are.
const KEPT: usize = 2 << 10;

/// How much is listened to at all.
const MOST_OUTPUT: usize = 1 << 20;

/// How long the system may take to end what was killed.
const DYING: Duration = Duration::from_secs(1);

/// How it ended.
#[derive(Debug)]
pub(crate) enum Ended {
    /// By itself.
    Exited(ExitStatus),
    /// Its time was up.
    TimedOut,
}

/// What came of a program.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) ended: Ended,
    /// The end of what it wrote to its error output.
    pub(crate) said: Vec<u8>,
}

/// Runs a program with some input, for so long at most. When it has ended, so has everything that it left in its group.
pub(crate) fn run(command: &mut Command, input: &[u8], limit: Duration) -> io::Result<Outcome> {
    let deadline = Instant::now() + limit;
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).process_group(0);
    let mut child = command.spawn()?;
    let ended = converse(&mut child, input, deadline);
    let exited = end_group(&mut child);
    let (by_itself, said) = ended?;
    let ended = match exited? {
        Some(status) if by_itself => Ended::Exited(status),
        _ => Ended::TimedOut,
    };
    Ok(Outcome { ended, said })
}

/// Feeds and hears a program until it has ended; tells whether it did so in time.
fn converse(child: &mut Child, input: &[u8], deadline: Instant) -> io::Result<(bool, Vec<u8>)> {
    let handle = pidfd_open(pid(child)?, PidfdFlags::empty())?;
    let mut unwritten = input;
    let mut stdin = child.stdin.take();
    let mut stderr = child.stderr.take();
    if let Some(stdin) = &stdin {
        set_nonblocking(stdin)?;
    }
    if let Some(stderr) = &stderr {
        set_nonblocking(stderr)?;
    }
    let mut said = Said::default();
    loop {
        if unwritten.is_empty() {
            // The end of its input.
            stdin = None;
        }
        if said.heard > MOST_OUTPUT {
            stderr = None;
        }
        let mut waited = vec![PollFd::new(&handle, PollFlags::IN)];
        waited.extend(stdin.as_ref().map(|stdin| PollFd::new(stdin, PollFlags::OUT)));
        waited.extend(stderr.as_ref().map(|stderr| PollFd::new(stderr, PollFlags::IN)));
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).map_err(io::Error::other)?;
        match poll(&mut waited, Some(&timeout)) {
            Err(Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
            Ok(0) => return Ok((false, said.lines())),
            Ok(_) => {}
        }
        let has_ended = !waited[0].revents().is_empty();
        drop(waited);
        if let Some(pipe) = &mut stdin {
            match pipe.write(unwritten) {
                Ok(count) => unwritten = &unwritten[count..],
                Err(error) if is_temporary(&error) => {}
                // It does not want to hear any more.
                Err(_) => stdin = None,
            }
        }
        if let Some(pipe) = &mut stderr {
            match said.hear(pipe) {
                // Its last words are there when it has ended.
                Heard::Some if has_ended => {
                    while said.heard <= MOST_OUTPUT && said.hear(pipe) == Heard::Some {}
                }
                Heard::Some | Heard::Nothing => {}
                Heard::End => stderr = None,
            }
        }
        if has_ended {
            return Ok((true, said.lines()));
        }
        if Instant::now() >= deadline {
            return Ok((false, said.lines()));
        }
    }
}

/// What a program says.
#[derive(Default)]
struct Said {
    heard: usize,
    kept: Vec<u8>,
}

/// What there was to hear.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Heard {
    Some,
    Nothing,
    End,
}

impl Said {
    /// Returns whole lines: whoever looks for something in the first would not find what was cut.
    fn lines(mut self) -> Vec<u8> {
        if self.heard > self.kept.len() {
            let end = self.kept.iter().position(|byte| *byte == b'\n').unwrap_or(self.kept.len());
            self.kept.drain(..end);
        }
        self.kept
    }

    /// Reads some of what is there.
    fn hear(&mut self, pipe: &mut impl Read) -> Heard {
        let mut chunk = [0; 4096];
        match pipe.read(&mut chunk) {
            Ok(0) => Heard::End,
            Ok(count) => {
                self.heard += count;
                self.kept.extend_from_slice(&chunk[..count]);
                let superfluous = self.kept.len().saturating_sub(KEPT);
                self.kept.drain(..superfluous);
                Heard::Some
            }
            Err(error) if is_temporary(&error) => Heard::Nothing,
            Err(_) => Heard::End,
        }
    }
}

fn is_temporary(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// Ends a group, and reaps its leader: until then its number, and the group's, belong to nobody else. Nothing is returned for a leader
/// that the system cannot end now.
fn end_group(leader: &mut Child) -> io::Result<Option<ExitStatus>> {
    let group = pid(leader)?;
    // One that has ended may have left none behind.
    let _ = kill_process_group(group, Signal::KILL);
    let handle = pidfd_open(group, PidfdFlags::empty())?;
    let deadline = Instant::now() + DYING;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).map_err(io::Error::other)?;
        match poll(&mut [PollFd::new(&handle, PollFlags::IN)], Some(&timeout)) {
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
            Ok(_) => return leader.try_wait(),
        }
    }
}

fn pid(child: &Child) -> io::Result<Pid> {
    i32::try_from(child.id()).ok().and_then(Pid::from_raw).ok_or_else(|| io::Error::other("no process id"))
}

fn set_nonblocking(pipe: &impl AsFd) -> io::Result<()> {
    fcntl_setfl(pipe, fcntl_getfl(pipe)? | OFlags::NONBLOCK)?;
    Ok(())
}
