//! A command at a terminal: what it wrote, and when.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// Runs a command whose output is a terminal, and returns what it wrote, with how long after the first words that was. A command that
/// ends badly is an error: it is not what was to be shown.
pub(crate) fn record(
    program: &OsStr,
    arguments: &[OsString],
    columns: u16,
) -> io::Result<Vec<(Duration, Vec<u8>)>> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let ours = openpt(flags)?;
    grantpt(&ours)?;
    unlockpt(&ours)?;
    let theirs = File::from(ioctl_tiocgptpeer(&ours, flags)?);
    tcsetwinsize(&theirs, Winsize { ws_row: 60, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 })?;
    let mut command = Command::new(program);
    command.args(arguments).env("TERM", "xterm-256color").env_remove("NO_COLOR").stdin(Stdio::null());
    command.stdout(theirs.try_clone()?).stderr(theirs);
    let mut child = command.spawn()?;
    // The command has its own handles of the terminal's other end; ours would keep it open.
    drop(command);
    let mut ours = File::from(ours);
    let mut chunks = Vec::new();
    let mut buffer = [0; 4096];
    let mut began = None;
    // Once nobody holds the other end, reading fails: that is how a terminal ends.
    while let Ok(length @ 1..) = ours.read(&mut buffer) {
        let began = *began.get_or_insert_with(Instant::now);
        chunks.push((began.elapsed(), buffer[..length].to_vec()));
    }
    let status = child.wait()?;
    if status.success() { Ok(chunks) } else { Err(io::Error::other(format!("it ended with {status}"))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(script: &str) -> io::Result<String> {
        let arguments = ["-c", script].map(OsString::from);
        let chunks = record(OsStr::new("sh"), &arguments, 60)?;
        assert!(chunks.is_sorted_by_key(|(at, _)| *at));
        let bytes: Vec<u8> = chunks.into_iter().flat_map(|(_, bytes)| bytes).collect();
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    #[test]
    fn the_command_has_a_terminal_and_its_failure_is_an_error() {
        let said = recorded("test -t 1 && test -t 2 && echo here && stty size <&1").expect("it ends well");
        assert_eq!(said, "here\r\n60 60\r\n");
        let error = recorded("echo here; exit 3").expect_err("it ends badly");
        assert!(error.to_string().contains('3'), "{error}");
    }
}
