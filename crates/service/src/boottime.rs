//! The clock by which deadlines go: that of the machine since it was started, which nobody can set and which goes on while
//! it sleeps. It is compared with the wall clock once in each life of the machine, and every daemon of that life goes by
//! the same comparison: a wall clock that is set later makes no deadline come early.

use std::io;
use std::path::Path;

use rekindle_domain::time::Timestamp;
use rekindle_holder::identity::machine_boot;
use rekindle_store::disk::{Disk, read_all, replace};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use crate::error::chain;
use crate::test_knobs::crash_point;

/// The file in a home that has the comparison.
const FILE: &str = "clock";

/// More than such a file ever has.
const MOST: u64 = 4096;

/// The boot-time clock, tied to the wall clock by one moment on both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BootClock {
    wall: Timestamp,
    /// Milliseconds since the machine was started.
    uptime: i64,
}

#[derive(Serialize, Deserialize)]
struct File {
    machine_boot: String,
    wall_ms: i64,
    uptime_ms: i64,
}

impl BootClock {
    /// Compares the clocks now.
    pub fn compare(wall: Timestamp) -> BootClock {
        BootClock { wall, uptime: uptime() }
    }

    /// Returns the comparison that a home has of this life of the machine; none if there is none.
    pub fn known(disk: &dyn Disk, home: &Path) -> Option<BootClock> {
        let file: File = serde_json::from_slice(&read_all(disk, &home.join(FILE), MOST).ok()?).ok()?;
        file.comparison(&machine_boot().ok()?, uptime())
    }

    /// Returns the comparison of a home whose lock we have; the first one of a life of the machine is kept. One that
    /// cannot be kept stops nobody: it is good as long as this process lives.
    pub fn of_home(disk: &dyn Disk, home: &Path, wall: Timestamp) -> BootClock {
        if let Some(known) = BootClock::known(disk, home) {
            return known;
        }
        let steady = BootClock::compare(wall);
        crash_point("clock.before");
        if let Err(error) = steady.write(disk, &home.join(FILE)) {
            tracing::warn!("the clock cannot be recorded: {}", chain(&error));
        }
        crash_point("clock.after");
        steady
    }

    fn write(&self, disk: &dyn Disk, path: &Path) -> io::Result<()> {
        let (wall_ms, uptime_ms) = (self.wall.as_millis(), self.uptime);
        let file = File { machine_boot: machine_boot()?, wall_ms, uptime_ms };
        replace(disk, path, &serde_json::to_vec(&file).map_err(io::Error::other)?)
    }

    /// Returns the time.
    pub fn now(&self) -> Timestamp {
        self.at(uptime())
    }

    /// Returns when the machine was started.
    pub fn began(&self) -> Timestamp {
        self.at(0)
    }

    /// Returns the time when the machine has run, and slept, for so long.
    fn at(&self, uptime: i64) -> Timestamp {
        self.wall.plus_millis(uptime.saturating_sub(self.uptime))
    }
}

impl File {
    /// Returns what was kept if it is of this life of the machine: a time before it was kept is of another.
    fn comparison(&self, machine_boot: &str, uptime: i64) -> Option<BootClock> {
        let same = self.machine_boot == machine_boot && self.uptime_ms <= uptime;
        same.then(|| BootClock { wall: Timestamp::from_millis(self.wall_ms), uptime: self.uptime_ms })
    }
}

fn uptime() -> i64 {
    let time = clock_gettime(ClockId::Boottime);
    time.tv_sec.saturating_mul(1000).saturating_add(time.tv_nsec / 1_000_000).saturating_add(slept())
}

/// How long a test has the machine sleep, in milliseconds: what the file says that `REKINDLE_SLEPT` names. No other clock
/// notices, and nothing can set it in builds without debug assertions.
#[cfg(all(debug_assertions, not(test)))]
fn slept() -> i64 {
    let file = std::env::var_os("REKINDLE_SLEPT");
    let text = file.and_then(|file| std::fs::read_to_string(file).ok());
    text.and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}

#[cfg(not(debug_assertions))]
fn slept() -> i64 {
    0
}

/// How far a test has moved the clock by hand.
#[cfg(all(debug_assertions, test))]
fn slept() -> i64 {
    i64::try_from(crate::ticks::manual_clock::moved().as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use rekindle_domain::time::{Moment, Now};
    use rekindle_store::disk::RealDisk;

    use super::*;

    // Deadlines go on while the machine sleeps, and come neither early nor late.
    #[test]
    fn a_sleep_counts_in_full_and_only_once() {
        const HOUR: i64 = 3_600_000;
        let at = Timestamp::from_millis;
        let file = File { machine_boot: "this".into(), wall_ms: 50 * HOUR, uptime_ms: 2 * HOUR };
        let steady = file.comparison("this", 2 * HOUR).expect("of this life");
        let deadline = steady.at(2 * HOUR).plus_millis(8 * HOUR);
        let past = |steady: BootClock, uptime: i64, wall: Timestamp| {
            Moment { now: Now { wall, steady: steady.at(uptime) }, newest: at(50 * HOUR) }.is_past(deadline)
        };
        // The machine sleeps for seven hours, and for eight; the wall clock was set or not.
        for wall in [50 * HOUR, 57 * HOUR, 5000 * HOUR].map(at) {
            for steady in [Some(steady), file.comparison("this", 9 * HOUR)].map(|known| known.expect("known"))
            {
                assert!(!past(steady, 9 * HOUR, wall) && !past(steady, 10 * HOUR - 1, wall));
                assert!(past(steady, 10 * HOUR, wall));
            }
        }
        assert_eq!(file.comparison("another", 9 * HOUR), None);
        assert_eq!(file.comparison("this", 2 * HOUR - 1), None, "before it was made");
        assert_eq!(steady.at(i64::MIN), at(i64::MIN), "nothing overflows");
    }

    #[test]
    fn one_comparison_holds_for_a_life_of_the_machine() {
        let home = tempfile::tempdir().expect("a directory");
        let at = Timestamp::from_millis;
        let first = BootClock::of_home(&RealDisk, home.path(), at(1_000_000));
        let later = BootClock::of_home(&RealDisk, home.path(), at(90_000_000));
        assert_eq!(first, later, "whatever the wall clock says by now");
        assert!(first.now() >= at(1_000_000) && first.now() < at(1_060_000));
        let path = home.path().join(FILE);
        let text = std::fs::read_to_string(&path).expect("kept");
        let boot = machine_boot().expect("a boot");
        for other in
            [text.replace(&boot, "another"), "{".to_owned(), text.replace("uptime_ms\":", "uptime_ms\":9")]
        {
            std::fs::write(&path, other).expect("written");
            assert_eq!(BootClock::known(&RealDisk, home.path()), None);
            assert!(BootClock::of_home(&RealDisk, home.path(), at(5_000_000)).now() >= at(5_000_000));
        }
    }
}
