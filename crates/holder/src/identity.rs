//! Which process is meant: a pid alone is not enough, because pids come round in less than a minute.

use std::io::{self, Read};
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

/// A process that cannot be mistaken for a later one with the same pid.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Identity {
    /// Its pid.
    pub pid: i32,
    /// When it started, in the kernel's ticks since boot.
    pub start_ticks: u64,
    /// The kernel's boot that is meant.
    pub machine_boot: String,
}

/// Whether a process is still there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// It is that very process.
    Alive,
    /// It has ended, even if nobody has collected it or its pid belongs to another by now.
    Gone,
}

impl Identity {
    /// Returns the identity of a process that is there now.
    pub fn of(pid: i32) -> io::Result<Identity> {
        let stat = Stat::read(pid)?;
        Ok(Identity { pid, start_ticks: stat.start_ticks, machine_boot: machine_boot()? })
    }

    /// Looks whether the process is still there.
    pub fn presence(&self) -> io::Result<Presence> {
        if machine_boot()? != self.machine_boot {
            return Ok(Presence::Gone);
        }
        match Stat::read(self.pid) {
            Ok(stat) if stat.start_ticks == self.start_ticks && !stat.ended => Ok(Presence::Alive),
            Ok(_) => Ok(Presence::Gone),
            Err(error) if is_gone(&error) => Ok(Presence::Gone),
            Err(error) => Err(error),
        }
    }
}

/// Tells whether an error of `/proc` means that the process has ended.
pub(crate) fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
        || error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error())
}

/// Returns the kernel's boot id. No process outlives its boot, so that one look is enough.
pub fn machine_boot() -> io::Result<String> {
    static BOOT: OnceLock<String> = OnceLock::new();
    if let Some(boot) = BOOT.get() {
        return Ok(boot.clone());
    }
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned();
    Ok(BOOT.get_or_init(|| boot).clone())
}

/// What the kernel says of a process in one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stat {
    /// Its parent.
    pub parent: i32,
    /// Its process group.
    pub group: i32,
    /// Its session.
    pub session: i32,
    /// When it started, in ticks since boot.
    pub start_ticks: u64,
    /// It has ended and waits to be collected.
    pub ended: bool,
}

impl Stat {
    /// Reads the line of a process.
    pub fn read(pid: i32) -> io::Result<Stat> {
        // One read: the kernel tells no size, so that the library would feel its way in six. What we need of the line
        // stands in its first few hundred bytes.
        let mut line = [0; 1024];
        let len = std::fs::File::open(format!("/proc/{pid}/stat"))?.read(&mut line)?;
        Stat::parse(&line[..len])
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "unreadable process line"))
    }

    /// The name stands in parentheses and may hold anything, even parentheses: the last one ends it.
    fn parse(line: &[u8]) -> Option<Stat> {
        let end = line.iter().rposition(|byte| *byte == b')')?;
        let rest = std::str::from_utf8(line.get(end + 1..)?).ok()?;
        let words: Vec<&str> = rest.split_ascii_whitespace().collect();
        let number = |index: usize| words.get(index)?.parse().ok();
        Some(Stat {
            parent: number(1)?,
            group: number(2)?,
            session: number(3)?,
            start_ticks: words.get(19)?.parse().ok()?,
            ended: matches!(*words.first()?, "Z" | "X"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_full_of_tricks_is_read_over() {
        let line = b"42 (a) R 1 (b)) S 7 8 9 0 -1 4 0 0 0 0 0 0 0 0 20 0 1 0 123456 0 0";
        let stat = Stat::parse(line).expect("a line");
        assert_eq!((stat.parent, stat.group, stat.session, stat.start_ticks), (7, 8, 9, 123_456));
        assert_eq!(Stat::parse(b"42 (cat"), None);
    }

    // I9
    #[test]
    fn a_process_is_itself_and_a_recycled_pid_is_not() {
        let me = Identity::of(std::process::id() as i32).expect("we are there");
        assert_eq!(me.presence().expect("readable"), Presence::Alive);
        let later = Identity { start_ticks: me.start_ticks + 1, ..me.clone() };
        assert_eq!(later.presence().expect("readable"), Presence::Gone);
        let before = Identity { machine_boot: "another".into(), ..me };
        assert_eq!(before.presence().expect("readable"), Presence::Gone);
    }
}
