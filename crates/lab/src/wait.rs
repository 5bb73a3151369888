//! Waiting: for what has no other way to tell us, by looking again and again, with a deadline.

use std::time::{Duration, Instant};

/// How long anything may take: nothing does on a busy machine, unless it hangs.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// How often a test looks.
const LOOK: Duration = Duration::from_millis(5);

/// Looks until something is there, and panics if that takes longer than [`PATIENCE`].
#[track_caller]
pub fn wait_for<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    match look_for(PATIENCE, LOOK, look) {
        Some(found) => found,
        None => panic!("waited in vain for {what}"),
    }
}

/// Looks every so often until something is there; none if that takes too long.
pub fn look_for<T>(within: Duration, every: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let begin = Instant::now();
    loop {
        if let Some(found) = look() {
            return Some(found);
        }
        if begin.elapsed() >= within {
            return None;
        }
        std::thread::sleep(every);
    }
}
