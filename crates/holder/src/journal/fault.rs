//! A sync that fails when a test wants it to, in builds with debug assertions only: no real disk can be asked to.

use std::fs::File;
use std::io;

/// Makes a file's data durable.
pub(super) fn sync_data(file: &File) -> io::Result<()> {
    if fails() {
        return Err(io::Error::from(rustix::io::Errno::IO));
    }
    file.sync_data()
}

/// Tells whether this sync, counted from the first, is one of those in `REKINDLE_FAIL_SYNC`, as `3` or `3-5`.
#[cfg(debug_assertions)]
fn fails() -> bool {
    use std::sync::atomic::{AtomicU64, Ordering};
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let Ok(wanted) = std::env::var("REKINDLE_FAIL_SYNC") else { return false };
    let count = COUNT.fetch_add(1, Ordering::Relaxed) + 1;
    let (from, to) = wanted.split_once('-').unwrap_or((&wanted, &wanted));
    matches!((from.parse(), to.parse()), (Ok(from), Ok(to)) if (from..=to).contains(&count))
}

#[cfg(not(debug_assertions))]
fn fails() -> bool {
    false
}
