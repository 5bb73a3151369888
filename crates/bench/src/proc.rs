//! What the kernel says of a process: its memory and its time.

use std::fs;
use std::time::Duration;

use anyhow::Context as _;

/// Returns a process's anonymous and resident bytes.
pub(crate) fn memory(id: u32) -> anyhow::Result<[f64; 2]> {
    let text = fs::read_to_string(format!("/proc/{id}/smaps_rollup")).context("cannot look at a process")?;
    let bytes = |name: &str| -> anyhow::Result<f64> {
        let line =
            text.lines().find_map(|line| line.strip_prefix(name)).context("the kernel does not say")?;
        let kib: f64 = line.trim().trim_end_matches(" kB").parse().context("that is no number")?;
        Ok(kib * 1024.0)
    };
    Ok([bytes("Anonymous:")?, bytes("Rss:")?])
}

/// Returns the time of processors that a process has taken, its own and the kernel's for it.
pub(crate) fn time(id: u32) -> anyhow::Result<Duration> {
    let line = fs::read_to_string(format!("/proc/{id}/stat")).context("cannot look at a process")?;
    let ticks = ticks(&line).context("the kernel's line is not as it was")?;
    Ok(Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second() as f64))
}

/// The name stands in parentheses and may hold anything: the last one ends it.
fn ticks(line: &str) -> Option<u64> {
    let mut words = line.get(line.rfind(')')? + 1..)?.split_ascii_whitespace().skip(11);
    let mut number = || words.next()?.parse::<u64>().ok();
    Some(number()? + number()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_read_from_behind_the_name() {
        assert_eq!(ticks("42 (a) R 1 (b)) S 7 8 9 0 -1 4 0 0 0 0 30 12 0 0 20 0 1"), Some(42));
        assert!(time(std::process::id()).is_ok() && memory(std::process::id()).is_ok());
    }
}
