//! Our own process, as the system sees it, under the names that every exporter uses. What it does not say is left out.

use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use rustix::param::{clock_ticks_per_second, page_size};
use rustix::process::{Resource, getrlimit};

use super::page::{Kind, Page, seconds};

pub(super) fn show(page: &mut Page) {
    if let Some(fields) = std::fs::read_to_string("/proc/self/stat").ok().as_deref().and_then(Stat::read) {
        let help = "Processor time that the daemon has used";
        page.single("process_cpu_seconds_total", Kind::Counter, help, seconds(fields.cpu));
        page.single("process_resident_memory_bytes", Kind::Gauge, "Memory of the daemon", fields.resident);
    }
    if let Some(open) = open_descriptors() {
        page.single("process_open_fds", Kind::Gauge, "Descriptors that the daemon has open", open);
    }
    if let Some(most) = getrlimit(Resource::Nofile).current {
        page.single("process_max_fds", Kind::Gauge, "Descriptors that the daemon may have open", most);
    }
}

#[derive(Debug, PartialEq)]
struct Stat {
    cpu: Duration,
    resident: u64,
}

impl Stat {
    /// Reads a line of `/proc/PID/stat`. Its second field may hold anything, blanks and brackets too.
    fn read(line: &str) -> Option<Stat> {
        let fields: Vec<&str> = line.rsplit_once(')')?.1.split_whitespace().collect();
        // The first field here is the third of proc(5).
        let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
        let ticks = number(14)? + number(15)?;
        let cpu = Duration::from_secs_f64(ticks as f64 / clock_ticks_per_second().max(1) as f64);
        Some(Stat { cpu, resident: number(24)? * page_size() as u64 })
    }
}

/// Counts descriptors: newer kernels have the number as the size of the directory, older ones have none.
fn open_descriptors() -> Option<u64> {
    let directory = "/proc/self/fd";
    match std::fs::metadata(directory).ok()?.size() {
        0 => Some(std::fs::read_dir(directory).ok()?.count() as u64),
        count => Some(count),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_with_a_strange_name_is_read() {
        let rest = (1..=50).map(|n| n.to_string()).collect::<Vec<_>>().join(" ");
        let stat = Stat::read(&format!("7 (a ) b) S {rest}")).expect("readable");
        assert_eq!(stat.cpu, Duration::from_secs_f64((11 + 12) as f64 / clock_ticks_per_second() as f64));
        assert_eq!(stat.resident, 21 * page_size() as u64);
        assert_eq!(Stat::read("7 (a) S 1 2"), None);
    }

    #[test]
    fn our_own_descriptors_are_counted() {
        let before = open_descriptors().expect("there are some");
        let files: Vec<_> =
            (0..50).map(|_| std::fs::File::open("/proc/self/stat").expect("opened")).collect();
        assert!(open_descriptors().expect("there are more") >= before + 40, "of {} files", files.len());
    }
}
