//! A command of ours at a terminal: a person who sees the screen and presses keys. What the terminal was like before
//! is compared with what it is like afterwards, however the command ends.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command};
use std::time::Instant;

use rekindle_holder::identity::Identity;
use rekindle_holder::tree::signal_exactly;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Signal;
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Termios, Winsize, tcgetattr, tcsetwinsize};

use crate::lab::PATIENCE;
use crate::screen::screen;

/// How long output is waited for before it is looked whether the command has ended.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

pub(crate) const CTRL_C: &str = "\x03";
pub(crate) const ESC: &str = "\x1b";

/// A terminal with a command in its foreground.
pub(crate) struct Pty {
    ours: File,
    theirs: File,
    before: Termios,
    columns: u16,
    child: Child,
    output: Vec<u8>,
}

impl Pty {
    /// Starts a command at a terminal with so many columns.
    pub(crate) fn start(command: &Command, columns: u16) -> Pty {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let ours = openpt(flags).expect("a terminal");
        grantpt(&ours).and_then(|()| unlockpt(&ours)).expect("ours");
        let theirs = ioctl_tiocgptpeer(&ours, flags).expect("its other end");
        let size = Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&theirs, size).expect("a size");
        let (ours, theirs) = (File::from(ours), File::from(theirs));
        let before = tcgetattr(&theirs).expect("its modes");
        let end = || theirs.try_clone().expect("another handle");
        // Makes the terminal its own, as a shell's is, and becomes the command.
        let mut shell = Command::new("setsid");
        shell.arg("--ctty").arg(command.get_program()).args(command.get_args());
        shell.env("TERM", "xterm-256color").env_remove("NO_COLOR");
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => shell.env(name, value),
                None => shell.env_remove(name),
            };
        }
        shell.current_dir(command.get_current_dir().expect("a directory"));
        let child = shell.stdin(end()).stdout(end()).stderr(end()).spawn().expect("it starts");
        Pty { ours, theirs, before, columns, child, output: Vec::new() }
    }

    /// Reads what was written since; waits a moment if nothing was.
    pub(crate) fn read(&mut self) {
        let mut ready = [PollFd::new(&self.ours, PollFlags::IN)];
        if poll(&mut ready, Some(&LOOK)).expect("waited") == 0 {
            return;
        }
        let mut buffer = [0; 4096];
        // We hold the other end too: it never hangs up.
        let len = self.ours.read(&mut buffer).expect("read");
        self.output.extend_from_slice(&buffer[..len]);
    }

    /// Returns all that was written.
    pub(crate) fn written(&self) -> &[u8] {
        &self.output
    }

    /// Returns what stands on the screen and above it; lines that the terminal wrapped are one.
    pub(crate) fn text(&self) -> String {
        screen(&String::from_utf8_lossy(&self.output), usize::from(self.columns))
    }

    /// Waits until a text is seen.
    #[track_caller]
    pub(crate) fn see(&mut self, text: &str) {
        let begin = Instant::now();
        while !self.text().contains(text) {
            let ended = self.child.try_wait().expect("looked");
            let over = begin.elapsed() > PATIENCE || (ended.is_some() && !self.has_more());
            assert!(!over, "{text:?} is not to be seen ({ended:?}):\n{}", self.text());
            self.read();
        }
    }

    /// Returns how often the bell rang.
    pub(crate) fn bells(&self) -> usize {
        self.output.iter().filter(|byte| **byte == 0x07).count()
    }

    /// Waits until the bell has rung so often.
    #[track_caller]
    pub(crate) fn hear_bells(&mut self, wanted: usize) {
        let begin = Instant::now();
        while self.bells() < wanted {
            assert!(begin.elapsed() < PATIENCE, "{} of {wanted} bells:\n{}", self.bells(), self.text());
            self.read();
        }
    }

    fn has_more(&self) -> bool {
        let mut ready = [PollFd::new(&self.ours, PollFlags::IN)];
        poll(&mut ready, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).expect("looked") > 0
    }

    /// Presses keys.
    pub(crate) fn press(&mut self, keys: &str) {
        self.ours.write_all(keys.as_bytes()).expect("pressed");
    }

    /// Makes the terminal larger or smaller, as whoever drags a window does.
    pub(crate) fn resize(&mut self, columns: u16, rows: u16) {
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&self.theirs, size).expect("a size");
        self.columns = columns;
    }

    /// Waits until what is seen is as wanted.
    #[track_caller]
    pub(crate) fn see_that(&mut self, what: &str, is: impl Fn(&str) -> bool) {
        let begin = Instant::now();
        while !is(&self.text()) {
            assert!(begin.elapsed() < PATIENCE, "{what} is not to be seen:\n{}", self.text());
            self.read();
        }
    }

    /// Sends the command a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        let process = Identity::of(self.child.id().cast_signed()).expect("it lives");
        signal_exactly(&process, signal).expect("signalled");
    }

    /// Tells whether the terminal is as it was.
    pub(crate) fn is_as_before(&self) -> bool {
        let now = tcgetattr(&self.theirs).expect("its modes");
        format!("{now:?}") == format!("{:?}", self.before)
    }

    /// Waits until the command has ended, and returns its exit code; the terminal must be as it was.
    #[track_caller]
    pub(crate) fn end(&mut self) -> Option<i32> {
        let begin = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("looked") {
                break status;
            }
            assert!(begin.elapsed() < PATIENCE, "it does not end:\n{}", self.text());
            self.read();
        };
        while self.has_more() {
            self.read();
        }
        assert!(self.is_as_before(), "the terminal is not given back:\n{}", self.text());
        status.code()
    }

    /// Waits until its keys go to the command one by one.
    pub(crate) fn wait_taken(&mut self) {
        crate::lab::wait_for("the terminal to be taken", || (!self.is_as_before()).then_some(()));
    }
}

impl Drop for Pty {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
