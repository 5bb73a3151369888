//! Test knobs, in builds with debug assertions only: named places where a test has the daemon die, and times that a test
//! shortens. There is a place between any two effects: records, processes, words to a holder.

use std::time::Duration;

/// Dies here, without a last word, if `REKINDLE_CRASH_AT` names this place: by its name, or as `name#n` when it is
/// come by for the n-th time. `*` is every place.
#[cfg(debug_assertions)]
pub(crate) fn crash_point(name: &str) {
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicUsize, Ordering};

    static WANTED: LazyLock<Option<(String, usize)>> = LazyLock::new(|| {
        let wanted = std::env::var("REKINDLE_CRASH_AT").ok()?;
        Some(match wanted.split_once('#') {
            Some((name, times)) => (name.to_owned(), times.parse().ok()?),
            None => (wanted, 1),
        })
    });
    static PASSED: AtomicUsize = AtomicUsize::new(0);

    let Some((wanted, times)) = &*WANTED else { return };
    if (wanted == "*" || wanted == name) && PASSED.fetch_add(1, Ordering::SeqCst) + 1 == *times {
        use rustix::process::{Signal, getpid, kill_process};
        eprintln!("dies at {name}");
        let _ = kill_process(getpid(), Signal::KILL);
        // Until it arrives.
        loop {
            std::thread::park();
        }
    }
}

#[cfg(not(debug_assertions))]
pub(crate) fn crash_point(_name: &str) {}

/// Returns the milliseconds that the variable `REKINDLE_` with this name behind it has, or the usual time.
#[cfg(debug_assertions)]
pub fn hurried(name: &str, usual: Duration) -> Duration {
    let wanted = std::env::var(format!("REKINDLE_{name}")).ok().and_then(|text| text.parse().ok());
    wanted.map_or(usual, Duration::from_millis)
}

/// Returns the usual time: what is shipped is not hurried.
#[cfg(not(debug_assertions))]
pub fn hurried(_name: &str, usual: Duration) -> Duration {
    usual
}
